// What a turn waits for: a yes or no to a call, or the result of a call that a client is to run. What is shown is what is answered: an
// answer quotes the id and the digest of the envelope that was drawn, never those of a later one.

import { newKey, sessionPath } from './api.js';
import { h, icon } from './dom.js';
import { argumentList } from './items.js';

/** A new question takes no answer for so long: a click or key that was on its way was not meant for it. */
const SETTLE_MS = 400;

/** What an envelope asks for: `approval`, `client`, or null for nothing. */
export function wants(envelope) {
  if (envelope?.approval_pending) return 'approval';
  if (envelope?.tool_pending) return 'client';
  return null;
}

/** Fills `place` with the question of an envelope; `raw` is the text of the arguments as the model wrote them, where it is known. */
export function ask(place, envelope, raw, { api, answered, failed }) {
  const shown = raw ?? JSON.stringify(envelope.tool_input ?? {});
  const path = (what) => sessionPath(envelope.session_id, what);
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const buttons = [];
  // The same answer again is the same request; another one is another.
  const keys = new Map();
  const send = async (what, body) => {
    buttons.forEach((button) => (button.disabled = true));
    problem.hidden = true;
    try {
      const said = JSON.stringify(body);
      if (!keys.has(said)) keys.set(said, newKey());
      answered(await api.post(path(what), body, { headers: { 'idempotency-key': keys.get(said) } }));
    } catch (error) {
      if (error.name === 'AbortError') return;
      problem.replaceChildren(h('span', null, error.words ?? error.message));
      problem.hidden = false;
      buttons.forEach((button) => (button.disabled = false));
      failed(error);
    }
  };
  const form = wants(envelope) === 'approval' ? approval(envelope, shown, buttons, send) : clientCall(envelope, shown, buttons, send);
  buttons.forEach((button) => (button.disabled = true));
  setTimeout(() => buttons.forEach((button) => (button.disabled = false)), SETTLE_MS);
  place.replaceChildren(h('div', { class: 'question' }, form, problem));
  place.hidden = false;
}

function heading(text) {
  return h('h2', { id: 'asked' }, h('span', { class: 'dot', 'aria-hidden': 'true' }), text);
}

function called(envelope, shown) {
  return [
    h('p', { class: 'called' }, h('code', { class: 'tool' }, envelope.tool_name), ' is called with'),
    argumentList(shown, { fold: false }) ?? h('p', { class: 'muted' }, 'no arguments'),
  ];
}

function approval(envelope, shown, buttons, send) {
  const reason = h('input', { id: 'reason', autocomplete: 'off', maxlength: '2000', placeholder: 'Told to the model with a no' });
  const answer = (word) => () =>
    send('approval', {
      call_id: envelope.call_id,
      digest: envelope.digest,
      answer: word,
      ...(reason.value.trim() && word === 'deny' ? { reason: reason.value.trim() } : {}),
    });
  buttons.push(
    h('button', { type: 'button', class: 'primary', onclick: answer('approve') }, icon('check'), 'Approve'),
    h('button', { type: 'button', class: 'danger', onclick: answer('deny') }, icon('cross'), 'Deny'),
  );
  return h(
    'div',
    null,
    heading('May this call run?'),
    called(envelope, shown),
    h('dl', { class: 'facts' }, h('dt', null, 'Rule'), h('dd', null, envelope.reason ?? 'none'), h('dt', null, 'Digest'), h('dd', null, h('code', { class: 'digest' }, envelope.digest ?? 'none'))),
    h('div', { class: 'field' }, h('label', { for: 'reason' }, 'Reason for a no (optional)'), reason),
    h('div', { class: 'answers' }, buttons),
  );
}

function clientCall(envelope, shown, buttons, send) {
  const content = h('textarea', { id: 'result', rows: '4', spellcheck: 'false' });
  buttons.push(
    h('button', { type: 'button', class: 'primary', onclick: () => send('tool_result', { call_id: envelope.call_id, content: content.value }) }, icon('check'), 'Give this result'),
  );
  return h(
    'div',
    null,
    heading('Waits for a client program'),
    called(envelope, shown),
    h('p', { class: 'explain' }, 'The program that declared this tool is expected to run it and send the result; nothing is run here. Answer in its place only if it will not: what you write is given to the model as the result, once.'),
    h('div', { class: 'field' }, h('label', { for: 'result' }, 'Result of the call'), content),
    h('div', { class: 'answers' }, buttons),
  );
}
