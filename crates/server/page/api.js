// Talking to the server: requests with the bearer token, errors as the server words them, and one stream of a session's events
// that is taken up again where it broke off. Paths are relative, so that the page works below a reverse proxy's folder.

import { framesOf } from './sse.js';

const RETRY_FIRST_MS = 500;
const RETRY_MAX_MS = 30_000;
/** Requests that are answered at once; what drives a turn waits as long as the turn takes. */
const ANSWER_MAX_MS = 30_000;

/** What the server refused, or that it could not be reached (`status` 0). */
export class ApiError extends Error {
  constructor(status, kind, message, hint) {
    super(message);
    this.status = status;
    this.kind = kind;
    this.hint = hint ?? '';
  }

  /** The message and what to do about it, as sentences. */
  get words() {
    return [this.message, this.hint].filter(Boolean).map(sentence).join(' ');
  }
}

function sentence(text) {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

async function refusal(response) {
  const body = await response.json().catch(() => null);
  const error = body?.error ?? {};
  return new ApiError(
    response.status,
    String(error.kind ?? 'unknown'),
    String(error.message ?? `The server answered ${response.status}.`),
    error.hint === undefined ? '' : String(error.hint),
  );
}

/** A random key that makes a repeated request harmless; `crypto.randomUUID` is missing on plain http beyond this machine. */
export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export class Api {
  /** `refused` is called when the server no longer takes the token. */
  constructor(token, refused) {
    this.token = token;
    this.refused = refused;
  }

  /** The response of a request, whatever it is, with an error for whatever is no 2xx. */
  async request(method, path, { body, headers, signal } = {}) {
    const all = { accept: 'application/json', ...headers };
    if (this.token) all.authorization = `Bearer ${this.token}`;
    if (body !== undefined) all['content-type'] = 'application/json';
    let response;
    try {
      response = await fetch(path, {
        method,
        headers: all,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal,
        cache: 'no-store',
        credentials: 'omit',
        redirect: 'error',
      });
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      throw new ApiError(0, 'unreachable', 'The server could not be reached.', 'Is `aish serve` still running?');
    }
    if (response.ok) return response;
    const error = await refusal(response);
    if (error.status === 401) this.refused(error);
    throw error;
  }

  /** What a read answers. */
  async get(path, signal) {
    const limit = AbortSignal.timeout(ANSWER_MAX_MS);
    const response = await this.request('GET', path, { signal: signal ? AbortSignal.any([signal, limit]) : limit }).catch((error) => {
      if (limit.aborted) throw new ApiError(0, 'timeout', 'The server did not answer in time.');
      throw error;
    });
    return response.json();
  }

  /** What a change answers. It may take as long as the turn that it drives. */
  async post(path, body, options = {}) {
    const response = await this.request('POST', path, { body, ...options });
    return response.json();
  }

  /** Sends a message; the response is a stream of the turn's events. */
  say(body, key, signal) {
    const headers = { accept: 'text/event-stream', 'idempotency-key': key };
    return this.request('POST', 'api/chat', { body: { ...body, stream: true }, headers, signal });
  }
}

/** The address of a session, or of something of it. */
export function sessionPath(id, ...rest) {
  return ['api/sessions', encodeURIComponent(id), ...rest].join('/');
}

/**
 * Follows a session until `signal` says stop. `after()` is the last event that is known, `frame` gets what comes, and `linked` is
 * told `live` or `reconnecting`. A stream that ends or breaks is opened again after the last event, later and later.
 */
export async function follow(api, id, { after, frame, linked, signal }) {
  let wait = RETRY_FIRST_MS;
  while (!signal.aborted) {
    try {
      await oneStream(api, id, after(), signal, () => linked('live'), (what) => {
        wait = RETRY_FIRST_MS;
        frame(what);
      });
    } catch (error) {
      if (signal.aborted) return;
      // The token is refused or the session is gone: asking again will not help.
      if (error instanceof ApiError && [401, 403, 404, 410].includes(error.status)) throw error;
    }
    if (signal.aborted) return;
    linked('reconnecting');
    await pause(wait * (0.75 + Math.random() / 2), signal);
    wait = Math.min(wait * 2, RETRY_MAX_MS);
  }
}

async function oneStream(api, id, after, signal, opened, frame) {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), ANSWER_MAX_MS);
  const response = await api
    .request('GET', sessionPath(id, 'events'), {
      headers: { accept: 'text/event-stream', 'last-event-id': String(after) },
      signal: AbortSignal.any([signal, late.signal]),
    })
    .finally(() => clearTimeout(timer));
  opened();
  for await (const what of framesOf(response)) frame(what);
}

/** Waits, but not when there is reason to think that it works again: the network is back, or somebody looks. */
function pause(ms, signal) {
  return new Promise((resolve) => {
    const ends = new AbortController();
    const end = () => {
      clearTimeout(timer);
      ends.abort();
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end, { signal: ends.signal });
    addEventListener('online', end, { signal: ends.signal });
    document.addEventListener('visibilitychange', () => document.hidden || end(), { signal: ends.signal });
  });
}
