// A small Markdown for replies, what is inside a line: code, emphasis and links. It believes nothing: an image is a link, and a link
// goes to http or https, opens apart from this page and shows the host it leads to. What is not closed is looked for once, so that
// all of it is linear in the text.

import { h, inert, write } from './dom.js';

const EMPHASIS_MAX = 6;
const LABEL_CHARS_MAX = 1000;
const ADDRESS_CHARS_MAX = 2000;

/** Appends inline Markdown to a node. */
export function inline(node, text, depth = 0, inLink = false) {
  const missing = new Set();
  let plain = '';
  const flush = () => {
    if (plain) write(node, plain);
    plain = '';
  };
  for (let at = 0; at < text.length; ) {
    const found = special(text, at, { missing, depth, inLink });
    if (found === null) {
      plain += text[at];
      at += 1;
    } else if (typeof found.show === 'string') {
      plain += found.show;
      at = found.next;
    } else {
      flush();
      node.append(found.show);
      at = found.next;
    }
  }
  flush();
  return node;
}

/** What begins at that place other than plain text: `{ show, next }`, or null. */
function special(text, at, context) {
  switch (text[at]) {
    case '\\':
      return /[!-/:-@[-`{-~]/.test(text[at + 1] ?? '') ? { show: text[at + 1], next: at + 2 } : null;
    case '`':
      return codeSpan(text, at, context.missing);
    case '*':
    case '_':
    case '~':
      return emphasis(text, at, context);
    case '!':
      return text[at + 1] === '[' && !context.inLink ? link(text, at + 1, context) : null;
    case '[':
      return context.inLink ? null : link(text, at, context);
    case '<':
      return context.inLink ? null : angled(text, at);
    case 'h':
      return context.inLink ? null : bare(text, at);
    default:
      return null;
  }
}

function codeSpan(text, at, missing) {
  let end = at;
  while (text[end] === '`') end += 1;
  const mark = text.slice(at, end);
  if (missing.has(mark)) return { show: mark, next: end };
  for (let from = end; ; ) {
    const close = text.indexOf(mark, from);
    if (close < 0) {
      missing.add(mark);
      return { show: mark, next: end };
    }
    let after = close + mark.length;
    while (text[after] === '`') after += 1;
    if (after === close + mark.length) {
      const inside = text.slice(end, close).replaceAll('\n', ' ');
      return { show: h('code', null, /^ .*\S.* $/.test(inside) ? inside.slice(1, -1) : inside), next: after };
    }
    from = after;
  }
}

const TAGS = { '*': ['em'], _: ['em'], '**': ['strong'], __: ['strong'], '***': ['strong', 'em'], '~~': ['del'] };

function emphasis(text, at, { missing, depth, inLink }) {
  let end = at;
  while (text[end] === text[at] && end - at < 3) end += 1;
  const isBoth = end - at === 3 && text[at] === '*' && !missing.has('***') && text.indexOf('***', end) > 0;
  const mark = text.slice(at, isBoth ? end : Math.min(end, at + 2));
  const whole = { show: text.slice(at, end), next: end };
  if (depth >= EMPHASIS_MAX || !(mark in TAGS) || missing.has(mark)) return whole;
  const opens = /\S/.test(text[at + mark.length] ?? ' ') && !(mark[0] === '_' && /\w/.test(text[at - 1] ?? ' '));
  if (!opens) return whole;
  let close = at + mark.length;
  for (;;) {
    close = text.indexOf(mark, close + 1);
    if (close < 0) {
      missing.add(mark);
      return whole;
    }
    const before = /\S/.test(text[close - 1]) && text[close - 1] !== '\\';
    const after = mark[0] !== '_' || !/\w/.test(text[close + mark.length] ?? ' ');
    const exact = mark.length > 1 ? text[close + mark.length] !== mark[0] : text[close + 1] !== mark && text[close - 1] !== mark;
    if (before && after && exact) break;
    if (!exact) while (text[close + 1] === mark[0]) close += 1;
  }
  const [outer, inner] = TAGS[mark];
  const element = h(inner ?? outer);
  inline(element, text.slice(at + mark.length, close), depth + 1, inLink);
  return { show: inner ? h(outer, null, element) : element, next: close + mark.length };
}

const LINK = new RegExp(`\\[([^\\[\\]]{0,${LABEL_CHARS_MAX}})\\]\\(<?([^\\s()<>[\\]]{1,${ADDRESS_CHARS_MAX}}(?:\\([^\\s()<>]{0,200}\\))?)>?(?:[ \\t]+"[^"\\n]{0,300}")?\\)`, 'y');

function link(text, at, { depth }) {
  LINK.lastIndex = at;
  const found = LINK.exec(text);
  if (!found) return null;
  const address = webAddress(found[2]);
  if (address === null) return null;
  const label = found[1].trim() === '' ? h('span', null, address.href) : inline(h('span'), found[1], depth + 1, true);
  return { show: anchor(address, label, found[1] !== address.href), next: LINK.lastIndex };
}

const ANGLED = new RegExp(`<(https?://[^\\s<>]{1,${ADDRESS_CHARS_MAX}})>`, 'y');
const BARE = new RegExp(`https?://[^\\s<>"\`\\]\\u0000-\\u001f]{1,${ADDRESS_CHARS_MAX}}`, 'y');

function angled(text, at) {
  ANGLED.lastIndex = at;
  const found = ANGLED.exec(text);
  return found ? addressItself(found[1], ANGLED.lastIndex) : null;
}

function bare(text, at) {
  if (/\w/.test(text[at - 1] ?? ' ')) return null;
  BARE.lastIndex = at;
  const found = BARE.exec(text);
  if (!found) return null;
  let address = found[0].replace(/[.,;:!?'*_~]+$/, '');
  if (address.endsWith(')') && !address.includes('(')) address = address.slice(0, -1);
  return addressItself(address, at + address.length);
}

function addressItself(text, next) {
  const address = webAddress(text);
  return address === null ? null : { show: anchor(address, h('span', null, text), address.username !== '' || inert(text) !== text), next };
}

/** An address that a link may lead to. */
function webAddress(text) {
  const address = URL.canParse(text) ? new URL(text) : null;
  return address !== null && /^https?:$/.test(address.protocol) && /^https?:\/\//i.test(text) ? address : null;
}

function anchor(address, label, showHost) {
  const host = showHost ? h('span', { class: 'host' }, ` (${address.host})`) : null;
  return h('a', { href: address.href, rel: 'noopener noreferrer nofollow', target: '_blank' }, label, host);
}
