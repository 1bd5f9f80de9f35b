// The page as a whole: who is let in, which part is shown, and the keys. An address is `#/s/ID` for a session, `#/new` for the
// beginning of one, `#/` for the list; `#token=…` logs in and is taken out of the address at once.

import { Api, ApiError } from './api.js';
import { h } from './dom.js';
import { Room } from './room.js';
import { SessionList } from './sessions.js';

const TOKEN = 'aish-token';
const at = (id) => document.getElementById(id);

/** The token of the address, which no history and no look over the shoulder may keep. */
function tokenOfAddress() {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, '', `${location.pathname}${location.search}#/`);
  try {
    return decodeURIComponent(found[1]);
  } catch {
    return found[1];
  }
}

function showLogin(problem) {
  at('app').hidden = true;
  at('login').hidden = false;
  at('login-problem').hidden = problem === null;
  at('login-problem').replaceChildren(h('span', null, problem ?? ''));
  document.title = 'Log in – aish';
  at('token').focus();
}

/** Goes on if the server takes the token, else asks for one. A server without tokens takes none at all. */
async function logIn(token) {
  const api = new Api(token, () => {});
  try {
    await api.get('api/sessions?limit=1');
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const isToken = error.status === 401;
    if (isToken) sessionStorage.removeItem(TOKEN);
    showLogin(isToken ? (token ? 'The server does not know this token.' : null) : error.words);
    return;
  }
  if (token) sessionStorage.setItem(TOKEN, token);
  run(token);
}

function logOut(problem) {
  sessionStorage.removeItem(TOKEN);
  if (problem) sessionStorage.setItem(`${TOKEN}-problem`, problem);
  // Begun anew, nothing of what was shown is left in this page.
  location.replace(`${location.pathname}${location.search}`);
  location.reload();
}

function run(token) {
  at('login').hidden = true;
  at('token').value = '';
  at('app').hidden = false;
  const api = new Api(token, () => logOut('The server no longer takes this token.'));
  const list = new SessionList(api, { place: at('list'), search: at('search'), more: at('list-more'), status: at('list-status') });
  const room = new Room(api, list, {
    began: (id) => {
      history.replaceState(null, '', `#/s/${id}`);
      document.body.dataset.view = 'room';
      list.mark(id);
    },
    changed: () => list.refresh(),
  });
  const go = (hash) => {
    history.pushState(null, '', hash);
    route();
  };
  const route = () => {
    const id = /^#\/s\/([\w-]+)$/.exec(location.hash)?.[1] ?? null;
    document.body.dataset.view = id || location.hash === '#/new' ? 'room' : 'list';
    list.mark(id);
    if (id && id !== room.id) room.open(id);
    else if (!id) room.showNew();
    // On a phone one of the two is in sight; the focus goes with it.
    if (location.hash === '#/new') at('message').focus();
    else if (id) at('title').focus({ preventScroll: true });
  };
  addEventListener('hashchange', route);
  addEventListener('keydown', (event) => keyed(event, list, go));
  // Where no token was asked for there is none to forget.
  at('logout').hidden = token === '';
  at('logout').addEventListener('click', () => logOut(null));
  document.querySelector('.skip').addEventListener('click', (event) => {
    event.preventDefault();
    at('conversation').focus();
  });
  list.refresh();
  route();
}

/** Keys that work everywhere, but not while something is typed. */
function keyed(event, list, go) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const { target } = event;
  const isTyping = target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
  if (event.key === 'Escape') return escape(target, list, go);
  if (isTyping) return;
  const act = {
    '/': () => at('search').focus(),
    n: () => (location.hash === '#/new' ? at('message').focus() : go('#/new')),
    j: () => at('side').contains(target) || list.focus(),
    k: () => at('side').contains(target) || list.focus(),
  }[event.key];
  if (!act || (['j', 'k'].includes(event.key) && event.defaultPrevented)) return;
  event.preventDefault();
  act();
}

/** One step back: out of the search, out of a field, back to the list. */
function escape(target, list, go) {
  if (target === at('search') && target.value !== '') {
    target.value = '';
    list.refresh();
  } else if (!at('side').contains(target)) {
    const isNarrow = getComputedStyle(at('back')).display !== 'none';
    if (isNarrow) go('#/');
    list.focus();
  } else target.blur();
}

at('login-form').addEventListener('submit', (event) => {
  event.preventDefault();
  logIn(at('token').value.trim());
});

addEventListener('hashchange', () => {
  const token = tokenOfAddress();
  if (token === null) return;
  sessionStorage.setItem(TOKEN, token);
  location.reload();
});

const given = tokenOfAddress();
const problem = sessionStorage.getItem(`${TOKEN}-problem`);
sessionStorage.removeItem(`${TOKEN}-problem`);
if (problem) showLogin(problem);
else logIn(given ?? sessionStorage.getItem(TOKEN) ?? '');
