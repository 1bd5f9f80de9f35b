// The parts of the page that are functions from text to data, asked in the browser itself.

import { enter, run, same } from './browser.mjs';

/** A case that runs in the page: what it answers must be an empty list of complaints. */
const inPage = (act) => async (open) => {
  const page = await open();
  await enter(page);
  same(await page.evaluate(act), [], 'complaints');
};

await run({
  'a stream reads the same however it is cut': inPage(async () => {
    const { Frames } = await import('/page/sse.js');
    const text = ': hello\r\n\r\nid: 1\nevent: user\ndata: {"a":\ndata: 1}\n\nevent:delta\r\ndata:x\r\rdata\n\nid: 3\n\nretry: 5\ndata:  y\n\ndata: no end';
    const whole = JSON.stringify(new Frames().push(text));
    const complaints = whole === JSON.stringify([
      { event: 'user', data: '{"a":\n1}', id: '1' }, { event: 'delta', data: 'x', id: null }, { event: 'message', data: '', id: null }, { event: 'message', data: ' y', id: null },
    ]) ? [] : [whole];
    for (let at = 0; at <= text.length; at += 1) {
      for (const to of [at, Math.min(at + 1, text.length), Math.min(at + 7, text.length)]) {
        const frames = new Frames();
        const found = [...frames.push(text.slice(0, at)), ...frames.push(text.slice(at, to)), ...frames.push(text.slice(to))];
        if (JSON.stringify(found) !== whole) complaints.push(`cut at ${at} and ${to}: ${JSON.stringify(found)}`);
      }
    }
    return complaints;
  }),

  'arguments are shown whole: order, doubles, long numbers': inPage(async () => {
    const { entries, readable } = await import('/page/arguments.js');
    const complaints = [];
    const check = (text, expected) => {
      const found = JSON.stringify(entries(text));
      if (found !== JSON.stringify(expected)) complaints.push(`${text}: ${found}`);
    };
    check('{"b":1,"a":2,"b":3}', [['b', '1'], ['a', '2'], ['b', '3']]);
    check(' { "a" : 12345678901234567890 , "c":1.50 } ', [['a', '12345678901234567890'], ['c', '1.50']]);
    check('{"a\\"}":{"x":["}",{"y":"\\\\"}]},"b":null}', [['a"}', '{"x":["}",{"y":"\\\\"}]}'], ['b', 'null']]);
    check('{"__proto__":"x","":true}', [['__proto__', '"x"'], ['', 'true']]);
    for (const none of ['', '[]', '"a"', '{"a":1', '{a:1}', '{"a":1} x']) check(none, null);
    check('{}', []);
    const long = `[${Array.from({ length: 30 }, (_, n) => `{"n": ${n}.0, "e": [], "s": "a, {b}: ]"}`).join(',')}]`;
    const bare = (text) => text.replace(/"(?:[^"\\]|\\.)*"|\s+/g, (found) => (found.startsWith('"') ? found : ''));
    if (bare(readable(long).text) !== bare(long)) complaints.push(readable(long).text);
    if (readable('"a\\nb"').text !== 'a\nb') complaints.push('a string is shown as its text');
    return complaints;
  }),

  'Markdown is drawn, and what is none stays': inPage(async () => {
    const { blocks, render } = await import('/page/markdown.js');
    const complaints = [];
    const check = (text, ...selectors) => {
      const place = document.createElement('div');
      place.append(...blocks(text).map((block) => render(block)));
      for (const selector of selectors) if (!place.querySelector(selector)) complaints.push(`no ${selector} in ${text}: ${[...place.querySelectorAll('*')].map((element) => element.tagName)}`);
      return place;
    };
    check('# a\n\n*b* **c** `d` ~~e~~ ***f***', 'h3', 'em', 'strong', 'code', 'del', 'strong > em');
    check('- a\n  - b\n\n3. c', 'ul > li > ul > li', 'ol[start="3"]');
    check('| a | b |\n|---|:-:|\n| 1 | 2 |', 'table th', 'table td');
    check('> a\n\n```x\ncode\n```\n\n---', 'blockquote', 'pre > code', 'hr');
    check('[a](https://b.example/c_(d)) https://e.example.', 'a[href="https://b.example/c_(d)"]', 'a[href="https://e.example/"]');
    for (const text of ['[a](javascript:alert(1))', '[a](data:text/html,x)', '<a href="x">', '[a](//b)', '[a](file:///etc)', '[a](java\nscript:x)', 'snake_case_word', '2 * 3 * 4', '![i](blob:x)'])
      if (check(text).querySelector('a, img, em')) complaints.push(`${text} is more than text`);
    // What is as long as its writer likes must not take time by its square: these would take minutes.
    for (const piece of ['*a ', '_a ', '[a](', '`a``', '> ', '- ', '**a* ', '# \t', 'https://%', '|-'])
      check(piece.repeat(30_000));
    check(`# ${' '.repeat(400_000)}x`);
    check(`a|b\n-${' '.repeat(400_000)}x`);
    return complaints;
  }),

  'no event that a damaged ledger may hold takes the others away': inPage(async () => {
    const [{ Conversation }, { draw }] = [await import('/page/model.js'), await import('/page/items.js')];
    const kinds = ['system', 'user', 'assistant', 'tool_call', 'tool_result', 'turn_started', 'call_gated', 'call_answered', 'call_started', 'call_suspended', 'call_taken_up',
      'model_failed', 'suspended', 'resumed', 'cancelled', 'turn_ended', 'command', 'usage', 'clear', 'mark', 'note', 'constructor', '__proto__', 'of_a_later_version', ''];
    const odd = [null, 0, 'x', [], {}, { parts: 'x' }, { parts: [null, {}, { type: 'image' }] }, { output: 7, success: 'no' }, { function: { name: {}, arguments: {} } },
      { function: { name: 'n', arguments: '{"a":' } }, { stop: 'constructor', reason: {} }, { verdict: 'toString' }, { asks: 'x' }, { call_id: {}, tool_call_id: [], id: 1 }];
    const conversation = new Conversation();
    const context = { isPending: () => false, announce: () => {} };
    const complaints = [];
    let seq = 0;
    for (const kind of kinds) {
      for (const data of odd) {
        for (const content of ['', 'text']) {
          seq += 1;
          try {
            const items = conversation.append({ session: 's', seq, turn: seq % 3, time: seq % 5 === 0 ? 'no time' : 1e12 + seq, version: 9, kind, content, data });
            for (const item of items) draw(item, document.createElement('article'), context);
          } catch (error) {
            complaints.push(`${kind} ${JSON.stringify(data)}: ${error.stack}`);
          }
        }
      }
    }
    return complaints;
  }),

  'a conversation is the same, loaded from the end or from the beginning': inPage(async () => {
    const { Conversation, figures } = await import('/page/model.js');
    const kinds = [
      ['turn_started', { model: 'm' }], ['user', null], ['assistant', { model: 'm', stop: 'tool_calls' }], ['usage', { input_tokens: 5, output_tokens: 1 }],
      ['tool_call', { id: 'c', function: { name: 'bash', arguments: '{}' } }], ['call_gated', { call_id: 'c', verdict: 'ask' }], ['suspended', {}], ['resumed', {}],
      ['call_answered', { call_id: 'c', answer: 'approve' }], ['call_started', { call_id: 'c' }], ['tool_result', { tool_call_id: 'c', success: true }],
      ['assistant', { model: 'm', stop: 'end' }], ['turn_ended', { reason: 'end' }],
    ];
    const events = kinds.map(([kind, data], index) => ({ kind, data, seq: index + 1, turn: 1, time: (index + 1) * 100, content: kind }));
    const outline = (items) => JSON.stringify([...new Set(items)].sort((a, b) => a.seq - b.seq).map((item) => [item.type, item.call?.seq, item.gated?.seq, item.result?.seq, item.event?.seq, item.turn && figures(item.turn)]));
    const from = new Conversation();
    const whole = outline(events.flatMap((event) => from.append(event)));
    const complaints = [];
    for (let cut = 1; cut < events.length; cut += 1) {
      const two = new Conversation();
      const items = events.slice(cut).flatMap((event) => two.append(event));
      items.push(...two.prepend(events.slice(0, cut)));
      // A call whose beginning was loaded later stays where its first event was: its place is not compared.
      const found = outline(items);
      if (JSON.stringify(JSON.parse(found).sort()) !== JSON.stringify(JSON.parse(whole).sort())) complaints.push(`cut at ${cut}: ${found}, not ${whole}`);
    }
    const [turn] = from.turns.values();
    const { waitMs, workMs, input } = figures(turn);
    if (waitMs !== 200 || workMs !== 1000 || input !== 5) complaints.push(`figures: ${waitMs} ${workMs} ${input}`);
    return complaints;
  }),
});
