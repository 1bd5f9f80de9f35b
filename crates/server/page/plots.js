// What a session cost, as two small plots over its turns: tokens, and time. Each has a table of the same figures, for whoever cannot
// see it.

import { h, svg } from './dom.js';
import { figures } from './model.js';
import { count, duration } from './words.js';

/** The latest turns are drawn, as many as can be told apart. */
const TURNS_MAX = 60;
const WIDTH = 360;
const HEIGHT = 88;
const BAR_MAX = 22;

/** Fills `place` with the plots of these turns (as of `model.js`). */
export function plot(place, turns) {
  const all = [...turns].sort((a, b) => a.number - b.number).map((turn) => ({ number: turn.number, ...figures(turn) }));
  const ended = all.filter((turn) => turn.input + turn.output > 0 || turn.workMs !== null);
  if (ended.length === 0) {
    place.replaceChildren(h('p', { class: 'muted' }, 'No turn has ended yet.'));
    return;
  }
  const shown = ended.slice(-TURNS_MAX);
  const sum = (field) => all.reduce((total, turn) => total + (turn[field] ?? 0), 0);
  place.replaceChildren(
    figure(
      'Tokens per turn',
      `${count(sum('input'))} in, ${count(sum('output'))} out in all`,
      shown.map((turn) => ({ turn: turn.number, parts: [['out', turn.output], ['in', turn.input - turn.cached], ['cached', turn.cached]] })),
      { out: 'out', in: 'in', cached: 'in, cached' },
      count,
    ),
    figure(
      'Time per turn',
      `${duration(sum('workMs'))} in all, without waiting for people and clients`,
      shown.map((turn) => {
        const work = turn.workMs ?? 0;
        const first = Math.min(turn.firstMs ?? 0, work);
        return { turn: turn.number, parts: [['first', first], ['rest', work - first]] };
      }),
      { first: shown.some((turn) => turn.firstIsToken) ? 'to the first text, or first reply' : 'to the first reply', rest: 'from there on' },
      duration,
    ),
  );
}

function figure(title, total, bars, names, say) {
  const sizes = bars.map((bar) => bar.parts.reduce((sum, [, value]) => sum + value, 0));
  const top = Math.max(...sizes, 1);
  const step = Math.min(WIDTH / bars.length, BAR_MAX + 4);
  const drawn = bars.flatMap((bar, index) => stack(bar, index * step, Math.max(step - 3, 1.5), top, names, say));
  const lines = [0, 0.5, 1].map((at) => svg('line', { class: 'grid', x1: 0, x2: WIDTH, y1: at * HEIGHT + 0.5, y2: at * HEIGHT + 0.5 }));
  const picture = svg('svg', { viewBox: `0 -1 ${WIDTH} ${HEIGHT + 2}`, role: 'img', 'aria-label': `${title}, ${bars.length} turns, at most ${say(top)}` }, lines, drawn);
  const legend = Object.entries(names).map(([name, words]) => h('span', { class: `key ${name}` }, words));
  return h(
    'figure',
    null,
    h('figcaption', null, h('strong', null, title), h('span', { class: 'muted' }, total)),
    h('div', { class: 'scale' }, h('span', null, say(top))),
    picture,
    h('div', { class: 'legend' }, legend),
    table(title, bars, names, say),
  );
}

function stack(bar, x, width, top, names, say) {
  let y = HEIGHT;
  return bar.parts.filter(([, value]) => value > 0).map(([name, value]) => {
    const height = (value / top) * HEIGHT;
    y -= height;
    const words = svg('title', null, `Turn ${bar.turn}: ${say(value)} ${names[name]}`);
    return svg('rect', { class: `bar ${name}`, x: x.toFixed(2), y: y.toFixed(2), width: width.toFixed(2), height: Math.max(height, 0.75).toFixed(2), rx: 1 }, words);
  });
}

function table(title, bars, names, say) {
  const head = h('tr', null, h('th', { scope: 'col' }, 'Turn'), Object.values(names).map((words) => h('th', { scope: 'col' }, words)));
  const rows = bars.map((bar) => {
    const values = Object.fromEntries(bar.parts);
    return h('tr', null, h('th', { scope: 'row' }, bar.turn), Object.keys(names).map((name) => h('td', null, say(values[name] ?? 0))));
  });
  return h('div', { class: 'hidden-words' }, h('table', null, h('caption', null, title), h('thead', null, head), h('tbody', null, rows)));
}
