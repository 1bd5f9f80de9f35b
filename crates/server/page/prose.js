// A reply as it is written: its Markdown drawn block by block, where only blocks that changed are drawn again.

import { h } from './dom.js';
import { blocks, render } from './markdown.js';

export class Prose {
  element = h('div', { class: 'prose' });
  #sources = [];
  #announced = 0;

  /** Shows this text: the text of each block that is finished since the last time. */
  update(text) {
    const now = blocks(text);
    let same = 0;
    while (same < now.length && this.#sources[same] === now[same].source) same += 1;
    while (this.element.childElementCount > same) this.element.lastChild.remove();
    this.element.append(...now.slice(same).map((block) => render(block)));
    this.#sources = now.map((block) => block.source);
    // The last block may go on: it is not finished before another begins.
    const from = Math.min(this.#announced, now.length);
    this.#announced = Math.max(from, now.length - 1);
    return this.#texts(from, this.#announced);
  }

  /** The text of what `update` has not told of. */
  rest() {
    const from = this.#announced;
    this.#announced = this.#sources.length;
    return this.#texts(from, this.#announced).join('\n');
  }

  #texts(from, to) {
    return [...this.element.children].slice(from, to).map((block) => block.textContent);
  }
}
