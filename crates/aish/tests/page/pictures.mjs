// The pictures in the documents: what somebody sees on a desk and on a phone.

import { api, begin, enter, PHONE, run, show, turnsEnded } from './browser.mjs';

const folder = process.env.AISH_PAGE_PICTURES;
const TITLES = [
  'Why does the index rebuild at night?', 'Rename the configuration keys', 'Plan the move to the new disk', 'Explain the flaky test in the store',
  'Summarise the release notes since the last tag', 'Which tests take longest?', 'Draft the answer to the open question about time zones', 'Tidy the photo archive',
];

async function picture(page, name) {
  // A caret blinks, and what was just changed may still be moving.
  await page.evaluate(() => document.activeElement.blur());
  await page.screenshot({ path: `${folder}/${name}.png`, animations: 'disabled', caret: 'hide' });
}

let asked = '';
let report = '';

await run({
  'an approval on a desk': async (open) => {
    for (const message of TITLES) await api('api/chat', { message });
    await api('api/chat', { message: 'Please show the map of the stations' });
    const page = await open({ colorScheme: 'light' });
    await enter(page);
    asked = await begin(page, 'Find the warmest day in data/june.csv and keep it in a file');
    await page.locator('.question .primary:not(:disabled)').waitFor();
    await page.locator('#list a[aria-current] .badge').waitFor();
    await picture(page, 'serve-approval');
  },

  'a reply in the dark': async (open) => {
    const page = await open({ colorScheme: 'dark' });
    await enter(page);
    report = await begin(page, "Why is /api/chat slower since two o'clock?");
    await turnsEnded(page, 1);
    await page.locator(`#list a[data-id="${report}"]`).waitFor();
    await picture(page, 'serve-dark');
  },

  'both on a phone': async (open) => {
    const page = await open({ viewport: PHONE, isMobile: true, hasTouch: true, colorScheme: 'light', deviceScaleFactor: 1 });
    await enter(page);
    await page.locator('#list a .badge').first().waitFor();
    await picture(page, 'serve-phone-list');
    await show(page, asked);
    await page.locator('.question .primary:not(:disabled)').waitFor();
    await picture(page, 'serve-phone');
  },
});
