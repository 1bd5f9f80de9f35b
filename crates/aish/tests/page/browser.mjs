// A browser for the tests of the page, and the words those are written in. Each script beside this one is a group of cases:
//
//   AISH_PAGE_URL=http://127.0.0.1:PORT AISH_PAGE_TOKEN=… AISH_PAGE_MODULES=… AISH_PAGE_BROWSER=… node following.mjs
//
// It prints `ok NAME` or `not ok NAME: why` for each case and fails when one did. `release` on a line of its own asks whoever runs the
// model to let it go on where it halts; crates/aish/tests/page.rs has that model, and what it answers to which message.

import { createRequire } from 'node:module';
import { connect, createServer } from 'node:net';

const { AISH_PAGE_URL, AISH_PAGE_TOKEN, AISH_PAGE_MODULES, AISH_PAGE_BROWSER } = process.env;
const require = createRequire(`${AISH_PAGE_MODULES}/`);
const { chromium } = require('playwright-core');

/** How long anything may take on a busy machine before it counts as not happening. */
const WAIT_MS_MAX = 60_000;
export const DESK = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };

export const address = AISH_PAGE_URL.replace(/\/?$/, '/');
export const token = AISH_PAGE_TOKEN;
/** Where a page may ask for something. */
const lines = new Set([address, 'data:']);
/** The source of axe-core, which looks for what some people could not use. */
export const axe = () => require('axe-core').source;

export function check(holds, what) {
  if (!holds) throw new Error(what);
}

export function same(found, expected, what) {
  const [left, right] = [JSON.stringify(found), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${what}: ${left}, not ${right}`);
}

/** A line to the server that can be cut: `{ address, cut(), mend() }`. What is on the way when it is cut is lost. */
export async function line() {
  const { hostname, port } = new URL(address);
  const ends = new Set();
  let isCut = false;
  const server = createServer((near) => {
    if (isCut) return near.destroy();
    const far = connect(Number(port), hostname);
    for (const [from, to] of [[near, far], [far, near]]) {
      ends.add(from);
      from.on('error', () => from.destroy());
      from.on('close', () => ends.delete(from) && to.destroy());
      from.pipe(to);
    }
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  server.unref();
  const own = `http://127.0.0.1:${server.address().port}/`;
  lines.add(own);
  return {
    address: own,
    cut: () => {
      isCut = true;
      ends.forEach((end) => end.destroy());
    },
    mend: () => (isCut = false),
  };
}

/** Lets the model go on that halts in its reply. */
export function release() {
  console.log('release');
}

/** Runs cases, `{ 'what is so': async (open) => … }`; `open(options)` gives a page of a context of its own. */
export async function run(cases) {
  const browser = await chromium.launch({ executablePath: AISH_PAGE_BROWSER, args: ['--no-sandbox', '--disable-gpu'] });
  let failed = 0;
  for (const [name, act] of Object.entries(cases)) {
    const contexts = [];
    const troubles = [];
    const open = async (options = {}) => {
      const context = await browser.newContext({ viewport: DESK, ...options });
      contexts.push(context);
      context.setDefaultTimeout(WAIT_MS_MAX);
      const page = await context.newPage();
      page.on('pageerror', (error) => troubles.push(`error in the page: ${error.stack}`));
      page.on('dialog', (dialog) => troubles.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
      page.on('console', (message) => /Content Security Policy|TrustedHTML/.test(message.text()) && troubles.push(message.text()));
      page.on('request', (request) => [...lines].some((line) => request.url().startsWith(line)) || troubles.push(`asked for ${request.url()}`));
      return page;
    };
    try {
      await act(open);
      same(troubles, [], 'trouble');
      console.log(`ok ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`not ok ${name}: ${String(error.stack).replaceAll('\n', ' | ')} ${troubles.join(' | ')}`);
    }
    await Promise.all(contexts.map((context) => context.close()));
  }
  await browser.close();
  process.exit(failed === 0 ? 0 : 1);
}

/** Logs in by the address. */
export async function enter(page, at = address) {
  await page.goto(`${at}#token=${encodeURIComponent(token)}`);
  await page.locator('#app:not([hidden])').waitFor();
}

/** Sends a message in what is open. */
export async function say(page, text) {
  await page.locator('#message').fill(text);
  await page.locator('#message').press('Enter');
}

/** Begins a session with a message; its id. */
export async function begin(page, text) {
  await page.locator('#new').click();
  await say(page, text);
  await page.waitForURL(/#\/s\//);
  return page.url().split('#/s/')[1];
}

/** Opens a session that is there. */
export async function show(page, id) {
  await page.goto(`${address}#/s/${id}`);
}

/** Waits until so many turns have ended in the session that is shown. */
export async function turnsEnded(page, count) {
  await page.waitForFunction((wanted) => document.querySelectorAll('.item.turn').length === wanted && document.body.dataset.state === 'idle', count);
}

/** All the text of the conversation. */
export function textOf(page) {
  return page.locator('#conversation').innerText();
}

/** Asks the server directly. */
export async function api(path, body) {
  const response = await fetch(`${address}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}
