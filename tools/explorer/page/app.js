// The page: its settings, which the URL's hash holds, the cards of the schedules, and files.
const get = (id) => document.getElementById(id);
const make = (tag, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
};

const letters = 'ABCD';
const idleColours = {
  // None of these is the colour of a kind of work. Neighbours differ in brightness.
  busy: ['work', '#3b4048'], 'warm-up': ['warm-up', '#f2b8a0'], receive: ['waits to receive', '#c51b7d'],
  send: ['waits to send', '#f1a7d3'], other: ['other gaps', '#8c8c8c'], drain: ['drain', '#e6e0a0'],
  tail: ['tail', '#a3b56b'],
};

let catalogue = [];
const state = { schedules: ['1f1b'], theme: '', preset: '' };
let file = null;       // { name, text } of a schedule file, or { name, trace }
let problem = null;    // { name, error } of the last file, if it cannot be read
const cards = [];
const explorers = Array.from({ length: 4 }, () => new Explorer()), fileExplorer = new Explorer();

const frame = {
  window: { begin: 0, end: 1 }, whole: 1, lines: false, timeUnit: null,
  show(begin, end) {
    const width = Math.min(Math.max(end - begin, this.whole / 5000), this.whole * 1.02);
    const from = Math.min(Math.max(begin, -0.01 * this.whole), this.whole * 1.01 - width);
    this.window = { begin: from, end: from + width };
    repaint();
  },
  showAll() { this.show(-0.01 * this.whole, 1.01 * this.whole); },
  zoom(factor, at) {
    const { begin, end } = this.window, middle = at === undefined ? (begin + end) / 2 : at;
    this.show(middle - (middle - begin) * factor, middle + (end - middle) * factor);
  },
  timeText(time, tick) {
    if (!this.timeUnit) return timeText(String(Number(time.toPrecision(6))));
    return measuredText(time, this.timeUnit, 4);
  },
};
const secondsOf = { s: 1, ms: 1e-3, us: 1e-6 };
// The factor and the name of the unit in which a time of the dropped trace is written.
const unitOf = (seconds) => file && file.trace && file.trace.numbers ? [1, ''] : seconds >= 1 ? [1, 's'] : seconds >= 1e-3 ? [1e3, 'ms'] : [1e6, 'us'];
const measuredText = (time, [factor, unit], digits) => `${Number((time * factor).toPrecision(digits))} ${unit}`.trimEnd();

let painting = false;
function repaint() {
  if (painting) return;
  painting = true;
  requestAnimationFrame(() => {
    painting = false;
    for (const card of cards) if (card.picture.drawn) card.picture.draw();
  });
}

// --- settings
function defaults() {
  for (const key of Object.keys(values)) state[key] = defaultOf(key);
}
function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  defaults();
  state.theme = state.preset = '';
  for (const [key, value] of given) {
    if (key === 'schedules') {
      state.schedules = value.split(',').filter(Boolean).slice(0, 4);  // the library names what it does not know
    } else if (key === 'theme') {
      state.theme = value === 'dark' || value === 'light' ? value : '';
    } else if (key === 'preset') {
      state.preset = presets.includes(value) ? value : '';
    } else if (key in values) {
      const meant = parsed(key, value);
      if (meant !== undefined) state[key] = meant;
    }
  }
  if (state.preset) Object.assign(state, presetSettings(state.preset, state.ranks).settings);
  if (!state.schedules.length && !file && !isPlanned()) state.schedules = ['1f1b'];
}
function writeHash() {
  const hash = new URLSearchParams();
  hash.set('schedules', state.schedules.join(','));
  const derived = state.preset ? presetSettings(state.preset, state.ranks).settings : {};
  for (const key of Object.keys(values)) if (state[key] !== (key in derived ? derived[key] : defaultOf(key))) hash.set(key, state[key]);
  if (state.preset) hash.set('preset', state.preset);
  if (state.theme) hash.set('theme', state.theme);
  const text = '#' + hash.toString().replace(/%2C/g, ',');
  if (text !== location.hash) history.replaceState(null, '', text);
}
function showTheme() {
  const theme = state.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  if (document.documentElement.dataset.theme === theme) return;
  document.documentElement.dataset.theme = theme;
  get('theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
  repaint();
}
function makeSettings() {
  for (const [key, [group, label, least, most, step]] of Object.entries(values)) {
    const kind = kindOf(key), id = `number-${key}`;
    const box = make('div', { className: kind === 'text' ? 'value wide' : 'value', id: `value-${key}` });
    box.append(make('label', { htmlFor: id, textContent: label }));
    if (kind === 'choice') {
      box.append(make('select', { id, name: key }, ...least.map((value) => make('option', { value, textContent: value || 'none' }))));
    } else if (kind === 'text') {
      box.append(make('input', { type: 'text', id, name: key, autocomplete: 'off', inputMode: 'decimal' }));
    } else {
      const slider = make('input', { type: 'range', min: kind === 'bytes' ? 0 : least, max: kind === 'bytes' ? 120 : most,
                                     step: kind === 'bytes' ? 1 : step, id: `slider-${key}`, name: key });
      slider.setAttribute('aria-label', label);
      box.append(slider, kind === 'bytes' ? make('input', { type: 'text', id, name: key, autocomplete: 'off' })
                                          : make('input', { type: 'number', min: least, step: 'any', id, name: key }));
    }
    get(group).append(box);
  }
  for (const name of presets) get('preset').append(make('option', { value: name, textContent: name }));
  get('preset').addEventListener('change', () => {
    state.preset = get('preset').value;
    takePreset();
    changed();
  });
  get('controls').addEventListener('input', (event) => {
    const key = event.target.name;
    if (!(key in values)) return;
    const value = event.target.type === 'range' && kindOf(key) === 'bytes' ? offSlider(Number(event.target.value)) : parsed(key, event.target.value);
    event.target.setAttribute('aria-invalid', value === undefined);
    if (value === undefined) return;
    state[key] = value;
    if (state.preset && key === 'ranks') takePreset();
    else if (state.preset && key in presetSettings(state.preset, 1).settings) state.preset = '';
    showValue(key, event.target);
    showPreset();
    changed();
  });
  for (const id of ['controls', 'files']) get(id).addEventListener('submit', (event) => event.preventDefault());
}
function takePreset() {
  if (state.preset) Object.assign(state, presetSettings(state.preset, state.ranks).settings);
  for (const key of Object.keys(values)) if (key !== 'ranks') showValue(key);
  showPreset();
}
function showPreset() {
  get('preset').value = state.preset;
  get('preset-note').hidden = !state.preset;
  if (state.preset) get('preset-note').textContent = presetSettings(state.preset, state.ranks).note;
}
// Shows a value in its inputs, except in the one where it is being written.
function showValue(key, writing = null) {
  const slider = get(`slider-${key}`), number = get(`number-${key}`), bytes = kindOf(key) === 'bytes';
  if (slider && !bytes) slider.max = Math.max(values[key][3], kindOf(key) === 'number' && values[key][0] !== 'shape' ? 2 * state[key] : 0);
  if (slider && slider !== writing) slider.value = bytes ? onSlider(state[key]) : state[key];
  if (number !== writing) number.value = bytes ? bytesText(state[key]) : state[key];
}
function chooseSchedules(names, focus) {  // focus: the id of the element that has the keyboard afterwards
  state.schedules = names;
  showSettings();
  changed();
  if (focus && get(focus)) get(focus).focus();
}
function showSettings() {
  for (const key of Object.keys(values)) showValue(key);
  showPreset();
  const choices = get('choices');
  choices.replaceChildren();
  state.schedules.forEach((name, number) => {
    const select = make('select', { id: `choice-${number}` });
    select.setAttribute('aria-label', `schedule ${letters[number]}`);
    for (const entry of catalogue) select.append(make('option', { value: entry.name, textContent: entry.name, selected: entry.name === name }));
    const entry = catalogue.find((each) => each.name === name), searched = isSearched(name);
    select.append(make('option', { value: bestName, textContent: 'best (a search)', selected: name === bestName }));
    if (!entry && name !== bestName) select.append(make('option', { value: name, textContent: searched ? `${name} (a search)` : `${name} (unknown)`, selected: true }));
    select.addEventListener('change', () => chooseSchedules(state.schedules.map((each, n) => n === number ? select.value : each), select.id));
    const line = make('div', { className: 'choice' }, select);
    if (state.schedules.length > 1 || file || isPlanned()) {
      const remove = make('button', { type: 'button', textContent: 'Remove' });
      remove.setAttribute('aria-label', `remove ${name}`);
      remove.addEventListener('click', () => {
        const left = state.schedules.filter((_, n) => n !== number);
        chooseSchedules(left, left.length ? `choice-${Math.min(number, left.length - 1)}` : 'add');
      });
      line.append(remove);
    }
    choices.append(line, make('p', { className: 'about', textContent: entry ? entry.about : searched ? searchAbout(name) : 'not in the catalogue of this version' }));
  });
  get('add').hidden = state.schedules.length >= 4;
  const all = get('all').open;  // a table of all schedules heeds all settings
  const heedsOf = (name) => name === bestName ? 'stages-per-rank group pairs most-live'
    : (catalogue.find((entry) => entry.name === name.replace(refinedMark, '')) || { heeds: '' }).heeds;
  const heeded = new Set(state.schedules.flatMap((name) => heedsOf(name).split(' ')));
  for (const key of ['stages-per-rank', 'group', 'pairs', 'most-live']) get(`value-${key}`).hidden = !all && !heeded.has(key);
}

// --- cards
function makeCard() {
  const canvas = make('canvas', { tabIndex: 0 });
  canvas.setAttribute('role', 'img');
  const card = {
    title: make('h2'), stats: make('ul', { className: 'stats' }), note: make('p', { className: 'note' }),
    error: make('p', { className: 'error' }), grid: make('pre'), files: make('div', { className: 'files' }), canvas,
  };
  card.error.setAttribute('role', 'alert');
  card.grid.tabIndex = 0;
  card.picture = new Picture(canvas, frame, (picture, i, x, y, same) => showHint(card, i, x, y, same));
  for (const [what, name, type] of [['csv', 'CSV', 'text/csv'], ['svg', 'SVG', 'image/svg+xml'], ['perfetto', 'Perfetto', 'application/json']]) {
    const button = make('button', { type: 'button', textContent: name });
    button.addEventListener('click', () => download(card, what, type));
    card.files.append(button);
  }
  card.search = make('button', { type: 'button', textContent: 'Search', hidden: true });
  card.search.addEventListener('click', () => card.startSearch());
  const further = [['PNG', () => canvas.toBlob((blob) => save(blob, fileName(card, 'png')))],
                   ['Copy command', () => copy(card.command ? card.command() : commandOf(card))], ['Copy C++', () => copy(callOf(card))]];
  card.further = further.map(([name, act]) => {
    const button = make('button', { type: 'button', textContent: name });
    button.addEventListener('click', act);
    card.files.append(button);
    return button;
  });
  card.node = make('section', { className: 'card' }, make('div', { className: 'head' }, card.title, card.search, card.files),
                   card.stats, card.error, canvas, card.note, card.grid);
  get('cards').append(card.node);
  return card;
}
function download(card, what, type) {
  try {
    const trace = card.explorer === fileExplorer && file ? file.trace : null, seconds = trace || isPlanned();
    const numbers = trace ? trace.numbers : !seconds && !state.unit;  // a file of numbers, not of seconds
    let text = card.explorer.ask({ do: what, memory: state.saved + state.parameters > 0 ? 1 : 0,
                                   second: seconds || numbers ? 1 : secondsOf[state.unit] });
    if (what === 'perfetto' && numbers) text = text.replace('{"heddle":{', '{"heddle":{"unit":"",');
    save(new Blob([text], { type }), fileName(card, { csv: 'csv', svg: 'svg', perfetto: 'json' }[what]));
    card.picture.refresh(card.explorer.arrays(card.report.actions));
  } catch (error) {
    showError(card, error);
  }
}
const fileName = (card, ending) => `${card.report.name.replace(/[^A-Za-z0-9=.-]+/g, '-')}.${ending}`;
function save(blob, name) {
  const url = URL.createObjectURL(blob);
  make('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
let copied = '';
async function copy(text) {
  copied = text;
  try {
    await navigator.clipboard.writeText(text);
  } catch (error) {  // a page that may not: by the selection
    const area = make('textarea', { value: text, readOnly: true }), focused = document.activeElement;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
    if (focused) focused.focus();
  }
  get('hint').textContent = 'copied';
  get('hint').hidden = false;
  setTimeout(() => { if (get('hint').textContent === 'copied') get('hint').hidden = true; }, 1500);
}
const quoted = (name) => /^[\w.][\w.-]*$/.test(name) ? name : `'./${name.replace(/'/g, "'\\''")}'`;
// The command and the C++ call that make a card's schedule.
function commandOf({ named }) {
  const { heeds } = catalogue.find((entry) => entry.name === named) || { heeds: 'stages-per-rank group pairs most-live' };
  const only = ['stages-per-rank', 'group', 'pairs', 'most-live'].filter((key) => !heeds.split(' ').includes(key));
  const limit = named === bestName ? [] : ['cap-bytes'];  // the other commands do not search
  const options = Object.keys(values).filter((key) => !['unit', 'factors', ...limit, ...only].includes(key) && state[key] !== defaultOf(key));
  return ['heddle-schedule show', named, ...options.map((key) => `--${key} ${state[key]}`)].join(' ');
}
function callOf({ named }) {
  const { heeds } = catalogue.find((entry) => entry.name === named);
  const fields = ['ranks', 'microbatches', ...['stages-per-rank', 'group', 'pairs', 'most-live'].filter((key) => heeds.split(' ').includes(key))];
  const shape = fields.map((key) => `.${key.replaceAll('-', '_')} = ${state[key]}`).join(', ');
  return `heddle::weave(heddle::schedule::find_schedule("${named}").orders({${shape}}))`;
}
function showError(card, error) {
  const answer = error instanceof LibraryError ? error.answer : { error: String(error) };
  card.node.classList.add('wrong');
  card.report = null;
  card.error.textContent = answer.error;
  card.error.hidden = false;
  card.grid.replaceChildren();
  card.grid.hidden = !answer.grid;
  if (answer.grid) {
    const found = /> .*? </.exec(answer.grid);
    const at = found ? found.index : answer.grid.length, end = found ? at + found[0].length : at;
    card.grid.append(answer.grid.slice(0, at), make('mark', { textContent: answer.grid.slice(at, end) }), answer.grid.slice(end));
  }
  card.picture.drawn = null;
  card.canvas.hidden = true;
  card.stats.replaceChildren();
  card.note.textContent = '';
  card.files.hidden = true;
}
function showStats(card, stats) {
  card.stats.replaceChildren(...stats.filter(Boolean).map(([name, value, className = '']) =>
    make('li', { className }, `${name} `, make('b', { textContent: value }))));
}
const percentOf = (share) => `${Math.round(1000 * share) / 10}%`;
const timeText = (text) => state.unit ? `${text} ${state.unit}` : text;
const reportTime = (report) => isPlanned() ? measuredText(report.makespan, unitOf(report.makespan), 5) : timeText(report.text.makespan);
const excessOf = (report) => isPlanned() ? (report.shortage ? report.shortage.needed - report.shortage.capacity : 0)
  : state['cap-bytes'] > 0 && report.most > state['cap-bytes'] ? report.most - state['cap-bytes'] : 0;
function clear(card, title) {
  card.node.classList.remove('wrong', 'over');
  card.error.textContent = '';
  card.error.hidden = card.grid.hidden = true;
  card.canvas.hidden = card.files.hidden = false;
  card.search.hidden = true;
  card.command = null;
  card.title.textContent = card.picture.title = title;
}
function request(key) {
  const asked = { do: 'draw' };
  for (const name of Object.keys(values)) if (state[name] !== '') asked[name] = state[name];
  if (key) asked.schedule = key;
  return asked;
}
// The request and the files of a schedule of the catalogue.
const requestOf = (name) => isPlanned() ? planRequest(name) : [request(name), ''];
function showReport(card, title, report) {
  card.report = report;
  card.further[1].hidden = !card.named && !card.command;
  card.further[2].hidden = !card.named;
  card.title.textContent = `${title}: ${report.ranks} ranks, ${report.microbatches} microbatches, ${report.stages} stages`;
  showStats(card, [
    ['makespan', reportTime(report)],
    report.predicted !== undefined && ['the plan predicts', measuredText(report.predicted, unitOf(report.predicted), 5)],
    ['bubble', report.theory === undefined ? report.text.bubble : `${report.text.bubble} (closed form ${percentOf(report.theory)})`],
    ['live activations', report.text.activations],
    ['messages', String(report.messages)],
    report.bytes && ['sent', bytesText(report.bytes)],
    report.most !== undefined && ['most memory', bytesText(report.most)],
    excessOf(report) && [report.shortage ? `rank ${report.shortage.rank} lacks` : 'over the limit by', bytesText(excessOf(report)), 'over'],
  ]);
  card.node.classList.toggle('over', excessOf(report) > 0);
  card.picture.set(card.explorer.arrays(report.actions), { ...report, begins: [report.begin, report.begin],
                                                           limit: report.sized ? state['cap-bytes'] : 0 });
}
function drawSchedule(card, explorer, title, asked, text) {
  clear(card, title);
  card.explorer = explorer;
  card.named = asked.do === 'draw' ? asked.schedule : null;
  try {
    const report = JSON.parse(explorer.ask(asked, text));
    if (asked.do === 'plan' && !asked.schedule && plans.plan)
      card.command = () => ['heddle-plan show', ...['plan', 'profile', 'machine'].map((kind) => quoted(plans[kind].name))].join(' ');
    showReport(card, title, report);
    const unequal = card.named && report.split && !state.factors && !(state.F === state.I && state.I === state.W);
    card.note.textContent = [
      isPlanned() ? 'A row stands for all ranks of a stage.' : '',
      report.torch && !isPlanned() ? `torch.distributed.pipelining does not run it: ${report.torch}.` : '',
      unequal ? `The order of ${card.named} is made for equal times of F, I and W. A search makes one for these times, in the same activations.` : '',
    ].filter(Boolean).join(' ');
    card.search.hidden = !unequal;
    card.search.disabled = false;
    card.startSearch = () => {
      const name = refinedMark + card.named;
      chooseSchedules(state.schedules.map((each) => each === card.named ? name : each));
      draw();
      const made = cards.find((each) => each.picture.title === name);
      if (made && !made.search.hidden) made.startSearch();
    };
  } catch (error) {
    showError(card, error);
  }
}
function drawTrace(card) {
  clear(card, file.name);
  card.explorer = fileExplorer;
  card.files.hidden = true;
  try {
    const { names, lines } = file.trace;
    const report = JSON.parse(fileExplorer.ask({ do: 'trace' }, lines));
    const analyse = () => {
      try {
        return JSON.parse(fileExplorer.ask({ do: 'analyse' }));
      } catch (error) {
        fileExplorer.ask({ do: 'trace' }, lines);
        return { report: `No waiting states: ${error.message}` };
      }
    };
    const analysis = file.analysis = file.analysis || analyse();
    const made = report.timelines;
    card.report = { ...report, name: file.name, makespan: Math.max(...made.map((line) => line.makespan)) };
    showStats(card, [...made.flatMap((line, n) => [
      [`${names[n] || 'trace'}: makespan`, measuredText(line.makespan, unitOf(line.makespan), 5)],
      ['bubble', percentOf(line.bubble)]]), analysis.step !== undefined && ['error of the prediction', percentOf(analysis.step)]]);
    card.grid.hidden = false;
    card.grid.textContent = `${analysis.report}${analysis.error ? `\n${analysis.error}` : ''}`;
    card.note.textContent = made.length > 1 ? `Of each rank, the upper row is ${names[0]} and the lower one ${names[1]}.` : '';
    card.picture.set(fileExplorer.arrays(report.actions), {
      ranks: Math.max(...made.map((line) => line.ranks)), actions: report.actions, rows: made.length,
      begins: made.map((line) => line.begin) });
  } catch (error) {
    showError(card, error);
  }
}

function draw() {
  get('hint').hidden = true;
  // The times of a trace are seconds, so nothing is drawn beside it; the chosen schedules come back.
  const names = file && file.trace ? [] : state.schedules;
  const jobs = names.map((name, n) => (card) => {
    if (!isSearched(name)) return drawSchedule(card, explorers[n], name, ...requestOf(name));
    if (!isPlanned()) return drawSearched(card, name);
    clear(card, name);
    showError(card, new LibraryError({ error: 'the page searches for the settings, and not for the files of a plan; run heddle-plan search' }));
  });
  if (file && file.trace) jobs.unshift(drawTrace);
  if (isPlanned() && (plans.plan || !names.length))
    jobs.unshift((card) => drawSchedule(card, fileExplorer, (plans.plan || plans.profile).name, ...planRequest()));
  if (file && file.text !== undefined)
    jobs.unshift((card) => drawSchedule(card, fileExplorer, file.name, {
      ...request(''), 'old-dialect': get('old-dialect').checked ? 1 : 0, replicas: get('replicas').checked ? 1 : 0 }, file.text));
  if (problem) jobs.unshift((card) => { clear(card, problem.name); showError(card, problem.error); });
  while (cards.length < jobs.length) cards.push(makeCard());
  while (cards.length > jobs.length) cards.pop().node.remove();
  jobs.forEach((job, n) => job(cards[n]));
  frame.timeUnit = null;
  const drawn = cards.filter((card) => card.report);
  const whole = Math.max(0, ...drawn.map((card) => card.report.makespan)) || 1;
  if ((file && file.trace) || isPlanned()) frame.timeUnit = unitOf(whole);
  if (whole !== frame.whole) {
    frame.whole = whole;
    frame.window = { begin: -0.01 * whole, end: 1.01 * whole };
  }
  for (const card of drawn) if (card.picture.drawn) card.picture.draw();
  showPlanFiles();
  showComparison();
  priceAll();
  writeHash();
}
let waiting = false;
function changed() {  // several inputs of a frame are one redraw
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function showComparison() {
  const rows = cards.filter((card) => card.report && card.report.idle);
  get('comparison').hidden = rows.length < 2;
  if (rows.length < 2) return;
  const sized = rows.some(({ report }) => report.most !== undefined);
  const head = ['schedule', 'makespan', 'bubble', 'closed form', 'live activations', 'messages', ...(sized ? ['sent', 'most memory'] : [])];
  get('table').replaceChildren(
    make('thead', {}, make('tr', {}, ...head.map((name) => make('th', { textContent: name, scope: 'col' })))),
    make('tbody', {}, ...rows.map(({ report, picture }) => make('tr', {},
      make('th', { textContent: picture.title, scope: 'row' }),
      ...[reportTime(report), report.text.bubble, report.theory === undefined ? '' : percentOf(report.theory), report.text.activations, report.messages,
          ...(sized ? [report.bytes === undefined ? '' : bytesText(report.bytes), report.most === undefined ? '' : bytesText(report.most)] : [])].map((value) => make('td', { textContent: String(value) }))))));
  const longest = Math.max(...rows.map(({ report }) => report.makespan)) || 1;
  const used = new Set();
  const bars = rows.map(({ report, picture }) => {
    const sum = (list) => list.reduce((all, value) => all + value, 0) / report.ranks;
    const parts = Object.entries({ busy: report.busy, ...report.idle }).map(([key, list]) => [key, sum(list)]).filter(([, time]) => time > 0);
    const bar = make('div', { className: 'bar' });
    bar.setAttribute('role', 'img');
    bar.setAttribute('aria-label', parts.map(([key, time]) => `${idleColours[key][0]} ${percentOf(time / report.makespan)}`).join(', '));
    for (const [key, time] of parts) {
      used.add(key);
      const piece = make('span', { title: `${idleColours[key][0]} ${percentOf(time / report.makespan)}` });
      piece.style.width = `${100 * time / longest}%`;
      piece.style.background = idleColours[key][1];
      bar.append(piece);
    }
    return make('div', { className: 'row' }, make('span', { textContent: picture.title }), bar);
  });
  const names = make('ul', { className: 'parts' });
  for (const [key, [name, colour]] of Object.entries(idleColours)) {
    if (!used.has(key)) continue;
    const sample = make('span');
    sample.style.background = colour;
    names.append(make('li', {}, sample, name));
  }
  get('chart').replaceChildren(make('p', { className: 'about', textContent: 'Mean time of a rank, on one scale:' }), ...bars, names);
}

// --- what an action is, and what it waited for
function showHint(card, i, x, y, same) {
  const hint = get('hint');
  if (i < 0) { hint.hidden = true; return; }
  if (!same) {
    hint.replaceChildren();
    if (file && card.explorer === fileExplorer && file.trace) {
      const at = 8 * i, { drawn } = card.picture;
      const kind = kinds[drawn[at]];
      hint.append(make('b', { textContent: `${drawn[at + 4]}${kind.letter}${drawn[at + 5]}` }),
        ` ${kind.name} on rank ${drawn[at + 2]}, ${file.trace.names[drawn[at + 7]] || 'trace'}: ` +
        `${frame.timeText(card.picture.start(i))} to ${frame.timeText(card.picture.end(i))}`);
    } else {
      const answer = JSON.parse(card.explorer.ask({ do: 'action', action: i }));
      card.picture.refresh(card.explorer.arrays(card.report.actions));
      const latest = Math.max(...answer.after.map((wait) => wait.time));
      card.picture.waits = answer.after.map((wait) => ({ ...wait, last: wait.time === latest }));
      const list = make('ul');
      for (const wait of card.picture.waits)
        list.append(make('li', {}, `${wait.name} until ${frame.timeText(wait.time)}${wait.queue ? ' (the same queue)' : ''}${wait.last ? ': the last one' : ''}`));
      hint.append(make('b', { textContent: answer.name }), ` ${frame.timeText(answer.start)} to ${frame.timeText(answer.end)}`,
        make('div', { textContent: answer.after.length ? 'waited for' : 'waited for nothing' }), list);
    }
  }
  hint.hidden = false;
  const box = hint.getBoundingClientRect();
  hint.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  hint.style.top = `${y + 18 + box.height < innerHeight ? y + 18 : Math.max(8, y - box.height - 14)}px`;
}

// --- files
// Opens a file. A wrong one is named beside what was open before, which stays.
function openText(name, text, among = false) {  // among: others were opened at the same time
  if (!among) problem = null;
  const kind = formatOf(text);
  try {
    if (kind) {
      openPlanFile(kind, name, text);
      file = null;
    } else {
      file = /^\s*[{[]/.test(text) ? { name, trace: readTrace(text) } : { name, text };
      plans = {};
    }
  } catch (error) {
    problem = { name, error };
  }
  get('forget').hidden = false;
  showSettings();
  draw();
}
async function openFiles(blobs) {
  for (const [n, blob] of [...blobs].entries()) openText(blob.name, await blob.text(), n > 0);
}

async function begin() {
  await loadModule();
  catalogue = JSON.parse(explorers[0].ask({ do: 'catalogue' }));
  makeSettings();
  readHash();
  showTheme();
  showSettings();
  for (const { letter, name, colour } of kinds.slice(0, 4)) {
    const sample = make('span');
    sample.style.background = css(colour);
    get('legend').append(make('li', {}, sample, `${letter} ${name}`));
  }
  get('legend').append(make('li', { textContent: 'striped: further stages of a rank' }));
  if (innerWidth <= 820) get('settings').open = false;
  draw();
  get('theme').addEventListener('click', () => {
    state.theme = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    showTheme();
    writeHash();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showTheme);
  get('add').addEventListener('click', () => {
    const other = catalogue.find((entry) => !state.schedules.includes(entry.name));
    if (state.schedules.length < 4) chooseSchedules([...state.schedules, other.name], `choice-${state.schedules.length}`);
  });
  get('all').addEventListener('toggle', () => { showSettings(); priceAll(); });
  get('link').addEventListener('click', () => copy(location.href));
  get('bar').addEventListener('click', (event) => {
    const what = event.target.dataset.zoom;
    if (what === 'in') frame.zoom(0.6);
    if (what === 'out') frame.zoom(1.6);
    if (what === 'all') frame.showAll();
  });
  get('lines').addEventListener('change', (event) => { frame.lines = event.target.checked; repaint(); });
  get('file').addEventListener('change', (event) => openFiles(event.target.files));
  for (const id of ['old-dialect', 'replicas']) get(id).addEventListener('change', draw);
  get('forget').addEventListener('click', () => {
    file = problem = null;
    plans = {};
    get('file').value = '';
    get('forget').hidden = true;
    if (!state.schedules.length) state.schedules = ['1f1b'];
    showSettings();
    draw();
  });
  addEventListener('hashchange', () => { readHash(); showTheme(); showSettings(); draw(); });
  addEventListener('resize', repaint);
  addEventListener('dragover', (event) => { event.preventDefault(); document.body.classList.add('over'); });
  addEventListener('dragleave', () => document.body.classList.remove('over'));
  addEventListener('drop', (event) => {
    event.preventDefault();
    document.body.classList.remove('over');
    openFiles(event.dataTransfer.files);
  });
}

const ready = begin();
ready.catch((error) => {
  const note = make('p', { className: 'error', textContent: `The page cannot start (${error.message}): it needs a browser with ` +
    'WebAssembly exceptions and DecompressionStream, such as Chrome 95, Firefox 113, Safari 16.4 or newer.' });
  note.setAttribute('role', 'alert');
  get('cards').replaceChildren(note);
});

// For tests: everything that the page shows, as numbers.
window.explorer = {
  ready,
  open: openText,
  search: (n) => cards[n].startSearch(),
  plans: () => planKinds.filter((kind) => plans[kind]),
  state: () => JSON.parse(JSON.stringify(state)),
  reports: () => cards.map((card) => card.report),
  errors: () => cards.map((card) => card.error.textContent).filter(Boolean),
  copied: () => copied,
  allRows: () => all.rows,
  marked: () => [...document.querySelectorAll('pre mark')].map((mark) => mark.textContent),
  answers(requests) {  // of the module, as texts
    const asked = new Explorer();
    return requests.map((request) => {
      try {
        return asked.ask(Object.fromEntries(new URLSearchParams(request)));
      } catch (error) {
        return JSON.stringify(error.answer);
      }
    });
  },
};
