// All schedules of the catalogue, priced in one table.
const all = { explorer: new Explorer(), rows: [], sorted: 'makespan', descending: false, turn: 0 };
const columns = {
  makespan: ['makespan', (row) => row.report.makespan, (row) => reportTime(row.report)],
  bubble: ['bubble', (row) => row.report.bubble, (row) => row.report.text.bubble],
  live: ['live activations', (row) => Math.max(...row.report.activations), (row) => String(Number(Math.max(...row.report.activations).toPrecision(4)))],
  most: ['most memory', (row) => row.report.most || 0, (row) => row.report.most === undefined ? '' : bytesText(row.report.most)],
  messages: ['messages', (row) => row.report.messages, (row) => String(row.report.messages)],
};
// Prices one schedule after another, so that the page can be used meanwhile, and begins anew if a setting changes.
function priceAll() {
  const turn = ++all.turn;
  all.rows = [];
  if (!get('all').open) return;
  const rows = [], left = [...catalogue];
  const go = () => {
    if (turn !== all.turn) return;
    const until = performance.now() + 30;
    while (left.length && performance.now() < until) {
      const { name, synchronous } = left.shift();
      try {
        const report = JSON.parse(all.explorer.ask(...requestOf(name)));
        rows.push({ name, report, kind: !Math.max(...report.activations) ? 'forwards only' : synchronous ? '' : 'asynchronous' });
      } catch (error) {
        rows.push({ name, error: error.message });
      }
    }
    if (left.length) return setTimeout(go);
    all.rows = rows;
    showAllSchedules();
  };
  setTimeout(go);
}
function showAllSchedules() {
  const [, key] = columns[all.sorted];
  // First what trains in synchronous steps, then what computes something else, then what does not fit, or not exist.
  const group = (row) => row.report ? (excessOf(row.report) ? 3 : ['', 'asynchronous', 'forwards only'].indexOf(row.kind)) : 4;
  const order = [...all.rows].sort((a, b) => group(a) - group(b) ||
    (a.report && b.report ? (all.descending ? -1 : 1) * (key(a) - key(b)) : 0) || a.name.localeCompare(b.name));
  const focused = document.activeElement && document.activeElement.id;
  const head = Object.entries(columns).map(([column, [name]]) => {
    const button = make('button', { type: 'button', id: `sort-${column}`, textContent: name });
    button.addEventListener('click', () => {
      all.descending = all.sorted === column && !all.descending;
      all.sorted = column;
      showAllSchedules();
    });
    const cell = make('th', { scope: 'col' }, button);
    if (all.sorted === column) cell.setAttribute('aria-sort', all.descending ? 'descending' : 'ascending');
    return cell;
  });
  get('all-table').replaceChildren(
    make('thead', {}, make('tr', {}, make('th', { scope: 'col', textContent: 'schedule' }), ...head, make('th', { scope: 'col', textContent: 'fits' }))),
    make('tbody', {}, ...order.map((row) => {
      const box = make('input', { type: 'checkbox', id: `draw-${row.name}`, checked: state.schedules.includes(row.name) });
      box.disabled = !box.checked && state.schedules.length >= 4;
      box.addEventListener('change', () => chooseSchedules(
        box.checked ? [...state.schedules, row.name] : state.schedules.filter((name) => name !== row.name)));
      const name = make('th', { scope: 'row' }, make('label', {}, box, ` ${row.name}${row.kind ? ` (${row.kind})` : ''}`));
      if (!row.report) return make('tr', {}, name, make('td', { className: 'why', colSpan: head.length + 1, textContent: row.error }));
      const excess = excessOf(row.report);
      return make('tr', { className: excess ? 'over' : '' }, name,
        ...Object.values(columns).map(([, , text]) => make('td', { textContent: text(row) })),
        make('td', { className: excess ? 'over' : '', textContent: excess ? `no, ${bytesText(excess)} too much` : state['cap-bytes'] ? 'yes' : '' }));
    })));
  if (focused && get(focused)) get(focused).focus();
  const fitting = order.filter((row) => group(row) < 3), training = fitting.filter((row) => group(row) === 0);
  get('all-note').textContent = `Choose one to four to draw. ${fitting.length} of ${order.length} ${state['cap-bytes'] ? 'fit the limit' : 'are possible'}` +
    (training.length ? `; the shortest that trains in synchronous steps is ${training.reduce((best, row) => row.report.makespan < best.report.makespan ? row : best).name}.` : '.');
}
