// What waits is shown whole and answered: approvals, calls for a client program; and a turn is stopped.

import { api, begin, check, enter, release, run, same, show, textOf, turnsEnded } from './browser.mjs';

const question = (page) => page.locator('.question');
const button = (page, name) => page.getByRole('button', { name, exact: true });

await run({
  'a call is approved, with all of it shown, and runs': async (open) => {
    const page = await open();
    await enter(page);
    const id = await begin(page, 'write the file yes.txt');
    await question(page).waitFor();
    const { body } = await api(`api/sessions/${id}`);
    const text = await question(page).innerText();
    for (const part of ['file_write', 'yes.txt', 'written by a model', body.pending.digest, body.pending.reason]) check(text.includes(part), `${part} is not in: ${text}`);
    await page.locator('#list a[aria-current] .badge').waitFor();
    check((await page.title()).startsWith('●'), await page.title());
    await button(page, 'Approve').click();
    await turnsEnded(page, 1);
    await page.locator('.item.call[data-state="done"]', { hasText: 'yes.txt' }).waitFor();
    check((await textOf(page)).includes('Approved by a client'), await textOf(page));
    same(await question(page).count(), 0, 'questions');
  },

  'a call is denied, with a reason for the model': async (open) => {
    const page = await open();
    await enter(page);
    await begin(page, 'write the file no.txt');
    await page.getByLabel('Reason for a no (optional)').fill('not in this folder');
    await button(page, 'Deny').click();
    await turnsEnded(page, 1);
    await page.locator('.item.call[data-state="refused"]').waitFor();
    check((await textOf(page)).includes('not in this folder'), await textOf(page));
  },

  'several calls are asked about one after another, each with its own digest': async (open) => {
    const page = await open();
    await enter(page);
    await begin(page, 'write two files');
    await question(page).getByText('one.txt').waitFor();
    const first = await question(page).locator('.digest').innerText();
    await button(page, 'Approve').click();
    await question(page).getByText('two.txt').waitFor();
    check((await question(page).locator('.digest').innerText()) !== first, 'the digest is that of the first');
    same(await page.locator('.item.call[data-state="done"]').count(), 0, 'calls that ran before all were answered');
    await button(page, 'Deny').click();
    await turnsEnded(page, 1);
    same(await page.locator('.item.call').evaluateAll((all) => all.map((call) => call.dataset.state)), ['done', 'refused'], 'what became of them');
  },

  'what a running command prints is seen while it runs': async (open) => {
    const page = await open();
    await enter(page);
    await begin(page, 'wait for the file');
    await button(page, 'Approve').click();
    await page.locator('.item.call[data-state="running"] .output.live', { hasText: 'first' }).waitFor();
    const { body } = await api('api/chat', { message: 'write the file go.txt' });
    const { call_id, digest, session_id } = body;
    same((await api(`api/sessions/${session_id}/approval`, { call_id, digest, answer: 'approve' })).status, 200, 'status');
    await turnsEnded(page, 1);
    same(await page.locator('.item.call .output').innerText(), 'first\nsecond', 'the whole output');
  },

  'a client call says who is expected to answer, and takes an answer': async (open) => {
    const page = await open();
    await enter(page);
    await begin(page, 'show the map');
    await question(page).getByText('expected to run it').waitFor();
    const text = await question(page).innerText();
    check(text.includes('show_map') && text.includes('Bern') && text.includes('12345678901234567890'), text);
    await page.getByLabel('Result of the call').fill('the map is shown');
    await button(page, 'Give this result').click();
    await turnsEnded(page, 1);
    check((await textOf(page)).includes('the map is shown'), await textOf(page));
  },

  'an answer from elsewhere takes the question away': async (open) => {
    const [one, two] = [await open(), await open()];
    await enter(one);
    await enter(two);
    const id = await begin(one, 'show the map');
    await show(two, id);
    await Promise.all([question(one).waitFor(), question(two).waitFor()]);
    const { body } = await api(`api/sessions/${id}`);
    same((await api(`api/sessions/${body.pending.session_id}/tool_result`, { call_id: body.pending.call_id, content: 'by a program' })).status, 200, 'status');
    await Promise.all([turnsEnded(one, 1), turnsEnded(two, 1)]);
    same([await question(one).count(), await question(two).count()], [0, 0], 'questions left');
  },

  'an answer that came too late is said to be': async (open) => {
    const page = await open();
    await enter(page);
    const id = await begin(page, 'show the map');
    await page.getByLabel('Result of the call').fill('too late');
    await button(page, 'Give this result').waitFor();
    // The page does not hear of the other answer before its own is refused.
    await page.route('**/tool_result', async (route) => {
      const { body } = await api(`api/sessions/${id}`);
      await api(`api/sessions/${body.pending.session_id}/tool_result`, { call_id: body.pending.call_id, content: 'by a program' });
      await route.continue();
    });
    await button(page, 'Give this result').click();
    await turnsEnded(page, 1);
    const text = await textOf(page);
    check(text.includes('by a program') && !text.includes('too late'), text);
  },

  'a running turn is stopped': async (open) => {
    const page = await open();
    await enter(page);
    await begin(page, 'halt in the middle');
    await page.locator('.item.live .prose', { hasText: 'The first half' }).waitFor();
    await button(page, 'Stop').click();
    await turnsEnded(page, 1);
    check((await page.locator('.item.turn').innerText()).includes('cancelled'), 'not said to be cancelled');
    release();
  },

  'a waiting turn is stopped': async (open) => {
    const page = await open();
    await enter(page);
    await begin(page, 'show the map');
    await question(page).waitFor();
    await button(page, 'Stop').click();
    await turnsEnded(page, 1);
    same(await question(page).count(), 0, 'questions');
    await page.locator('.item.call[data-state="refused"], .item.call[data-state="failed"]').waitFor();
  },
});
