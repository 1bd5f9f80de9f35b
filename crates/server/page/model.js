// A conversation as the page shows it: a fold over the ledger's events (SPEC 2.4) and, beside it, what is live and not kept. Data in,
// data out: no element and no request is known here.
//
// Each item is one thing to draw: `{ type, event }` and, by type: a call has `call`, its verdict, answers, result and live output; the
// end of a turn has the turn's events. Items change after they were made (a call gets its result); `apply` says which are to be drawn
// again. Events may come in any order as long as each comes once: earlier ones are loaded after later ones.

/** Output of a running call beyond this is dropped, oldest first. */
const LIVE_CHARS_MAX = 64 * 1024;

const CALL_FIELDS = {
  __proto__: null,
  tool_call: 'call',
  call_gated: 'gated',
  call_answered: 'answered',
  call_started: 'started',
  call_suspended: 'suspended',
  call_taken_up: 'takenUp',
  tool_result: 'result',
};

/** Kinds that are drawn by themselves. What is in none of these lists says nothing that something else does not. */
const STANDALONE = new Set(['system', 'user', 'command', 'model_failed', 'clear', 'mark', 'rewind', 'fork', 'compaction', 'memory', 'note', 'server_asked', 'server_answered']);
const OF_TURN = new Set(['turn_started', 'turn_ended', 'cancelled', 'suspended', 'resumed', 'usage']);

export class Conversation {
  /** The first and last event that are known; 0 when none is. */
  first = 0;
  last = 0;
  calls = new Map();
  turns = new Map();
  /** Whom the last turn that is known asks. */
  model = '';
  /** The reply that is being written, an item; null when none is. */
  live = null;

  /**
   * Folds the next event: the items to be drawn, new ones not drawn before. Empty when it is known already. `now` is in milliseconds
   * where the event was seen to happen, else null.
   */
  append(event, now = null) {
    if (event.seq <= this.last) return [];
    this.last = event.seq;
    if (this.first === 0) this.first = event.seq;
    const touched = this.#apply(event);
    if (event.kind === 'turn_started' && now !== null) this.turns.get(event.turn).seenMs = now;
    if (now !== null) touched.forEach((item) => (item.isNew = true));
    return touched;
  }

  /** Folds events from before the first, in their order. */
  prepend(events) {
    const touched = new Set(events.filter((event) => event.seq < this.first).flatMap((event) => this.#apply(event)));
    this.first = Math.min(this.first, events[0]?.seq ?? this.first);
    return [...touched];
  }

  #apply(event) {
    const touched = [];
    const turn = this.#turn(event);
    if (event.kind === 'turn_started' && (event.seq === this.last || this.model === '')) this.model = String(event.data?.model ?? '');
    if (event.kind in CALL_FIELDS) touched.push(this.#call(event));
    else if (event.kind === 'assistant') touched.push(this.#reply(event));
    else if (STANDALONE.has(event.kind)) touched.push({ type: event.kind, seq: event.seq, event });
    else if (!OF_TURN.has(event.kind)) touched.push({ type: 'unknown', seq: event.seq, event });
    if (event.kind === 'turn_ended' && turn) turn.item = { type: 'turn', seq: event.seq, event, turn };
    // What was written of a reply that failed, or of a turn that is over, is not part of the conversation.
    if (['model_failed', 'turn_ended'].includes(event.kind) && event.seq === this.last && this.live) {
      this.live.dropped = true;
      touched.push(this.live);
      this.live = null;
    }
    if (turn?.item && !touched.includes(turn.item)) touched.push(turn.item);
    return touched;
  }

  #turn(event) {
    if (!event.turn) return null;
    const turn = this.turns.get(event.turn) ?? { number: event.turn, events: [], item: null, seenMs: null, firstTokenMs: null };
    this.turns.set(event.turn, turn);
    turn.events.push(event);
    return turn;
  }

  #call(event) {
    const id = String(event.data?.[event.kind === 'tool_call' ? 'id' : event.kind === 'tool_result' ? 'tool_call_id' : 'call_id'] ?? '');
    const item = this.calls.get(id) ?? { type: 'call', id, seq: event.seq, live: '' };
    this.calls.set(id, item);
    const field = CALL_FIELDS[event.kind];
    // A call has one result; one that comes after it is evidence only (SPEC 3.5a).
    if (field === 'result' && item.result && item.result.seq < event.seq) item.late = event;
    else item[field] = event;
    if (field === 'result') item.live = '';
    return item;
  }

  #reply(event) {
    if (event.seq < this.last || this.live === null) return { type: 'assistant', seq: event.seq, event };
    const item = Object.assign(this.live, { seq: event.seq, event });
    this.live = null;
    return item;
  }

  /** Adds a delta: the item to be drawn, or null. `now` is in milliseconds, to tell how long the first text took. */
  delta(delta, now) {
    const text = typeof delta.text === 'string' ? delta.text : '';
    if (delta.type === 'tool_output') {
      const item = this.calls.get(String(delta.call_id ?? ''));
      if (!item || item.result) return null;
      item.live = (item.live + text).slice(-LIVE_CHARS_MAX);
      return item;
    }
    if (delta.type !== 'text' && delta.type !== 'thinking') return null;
    if (this.live === null) {
      this.live = { type: 'assistant', seq: Infinity, text: '', thinking: '', missed: false };
      const turn = [...this.turns.values()].at(-1);
      if (turn?.seenMs && turn.firstTokenMs === null) turn.firstTokenMs = now - turn.seenMs;
    }
    this.live[delta.type] += text;
    return this.live;
  }

  /** The stream broke off: text of the reply may be missing until it is whole. */
  missedSome() {
    if (this.live) this.live.missed = true;
    return this.live;
  }
}

/** What became of a call: `waiting`, `running`, `done`, `failed`, `refused`, or `open` before the gate spoke. */
export function stateOf(item, isPending) {
  if (item.result) {
    const end = item.result.data?.end ?? 'completed';
    if (end === 'declined' || end === 'denied' || end === 'not_run') return 'refused';
    return item.result.data?.success ? 'done' : 'failed';
  }
  if (isPending || (item.suspended && !item.takenUp)) return 'waiting';
  return item.started ? 'running' : 'open';
}

/**
 * The figures of a turn, by its events: `{ reason, input, output, cached, firstMs, workMs, waitMs }`. Times in which it waited
 * for somebody are in `waitMs` alone. `firstMs` is the time to the first text where this page saw it come, else to the first reply.
 */
export function figures(turn) {
  const found = { reason: '', input: 0, output: 0, cached: 0, firstMs: null, firstIsToken: false, workMs: null, waitMs: 0 };
  const events = [...turn.events].sort((a, b) => a.seq - b.seq);
  const asked = new Set();
  let waits = null;
  for (const event of events) {
    const data = event.data ?? {};
    if (event.kind === 'usage') {
      found.input += Number(data.input_tokens) || 0;
      found.output += Number(data.output_tokens) || 0;
      found.cached += Number(data.cached_tokens) || 0;
    }
    if (event.kind === 'turn_ended') found.reason = String(data.reason ?? '');
    if (event.kind === 'assistant' && data.model && found.firstMs === null) found.firstMs = event.time - events[0].time;
    if (event.kind === 'call_gated' && data.verdict === 'ask') asked.add(data.call_id);
    if (event.kind === 'call_answered') asked.delete(data.call_id);
    const isWaiting = event.kind === 'suspended' || (asked.size > 0 && event.kind !== 'resumed');
    if (isWaiting && waits === null) waits = event.time;
    if (!isWaiting && waits !== null && ['resumed', 'call_answered', 'tool_result', 'cancelled', 'turn_ended'].includes(event.kind)) {
      found.waitMs += event.time - waits;
      waits = null;
    }
  }
  if (turn.firstTokenMs !== null) {
    found.firstMs = turn.firstTokenMs;
    found.firstIsToken = true;
  }
  const ended = events.at(-1);
  const isWhole = events[0]?.kind === 'turn_started' && ended?.kind === 'turn_ended';
  if (isWhole) found.workMs = Math.max(0, ended.time - events[0].time - found.waitMs);
  return found;
}
