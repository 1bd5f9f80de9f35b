// The right side of the page: one session or the beginning of one, with its conversation, its question, its figures and the field for
// a message. It moves the focus only when somebody opens a session; a question that comes is announced and does not take it.

import { newKey } from './api.js';
import { h, oneLine } from './dom.js';
import { ask } from './pending.js';
import { plot } from './plots.js';
import { begin, Session } from './session.js';
import { firstLine, folder } from './sessions.js';
import { Transcript } from './transcript.js';

const at = (id) => document.getElementById(id);
/** Kinds of failure in which nothing was said by the server: they are over when it says something. */
const UNREACHED = new Set(['unreachable', 'timeout']);
/** Those, and what the server says is over soon. */
const PASSING = new Set([...UNREACHED, 'unavailable', 'too_many_requests']);
/** A session that could not be opened is opened again after so long. */
const OPEN_AGAIN_MS = 4_000;

export class Room {
  #session = null;
  #transcript;
  /** A message that may have arrived is sent again under the same key: it counts once. */
  #attempt = { said: '', key: '' };
  #busy = false;

  /** `began(id)` is called when a message began a session, `changed()` when the list of sessions may be another. */
  constructor(api, list, { began, changed }) {
    this.api = api;
    this.list = list;
    this.began = began;
    this.changed = changed;
    this.#transcript = new Transcript(at('scroll'), at('conversation'), at('to-end'), {
      isPending: (id) => this.#session?.pending?.call_id === id,
      announce: (text) => this.announce(text),
    });
    at('composer').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#send();
    });
    const message = at('message');
    message.addEventListener('keydown', (event) => {
      const isPlain = !event.shiftKey && !event.isComposing && matchMedia('(pointer: fine)').matches;
      if (event.key !== 'Enter' || !(isPlain || event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.#send();
    });
    message.addEventListener('input', () => this.#grow());
    at('cancel').addEventListener('click', () => this.#cancel());
    at('earlier').addEventListener('click', () => this.#earlier());
    at('figures-button').addEventListener('click', () => this.#figures(at('figures').hidden));
  }

  /** The session that is open; null at the beginning of one. */
  get id() {
    return this.#session?.id ?? null;
  }

  /** Opens a session. `begun` is what `begin` answered where this page began it. */
  async open(id, begun = null) {
    this.close();
    const session = new Session(this.api, id, this.#viewFor(() => this.#session === session));
    session.summary = begun?.summary ?? this.list.find(id) ?? { id };
    this.#session = session;
    document.body.dataset.room = 'session';
    this.#named();
    this.#showState();
    if (begun) {
      session.resume(begun);
      return;
    }
    try {
      await session.open();
    } catch (error) {
      if (this.#session !== session) return;
      this.failed(error);
      // Nobody has to come back for it: what is over by itself is tried again.
      if (PASSING.has(error.kind)) setTimeout(() => this.#session === session && this.open(id), OPEN_AGAIN_MS);
      return;
    }
    if (this.#session !== session) return;
    this.#transcript.flush();
    this.#transcript.showEnd();
    this.#named();
    at('earlier').hidden = !session.hasEarlier;
  }

  /** Shows the beginning of a session. */
  showNew() {
    this.close();
    document.body.dataset.room = 'new';
    this.#named();
    this.#showState();
  }

  /** Leaves the session; it goes on without us. */
  close() {
    this.#session?.close();
    this.#session = null;
    this.#transcript.clear();
    at('pending').replaceChildren();
    at('pending').hidden = true;
    at('earlier').hidden = true;
    at('status').textContent = '';
    at('say').replaceChildren();
    this.#linked('');
    this.problem(null);
    this.#figures(false);
  }

  /** Tells whoever listens instead of looking. */
  announce(text) {
    if (text.trim() === '') return;
    const say = at('say');
    say.append(h('p', null, text));
    // What was said is of no use any more, and must not pile up.
    while (say.childElementCount > 20) say.firstChild.remove();
  }

  failed(error) {
    if (error.name === 'AbortError') return;
    if (UNREACHED.has(error.kind)) this.#session?.trouble();
    this.problem(error.words ?? `Something went wrong in this page: ${error.message}`);
  }

  problem(text) {
    const place = at('problem');
    place.hidden = text === null;
    place.replaceChildren();
    if (text !== null) place.append(h('span', null, text));
  }

  #viewFor(isOpen) {
    const when = (act) => (...all) => isOpen() && act(...all);
    return {
      items: when((items) => this.#transcript.touch(items)),
      earlier: when((items) => this.#transcript.prepend(items)),
      changed: when(() => this.#stateChanged()),
      linked: when((word) => this.#linked(word)),
      status: when((text) => this.#status(text)),
      failed: when((error) => this.failed(error)),
      mended: when(() => this.problem(null)),
    };
  }

  #named() {
    const session = this.#session;
    const title = session ? firstLine(session.summary.title) : 'New session';
    at('title').replaceChildren(h('span', { dir: 'auto' }, title));
    const facts = [session?.conversation.model, folder(session?.summary.directory)].filter(Boolean).join(' · ');
    at('about').replaceChildren(h('span', { title: session?.summary.directory ?? null }, facts));
    document.title = oneLine(`${session?.pending ? '● ' : ''}${title} – aish`);
  }

  #status(text) {
    at('status').replaceChildren(h('span', null, text));
  }

  #linked(word) {
    const place = at('linked');
    place.dataset.state = word;
    place.textContent = word === 'reconnecting' ? 'Reconnecting…' : '';
  }

  #stateChanged() {
    const { pending } = this.#session;
    this.#showState();
    this.#named();
    this.changed();
    const place = at('pending');
    if (pending === null) {
      const hadFocus = place.contains(document.activeElement);
      place.replaceChildren();
      place.hidden = true;
      // Whoever answered by key goes on from the conversation, not from the top of the page.
      if (hadFocus) at('scroll').focus({ preventScroll: true });
      return;
    }
    const session = this.#session;
    ask(place, pending, session.argumentsOf(pending.call_id), {
      api: this.api,
      answered: () => {},
      failed: (error) => [404, 409, 410].includes(error.status) && session.refresh().catch(() => {}),
    });
    this.#transcript.showEnd();
    this.announce(pending.approval_pending ? `A call of ${pending.tool_name} waits for your approval.` : `A call of ${pending.tool_name} waits for a client program.`);
  }

  #showState() {
    const state = this.#session?.state ?? 'idle';
    document.body.dataset.state = state;
    at('cancel').hidden = state === 'idle';
    at('send').hidden = state !== 'idle';
    at('send').disabled = this.#busy;
    at('options').hidden = this.#session !== null;
    const hints = {
      pending: this.#session?.pending ? 'It waits for an answer. Answer, or stop it, before you say more.' : `It waits at a terminal: aish resume ${this.id}`,
      running: 'Working…',
      idle: '',
    };
    at('message-hint').replaceChildren(h('span', null, hints[state]));
    if (state !== 'running') this.#status('');
  }

  async #send() {
    const message = at('message');
    const text = message.value.trim();
    if (text === '' || this.#busy || (this.#session?.state ?? 'idle') !== 'idle') return;
    const body = this.#session ? { message: text } : this.#opening(text);
    const said = JSON.stringify([this.#session?.id ?? null, body]);
    if (this.#attempt.said !== said) this.#attempt = { said, key: newKey() };
    this.#busy = true;
    this.#showState();
    this.problem(null);
    this.#transcript.showEnd();
    try {
      if (this.#session) await this.#session.say(text, this.#attempt.key);
      else await this.#begin(body);
      this.#attempt = { said: '', key: '' };
      message.value = '';
      this.#grow();
    } catch (error) {
      this.failed(error);
    }
    this.#busy = false;
    this.#showState();
  }

  #opening(text) {
    const body = { message: text };
    if (at('model').value.trim()) body.model = at('model').value.trim();
    if (at('system').value.trim()) body.system = at('system').value.trim();
    return body;
  }

  async #begin(body) {
    const begun = await begin(this.api, body, this.#attempt.key);
    // Somebody who went elsewhere meanwhile stays there.
    if (this.#session !== null) return begun.stream.abort();
    this.began(begun.id);
    this.open(begun.id, { ...begun, summary: { id: begun.id, title: body.message } });
  }

  async #cancel() {
    const button = at('cancel');
    const hadFocus = document.activeElement === button;
    button.disabled = true;
    try {
      await this.#session?.cancel();
    } catch (error) {
      // It was over already: that is what was wanted.
      if (error.status !== 409) this.failed(error);
    }
    button.disabled = false;
    if (hadFocus) at('message').focus();
  }

  async #earlier() {
    const session = this.#session;
    const button = at('earlier');
    button.disabled = true;
    try {
      await session.loadEarlier();
    } catch (error) {
      this.failed(error);
    }
    button.disabled = false;
    button.hidden = !session.hasEarlier;
  }

  async #figures(show) {
    const place = at('figures');
    place.hidden = !show;
    at('figures-button').setAttribute('aria-expanded', String(show));
    if (!show || !this.#session) return;
    const session = this.#session;
    plot(place, session.conversation.turns.values());
    // All of it: a sum of some turns would be wrong.
    while (session.hasEarlier && this.#session === session && !place.hidden) {
      await this.#earlier();
      plot(place, session.conversation.turns.values());
      await new Promise((resolve) => setTimeout(resolve));
    }
  }

  #grow() {
    const message = at('message');
    message.style.height = 'auto';
    message.style.height = `${message.scrollHeight}px`;
  }
}
