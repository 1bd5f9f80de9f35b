// Reading an event stream (WHATWG HTML, "Server-sent events") from a fetch: EventSource cannot send an Authorization header.
// `Frames` is pure: text in, frames out, however the text is cut.

/** A frame longer than this is no frame: the stream is given up. */
const FRAME_CHARS_MAX = 160 * 1024 * 1024;
/** A stream that brings nothing for so long, not even a comment, is taken for dead. */
const SILENCE_MAX_MS = 90_000;

/** Turns pieces of a stream into frames `{ event, data, id }`; `id` is null where a frame has none. */
export class Frames {
  /** The pieces of a line whose end has not come: looked through once each, put together once. */
  #begun = [];
  #afterReturn = false;
  #size = 0;
  #event = '';
  #data = [];
  #id = null;

  /** The frames that this piece completes. Throws when a frame has no end. */
  push(piece) {
    const frames = [];
    // The second half of a line end whose first half was the end of the piece before.
    let from = this.#afterReturn && piece.startsWith('\n') ? 1 : 0;
    if (piece !== '') this.#afterReturn = piece.endsWith('\r');
    let counted = 0;
    for (let end; (end = lineEnd(piece, from)) !== null; from = end.next) {
      this.#begun.push(piece.slice(from, end.at));
      const line = this.#begun.join('');
      this.#begun = [];
      const frame = this.#line(line);
      if (frame) frames.push(frame);
      if (line === '') [this.#size, counted] = [0, end.next];
    }
    if (from < piece.length) this.#begun.push(piece.slice(from));
    this.#size += piece.length - counted;
    if (this.#size > FRAME_CHARS_MAX) throw new Error('the server sent an event without an end');
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
    else if (field === 'data') this.#data.push(value);
    return null;
  }

  #dispatch() {
    const frame = this.#data.length > 0 ? { event: this.#event || 'message', data: this.#data.join('\n'), id: this.#id } : null;
    this.#event = '';
    this.#data = [];
    this.#id = null;
    return frame;
  }
}

/** Where the line ends that begins at `from`, and where the next begins; null when its end has not come. */
function lineEnd(text, from) {
  const found = /\r\n?|\n/g;
  found.lastIndex = from;
  const end = found.exec(text);
  return end && { at: end.index, next: found.lastIndex };
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
