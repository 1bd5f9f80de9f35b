// The arguments of a call as text that hides nothing: every entry in the order it came, numbers as they were written, a name that
// is given twice shown twice. JSON.parse would drop or round some of that, and what is shown here is what a person approves.

const SPACE = /[ \t\n\r]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\.)*"/y;
/** Deeper than this nothing is laid out; it is shown as it came. */
const DEPTH_MAX = 200;

/** The entries `[name, value as written]` of a JSON object; null when the text is none. */
export function entries(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  // From here on the text is known to be JSON: where things end is all that is looked for.
  let at = skip(SPACE, text, 0);
  if (text[at] !== '{') return null;
  const found = [];
  at = skip(SPACE, text, at + 1);
  while (text[at] === '"') {
    const name = skip(STRING, text, at);
    const from = skip(SPACE, text, skip(SPACE, text, name) + 1);
    const to = valueEnd(text, from);
    found.push([JSON.parse(text.slice(at, name)), text.slice(from, to)]);
    at = skip(SPACE, text, skip(SPACE, text, to));
    if (text[at] === ',') at = skip(SPACE, text, at + 1);
  }
  return found;
}

/** A value as written: a string as its text, all else laid out where it is long. `{ text, isString }`. */
export function readable(value) {
  if (value.startsWith('"')) return { text: JSON.parse(value), isString: true };
  return { text: value.length > 60 ? laidOut(value) : value, isString: false };
}

function skip(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

function valueEnd(text, from) {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') {
      at = skip(STRING, text, at) - 1;
      if (depth === 0) return at + 1;
    } else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') {
      if (depth === 0) return trimmed(text, from, at);
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (character === ',' && depth === 0) return trimmed(text, from, at);
  }
  return text.length;
}

function trimmed(text, from, to) {
  return from + text.slice(from, to).trimEnd().length;
}

/** JSON with line breaks put between its pieces; the pieces stay as they were written. */
function laidOut(text) {
  let depth = 0;
  let out = '';
  const line = () => `\n${'  '.repeat(depth)}`;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') {
      const end = skip(STRING, text, at);
      out += text.slice(at, end);
      at = end - 1;
    } else if (character === '{' || character === '[') {
      depth += 1;
      if (depth > DEPTH_MAX) return text;
      const closes = skip(SPACE, text, at + 1);
      if (text[closes] === '}' || text[closes] === ']') {
        depth -= 1;
        out += character + text[closes];
        at = closes;
      } else out += character + line();
    } else if (character === '}' || character === ']') {
      depth -= 1;
      out += line() + character;
    } else if (character === ',') out += `,${line()}`;
    else if (character === ':') out += ': ';
    else if (!' \t\n\r'.includes(character)) out += character;
  }
  return out;
}
