// Building elements. Every string that reaches the page goes through `h` or `write`, and with that through `pieces`: nothing here
// knows innerHTML, so text of models, tools and servers is only ever text. What would reorder it, hide in it or act on a terminal
// is shown as a visible escape, by the same rule as on a terminal (SPEC 8.8, crates/core/src/sanitize.rs).

// Control characters (but for line feed and tab), marks of direction, and characters that cannot be seen. The zero-width joiner
// and variation selectors build emoji and stay.
const HOSTILE = new RegExp(
  '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180e\\u200b\\u200c\\u200e' +
    '\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb\\ud800-\\udfff\\u{1d173}-\\u{1d17a}' +
    '\\u{e0000}-\\u{e0fff}]',
  'gu',
);

const SVG = 'http://www.w3.org/2000/svg';

/** One hostile character as it is shown: `\x1b`, `\u{202e}`. */
function escapeOf(character) {
  const code = character.codePointAt(0);
  if (character === '\n') return '\\n';
  if (character === '\r') return '\\r';
  if (character === '\t') return '\\t';
  return code < 0x80 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
}

/** Text with what is hostile in it escaped; line feeds and tabs stay. */
export function inert(text) {
  return String(text).replaceAll('\r\n', '\n').replace(HOSTILE, escapeOf);
}

/** The same for text that must stay on one line. */
export function oneLine(text) {
  return inert(text).replace(/[\n\t]/g, escapeOf);
}

/** Appends text to a node; escapes become spans, so that they can be told from text that looks like one. */
export function write(node, text) {
  const clean = String(text).replaceAll('\r\n', '\n');
  let from = 0;
  for (const found of clean.matchAll(HOSTILE)) {
    if (found.index > from) node.append(clean.slice(from, found.index));
    const escape = document.createElement('span');
    escape.className = 'escape';
    escape.append(escapeOf(found[0]));
    node.append(escape);
    from = found.index + found[0].length;
  }
  if (from < clean.length) node.append(clean.slice(from));
  return node;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : inert(value));
  }
}

/**
 * An element: `h('p', { class: 'note', onclick: act }, 'text', node)`. Attributes that are null or false are left out; children
 * that are no nodes are text.
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  set(element, attributes);
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    if (child instanceof Node) element.append(child);
    else write(element, child);
  }
  return element;
}

/** The same for a drawing. */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  set(element, attributes);
  for (const child of children.flat()) {
    if (child instanceof Node) element.append(child);
    else if (child !== null && child !== undefined) write(element, child);
  }
  return element;
}

/** Says what an element is to whoever cannot see it. */
export function label(element, text) {
  element.setAttribute('aria-label', oneLine(text));
}

const ICONS = {
  back: 'M10 3 5 8l5 5',
  plus: 'M8 3v10M3 8h10',
  send: 'M8 13V3M3.5 7.5 8 3l4.5 4.5',
  down: 'M8 3v10M3.5 8.5 8 13l4.5-4.5',
  check: 'M3 8.5 6.5 12 13 4.5',
  cross: 'M4 4l8 8M12 4l-8 8',
  chart: 'M3 13V8M8 13V3M13 13V6',
};

/** A small picture beside words that say the same; not for screen readers. */
export function icon(name) {
  return svg(
    'svg',
    { class: 'icon', viewBox: '0 0 16 16', 'aria-hidden': 'true' },
    svg('path', { d: ICONS[name], fill: 'none', stroke: 'currentColor', 'stroke-width': '1.75', 'stroke-linecap': 'round', 'stroke-linejoin': 'round' }),
  );
}
