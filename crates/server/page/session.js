// One open session: its events loaded from the end, followed live, and everything that can be done to it: say something, answer what
// waits, cancel. There is one stream at a time, so that no delta comes twice: the session's, or while a message is sent, that of the
// request that sends it. Events of the ledger are known by their number, so those may come twice.

import { ApiError, follow, sessionPath } from './api.js';
import { Conversation } from './model.js';
import { framesOf } from './sse.js';
import { wants } from './pending.js';

/** So many events of the end are loaded first, and so many more at a time. */
const FIRST_EVENTS = 400;
const MORE_EVENTS = 1000;
/** A turn that waits says for what; where that does not come, it is asked for after so long. */
const ENVELOPE_WAIT_MS = 1500;

export class Session {
  conversation = new Conversation();
  /** `idle`, `running` or `pending`. */
  state = 'idle';
  /** The envelope of what it waits for, or null. */
  pending = null;
  summary = {};
  #over = new AbortController();
  #stream = new AbortController();
  #timer = 0;
  /** Whether something went wrong that is over once the server tells again. */
  #troubled = false;

  /**
   * `view` is told what changes: `items(items)`, `earlier(items)`, `changed()` for state and question, `linked(word)` for the stream,
   * `status(text)` for what is not kept, `failed(error)`, and `mended()` once that is over.
   */
  constructor(api, id, view) {
    this.api = api;
    this.id = id;
    this.view = view;
  }

  /** Loads the end of the session and follows it from there. */
  async open() {
    const signal = this.#over.signal;
    const head = await this.api.get(`${sessionPath(this.id)}?after=0&limit=1`, signal);
    const total = Number(head.session?.events ?? 0);
    await this.#load(Math.max(0, total - FIRST_EVENTS));
    this.#watch();
  }

  close() {
    clearTimeout(this.#timer);
    this.#over.abort();
    this.#stream.abort();
  }

  /** Whether there are events before those that are loaded. */
  get hasEarlier() {
    return this.conversation.first > 1;
  }

  /** Loads events from before the first. */
  async loadEarlier() {
    const { first } = this.conversation;
    const after = Math.max(0, first - 1 - MORE_EVENTS);
    const events = [];
    for (let at = after; at < first - 1; ) {
      const page = await this.api.get(`${sessionPath(this.id)}?after=${at}&limit=${first - 1 - at}`, this.#over.signal);
      const found = page.events.filter((event) => event.seq < first);
      if (found.length === 0) break;
      events.push(...found);
      at = found.at(-1).seq;
    }
    if (events.length === 0) this.conversation.first = 1;
    else this.view.earlier(this.conversation.prepend(events));
  }

  async #load(after) {
    for (let at = after; ; ) {
      const page = await this.api.get(`${sessionPath(this.id)}?after=${at}&limit=${MORE_EVENTS}`, this.#over.signal);
      this.summary = page.session ?? this.summary;
      this.view.items(page.events.flatMap((event) => this.conversation.append(event)));
      this.#become(page.state ?? 'idle', wants(page.pending) ? page.pending : null);
      at = page.events.at(-1)?.seq ?? at;
      if (!page.more || page.events.length === 0) return;
    }
  }

  #watch() {
    this.#stream.abort();
    this.#stream = new AbortController();
    const { signal } = this.#stream;
    follow(this.api, this.id, {
      signal,
      after: () => this.conversation.last,
      frame: (frame) => signal.aborted || this.#frame(frame),
      linked: (word) => {
        if (signal.aborted) return;
        if (word === 'reconnecting') this.#missed();
        // A turn that runs and was left has still to be taken up: that is seen by what comes of it.
        else if (this.state !== 'running') this.#mended();
        this.view.linked(word);
      },
    }).catch((error) => signal.aborted || this.view.failed(error));
  }

  #missed() {
    const item = this.conversation.missedSome();
    if (item) this.view.items([item]);
  }

  /** Something went wrong that is over once the server tells again. */
  trouble() {
    this.#troubled = true;
  }

  #mended() {
    if (this.#troubled) this.view.mended();
    this.#troubled = false;
  }

  #frame({ event, data }) {
    let value;
    try {
      value = JSON.parse(data);
    } catch {
      return;
    }
    if (event === 'error') {
      this.view.failed(new ApiError(0, value.error?.kind ?? 'error', value.error?.message ?? 'The turn failed.', value.error?.hint));
      return this.trouble();
    }
    this.#mended();
    if (event === 'delta') this.#delta(value);
    else if (event === 'envelope') this.#envelope(value);
    else if (Number.isInteger(value.seq)) this.#event(value);
  }

  #event(event) {
    if (event.seq > this.conversation.last + 1) {
      // Something in between was not seen: begin again after what is known.
      this.#watch();
      return;
    }
    const items = this.conversation.append(event, performance.now());
    if (items.length === 0 && event.seq < this.conversation.last) return;
    this.view.items(items);
    if (event.kind === 'turn_started' || event.kind === 'resumed') this.#become('running', null);
    if (event.kind === 'turn_ended') this.#become('idle', null);
    const answers = event.data?.call_id ?? event.data?.tool_call_id;
    if (['call_answered', 'tool_result'].includes(event.kind) && this.pending?.call_id === answers) this.#become('running', null);
    if (event.kind === 'suspended') this.#askSoon();
    this.view.status('');
  }

  #delta(delta) {
    const item = this.conversation.delta(delta, performance.now());
    if (item) this.view.items([item]);
    if (delta.type === 'call_begun') this.view.status(`Writing a call of ${delta.text}…`);
    if (delta.type === 'status' || delta.type === 'retrying') this.view.status(String(delta.text ?? ''));
  }

  #envelope(envelope) {
    clearTimeout(this.#timer);
    if (wants(envelope)) this.#become('pending', envelope);
    else this.#become('idle', null);
  }

  #askSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.refresh().catch((error) => this.view.failed(error)), ENVELOPE_WAIT_MS);
  }

  #become(state, pending) {
    if (this.state === state && this.pending?.session_id === pending?.session_id && this.pending?.call_id === pending?.call_id) return;
    clearTimeout(this.#timer);
    this.state = state;
    const before = this.pending;
    this.pending = pending;
    this.view.changed();
    for (const envelope of [before, pending]) {
      const item = this.conversation.calls.get(envelope?.call_id);
      if (item) this.view.items([item]);
    }
  }

  /** Asks the server how things stand. */
  refresh() {
    return this.#load(this.conversation.last);
  }

  /** The arguments of a call as the model wrote them; null when that event is not loaded. */
  argumentsOf(callId) {
    return this.conversation.calls.get(callId)?.call?.data?.function?.arguments ?? null;
  }

  /** Sends a message. Settles when the server has taken it; the turn's events come as they happen. */
  async say(message, key) {
    this.#stream.abort();
    this.#stream = new AbortController();
    const { signal } = this.#stream;
    try {
      const response = await this.api.say({ message, conversation_id: this.id }, key, signal);
      this.#become('running', null);
      this.#take(framesOf(response), signal);
    } catch (error) {
      this.#watch();
      throw error;
    }
  }

  /** Goes on with the stream of the request that began this session (see `begin`). */
  resume({ frames, stream }) {
    this.#stream = stream;
    this.#become('running', null);
    this.#take(frames, stream.signal);
  }

  /** Takes the stream of a request that began a turn, until it ends; from there on the session is watched. */
  async #take(frames, signal) {
    this.view.linked('live');
    try {
      for await (const frame of frames) {
        if (signal.aborted) return;
        this.#frame(frame);
      }
    } catch {
      if (!signal.aborted) this.#missed();
    }
    if (!signal.aborted) this.#watch();
  }

  async cancel() {
    await this.api.post(sessionPath(this.id, 'cancel'), {});
  }
}

/** Begins a session with a message: `{ id, frames, stream }` once the server has given it an id, for `Session.resume`. */
export async function begin(api, body, key) {
  const stream = new AbortController();
  const frames = framesOf(await api.say(body, key, stream.signal));
  const seen = [];
  for (;;) {
    const { value, done } = await frames.next();
    if (done) throw new ApiError(0, 'no_session', 'The server did not say which session it began.');
    seen.push(value);
    const id = sessionOf(value.data);
    if (id) return { id, frames: both(seen, frames), stream };
  }
}

async function* both(first, rest) {
  yield* first;
  yield* rest;
}

function sessionOf(data) {
  try {
    const value = JSON.parse(data);
    return value.session ?? value.conversation_id ?? null;
  } catch {
    return null;
  }
}
