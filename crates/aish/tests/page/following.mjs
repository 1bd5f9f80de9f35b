// Logging in, and following a turn while it happens.

import { address, api, begin, check, enter, line, release, run, same, say, show, textOf, token, turnsEnded } from './browser.mjs';

await run({
  'a token that is wrong is said to be': async (open) => {
    const page = await open();
    await page.goto(address);
    await page.getByLabel('Token').fill(`${token}-no`);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').filter({ hasText: 'does not know this token' }).waitFor();
    check(await page.locator('#app').isHidden(), 'it lets in');
    await page.getByLabel('Token').fill(token);
    await page.keyboard.press('Enter');
    await page.getByRole('navigation', { name: 'Sessions' }).waitFor();
    same(await page.locator('#token').inputValue(), '', 'the token stays in its field');
  },

  'the token leaves the address, and its tab forgets it': async (open) => {
    const page = await open();
    await enter(page);
    check(!page.url().includes(token), page.url());
    await page.reload();
    await page.locator('#app:not([hidden])').waitFor();
    const stored = await page.evaluate(() => [Object.keys(localStorage), document.cookie, Object.values(sessionStorage)]);
    same(stored, [[], '', [token]], 'where the token is');
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Token').waitFor();
    same(await page.evaluate(() => Object.keys(sessionStorage)), [], 'after logging out');
    const other = await page.context().newPage();
    await other.goto(address);
    await other.getByLabel('Token').waitFor();
  },

  'a turn is seen while it happens': async (open) => {
    const page = await open();
    await enter(page);
    await begin(page, 'halt in the middle');
    // The model halts here: what is shown is not in the ledger yet.
    await page.locator('.item.live .prose', { hasText: 'The first half' }).waitFor();
    check(!(await textOf(page)).includes('second half'), 'the rest is there before it came');
    same(await page.evaluate(() => document.body.dataset.state), 'running', 'state');
    check(await page.getByRole('button', { name: 'Stop' }).isVisible(), 'nothing to stop it with');
    release();
    await turnsEnded(page, 1);
    const text = await textOf(page);
    check(text.includes('The first half') && text.includes('the second half'), text);
    same(await page.locator('.item.live').count(), 0, 'live items');
    same(await page.locator('.item.assistant:visible').count(), 1, 'replies');
    check((await page.locator('#say').innerText()).includes('the second half'), 'it is not announced');
    check(/tokens in/.test(await page.locator('.item.turn').innerText()), 'no usage');
  },

  'another device sees it too, and a message from either': async (open) => {
    const [one, two] = [await open(), await open()];
    await enter(one);
    await enter(two);
    const id = await begin(one, 'halt in the middle');
    await one.locator('.item.live').waitFor();
    await show(two, id);
    await two.locator('.item.user', { hasText: 'halt in the middle' }).waitFor();
    release();
    await Promise.all([turnsEnded(one, 1), turnsEnded(two, 1)]);
    await say(two, 'plain words');
    await Promise.all([turnsEnded(one, 2), turnsEnded(two, 2)]);
    same(await textOf(one), await textOf(two), 'what both show');
    same(await one.locator('.item.user').count(), 2, 'messages');
    await say(one, 'more plain words');
    await Promise.all([turnsEnded(one, 3), turnsEnded(two, 3)]);
  },

  'a lost connection is said, and taken up again without a gap': async (open) => {
    const page = await open();
    const wire = await line();
    await enter(page, wire.address);
    const id = await begin(page, 'plain words');
    await turnsEnded(page, 1);
    wire.cut();
    await page.getByRole('status').filter({ hasText: 'Reconnecting' }).waitFor();
    same((await api('api/chat', { conversation_id: id, message: 'said meanwhile' })).status, 200, 'status');
    await say(page, 'said into the void');
    const problem = page.locator('#problem');
    await problem.filter({ hasText: 'could not be reached' }).waitFor();
    wire.mend();
    await turnsEnded(page, 2);
    await page.waitForFunction(() => document.getElementById('linked').textContent === '');
    // What could not be sent is still there to be sent, and that it could not is over.
    await problem.waitFor({ state: 'hidden' });
    same(await page.locator('#message').inputValue(), 'said into the void', 'the field');
    await page.locator('#message').press('Enter');
    await turnsEnded(page, 3);
    same(await page.locator('.item.user').allInnerTexts().then((all) => all.map((text) => text.split('\n').at(-1))), ['plain words', 'said meanwhile', 'said into the void'], 'messages');
  },

  'a session that is opened while the server is away comes with it': async (open) => {
    const page = await open();
    const wire = await line();
    await enter(page, wire.address);
    const id = await begin(page, 'plain words');
    await turnsEnded(page, 1);
    await page.locator('#new').click();
    wire.cut();
    await page.evaluate((hash) => (location.hash = hash), `#/s/${id}`);
    await page.locator('#problem').filter({ hasText: 'could not be reached' }).waitFor();
    wire.mend();
    await turnsEnded(page, 1);
    await page.locator('#problem').waitFor({ state: 'hidden' });
  },

  'sessions are listed, searched and opened': async (open) => {
    const page = await open();
    await enter(page);
    const id = await begin(page, 'a needle called zwiebelfisch');
    await turnsEnded(page, 1);
    await page.getByLabel('Search all sessions').fill('zwiebelfisch');
    await page.waitForFunction(() => document.querySelectorAll('#list a').length === 1);
    await page.getByLabel('Search all sessions').fill('no such words anywhere');
    await page.getByText('Nothing found.').waitFor();
    await page.getByLabel('Search all sessions').fill('');
    await page.locator(`#list a[data-id="${id}"]`).click();
    await page.locator('.item.user', { hasText: 'zwiebelfisch' }).waitFor();
    same(await page.locator('#list a[aria-current]').getAttribute('data-id'), id, 'which is marked');
  },

  'what a session cost is drawn': async (open) => {
    const page = await open();
    await enter(page);
    await begin(page, 'plain words');
    await turnsEnded(page, 1);
    await say(page, 'more plain words');
    await turnsEnded(page, 2);
    await page.getByRole('button', { name: 'Figures' }).click();
    await page.getByRole('img', { name: /Tokens per turn, 2 turns/ }).waitFor();
    await page.getByRole('img', { name: /Time per turn, 2 turns/ }).waitFor();
    same(await page.locator('#figures figure').first().locator('tbody tr').count(), 2, 'rows for who cannot see it');
  },
});
