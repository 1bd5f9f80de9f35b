// The conversation on the page: one element for each item, drawn at most once a frame and less often where that is costly, the end
// kept in sight while somebody is there.

import { h } from './dom.js';
import { draw } from './items.js';

/** So close to the end the view follows what comes. */
const END_PX = 120;
/** Drawing may take one part of the time in so many: a long reply that streams must leave time for everything else. */
const DRAWING_SHARE = 4;

export class Transcript {
  #elements = new Map();
  #dirty = new Set();
  #isDue = false;
  #costMs = 0;
  #follows = true;
  #top = 0;

  /** `scroller` is what scrolls `list`; `context` is what drawing asks for: `isPending(callId)` and `announce(text)`. */
  constructor(scroller, list, toEnd, context) {
    this.scroller = scroller;
    this.list = list;
    this.toEnd = toEnd;
    this.context = context;
    scroller.addEventListener('scroll', () => this.#scrolled(), { passive: true });
    toEnd.addEventListener('click', () => this.showEnd());
    // Whoever unfolds something wants to read it, not what comes after it.
    list.addEventListener('click', (event) => (this.#follows &&= event.target.closest('summary, .unfold') === null), { capture: true });
    // What is drawn later (a picture, an item that comes into sight) must not push the end out of sight.
    new ResizeObserver(() => this.#follows && this.#jump()).observe(list);
    new ResizeObserver(() => this.#follows && this.#jump()).observe(scroller);
  }

  clear() {
    this.#elements.clear();
    this.#dirty.clear();
    this.list.replaceChildren();
    this.showEnd();
  }

  /** Draws these items soon; new ones go to the end. */
  touch(items) {
    for (const item of items) {
      if (!this.#elements.has(item)) this.list.append(this.#place(item));
      this.#dirty.add(item);
    }
    if (this.#dirty.size === 0 || this.#isDue) return;
    this.#isDue = true;
    setTimeout(() => requestAnimationFrame(() => this.flush()), this.#costMs * DRAWING_SHARE);
  }

  /** Draws items from before the first one, without moving what is in sight. */
  prepend(items) {
    const anchor = this.list.firstElementChild;
    const before = anchor?.getBoundingClientRect().top ?? 0;
    const found = items.filter((item) => !this.#elements.has(item)).sort((a, b) => a.seq - b.seq);
    const fragment = document.createDocumentFragment();
    for (const item of found) {
      const element = this.#place(item);
      draw(item, element, this.context);
      fragment.append(element);
    }
    this.list.prepend(fragment);
    this.touch(items.filter((item) => !found.includes(item)));
    if (anchor) this.scroller.scrollTop += anchor.getBoundingClientRect().top - before;
  }

  /** Draws what waits to be drawn. */
  flush() {
    const from = performance.now();
    this.#isDue = false;
    for (const item of this.#dirty) draw(item, this.#elements.get(item), this.context);
    this.#dirty.clear();
    this.#costMs = performance.now() - from;
    if (this.#follows) this.#jump();
  }

  showEnd() {
    this.#follows = true;
    this.#jump();
    this.toEnd.hidden = true;
  }

  #place(item) {
    const element = h('article');
    this.#elements.set(item, element);
    return element;
  }

  #jump() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    // Only whoever goes up leaves the end: it may also be that more came below than is in sight yet.
    if (scrollHeight - scrollTop - clientHeight < END_PX) this.#follows = true;
    else if (scrollTop < this.#top - 1) this.#follows = false;
    this.#top = scrollTop;
    this.toEnd.hidden = this.#follows;
  }
}
