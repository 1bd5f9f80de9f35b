// One item of a conversation as an element. Text goes through `dom.js`, so nothing of it is ever more than text.

import { entries, readable } from './arguments.js';
import { h, icon, label, write } from './dom.js';
import { figures, stateOf } from './model.js';
import { Prose } from './prose.js';
import { clock, count, date, duration, plural, size } from './words.js';

/** A text longer than a screenful is folded to so much of it. */
const FOLD_LINES = 20;
const FOLD_CHARS = 4000;
const SHOWN_LINES = 12;
const SHOWN_CHARS = 3000;
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

const STATES = {
  __proto__: null,
  open: ['', 'asked for'],
  waiting: ['', 'waiting'],
  running: ['', 'running'],
  done: ['check', 'done'],
  failed: ['cross', 'failed'],
  refused: ['cross', 'not run'],
};

/** Text that keeps its lines, folded when it is long. */
export function folded(text, attributes) {
  const lines = text.split('\n');
  const pre = h('pre', attributes);
  if (lines.length <= FOLD_LINES && text.length <= FOLD_CHARS) {
    return write(pre, text);
  }
  write(pre, lines.slice(0, SHOWN_LINES).join('\n').slice(0, SHOWN_CHARS));
  const all = `Show all (${lines.length > 1 ? `${plural(lines.length, 'line')}, ` : ''}${size(text)})`;
  const button = h('button', { type: 'button', class: 'unfold', 'aria-expanded': 'false' }, all);
  button.addEventListener('click', () => {
    pre.replaceChildren();
    write(pre, text);
    pre.tabIndex = -1;
    pre.focus({ preventScroll: true });
    button.remove();
  });
  return h('div', { class: 'folded' }, pre, button);
}

/** The arguments of a call, every one of them; `fold` says whether long ones may be folded. */
export function argumentList(raw, { fold }) {
  const list = entries(raw);
  const shown = (text) => (fold ? folded(text) : h('pre', null, text));
  if (list === null) return raw.trim() === '' ? null : h('div', { class: 'arguments' }, shown(raw));
  if (list.length === 0) return null;
  const rows = list.flatMap(([name, value]) => {
    const { text, isString } = readable(value);
    const body = isString && text === '' ? h('span', { class: 'muted' }, '(empty)') : shown(text);
    return [h('dt', null, oneName(name)), h('dd', { class: isString ? 'string' : 'json' }, body)];
  });
  return h('dl', { class: 'arguments' }, rows);
}

function oneName(name) {
  return name === '' ? '""' : name.replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

function when(time) {
  return h('time', { datetime: new Date(time).toISOString(), title: date(time) }, clock(time));
}

/** Draws an item into its element. It may be called again with the same item and element. */
export function draw(item, element, context) {
  element.className = `item ${item.type}`;
  element.hidden = item.dropped === true;
  try {
    DRAWINGS[item.type](item, element, context);
  } catch (error) {
    // One event of a damaged ledger must not take the others away.
    element.className = 'item note failed';
    element.hidden = false;
    element.replaceChildren(h('p', null, `Event ${item.seq} cannot be shown: ${error.message}`));
  }
}

function user(item, element) {
  label(element, 'You');
  const text = h('div', { class: 'said', dir: 'auto' }, item.event.content);
  element.replaceChildren(h('div', { class: 'who' }, h('span', null, 'You'), when(item.event.time)), text, ...parts(item.event));
}

function parts(event) {
  return (event.data?.parts ?? []).map((part) => {
    if (part.type === 'context') return h('details', { class: 'part' }, h('summary', null, part.label), folded(String(part.text)));
    if (part.type === 'image') return image(part);
    return h('details', { class: 'part' }, h('summary', null, `Block: ${part.type}`), folded(JSON.stringify(part, null, 2)));
  });
}

function image(part) {
  const isSafe = IMAGE_TYPES.includes(part.media_type) && /^[A-Za-z0-9+/=]*$/.test(part.data);
  if (!isSafe) return h('p', { class: 'muted' }, `(an image, ${part.media_type})`);
  return h('img', { src: `data:${part.media_type};base64,${part.data}`, alt: 'An image that came along', loading: 'lazy' });
}

const STOPS = {
  __proto__: null,
  length: 'cut at the length limit',
  truncated: 'the stream broke off',
  refused: 'withheld by the provider',
  interrupted: 'interrupted',
};

function assistant(item, element, context) {
  const data = item.event?.data ?? {};
  if (data.stop === 'closing') {
    element.className = 'item note';
    element.replaceChildren(h('p', null, item.event.content));
    return;
  }
  const prose = (item.prose ??= new Prose());
  const thought = item.event ? (data.parts ?? []).filter((part) => part.type === 'thinking').map((part) => part.text).join('\n\n') : item.thinking;
  const text = item.event ? item.event.content : item.text;
  const who = data.model ?? 'Model';
  label(element, who);
  element.classList.toggle('live', !item.event);
  const finished = prose.update(text);
  if (!item.event) finished.forEach(context.announce);
  else if (item.isNew) context.announce(prose.rest());
  const head = h('div', { class: 'who' }, h('span', null, item.event ? who : 'Writing'), item.event ? when(item.event.time) : null);
  // The details element is kept, so that one that was opened stays open while more comes.
  item.thoughts ??= h('details', { class: 'thinking' }, h('summary', null, 'Thinking'), h('pre'));
  item.thoughts.lastChild.replaceChildren();
  write(item.thoughts.lastChild, thought ?? '');
  element.replaceChildren(
    ...[
      head,
      thought ? item.thoughts : null,
      item.missed && !item.event ? h('p', { class: 'muted' }, 'Some of this reply was missed while reconnecting; it is whole when it ends.') : null,
      text.trim() === '' ? null : prose.element,
      ...blocksOf(data),
      STOPS[data.stop] ? h('p', { class: 'stop' }, `${STOPS[data.stop]}${data.reason ? `: ${data.reason}` : ''}`) : null,
    ].filter((child) => child !== null),
  );
  // A reply of calls alone has nothing to show but them.
  element.hidden = item.dropped === true || (item.event !== undefined && text.trim() === '' && !thought && element.childElementCount === 1);
}

/** What a reply holds besides text, thinking and calls: blocks of the provider's own, calls that were cut. */
function blocksOf(data) {
  return (data.parts ?? []).flatMap((part) => {
    if (part.type === 'provider') {
      const name = part.block?.name ?? part.block?.type ?? 'block';
      return [h('details', { class: 'part' }, h('summary', null, `${name} (${part.format}, run by the provider)`), folded(JSON.stringify(part.block, null, 2)))];
    }
    if (part.type === 'partial_call') return [h('p', { class: 'stop' }, `A call of ${part.name} was cut off and not run: ${part.arguments}`)];
    return [];
  });
}

function call(item, element, context) {
  const name = item.call?.data?.function?.name ?? item.result?.data?.name ?? 'a tool';
  const state = stateOf(item, context.isPending(item.id));
  const [picture, word] = STATES[state];
  element.dataset.state = state;
  label(element, `Call of ${name}: ${word}`);
  const mark = h('span', { class: 'mark', 'aria-hidden': 'true' }, picture ? icon(picture) : null);
  const head = h('div', { class: 'call-head' }, mark, h('code', { class: 'tool' }, name), h('span', { class: 'word' }, `${word}${took(item)}`));
  // While it waits, the question below shows what it is called with.
  const raw = context.isPending(item.id) ? undefined : item.call?.data?.function?.arguments;
  element.replaceChildren(
    ...[head, raw === undefined ? null : argumentList(raw, { fold: true }), ...answers(item), ...outcome(item)].filter((child) => child !== null),
  );
}

function took(item) {
  return item.started && item.result ? `, ${duration(Math.max(0, item.result.time - item.started.time))}` : '';
}

/** How the call came to be run, or not. */
function answers(item) {
  const lines = [];
  const by = { __proto__: null, terminal: 'at a terminal', client: 'by a client', rule: 'by a rule' };
  if (item.answered) {
    const { answer, by: whom, reason } = item.answered.data ?? {};
    lines.push(`${answer === 'approve' ? 'Approved' : 'Denied'} ${by[whom] ?? ''}${reason ? `: ${reason}` : ''}`);
  } else if (item.gated && item.gated.data?.verdict !== 'allow') {
    lines.push(`${{ __proto__: null, ask: 'Asks', deny: 'Denied', invalid: 'Cannot run' }[item.gated.data?.verdict] ?? 'Judged'}: ${item.gated.data?.rule ?? ''}`);
  }
  if (item.suspended && !item.result) lines.push(...(item.suspended.data?.asks ?? []).map(String));
  if (item.late) lines.push('A later result came and was not used.');
  return lines.map((line) => h('p', { class: 'why' }, line));
}

function outcome(item) {
  if (!item.result) return item.live === '' ? [] : [h('pre', { class: 'output live' }, lastLines(item.live))];
  const { output = '', success, parts: more } = item.result.data ?? {};
  const style = success ? 'output' : 'output failed';
  const images = (more ?? []).filter((part) => part.type === 'image').map(image);
  const fields = success || output.startsWith('{') ? entries(output) : null;
  // Of a tool of ours the result is JSON with its text in `output`, or with `error`.
  const main = fields?.find(([name, value]) => ['output', 'error'].includes(name) && value.startsWith('"'));
  if (!main) return [...(output === '' ? [h('p', { class: 'why' }, '(no output)')] : [folded(output, { class: style })]), ...images];
  const facts = fields.filter((field) => field !== main).map(([name, value]) => `${name} ${readable(value).text}`);
  const text = JSON.parse(main[1]);
  const isError = main[0] === 'error' || !success;
  return [
    text === '' ? null : folded(text.replace(/\n+$/, ''), { class: isError ? 'output failed' : 'output' }),
    facts.length > 0 || text === '' ? h('p', { class: 'why' }, [text === '' ? 'no output' : '', ...facts].filter(Boolean).join(' · ')) : null,
    ...images,
  ].filter((child) => child !== null);
}

function lastLines(text) {
  return text.split('\n').slice(-FOLD_LINES).join('\n').slice(-FOLD_CHARS);
}

function command(item, element) {
  const { line, status, output, duration_ms: ms } = item.event.data ?? {};
  const word = status === 0 ? '' : status === null || status === undefined ? 'ended by a signal' : `status ${status}`;
  label(element, 'A command of the person');
  element.replaceChildren(
    h('div', { class: 'call-head' }, h('code', { class: 'tool' }, `$ ${line ?? item.event.content}`), h('span', { class: 'word' }, [word, ms ? duration(ms) : ''].filter(Boolean).join(', '))),
    output ? folded(output.replace(/\n$/, ''), { class: 'output' }) : '',
  );
}

function instructions(item, element) {
  element.replaceChildren(h('details', null, h('summary', null, 'Instructions'), folded(item.event.content)));
}

const REMARKS = {
  clear: 'Context emptied',
  mark: 'Mark',
  rewind: 'Back to mark',
  fork: 'Branched',
  compaction: 'Summed up',
  memory: 'Remembered',
  note: 'Note',
  server_asked: 'A server asks',
  server_answered: 'Answered',
};

function remark(item, element) {
  element.className = 'item note';
  element.replaceChildren(h('p', null, h('span', null, `${REMARKS[item.type]}: `), item.event.content));
}

function failure(item, element) {
  element.className = 'item note failed';
  element.replaceChildren(h('p', null, item.event.content));
}

const REASONS = { __proto__: null, limit: 'limit reached', declined: 'declined', model_failed: 'no reply could be had', truncated: 'cut off', cancelled: 'cancelled' };

function turn(item, element) {
  const all = figures(item.turn);
  const words = [
    REASONS[all.reason],
    all.workMs === null ? null : duration(all.workMs),
    all.waitMs > 0 ? `waited ${duration(all.waitMs)}` : null,
    all.input + all.output > 0 ? `${count(all.input)} tokens in${all.cached ? ` (${count(all.cached)} cached)` : ''}, ${count(all.output)} out` : null,
  ].filter(Boolean);
  element.hidden = words.length === 0;
  element.replaceChildren(h('p', null, words.join(' · ')));
}

function unknown(item, element) {
  const { kind, content, data } = item.event;
  element.replaceChildren(h('details', null, h('summary', null, `${kind}: ${content}`), folded(JSON.stringify(data, null, 2))));
}

const DRAWINGS = { user, assistant, call, command, system: instructions, model_failed: failure, turn, unknown, ...Object.fromEntries(Object.keys(REMARKS).map((kind) => [kind, remark])) };
