// The list of sessions: searched, paged, kept current, and gone through by keys.

import { h } from './dom.js';
import { ago, date, plural } from './words.js';

const PAGE_SESSIONS = 50;
const REFRESH_MS = 15_000;
const TYPING_PAUSE_MS = 200;

export class SessionList {
  #sessions = [];
  #more = false;
  #open = null;
  #request = new AbortController();
  #timer = 0;
  #typing = 0;

  /** `place` is the list's element, `search` its field, `more` the button for older ones, `status` where it says what it has to. */
  constructor(api, { place, search, more, status }) {
    this.api = api;
    this.place = place;
    this.search = search;
    this.more = more;
    this.status = status;
    search.addEventListener('input', () => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => this.refresh(), TYPING_PAUSE_MS);
    });
    place.addEventListener('keydown', (event) => this.#keyed(event));
    place.addEventListener('focusin', (event) => this.#tabStop(event.target.closest('a')));
    more.addEventListener('click', () => this.#older());
    document.addEventListener('visibilitychange', () => document.hidden || this.refresh());
  }

  /** Loads the list anew, as many as were shown; again after a while. */
  async refresh() {
    clearTimeout(this.#timer);
    this.#request.abort();
    this.#request = new AbortController();
    const { signal } = this.#request;
    try {
      const limit = Math.max(PAGE_SESSIONS, Math.min(this.#sessions.length, 500));
      const found = await this.#page(limit, null, signal);
      this.#sessions = found;
      this.#more = found.length >= limit;
      this.#draw();
    } catch (error) {
      this.#failed(error);
    }
    if (!signal.aborted) this.#timer = setTimeout(() => document.hidden || this.refresh(), REFRESH_MS);
  }

  async #page(limit, before, signal) {
    const query = new URLSearchParams({ limit });
    if (this.search.value.trim()) query.set('query', this.search.value.trim());
    if (before) query.set('before', before);
    const { sessions } = await this.api.get(`api/sessions?${query}`, signal);
    return sessions;
  }

  async #older() {
    try {
      const found = await this.#page(PAGE_SESSIONS, this.#sessions.at(-1)?.id, this.#request.signal);
      const known = new Set(this.#sessions.map((session) => session.id));
      this.#sessions.push(...found.filter((session) => !known.has(session.id)));
      this.#more = found.length >= PAGE_SESSIONS;
      this.#draw();
    } catch (error) {
      this.#failed(error);
    }
  }

  /** What was shown stays, and is asked for again. */
  #failed(error) {
    if (error.name !== 'AbortError') this.status.replaceChildren(h('span', null, error.words ?? error.message));
  }

  /** Shows which one is open; null for none. */
  mark(id) {
    this.#open = id;
    for (const link of this.place.querySelectorAll('a')) {
      if (link.dataset.id === id) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
  }

  /** What the list knows of a session. */
  find(id) {
    return this.#sessions.find((session) => session.id === id) ?? null;
  }

  /** Puts the focus on the list. */
  focus() {
    (this.place.querySelector('a[aria-current]') ?? this.place.querySelector('a'))?.focus();
  }

  #draw() {
    const focused = this.place.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    const now = Date.now();
    this.place.replaceChildren(...this.#sessions.map((session) => h('li', null, row(session, now))));
    this.mark(this.#open);
    this.more.hidden = !this.#more;
    this.status.textContent = this.#sessions.length > 0 ? '' : this.search.value.trim() ? 'Nothing found.' : 'No sessions yet.';
    const links = [...this.place.querySelectorAll('a')];
    const same = links.find((link) => link.dataset.id === focused);
    this.#tabStop(same ?? links.find((link) => link.dataset.id === this.#open) ?? links[0]);
    same?.focus({ preventScroll: true });
  }

  /** One link of the list is reached by Tab; arrows lead to the others. */
  #tabStop(stop) {
    for (const link of this.place.querySelectorAll('a')) link.tabIndex = link === stop ? 0 : -1;
  }

  #keyed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const links = [...this.place.querySelectorAll('a')];
    const at = links.indexOf(event.target.closest('a'));
    const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    links[Math.max(0, Math.min(to, links.length - 1))]?.focus();
  }
}

function row(session, now) {
  const facts = [folder(session.directory), plural(session.events ?? 0, 'event')].filter(Boolean).join(' · ');
  const title = firstLine(session.title);
  return h(
    'a',
    { href: `#/s/${session.id}`, 'data-id': session.id, title: session.directory ?? null },
    h('span', { class: 'title' }, title),
    h('span', { class: 'facts' }, h('time', { datetime: new Date(session.updated).toISOString(), title: date(session.updated) }, ago(session.updated, now)), ` · ${facts}`),
    session.waiting ? h('span', { class: 'badge' }, 'waiting') : null,
  );
}

/** The name of the folder that a session works in; null for none. */
export function folder(directory) {
  return String(directory ?? '').split('/').findLast(Boolean) ?? null;
}

/** What a session is called: the first line of its title. */
export function firstLine(title) {
  return String(title ?? '').trim().split('\n', 1)[0] || 'Untitled';
}
