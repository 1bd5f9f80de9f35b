// A small Markdown for replies, its blocks: paragraphs, headings, lists, quotations, tables and code, built of elements. Raw HTML is
// text. What is inside a line is in spans.js. All of it is linear in the text.

import { h, inert, write } from './dom.js';
import { inline } from './spans.js';

const NESTING_MAX = 6;
const COLUMNS_MAX = 40;

// None of these may try the same characters twice: a line is as long as its writer likes.
const FENCE = /^ {0,3}(?:(`{3,})([^`]*)$|(~{3,})(.*)$)/;
const HEADING = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const BULLET = /^( {0,3})([-*+]|\d{1,9}[.)])([ \t]+|$)/;
const QUOTE = /^ {0,3}> ?/;
const DIVIDER_CELL = /^:?-+:?$/;

/** The blocks of a text, each `{ type, source, … }`; two blocks of the same `source` look the same. */
export function blocks(text) {
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  const found = [];
  for (let at = 0; at < lines.length; ) {
    const block = blockAt(lines, at);
    block.source = `${block.type}\n${lines.slice(at, block.next).join('\n')}`;
    at = block.next;
    if (block.type !== 'blank') found.push(block);
  }
  return found;
}

function blockAt(lines, at) {
  const line = lines[at];
  if (line.trim() === '') return { type: 'blank', next: at + 1 };
  const fence = FENCE.exec(line);
  if (fence) return fenced(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) return { type: 'heading', level: heading[1].length, text: headingText(line.slice(heading[0].length)), next: at + 1 };
  if (RULE.test(line)) return { type: 'rule', next: at + 1 };
  if (QUOTE.test(line)) return quotation(lines, at);
  if (BULLET.test(line)) return list(lines, at);
  if (isTable(lines, at)) return table(lines, at);
  let next = at + 1;
  while (next < lines.length && !interrupts(lines, next)) next += 1;
  return { type: 'paragraph', text: lines.slice(at, next).join('\n'), next };
}

function interrupts(lines, at) {
  const line = lines[at];
  const isBullet = BULLET.exec(line);
  return (
    line.trim() === '' || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) ||
    (isBullet !== null && isBullet[3] !== '' && !/^\d+[.)]$/.test(isBullet[2].replace(/^1[.)]$/, '-'))) || isTable(lines, at)
  );
}

/** Without the number signs that may close it. */
function headingText(text) {
  const bare = text.trim();
  let end = bare.length;
  while (bare[end - 1] === '#') end -= 1;
  return end === bare.length || (end > 0 && !/[ \t]/.test(bare[end - 1])) ? bare : bare.slice(0, end).trimEnd();
}

function fenced(lines, at, found) {
  const mark = found[1] ?? found[3];
  const language = (found[2] ?? found[4]).trim().split(/\s/, 1)[0];
  const closes = new RegExp(`^ {0,3}\\${mark[0]}{${mark.length},}[ \\t]*$`);
  let end = at + 1;
  while (end < lines.length && !closes.test(lines[end])) end += 1;
  return { type: 'code', language, text: lines.slice(at + 1, end).join('\n'), next: Math.min(end + 1, lines.length) };
}

function quotation(lines, at) {
  let next = at;
  const inside = [];
  while (next < lines.length && QUOTE.test(lines[next])) {
    inside.push(lines[next].replace(QUOTE, ''));
    next += 1;
  }
  return { type: 'quote', text: inside.join('\n'), next };
}

function list(lines, at) {
  const ordered = /\d/.test(BULLET.exec(lines[at])[2]);
  const items = [];
  let next = at;
  while (next < lines.length) {
    const bullet = BULLET.exec(lines[next]);
    if (!bullet || RULE.test(lines[next]) || /\d/.test(bullet[2]) !== ordered) break;
    const indent = bullet[0].trimEnd().length + Math.min(Math.max(bullet[3].length, 1), 4);
    const item = [lines[next].slice(Math.min(indent, lines[next].length))];
    next += 1;
    while (next < lines.length && belongs(lines, next, indent)) {
      item.push(lines[next].replace(new RegExp(`^ {0,${indent}}`), ''));
      next += 1;
    }
    items.push(item.join('\n').trimEnd());
  }
  return { type: 'list', ordered, start: ordered ? parseInt(BULLET.exec(lines[at])[2], 10) : 1, items, next };
}

/** Whether a line goes on with a list item: indented below it, or a paragraph's next line; an empty line when such follows. */
function belongs(lines, at, indent) {
  const line = lines[at];
  if (line.trim() === '') return at + 1 < lines.length && /^[ \t]{2,}\S/.test(lines[at + 1]) && lines[at - 1].trim() !== '';
  const inside = line.length - line.trimStart().length;
  if (inside >= Math.min(indent, 2)) return true;
  return lines[at - 1].trim() !== '' && !interrupts(lines, at) && !BULLET.test(line);
}

function isTable(lines, at) {
  if (at + 1 === lines.length || !lines[at].includes('|') || !lines[at + 1].includes('-')) return false;
  const divider = cells(lines[at + 1]);
  return divider.every((cell) => DIVIDER_CELL.test(cell)) && divider.length === cells(lines[at]).length;
}

function table(lines, at) {
  let next = at + 2;
  while (next < lines.length && lines[next].trim() !== '' && lines[next].includes('|')) next += 1;
  return { type: 'table', head: cells(lines[at]), rows: lines.slice(at + 2, next).map(cells), next };
}

function cells(line) {
  const bare = line.trim().replace(/^\|/, '').replace(/(^|[^\\])\|$/, '$1');
  return bare.split(/(?<!\\)\|/).slice(0, COLUMNS_MAX).map((cell) => cell.trim().replaceAll('\\|', '|'));
}

/** A block as an element. */
export function render(block, depth = 0) {
  switch (block.type) {
    case 'heading':
      // The page has its own first headings.
      return inline(h(`h${Math.min(block.level + 2, 6)}`), block.text);
    case 'rule':
      return h('hr');
    case 'code':
      return code(block);
    case 'quote':
      return h('blockquote', null, nested(block.text, depth));
    case 'list': {
      const items = block.items.map((item) => h('li', null, nested(item, depth, true)));
      return h(block.ordered ? 'ol' : 'ul', block.ordered && block.start !== 1 ? { start: block.start } : null, items);
    }
    case 'table': {
      const row = (tag) => (row) => h('tr', null, row.map((cell) => inline(h(tag, tag === 'th' ? { scope: 'col' } : null), cell)));
      const body = h('table', null, h('thead', null, row('th')(block.head)), h('tbody', null, block.rows.map(row('td'))));
      return h('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': 'Table' }, body);
    }
    default:
      return inline(h('p', { dir: 'auto' }), block.text);
  }
}

function code(block) {
  const body = h('pre', { tabindex: '0', 'aria-label': block.language ? `Code, ${block.language}` : 'Code' }, h('code', null, block.text));
  const copy = h('button', { type: 'button', class: 'copy', onclick: () => copied(copy, block.text) }, 'Copy');
  return h('div', { class: 'code' }, h('div', { class: 'code-head' }, h('span', null, block.language), copy), body);
}

async function copied(button, text) {
  try {
    // As shown, so that nothing invisible gets into somebody's terminal.
    await navigator.clipboard.writeText(inert(text));
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Not allowed here';
  }
}

function nested(text, depth, tight = false) {
  if (depth >= NESTING_MAX) return [write(h('p'), text)];
  const inside = blocks(text);
  if (tight && inside[0]?.type === 'paragraph' && !text.includes('\n\n')) {
    const [first, ...rest] = inside;
    return [inline(h('span', { dir: 'auto' }), first.text), ...rest.map((block) => render(block, depth + 1))];
  }
  return inside.map((block) => render(block, depth + 1));
}
