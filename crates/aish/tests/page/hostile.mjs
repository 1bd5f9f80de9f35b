// Text of a model, a tool and a person's title stays text, wherever it is shown.

import { begin, check, enter, run, same, show } from './browser.mjs';

// Control characters but for line feed and tab, marks of direction, what cannot be seen.
const HOSTILE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]/u.source;

async function nothingHappened(page) {
  const found = await page.evaluate((hostile) => {
    const shown = document.documentElement;
    const elements = [...shown.querySelectorAll('*')];
    const attributes = elements.flatMap((element) => [...element.attributes].map(({ name, value }) => [name, value]));
    return {
      ran: window.hacked ?? null,
      scripts: document.scripts.length,
      frames: document.querySelectorAll('iframe, object, embed, base, form[action], meta[http-equiv]').length,
      handlers: attributes.filter(([name]) => name.startsWith('on')),
      links: [...document.links].map((link) => link.getAttribute('href')).filter((href) => !/^(https?:\/\/|#)/.test(href)),
      loose: [...document.links].filter((link) => /^http/.test(link.getAttribute('href')) && !(/noopener/.test(link.rel) && link.target === '_blank')).length,
      remote: [...document.images].map((image) => image.src).filter((source) => !source.startsWith('data:')),
      text: new RegExp(hostile, 'u').exec(shown.textContent + attributes.map(([, value]) => value).join(' ') + document.title)?.[0] ?? null,
    };
  }, HOSTILE);
  same(found, { ran: null, scripts: 1, frames: 0, handlers: [], links: [], loose: 0, remote: [], text: null }, 'what got through');
}

const TITLE = 'be hostile <img src=x onerror=window.hacked=1> \u202etxt.exe \u001b[31m';

await run({
  'a hostile reply, call and result are text': async (open) => {
    const page = await open();
    await enter(page);
    const id = await begin(page, TITLE);
    await page.locator('.question').waitFor();
    await nothingHappened(page);
    const text = await page.locator('#conversation').innerText();
    for (const part of ['<script>window.hacked=1</script>', '[click](javascript:window.hacked=1)', '\\x1b[31m', '\\u{202e}', '\\u{200b}', '<b onclick=']) check(text.includes(part), `${part} is not in: ${text}`);
    // A link says where it leads, whatever it is called.
    check(/bank\.example \(evil\.example\)/.test(text), text);
    const asked = await page.locator('.question').innerText();
    for (const part of ['\\x1b[2J', '\\u{202e}', '<script>window.hacked=2</script>', 'hidden_by_the_second', 'second']) check(asked.includes(part), `${part} is not in: ${asked}`);
    await page.getByRole('button', { name: 'Deny', exact: true }).click();
    await page.locator('.item.turn').waitFor();
    await nothingHappened(page);
    await show(page, id);
    await page.reload();
    await page.locator('.item.turn').waitFor();
    await nothingHappened(page);
    check((await page.locator('#list a').first().innerText()).includes('\\u{202e}'), 'the title in the list');
  },
});
