// Whoever comes, with whatever: a phone, a keyboard alone, a screen reader, a session of ten thousand events.

import { address, axe, begin, check, enter, PHONE, run, same, turnsEnded } from './browser.mjs';

const EVENTS = 10_000;
/** Fewer are drawn at first, or a long session would be slow. */
const FIRST_ITEMS_MAX = 500;

async function fits(page, what) {
  const { scrollWidth, clientWidth, wide } = await page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    const scrolls = (element) => element.closest('.code pre, .wide, .hidden-words, #say, .title, .heading') !== null;
    const wide = [...document.querySelectorAll('body *')]
      .filter((element) => element.getClientRects().length > 0 && element.getBoundingClientRect().right > clientWidth + 1 && !scrolls(element))
      .map((element) => `${element.tagName}.${element.getAttribute('class')}`);
    for (const element of document.querySelectorAll('#scroll, .list, #figures'))
      if (element.scrollWidth > element.clientWidth) wide.push(`${element.id} scrolls sideways`);
    return { scrollWidth, clientWidth, wide };
  });
  same([scrollWidth, wide], [clientWidth, []], `${what} is wider than a phone`);
}

async function accessible(page, what) {
  await page.evaluate(axe());
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ['violations'] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join(' / ')}`);
  });
  same(found, [], what);
}

/** Presses Tab until that element has the focus; each stop on the way must be seen to have it. */
async function tabTo(page, selector) {
  for (let stops = 0; stops < 80; stops += 1) {
    const at = await page.evaluate((wanted) => {
      const { activeElement: element } = document;
      const style = getComputedStyle(element.closest('.message') ?? element);
      return { isThere: element.matches(wanted), isSeen: element === document.body || element.tabIndex < 0 || style.outlineStyle !== 'none', what: element.outerHTML.slice(0, 120) };
    }, selector);
    check(at.isSeen, `the focus is not seen on ${at.what}`);
    if (at.isThere) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not lead to ${selector}`);
}

/** A session of many events, answered in place of the server. */
async function longSession(page, id) {
  const events = Array.from({ length: EVENTS }, (_, index) => {
    const turn = Math.floor(index / 5) + 1;
    const kinds = [
      ['turn_started', '', { model: 'fake' }],
      ['user', `Question ${turn}`, null],
      ['assistant', `Answer **${turn}**`, { parts: [], model: 'fake', stop: 'end' }],
      ['usage', '', { input_tokens: 10, output_tokens: 2 }],
      ['turn_ended', '', { reason: 'end' }],
    ];
    const [kind, content, data] = kinds[index % 5];
    return { session: id, seq: index + 1, turn, time: 1_700_000_000_000 + index * 100, version: 1, kind, content, data };
  });
  const session = { id, title: 'Long', created: events[0].time, updated: events.at(-1).time, events: EVENTS, waiting: false, directory: null };
  await page.route(`**/api/sessions/${id}?*`, (route) => {
    const query = new URL(route.request().url()).searchParams;
    const [after, limit] = [Number(query.get('after')), Number(query.get('limit'))];
    return route.fulfill({ json: { session, state: 'idle', pending: null, events: events.slice(after, after + limit), more: after + limit < EVENTS } });
  });
  await page.route(`**/api/sessions/${id}/events`, (route) => route.fulfill({ contentType: 'text/event-stream', body: ': nothing\n\n' }));
}

await run({
  'nothing is wider than a phone': async (open) => {
    const page = await open({ viewport: PHONE, isMobile: true, hasTouch: true });
    await page.goto(address);
    await page.getByLabel('Token').waitFor();
    await fits(page, 'the login');
    await enter(page);
    await fits(page, 'the list');
    await page.locator('#new').tap();
    await page.locator('#message').fill('be hostile');
    await page.getByRole('button', { name: 'Send' }).tap();
    await page.locator('.question').waitFor();
    await fits(page, 'a session with a question');
    await page.getByRole('button', { name: 'Deny', exact: true }).tap();
    await turnsEnded(page, 1);
    await page.getByRole('button', { name: 'Figures' }).tap();
    await fits(page, 'the figures');
    await page.getByRole('link', { name: 'All sessions' }).tap();
    check(await page.locator('#side').isVisible() && await page.locator('#room').isHidden(), 'the list is not shown');
  },

  'a keyboard is enough': async (open) => {
    const page = await open();
    await page.goto(address);
    await page.getByLabel('Token').waitFor();
    await page.keyboard.type(process.env.AISH_PAGE_TOKEN);
    await page.keyboard.press('Enter');
    await page.locator('#app:not([hidden])').waitFor();
    await page.keyboard.press('n');
    await page.keyboard.type('plain words');
    await page.keyboard.press('Enter');
    await turnsEnded(page, 1);
    await page.keyboard.press('Escape');
    await page.keyboard.press('n');
    await page.keyboard.type('write the file keys.txt');
    await page.keyboard.press('Enter');
    await page.locator('#list a[aria-current] .badge').waitFor();
    await page.keyboard.press('Escape');
    same(await page.evaluate(() => document.activeElement.closest('#list') !== null), true, 'Escape leads to the list');
    const at = () => page.evaluate(() => document.activeElement.dataset.id);
    const first = await at();
    await page.keyboard.press('j');
    const second = await at();
    check(first !== second, 'j stays where it was');
    await page.keyboard.press('ArrowUp');
    same(await at(), first, 'where the arrow leads');
    await page.keyboard.press('Enter');
    await tabTo(page, '.question .primary:not(:disabled)');
    await page.keyboard.press('Enter');
    await turnsEnded(page, 1);
    await page.keyboard.press('/');
    same(await page.evaluate(() => document.activeElement.id), 'search', 'where / leads');
  },

  'its parts have names and roles, in light and dark': async (open) => {
    for (const colorScheme of ['light', 'dark']) {
      const page = await open({ colorScheme, reducedMotion: 'reduce' });
      await page.goto(address);
      await page.getByLabel('Token').waitFor();
      await accessible(page, `the login, ${colorScheme}`);
      await enter(page);
      await accessible(page, `the beginning of a session, ${colorScheme}`);
      await begin(page, 'be hostile');
      await page.locator('.question .primary:not(:disabled)').waitFor();
      await accessible(page, `an approval, ${colorScheme}`);
      await page.getByRole('button', { name: 'Deny', exact: true }).click();
      await turnsEnded(page, 1);
      await page.getByRole('button', { name: 'Figures' }).click();
      await accessible(page, `a session, ${colorScheme}`);
      await begin(page, 'show the map');
      await page.locator('.question .primary:not(:disabled)').waitFor();
      await accessible(page, `a client call, ${colorScheme}`);
      for (const [role, name] of [['navigation', 'Sessions'], ['main'], ['region', 'Conversation'], ['region', 'Waits for a client program'], ['textbox', 'Message'], ['textbox', 'Result of the call']])
        same(await page.getByRole(role, name ? { name, exact: true } : {}).count(), 1, `${role} ${name ?? ''}`);
      same(await page.locator('#say').getAttribute('aria-live'), 'polite', 'how replies are announced');
      const moving = await page.evaluate(() => document.getAnimations().length);
      same(moving, 0, 'animations for who wants none');
    }
  },

  'a session of ten thousand events opens at its end': async (open) => {
    const page = await open();
    await enter(page);
    await longSession(page, 'long-one');
    await page.goto(`${address}#/s/long-one`);
    await page.getByText(`Question ${EVENTS / 5}`, { exact: true }).waitFor();
    const drawn = () => page.locator('#conversation > *').count();
    check((await drawn()) <= FIRST_ITEMS_MAX, `${await drawn()} items at first`);
    const bottom = () => page.evaluate(() => document.getElementById('scroll')).then(() => page.evaluate(() => { const { scrollHeight, scrollTop, clientHeight } = document.getElementById('scroll'); return scrollHeight - scrollTop - clientHeight; }));
    await page.waitForFunction(() => { const { scrollHeight, scrollTop, clientHeight } = document.getElementById('scroll'); return scrollHeight - scrollTop - clientHeight < 5; });
    check((await bottom()) < 5, 'it is not at its end');
    await page.getByRole('button', { name: 'Figures' }).click();
    await page.waitForFunction(() => document.getElementById('earlier').hidden);
    same(await page.getByText('Question 1', { exact: true }).count(), 1, 'the first question');
    same(await page.locator('.item.user').count(), EVENTS / 5, 'questions');
    const order = await page.locator('.item.user .said').allTextContents();
    same(order, order.map((_, index) => `Question ${index + 1}`), 'their order');
    same(await page.locator('.item').first().evaluate((element) => getComputedStyle(element).contentVisibility), 'auto', 'what is out of sight');
  },
});
