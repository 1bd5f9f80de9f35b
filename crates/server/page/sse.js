// Reading an event stream (WHATWG HTML, "Server-sent events") from a fetch: EventSource cannot send an Authorization header.
// `Frames` is pure: text in, frames out, however the text is cut.

/** A frame longer than this is no frame: the stream is given up. */
const FRAME_CHARS_MAX = 160 * 1024 * 1024;
/** A stream that brings nothing for so long, not even a comment, is taken for dead. */
const SILENCE_MAX_MS = 90_000;

/** Turns pieces of a stream into frames `{ event, data, id }`; `id` is null where a frame has none. */
export class Frames {
  #rest = '';
  #size = 0;
  #event = '';
  #data = [];
  #id = null;

  /** The frames that this piece completes. Throws when a frame has no end. */
  push(piece) {
    const frames = [];
    const text = this.#rest + piece;
    let from = 0;
    for (;;) {
      const end = lineEnd(text, from);
      if (end === null) break;
      const frame = this.#line(text.slice(from, end.at));
      if (frame) frames.push(frame);
      from = end.next;
    }
    this.#rest = text.slice(from);
    if (this.#size + this.#rest.length > FRAME_CHARS_MAX) throw new Error('the server sent an event without an end');
    return frames;
  }

  #line(line) {
    if (line === '') return this.#dispatch();
    if (line.startsWith(':')) return null;
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'event') this.#event = value;
    else if (field === 'id') this.#id = value;
    else if (field === 'data') {
      this.#data.push(value);
      this.#size += value.length;
    }
    return null;
  }

  #dispatch() {
    const frame = this.#data.length > 0 ? { event: this.#event || 'message', data: this.#data.join('\n'), id: this.#id } : null;
    this.#event = '';
    this.#data = [];
    this.#size = 0;
    this.#id = null;
    return frame;
  }
}

/** Where the line ends that begins at `from`, and where the next begins; null when its end has not come. */
function lineEnd(text, from) {
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '\n') return { at, next: at + 1 };
    if (text[at] !== '\r') continue;
    // A carriage return may be the first half of a line end: wait for what follows.
    if (at + 1 === text.length) return null;
    return { at, next: text[at + 1] === '\n' ? at + 2 : at + 1 };
  }
  return null;
}

/** Yields the frames of a response's body until it ends, or brings nothing for too long. */
export async function* framesOf(response) {
  const frames = new Frames();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  // Where the stream has failed already there is nothing to cancel.
  const stop = () => reader.cancel().catch(() => {});
  try {
    for (;;) {
      const timer = setTimeout(stop, SILENCE_MAX_MS);
      const { value, done } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return;
      yield* frames.push(value);
    }
  } finally {
    stop();
  }
}
