// The page: its settings, which the URL's hash holds, the cards of the schedules, and files.
const get = (id) => document.getElementById(id);
const make = (tag, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
};

const values = {  // key: [group, label, least, most, step, default]
  ranks: ['shape', 'ranks', 1, 64, 1, 4],
  microbatches: ['shape', 'microbatches', 1, 512, 1, 8],
  'stages-per-rank': ['shape', 'stages per rank', 1, 8, 1, 2],
  group: ['shape', 'microbatches of a group (0: as usual)', 0, 16, 1, 0],
  pairs: ['shape', 'pipelines in each direction', 1, 8, 1, 1],
  'most-live': ['shape', 'microbatches that fit a rank (0: all)', 0, 64, 1, 0],
  F: ['costs', 'F: forward', 0, 4, 0.05, 1],
  I: ['costs', 'I: backward for the input', 0, 4, 0.05, 1],
  W: ['costs', 'W: backward for the weights', 0, 4, 0.05, 1],
  FB: ['costs', 'fused pair (0: as long as both)', 0, 8, 0.05, 0],
  factors: ['costs', 'factor of each stage, such as 1,1,1.5,1'],
  latency: ['messages', 'time of a transfer', 0, 4, 0.05, 0],
  activation: ['messages', 'bytes of a message', 0, 100000000, 1000, 0],
  bandwidth: ['messages', 'bytes per unit of time (0: any number)', 0, 100000000, 1000, 0],
  depth: ['messages', 'results that wait to be sent (-1: all)', -1, 16, 1, -1],
  saved: ['memory', 'bytes kept for a backward', 0, 100000000, 1000, 0],
  parameters: ['memory', 'bytes of weights', 0, 100000000, 1000, 0],
};
const letters = 'ABCD';
const idleColours = {
  busy: ['work', '#0072b2'], 'warm-up': ['warm-up', '#e69f00'], receive: ['waits to receive', '#cc79a7'],
  send: ['waits to send', '#d55e00'], other: ['other gaps', '#888888'], drain: ['drain', '#f0e442'],
  tail: ['tail', '#56b4e9'],
};

let catalogue = [];
const state = { schedules: ['1f1b'], theme: '' };
let file = null;       // { name, text } of a schedule file, or { name, trace }
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
    if (!this.timeUnit) return String(Number(time.toPrecision(6)));
    return `${Number((time * this.timeUnit[0]).toPrecision(4))} ${this.timeUnit[1]}`;
  },
};
const unitOf = (seconds) => seconds >= 1 ? [1, 's'] : seconds >= 1e-3 ? [1e3, 'ms'] : [1e6, 'us'];

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
  for (const [key, [, , , , , value]] of Object.entries(values)) state[key] = value === undefined ? '' : value;
}
function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  defaults();
  state.theme = '';
  for (const [key, value] of given) {
    if (key === 'schedules') {
      const known = value.split(',').filter((name) => catalogue.some((entry) => entry.name === name));
      state.schedules = known.slice(0, 4);
    } else if (key === 'theme') {
      state.theme = value === 'dark' || value === 'light' ? value : '';
    } else if (key in values && (values[key].length < 3 || (value !== '' && Number.isFinite(Number(value))))) {
      state[key] = values[key].length < 3 ? value.replace(/[^0-9eE.,+-]/g, '') : Number(value);
    }
  }
  if (!state.schedules.length && !file) state.schedules = ['1f1b'];
}
function writeHash() {
  const hash = new URLSearchParams();
  hash.set('schedules', state.schedules.join(','));
  for (const [key, [, , , , , value = '']] of Object.entries(values)) if (state[key] !== value) hash.set(key, state[key]);
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
    const box = make('div', { className: least === undefined ? 'value wide' : 'value', id: `value-${key}` });
    box.append(make('label', { htmlFor: `number-${key}`, textContent: label }));
    if (least === undefined) {
      box.append(make('input', { type: 'text', id: `number-${key}`, name: key, autocomplete: 'off', inputMode: 'decimal' }));
    } else {
      const slider = make('input', { type: 'range', min: least, max: most, step, id: `slider-${key}`, name: key });
      slider.setAttribute('aria-label', label);
      box.append(slider, make('input', { type: 'number', min: least, step: 'any', id: `number-${key}`, name: key }));
    }
    get(group).append(box);
  }
  get('controls').addEventListener('input', (event) => {
    const key = event.target.name;
    if (!(key in values)) return;
    if (values[key].length < 3) state[key] = event.target.value.replace(/[^0-9eE.,+-]/g, '');
    else if (event.target.value === '' || !Number.isFinite(Number(event.target.value))) return;
    else state[key] = Number(event.target.value);
    for (const other of [get(`slider-${key}`), get(`number-${key}`)]) if (other && other !== event.target) other.value = state[key];
    changed();
  });
  get('controls').addEventListener('submit', (event) => event.preventDefault());
}
function showSettings() {
  for (const key of Object.keys(values))
    for (const input of [get(`slider-${key}`), get(`number-${key}`)]) if (input) input.value = state[key];
  const choices = get('choices');
  choices.replaceChildren();
  state.schedules.forEach((name, number) => {
    const select = make('select', { id: `choice-${number}` });
    select.setAttribute('aria-label', `schedule ${letters[number]}`);
    for (const entry of catalogue) select.append(make('option', { value: entry.name, textContent: entry.name, selected: entry.name === name }));
    select.addEventListener('change', () => { state.schedules[number] = select.value; showSettings(); changed(); });
    const line = make('div', { className: 'choice' }, select);
    if (state.schedules.length > 1 || file) {
      const remove = make('button', { type: 'button', textContent: 'Remove' });
      remove.setAttribute('aria-label', `remove ${name}`);
      remove.addEventListener('click', () => { state.schedules.splice(number, 1); showSettings(); changed(); });
      line.append(remove);
    }
    const { about } = catalogue.find((entry) => entry.name === name);
    choices.append(line, make('p', { className: 'about', textContent: about }));
  });
  get('add').hidden = state.schedules.length >= 4;
  const heeded = new Set(state.schedules.flatMap((name) => catalogue.find((entry) => entry.name === name).heeds.split(' ')));
  for (const key of ['stages-per-rank', 'group', 'pairs', 'most-live']) get(`value-${key}`).hidden = !heeded.has(key);
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
  card.node = make('section', { className: 'card' }, make('div', { className: 'head' }, card.title, card.files),
                   card.stats, card.error, canvas, card.note, card.grid);
  get('cards').append(card.node);
  return card;
}
function download(card, what, type) {
  try {
    const text = card.explorer.ask({ do: what, memory: state.saved + state.parameters > 0 ? 1 : 0 });
    const ending = { csv: 'csv', svg: 'svg', perfetto: 'json' }[what];
    const url = URL.createObjectURL(new Blob([text], { type }));
    make('a', { href: url, download: `${card.report.name.replace(/[^A-Za-z0-9=.-]+/g, '-')}.${ending}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
    card.picture.refresh(card.explorer.arrays(card.report.actions));
  } catch (error) {
    showError(card, error);
  }
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
  card.stats.replaceChildren(...stats.filter(Boolean).map(([name, value]) => make('li', {}, `${name} `, make('b', { textContent: value }))));
}
const percentOf = (share) => `${Math.round(1000 * share) / 10}%`;
function clear(card, title) {
  card.node.classList.remove('wrong');
  card.error.textContent = '';
  card.error.hidden = card.grid.hidden = true;
  card.canvas.hidden = card.files.hidden = false;
  card.title.textContent = card.picture.title = title;
}
function request(key) {
  const asked = { do: 'draw' };
  for (const name of Object.keys(values)) if (state[name] !== '') asked[name] = state[name];
  if (key) asked.schedule = key;
  return asked;
}
function drawSchedule(card, explorer, title, asked, text) {
  clear(card, title);
  card.explorer = explorer;
  try {
    const report = JSON.parse(explorer.ask(asked, text));
    card.report = report;
    card.title.textContent = `${title}: ${report.ranks} ranks, ${report.microbatches} microbatches, ${report.stages} stages`;
    showStats(card, [
      ['makespan', report.text.makespan],
      ['bubble', report.theory === undefined ? report.text.bubble : `${report.text.bubble} (closed form ${percentOf(report.theory)})`],
      ['live activations', report.text.activations],
      ['messages', String(report.messages)],
      report.bytes && ['bytes sent', String(report.bytes)],
      report.most !== undefined && ['most bytes kept', String(report.most)],
    ]);
    card.note.textContent = report.torch ? `torch.distributed.pipelining does not run it: ${report.torch}.` : '';
    card.picture.set(explorer.arrays(report.actions), { ...report, begins: [report.begin, report.begin] });
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
      [`${names[n] || 'trace'}: makespan`, `${Number((line.makespan * unitOf(line.makespan)[0]).toPrecision(5))} ${unitOf(line.makespan)[1]}`],
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
  const jobs = state.schedules.map((name, n) => (card) => drawSchedule(card, explorers[n], name, request(name)));
  if (file && file.trace) jobs.unshift(drawTrace);
  if (file && file.problem) jobs.unshift((card) => { clear(card, file.name); showError(card, file.problem); });
  if (file && file.text !== undefined)
    jobs.unshift((card) => drawSchedule(card, fileExplorer, file.name, {
      ...request(''), 'old-dialect': get('old-dialect').checked ? 1 : 0, replicas: get('replicas').checked ? 1 : 0 }, file.text));
  while (cards.length < jobs.length) cards.push(makeCard());
  while (cards.length > jobs.length) cards.pop().node.remove();
  jobs.forEach((job, n) => job(cards[n]));
  frame.timeUnit = null;
  const drawn = cards.filter((card) => card.report);
  const whole = Math.max(0, ...drawn.map((card) => card.report.makespan)) || 1;
  if (file && file.trace) frame.timeUnit = unitOf(whole);
  if (whole !== frame.whole) {
    frame.whole = whole;
    frame.window = { begin: -0.01 * whole, end: 1.01 * whole };
  }
  for (const card of drawn) if (card.picture.drawn) card.picture.draw();
  showComparison();
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
  const head = ['schedule', 'makespan', 'bubble', 'closed form', 'live activations', 'messages', ...(sized ? ['bytes sent', 'most bytes kept'] : [])];
  get('table').replaceChildren(
    make('thead', {}, make('tr', {}, ...head.map((name) => make('th', { textContent: name, scope: 'col' })))),
    make('tbody', {}, ...rows.map(({ report, picture }) => make('tr', {},
      make('th', { textContent: picture.title, scope: 'row' }),
      ...[report.text.makespan, report.text.bubble, report.theory === undefined ? '' : percentOf(report.theory), report.text.activations, report.messages,
          ...(sized ? [report.bytes, report.most === undefined ? '' : report.most] : [])].map((value) => make('td', { textContent: String(value) }))))));
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
function openText(name, text) {
  file = { name };
  try {
    if (/^\s*[{[]/.test(text)) file.trace = readTrace(text);
    else file.text = text;
  } catch (error) {
    file.problem = error;
  }
  if (file.trace) state.schedules = [];
  get('forget').hidden = false;
  showSettings();
  draw();
}
function openFile(blob) {
  if (blob) blob.text().then((text) => openText(blob.name, text));
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
    if (state.schedules.length < 4) state.schedules.push(other.name);
    showSettings();
    draw();
  });
  get('bar').addEventListener('click', (event) => {
    const what = event.target.dataset.zoom;
    if (what === 'in') frame.zoom(0.6);
    if (what === 'out') frame.zoom(1.6);
    if (what === 'all') frame.showAll();
  });
  get('lines').addEventListener('change', (event) => { frame.lines = event.target.checked; repaint(); });
  get('file').addEventListener('change', (event) => openFile(event.target.files[0]));
  for (const id of ['old-dialect', 'replicas']) get(id).addEventListener('change', draw);
  get('forget').addEventListener('click', () => {
    file = null;
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
    openFile(event.dataTransfer.files[0]);
  });
}

// For tests: everything that the page shows, as numbers.
window.explorer = {
  ready: begin(),
  open: openText,
  state: () => JSON.parse(JSON.stringify(state)),
  reports: () => cards.map((card) => card.report),
  errors: () => cards.map((card) => card.error.textContent).filter(Boolean),
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
