// How times, sizes and counts are said.

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' });
const COUNT = new Intl.NumberFormat('en');
const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const DATE = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
const STEPS = [['year', 31_536_000], ['month', 2_592_000], ['week', 604_800], ['day', 86_400], ['hour', 3_600], ['minute', 60]];

/** `5 min ago`, of milliseconds since the epoch. */
export function ago(time, now) {
  const seconds = (time - now) / 1000;
  const step = STEPS.find(([, length]) => Math.abs(seconds) >= length);
  return step ? RELATIVE.format(Math.round(seconds / step[1]), step[0]) : 'now';
}

/** `14:05`. */
export function clock(time) {
  return CLOCK.format(time);
}

/** `22 Nov 2026, 14:05:09`. */
export function date(time) {
  return DATE.format(time);
}

/** `850 ms`, `3.2 s`, `2 min 5 s`. */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** `1,204`. */
export function count(number) {
  return COUNT.format(number);
}

/** `1 line`, `12 lines`. */
export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? '' : 's'}`;
}

/** `512 bytes`, `12 KB`, of a text as it is stored and sent. */
export function size(text) {
  const bytes = new TextEncoder().encode(text).length;
  return bytes < 1024 ? plural(bytes, 'byte') : `${count(Math.round(bytes / 1024))} KB`;
}
