// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// browser.mjs CHROMIUM PAGE SCHEDULE EXPLORER PLAN: drives the explorer's page in headless Chromium and
// compares it with the programs `schedule`, `explorer` and `plan`.
//   EXPLORER_PICTURES  a folder for screenshots
//   EXPLORER_CASES     how many mutated files are opened (1000)
//   EXPLORER_STEP      every how many ranks and microbatches are compared with `explorer` (7; 1 with HEDDLE_LONG)
//   EXPLORER_AXE       axe.min.js of the npm package axe-core: no fault of accessibility may be found
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const [chromium, page, schedule, explorer, planner] = process.argv.slice(2);
const { EXPLORER_PICTURES: pictures, EXPLORER_AXE: axe } = process.env;
const folder = mkdtempSync(join(tmpdir(), 'explorer-'));
const browser = spawn(chromium, ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
  '--no-first-run', '--disable-background-networking', '--disable-component-update', '--hide-scrollbars',
  `--user-data-dir=${folder}/profile`, '--remote-debugging-pipe', 'about:blank'],
  { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
let failures = 0;
const check = (good, what) => {
  if (good) return;
  ++failures;
  console.log(`FAILED: ${what}`);
};

// The DevTools protocol: JSON messages that end with a zero byte.
const pending = new Map(), complaints = [];
let number = 0, rest = '', session;
browser.stdio[4].setEncoding('utf8').on('data', (text) => {
  const parts = (rest + text).split('\0');
  rest = parts.pop();
  for (const part of parts) {
    const message = JSON.parse(part);
    if (message.id && pending.has(message.id)) {
      const { done, fail } = pending.get(message.id);
      pending.delete(message.id);
      message.error ? fail(new Error(message.error.message)) : done(message.result);
    } else if (message.method === 'Runtime.exceptionThrown') {
      complaints.push(message.params.exceptionDetails.exception?.description || message.params.exceptionDetails.text);
    } else if (message.method === 'Runtime.consoleAPICalled' && ['error', 'warning', 'assert'].includes(message.params.type)) {
      complaints.push(message.params.args.map((one) => one.value || one.description).join(' '));
    } else if (message.method === 'Log.entryAdded' && ['error', 'warning'].includes(message.params.entry.level)) {
      complaints.push(message.params.entry.text);
    } else if (message.method === 'Network.requestWillBeSent') {
      const { url } = message.params.request;
      if (!/^(file|blob|data):/.test(url) && url !== 'about:blank') complaints.push(`the page loads ${url}`);
    }
  }
});
browser.on('exit', () => { for (const { fail } of pending.values()) fail(new Error('Chromium has ended')); });
const send = (method, params = {}) => new Promise((done, fail) => {
  pending.set(++number, { done, fail });
  browser.stdio[3].write(JSON.stringify({ id: number, method, params, sessionId: session }) + '\0');
});
const run = async (expression) => {
  const { result, exceptionDetails } = await send('Runtime.evaluate',
    { expression: `(async () => { ${expression} })()`, awaitPromise: true, returnByValue: true });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
  return result.value;
};
const size = (width, height = 900) => send('Emulation.setDeviceMetricsOverride',
  { width, height, deviceScaleFactor: 1, mobile: width < 500 });
const frames = 'const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));';
const go = (hash) => run(`${frames} await explorer.ready; location.hash = '${hash}'; await frame(); await frame();`);
const shoot = async (name, width, height) => {
  if (!pictures) return;
  await size(width, height);
  await run(`${frames} document.getElementById('settings').open = ${width > 820}; await frame(); await frame();`);
  const { data } = await send('Page.captureScreenshot', { format: 'png' });
  writeFileSync(join(pictures, `${name}-${width}.png`), Buffer.from(data, 'base64'));
  await size(1440);
};
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

async function test() {
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
  ({ sessionId: session } = await send('Target.attachToTarget', { targetId, flatten: true }));
  for (const domain of ['Runtime', 'Log', 'Page', 'Network']) await send(`${domain}.enable`);
  await size(1440);
  await send('Page.navigate', { url: `file://${resolve(page)}` });
  for (let wait = 0; wait < 100 && !(await run('return typeof explorer === "object" && document.readyState === "complete"')); ++wait)
    await new Promise((done) => setTimeout(done, 100));
  await run('await explorer.ready;');
  const first = await run(`${frames} await frame(); return performance.now();`);
  const bytes = statSync(page).size;
  console.log(`the page has ${bytes} bytes, and its first picture ${Math.round(first)} ms after navigation`);
  check(bytes <= 600e3, 'the page has more than 600 kB');
  check(first <= 1000, 'the first picture takes more than a second');
  await shoot('default', 1440);
  await shoot('default', 390, 844);

  // Each schedule of the catalogue: the numbers of `schedule show`, and a picture with the colours of passes.
  const names = (await run('return [...document.querySelectorAll("#choice-0 option")].map((option) => option.value)')).filter((name) => name !== 'best');
  check(names.length >= 20, `the catalogue has ${names.length} schedules`);
  const settings = [['', []], ['&ranks=4&F=0.7&I=1.3&W=0.45&latency=0.2&activation=1000&bandwidth=2500',
    ['--F', '0.7', '--I', '1.3', '--W', '0.45', '--latency', '0.2', '--activation', '1000', '--bandwidth', '2500']]];
  let compared = 0;
  for (const name of names)
    for (const [hash, options] of settings) {
      await go(`schedules=${name}${hash}`);
      const shown = execFileSync(schedule, ['show', name, ...options], { encoding: 'utf8' });
      const table = execFileSync(schedule, ['compare', name, ...options], { encoding: 'utf8' }).trim().split('\n').pop();
      const [, makespan, bubble, form, live, messages] = table.split(/ {2,}/);
      const text = await run('return document.querySelector(".card .stats").textContent');
      for (const part of [`makespan ${makespan}`, `bubble ${bubble}`, ...(form === "-" ? [] : [`closed form ${form}`]), `live activations ${live}`, `messages ${messages}`])
        check(text.includes(part), `${name}${hash}: '${part}' is not in '${text}'`);
      check(shown.includes(`live activations of the ranks: ${live}; ${messages} messages`), `${name}: show and compare differ`);
      const rounded = /makespan ([0-9.]+)/.exec(shown)[1], digits = (rounded.split('.')[1] || '').length;
      const exact = await run('return explorer.reports()[0].makespan');
      check(Math.abs(exact - rounded) <= 0.5 * 10 ** -digits + 1e-9, `${name}${hash}: makespan ${exact}, shown ${rounded}`);
      const colours = await run(`const canvas = document.querySelector('canvas');
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
        copy.drawImage(canvas, 0, 0);
        const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
        let forward = 0;
        for (let i = 0; i < data.length; i += 4) forward += data[i] === 47 && data[i + 1] === 111 && data[i + 2] === 208;
        return forward;`);
      check(colours > 1000, `${name}${hash}: ${colours} pixels of forwards are drawn`);
      ++compared;
    }
  console.log(`${compared} pictures have the numbers of schedule show`);

  // The module computes what the same code computes natively, to the last digit.
  const requests = [], step = Number(process.env.EXPLORER_STEP || (process.env.HEDDLE_LONG ? 1 : 7));
  for (const name of names)
    for (const [hash] of settings)
      for (let ranks = 2; ranks <= 16; ranks += step)
        for (let microbatches = 1; microbatches <= 64; microbatches += step)
          requests.push(`do=draw&schedule=${name}${hash.replace('&ranks=4', '')}&ranks=${ranks}&microbatches=${microbatches}`);
  let unequal = 0, impossible = 0;
  for (let at = 0; at < requests.length; at += 500) {
    const some = requests.slice(at, at + 500);
    const native = execFileSync(explorer, ['answer', some.join(' ')], { encoding: 'utf8', maxBuffer: 1 << 28 }).trim().split('\n');
    const answers = await run(`return explorer.answers(${JSON.stringify(some)})`);
    some.forEach((request, n) => {
      impossible += native[n].startsWith('{"error"');
      if (native[n] === answers[n]) return;
      if (++unequal === 1) check(false, `${request}: the page has\n${answers[n]}, not\n${native[n]}`);
    });
  }
  check(unequal === 0, `${unequal} answers differ`);
  console.log(`${requests.length} answers of the module equal the native ones, ${impossible} of them messages`);

  // Four at once, the comparison, an action and what it waited for.
  await go('schedules=1f1b,interleaved,zb-v,chimera&latency=0.2');
  check(await run('return document.querySelectorAll("#table tbody tr").length') === 4, 'the comparison has no four rows');
  check((await run('return explorer.reports().map((report) => report.makespan)')).every((time) => time > 0), 'four schedules are not drawn');
  await run(`const canvas = document.querySelectorAll('canvas')[0]; canvas.focus();
    for (const key of ['ArrowRight', 'ArrowDown', 'ArrowDown', 'ArrowRight'])
      canvas.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));`);
  const hint = await run('return document.getElementById("hint").textContent');
  check(/^2F1 .*waited for.*2F0 until .*same queue.*1SEND_F1 -> 2RECV_F1 until/.test(hint), `the hint is '${hint}'`);
  await shoot('four', 1440, 1500);
  await shoot('four', 390, 1800);
  await run(`document.getElementById('theme').click();`);
  check((await run('return location.hash')).includes('theme='), 'the URL does not hold the theme');
  await shoot('dark', 1440, 1500);
  await run(`document.getElementById('theme').click();`);

  // Choose by a limit, read why, copy the command and run it: the numbers are the same. By keyboard, then by mouse.
  const key = async (name, text) => {
    const codes = { Tab: 9, Enter: 13, ' ': 32, ArrowRight: 39, a: 65 };
    const event = { key: name, code: name === ' ' ? 'Space' : name, windowsVirtualKeyCode: codes[name], text };
    await send('Input.dispatchKeyEvent', { type: text ? 'keyDown' : 'rawKeyDown', ...event });
    await send('Input.dispatchKeyEvent', { type: 'keyUp', ...event, text: undefined });
  };
  const tabTo = async (found) => {
    for (let n = 0; n < 250; ++n) {
      await key('Tab');
      if (await run(`const at = document.activeElement; return Boolean(${found});`)) return;
    }
    check(false, `the keyboard does not reach ${found}`);
  };
  const byKeyboard = {
    reach: tabTo, act: (how) => key(how, { Enter: '\r', ' ': ' ' }[how]), write: async (text) => {
      await run('document.activeElement.select();');
      await send('Input.insertText', { text });
    },
  };
  const byMouse = {
    async reach(found) {
      const place = await run(`const at = [...document.querySelectorAll('input, button, summary, canvas')].find((at) => ${found});
        at.scrollIntoView({ block: 'center' });
        const box = at.getBoundingClientRect();
        return at.tagName === 'CANVAS' ? { x: box.x + 60, y: box.y + 10 } : { x: box.x + box.width / 2, y: box.y + box.height / 2 };`);
      this.place = place;
    },
    async act() {
      for (const type of ['mouseMoved', 'mousePressed', 'mouseReleased'])
        await send('Input.dispatchMouseEvent', { type, ...this.place, button: type === 'mouseMoved' ? 'none' : 'left', clickCount: 1 });
    },
    async write(text) { await this.act(); await byKeyboard.write(text); },
  };
  for (const [how, by] of [['keyboard', byKeyboard], ['mouse', byMouse]]) {
    await go('schedules=gpipe');
    await run('document.getElementById("all").open = false; document.activeElement.blur();');
    await by.reach('at.id === "number-saved"');
    await by.write('1 kB');
    await by.reach('at.id === "number-cap-bytes"');
    await by.write('4.5 kB');
    await by.reach('at.id === "all-summary"');
    await by.act('Enter');
    await run(`${frames} for (let n = 0; n < 400 && explorer.allRows().length < ${names.length}; ++n) await frame();`);
    const rows = await run('return explorer.allRows()');
    check(rows.length === names.length, `${how}: ${rows.length} of ${names.length} schedules are in the table`);
    const fitting = rows.filter((row) => row.report && row.report.most <= 4500 && !row.kind);
    const best = Math.min(...fitting.map((row) => row.report.makespan));
    const first = await run('return document.querySelector("#all-table tbody th").textContent.trim()');
    check(fitting.length > 3 && rows.find((row) => row.name === first)?.report.makespan === best,
      `${how}: the first row is ${first}, not a shortest one that fits`);
    check(await run('return document.querySelectorAll("tr.over").length') === rows.filter((row) => row.report?.most > 4500).length,
      `${how}: rows over the limit are not marked`);
    check(await run('return document.querySelector(".card").classList.contains("over")'), `${how}: gpipe is not marked as over the limit`);
    await by.reach(`at.id === "draw-${first}"`);
    await by.act(' ');
    await run(`${frames} await frame(); await frame();`);
    check((await run('return explorer.state().schedules')).join() === `gpipe,${first}`, `${how}: the chosen schedule is not drawn`);
    if (how === 'keyboard')
      check(await run('return document.activeElement.id') === `draw-${first}`, 'choosing a schedule loses the focus');
    await by.reach('at === document.querySelectorAll("canvas")[1]');
    await by.act('ArrowRight');
    check(await run('return /waited for/.test(document.getElementById("hint").textContent)'), `${how}: no action says what it waited for`);
    await by.reach('at === [...document.querySelectorAll(".files button")].filter((button) => button.textContent === "Copy command")[1]');
    await by.act('Enter');
    const copied = await run('return explorer.copied()');
    check(copied.startsWith(`heddle-schedule show ${first} `), `${how}: '${copied}' was copied`);
    const printed = execFileSync(schedule, copied.split(' ').slice(1), { encoding: 'utf8' });
    check(printed.includes(`makespan ${Number(best.toFixed(3))}`), `${how}: the command prints ${printed.slice(0, 300)}, not ${best}`);
  }
  await shoot('limit', 1440, 1800);
  await run('document.getElementById("all").open = false;');

  // A schedule is chosen and removed without losing the focus; an unknown one in a link is named.
  await go('schedules=1f1b,zb-h1');
  await run(`const select = document.getElementById('choice-1'); select.focus(); select.value = 'zb-v'; select.dispatchEvent(new Event('change', { bubbles: true }));`);
  check(await run('return document.activeElement.id') === 'choice-1', 'another choice loses the focus');
  await run(`const remove = document.querySelectorAll('.choice button')[1]; remove.focus(); remove.click();`);
  check(await run('return document.activeElement.id') === 'choice-0', 'removing a schedule loses the focus');
  await go('schedules=zbv,1f1b');
  check((await run('return explorer.errors().join()')).includes("did you mean 'zb-v'?"), 'an unknown schedule of a link is not named');
  check((await run('return explorer.reports()'))[1]?.makespan === 33, 'an unknown schedule hides the others');

  // A model on a device: its settings, and numbers with units.
  await go('schedules=1f1b&preset=GPT 175B on A100 80 GB&ranks=16');
  const preset = await run('return { stats: document.querySelector(".card .stats").textContent, saved: document.getElementById("number-saved").value, note: document.getElementById("preset-note").textContent }');
  check(/makespan [\d.]+ ms/.test(preset.stats) && /most memory [\d.]+ GB/.test(preset.stats) && / [MG]B$/.test(preset.saved) && /not measured/.test(preset.note),
    `a preset shows ${JSON.stringify(preset)}`);
  await shoot('preset', 1440, 1200);

  // The URL holds the state: a slider changes it, and a hash sets the sliders.
  await go('schedules=gpipe&ranks=6&factors=1,1,1,1,1,2');
  check(await run('return document.getElementById("number-ranks").value') === '6', 'the URL does not set the number of ranks');
  check(await run('return explorer.reports()[0].makespan') === 5 + 8 * 2 + 8 * 4 + 5 * 2,
    'a stage with a factor 2 takes another time than the closed form');
  await run(`const slider = document.getElementById('slider-microbatches'); slider.value = 12;
    slider.dispatchEvent(new Event('input', { bubbles: true })); ${frames} await frame(); await frame();`);
  check((await run('return location.hash')).includes('microbatches=12'), 'the URL does not hold a slider');
  check((await run('return explorer.reports()[0].microbatches')) === 12, 'a slider does not redraw');

  // No such schedule: a message, and the others are drawn.
  await go('schedules=interleaved,1f1b&microbatches=9');
  check((await run('return explorer.errors()')).join().includes('the nearest valid number is 8'), 'an impossible shape has no message');
  check((await run('return explorer.reports()'))[1]?.makespan > 0, 'an impossible shape hides other schedules');

  // Files.
  await go('schedules=1f1b');
  execFileSync(schedule, ['show', 'interleaved', '--csv', `${folder}/good.csv`]);
  const csv = readFileSync(`${folder}/good.csv`, 'utf8');
  await run(`explorer.open('good.csv', ${JSON.stringify(csv)});`);
  check((await run('return explorer.reports()[0].makespan')) === 28.5, 'a schedule file is not simulated');
  await shoot('file', 1440);
  await run(`const data = new DataTransfer();
    data.items.add(new File([${JSON.stringify(csv)}], 'dropped.csv'));
    window.dispatchEvent(new DragEvent('drop', { dataTransfer: data }));
    ${frames} for (let n = 0; n < 50 && document.querySelector('.card h2').textContent.indexOf('dropped.csv'); ++n) await frame();`);
  check((await run('return document.querySelector(".card h2").textContent')).startsWith('dropped.csv: 4 ranks'), 'a dropped file is not drawn');
  // Downloads are the files that the program writes, byte for byte but for the mark of a trace whose times are numbers.
  const downloads = join(folder, 'downloads');
  mkdirSync(downloads);
  await send('Page.setDownloadBehavior', { behavior: 'allow', downloadPath: downloads });
  await run('document.getElementById("forget").click();');
  await go('schedules=zb-v&latency=0.2');
  for (const [button, ending, option] of [[0, 'csv', '--csv'], [1, 'svg', '--svg'], [2, 'json', '--perfetto']]) {
    await run(`document.querySelectorAll('.files button')[${button}].click();`);
    const name = join(downloads, `${(await run('return explorer.reports()[0].name')).replace(/[^A-Za-z0-9=.-]+/g, '-')}.${ending}`);
    for (let wait = 0; wait < 100 && !existsSync(name); ++wait) await new Promise((done) => setTimeout(done, 50));
    execFileSync(schedule, ['show', 'zb-v', '--latency', '0.2', option, `${folder}/wanted`]);
    const saved = existsSync(name) ? readFileSync(name, 'utf8').replace('"unit":"",', '') : '';
    check(saved === readFileSync(`${folder}/wanted`, 'utf8'), `${name} is not what schedule show ${option} writes`);
  }
  // A trace of the page comes back in the unit of its costs, or as numbers.
  for (const unit of ['', 'ms']) {
    await go(`schedules=1f1b&unit=${unit}`);
    const { name, makespan } = await run('return explorer.reports()[0]');
    const path = join(downloads, `${name.replace(/[^A-Za-z0-9=.-]+/g, '-')}.json`);
    rmSync(path, { force: true });
    await run(`document.querySelectorAll('.files button')[2].click();`);
    for (let wait = 0; wait < 100 && !existsSync(path); ++wait) await new Promise((done) => setTimeout(done, 50));
    await run(`explorer.open('saved.json', ${JSON.stringify(readFileSync(path, 'utf8'))});`);
    const text = await run('return document.querySelector(".card .stats").textContent');
    check(text.includes(`makespan ${unit ? `${makespan} ${unit}` : makespan}`) && text.includes('ms') === (unit === 'ms'),
      `a saved trace comes back as ${text}`);
    await run('document.getElementById("forget").click();');
  }
  await go('schedules=1f1b');
  // The mouse: an action, and zooming at it.
  const { x, y } = await run('const { x, y } = document.querySelector("canvas").getBoundingClientRect(); return { x, y };');
  await send('Input.dispatchMouseEvent', { type: 'mouseMoved', x: x + 60, y: y + 10 });
  check(await run(`${frames} await frame(); return !document.getElementById('hint').hidden && document.getElementById('hint').textContent.startsWith('0F0');`),
    'the mouse over the first action does not name it');
  const picture = () => run('return document.querySelector("canvas").toDataURL()');
  const whole = await picture();
  await run(`document.querySelector('[data-zoom=in]').click(); ${frames} await frame(); await frame();`);
  check(await picture() !== whole, 'zooming changes nothing');
  await run(`document.querySelector('[data-zoom=all]').click(); ${frames} await frame(); await frame();`);
  await send('Input.dispatchMouseEvent', { type: 'mouseMoved', x: 2, y: 2 });
  await run(`explorer.open('bad.csv', '0F0,,0B0\\n1F0,1X0\\n');`);
  check((await run('return explorer.marked().join()')) === '> 1X0 <', 'a wrong cell is not marked');
  check((await run('return explorer.errors().join()')).includes("line 2, cell 2: '1X0'"), 'a wrong cell is not named');
  await shoot('wrong', 1440);
  execFileSync(schedule, ['show', '1f1b', '--perfetto', `${folder}/trace.json`]);
  const mutate = `const random = ((seed) => () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648)(1);
    const mutated = (text) => {
      for (let n = 1 + Math.floor(3 * random()); n-- > 0;) {
        const at = Math.floor(text.length * random()), piece = '0123456789FBIW,;()-"{}[]:.eE\\n'[Math.floor(30 * random())];
        text = text.slice(0, at) + piece + text.slice(at + Math.floor(3 * random()));
      }
      return text;
    };`;
  const trace = readFileSync(`${folder}/trace.json`, 'utf8');
  await run(`explorer.open('trace.json', ${JSON.stringify(trace)});`);
  const report = await run('return explorer.reports()[0].timelines[0]');
  check(Math.abs(report.makespan - 33) < 1e-6 && Math.abs(report.bubble - 3 / 11) < 1e-6, `the trace is drawn as ${JSON.stringify(report)}`);
  check((await run('return document.querySelector(".card pre").textContent')).includes('warm-up'), 'the trace has no waiting states');
  await run('document.getElementById("forget").click();');
  check((await run('return explorer.state().schedules.join()')) === '1f1b' && (await run('return explorer.reports()[0].makespan')) === 33,
    'closing a trace does not bring back the chosen schedule');
  await run(`explorer.open('kineto.json', '{"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":1,"ts":0,"dur":1}]}');`);
  check((await run('return explorer.errors().join()')).includes('torch.profiler'), 'a trace of torch.profiler is not named');
  await shoot('trace', 1440, 1200);
  // Plans: dropped files are read, drawn and compared; a wrong one is named, and what was open stays.
  await run('document.getElementById("forget").click();');
  await go('schedules=1f1b,zb-h1,zb-v');
  const layer = { output: 1000, saved: 4000, parameters: 1e6,
                  measured: [{ device: 'fast', forward: 1, backward_input: 2, backward_weight: 0.5, update: 0.5 }] };
  const files = {
    'profile.json': { format: 'heddle-profile', version: 1, profile: { model: 'five', reference: 'fast', layers: Array(5).fill(layer) } },
    'machine.json': { format: 'heddle-machine', version: 1, machine: {
      devices: [{ name: 'fast', count: 2, memories: [{ capacity: 20e6 }] }, { name: 'slow', speed: 0.5, memories: [{ capacity: 20e6 }] }],
      levels: [{ name: 'rank', ranks: 1 }, { name: 'all', ranks: 3, link: { latency: 0.25, bandwidth: 2000 } }] } },
    'plan.json': { format: 'heddle-plan', version: 1, plan: { microbatches: 3, stages: [
      { layers: [0, 3], ranks: [0], samples: [1] }, { layers: [3, 5], ranks: [2], samples: [1] }] } },
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), JSON.stringify(content));
  const dropAll = (dropped) => run(`const data = new DataTransfer(), files = ${JSON.stringify(dropped)};
    for (const name in files) data.items.add(new File([typeof files[name] === 'string' ? files[name] : JSON.stringify(files[name])], name));
    window.dispatchEvent(new DragEvent('drop', { dataTransfer: data }));
    ${frames} for (let n = 0; n < 10; ++n) await frame();`);
  const checked = (of) => Number(/^simulated step (.*) s$/m.exec(
    execFileSync(planner, ['check', join(folder, of), join(folder, 'profile.json'), join(folder, 'machine.json')], { encoding: 'utf8' }))[1]);
  await dropAll({ 'plan.json': files['plan.json'] });
  check((await run('return document.getElementById("plan-note").textContent')).includes('Drop the profile and the machine too'), 'a plan alone does not say what it lacks');
  await dropAll({ 'profile.json': files['profile.json'], 'machine.json': files['machine.json'] });
  const drawn = await run('return explorer.reports()');
  check(drawn.length === 4 && drawn[0]?.makespan === checked('plan.json'), `the plan is drawn as ${JSON.stringify(drawn[0])}, not with ${checked('plan.json')} s`);
  check(drawn[1]?.makespan === drawn[0]?.makespan, '1f1b is not the schedule of the plan');
  writeFileSync(join(folder, 'zb.json'), JSON.stringify({ ...files['plan.json'], plan: { ...files['plan.json'].plan, schedule: 'zb-h1' } }));
  check(drawn[2]?.makespan === checked('zb.json'), `the plan with zb-h1 takes ${drawn[2]?.makespan}, not ${checked('zb.json')} s`);
  check((await run('return explorer.errors().join()')).includes("the schedule 'zb-v' does not fit the plan"), 'a schedule that does not fit a plan is not named');
  check(await run('return document.querySelectorAll("#table tbody tr").length') === 3, 'the plan is not compared');
  await shoot('plan', 1440, 1500);
  for (const kind of ['profile', 'machine', 'plan']) {
    const wrong = JSON.stringify(files[`${kind}.json`]).replace(`"${kind}":{`, `"${kind}":{"colour":1,`);
    await dropAll({ [`my-${kind}.json`]: wrong });
    const said = await run('return explorer.errors()[0]');
    check(said.includes(`'my-${kind}.json': ${kind}: there is no member 'colour'`), `a wrong ${kind} is told as ${said}`);
    check((await run('return explorer.plans().join()')) === 'profile,machine,plan' && (await run('return explorer.reports()[1]?.makespan')) === drawn[0].makespan,
      `a wrong ${kind} loses what was open`);
  }
  await run('document.getElementById("forget").click();');
  check((await run('return explorer.reports()[0].makespan')) === 33, 'closing the files of a plan does not bring back the settings');
  await dropAll({ 'profile.json': files['profile.json'], 'machine.json': files['machine.json'] });
  check((await run('return explorer.reports()[0]?.stages')) === 3, 'a profile and a machine are not drawn without a plan');
  await run('document.getElementById("forget").click();');

  // Searches: on request only, and then what the program finds.
  const costs = 'microbatches=6&F=1&I=1.5&W=0.5', options = ['--microbatches', '6', '--F', '1', '--I', '1.5', '--W', '0.5'];
  const shown = (...what) => Number(/makespan ([\d.]+),/.exec(execFileSync(schedule, ['show', ...what, ...options], { encoding: 'utf8' }))[1]);
  await go(`schedules=v-min,best&${costs}`);
  check(/order of v-min is made for equal times/.test(await run('return document.querySelector(".card .note").textContent')), 'v-min does not say that its order is fixed');
  check((await run('return explorer.reports()[1]')) === null, 'best searches without being asked');
  const fixed = await run('return explorer.reports()[0].makespan');
  const ended = 'for (let n = 0; n < 3000 && explorer.reports().includes(null); ++n) await frame();';
  await run(`${frames} explorer.search(1); ${ended}`);
  check((await run('return explorer.reports()[1].makespan')) === shown('best'), 'best is not what schedule show best finds');
  await run(`${frames} explorer.search(0); ${ended}`);
  const refined = await run('return explorer.reports()[0]');
  check(refined.makespan === shown('v-min', '--refine') && refined.makespan < fixed, `v-min refined takes ${refined.makespan}, as given ${fixed}`);
  await shoot('search', 1440, 1200);
  await go('schedules=1f1b');

  // The same as a prediction, and measured a quarter slower.
  const both = JSON.parse(trace), slower = JSON.parse(trace).traceEvents;
  for (const event of both.traceEvents) if (event.name === 'process_name') event.args.name = `predicted: ${event.args.name}`;
  for (const event of slower) {
    event.pid += 1000;
    if (event.name === 'process_name') event.args.name = `measured: ${event.args.name}`;
    for (const key of ['ts', 'dur']) if (key in event) event[key] *= 1.25;
  }
  both.traceEvents.push(...slower);
  await run(`explorer.open('both.json', ${JSON.stringify(JSON.stringify(both))});`);
  const text = await run('return document.querySelector(".card").textContent');
  check(/error of the prediction 25%/.test(text) && /waits|receive/.test(text), `prediction and measurement: '${text}'`);
  await shoot('both', 1440, 1200);
  const cases = Number(process.env.EXPLORER_CASES || 1000);
  const bad = await run(`${mutate} const csv = ${JSON.stringify(csv)}, trace = ${JSON.stringify(trace)};
    let refused = 0;
    for (let n = 0; n < ${cases}; ++n) {
      explorer.open('mutated', mutated(n % 4 ? csv : trace));
      refused += explorer.errors().length > 0;
      if (!explorer.errors().length && !explorer.reports()[0]) throw new Error('neither a picture nor a message');
    }
    return refused;`);
  console.log(`${cases} mutated files: ${bad} messages, the others are drawn`);
  check(bad > cases / 4, 'mutated files are not refused');
  await run('document.getElementById("forget").click();');

  // Speed.
  await go('schedules=1f1b&ranks=8&microbatches=32');
  const redraws = await run(`${frames} const slider = document.getElementById('slider-F'), times = [];
    for (let n = 0; n < 15; ++n) {
      slider.value = 0.5 + 0.05 * n;
      const started = performance.now();
      slider.dispatchEvent(new Event('input', { bubbles: true }));
      await frame();
      times.push(performance.now() - started);
    }
    return times;`);
  console.log(`a slider redraws 8 x 32 in ${median(redraws).toFixed(1)} ms (median)`);
  check(median(redraws) <= 50, 'a slider takes more than 50 ms');
  const large = [];
  for (let n = 0; n < 3; ++n) {
    await go('schedules=1f1b');
    large.push(await run(`${frames} const started = performance.now(); location.hash = 'schedules=1f1b&ranks=64&microbatches=512';
      await new Promise((done) => addEventListener('hashchange', done, { once: true })); await frame();
      return performance.now() - started;`));
  }
  check((await run('return explorer.reports()[0].actions')) === 130112, '64 x 512 is not drawn');
  console.log(`64 ranks and 512 microbatches: ${Math.round(median(large))} ms (median of 3)`);
  check(median(large) <= 1000, '64 x 512 takes more than a second');
  await send('Performance.enable', { timeDomain: 'threadTicks' });  // processor time of the page's thread
  const spent = async () => 1000 * (await send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration').value;
  const four = [];
  for (let n = 0; n < 3; ++n) {
    await go('schedules=1f1b');
    const before = await spent();
    await run(`${frames} location.hash = 'schedules=1f1b,gpipe,zb-h1,dapple&ranks=64&microbatches=512';
      await new Promise((done) => addEventListener('hashchange', done, { once: true })); await frame();`);
    four.push(await spent() - before);
  }
  check((await run('return explorer.reports().filter((report) => report && report.actions > 100000).length')) === 4, 'four of 64 x 512 are not drawn');
  console.log(`four schedules of 64 ranks and 512 microbatches: ${Math.round(median(four))} ms of processor time (median of 3)`);
  check(median(four) <= 1000, 'four of 64 x 512 take more than a second of processor time');
  await shoot('large', 1440);
  if (axe) {
    const library = readFileSync(axe, 'utf8');
    let faulty = 0;
    const faultless = async (what) => {
      await send('Runtime.evaluate', { expression: library });
      const faults = await run('return (await axe.run()).violations.map((fault) => `${fault.impact} ${fault.id}`)');
      check(faults.length === 0, `axe-core, ${what}: ${faults}`);
      faulty += faults.length > 0;
    };
    for (const [hash, width] of [['schedules=1f1b,interleaved,zb-v,chimera&latency=0.2&saved=1000', 1440],
                                 ['schedules=interleaved,1f1b&microbatches=9&theme=dark', 1440], ['schedules=1f1b,zb-v', 390]]) {
      await size(width);
      await go(hash);
      await faultless(`${hash} at ${width} pixels`);
    }
    for (const [name, content] of [['bad.csv', '0F0,,0B0\n1F0,1X0\n'], ['both.json', JSON.stringify(both)]])
      for (const width of [1440, 390]) {
        await size(width);
        await run(`explorer.open('${name}', ${JSON.stringify(content)}); ${frames} await frame();`);
        await faultless(`${name} at ${width} pixels`);
      }
    await run('document.getElementById("forget").click();');
    for (const width of [1440, 390]) {
      await size(width);
      await go('schedules=zb-h1,zb-v');
      await dropAll(files);
      await faultless(`a plan at ${width} pixels`);
      await run('document.getElementById("forget").click();');
      await go('schedules=best,v-min&F=1&I=2');
      await faultless(`searches at ${width} pixels`);
    }
    console.log(`axe-core finds faults in ${faulty} of 11 views`);
  }

  // A browser without what the page needs is told so.
  await send('Page.addScriptToEvaluateOnNewDocument', { source: 'delete window.DecompressionStream;' });
  await send('Page.reload');
  let told = '';
  for (let wait = 0; wait < 100 && !told; ++wait) {
    await new Promise((done) => setTimeout(done, 100));
    told = await run('return document.getElementById("cards")?.textContent').catch(() => '');
  }
  check(/^The page cannot start .*DecompressionStream/.test(told), `without DecompressionStream the page says '${told}'`);
  check(complaints.length === 0, `the console has: ${complaints.slice(0, 3).join(' | ')}`);
}

const { EXPLORER_STEP, EXPLORER_CASES, HEDDLE_LONG } = process.env;
const seconds = EXPLORER_STEP || EXPLORER_CASES || HEDDLE_LONG ? 3600 : 240;
const limit = setTimeout(() => { console.log(`FAILED: no end after ${seconds} s`); browser.kill('SIGKILL'); process.exit(1); }, 1000 * seconds);
try {
  await test();
} catch (error) {
  check(false, error.stack);
}
clearTimeout(limit);
const ended = new Promise((done) => browser.on('exit', done));
session = undefined;
send('Browser.close').catch(() => browser.kill('SIGKILL'));
await ended;
try {
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
} catch (error) {
  console.log(`left behind: ${folder}`);  // a process of the browser still writes
}
if (failures === 0) console.log('all as expected');
process.exit(failures > 0 ? 1 : 0);
