// Pictures: a row per rank, boxes to scale, and the live activations below.
// The colours are those of the library's SVG pictures (trace/impl/kind_style.hpp), for white labels.
const kinds = [
  { letter: 'F', name: 'forward', colour: [47, 111, 208] },
  { letter: 'I', name: 'backward for the input', colour: [15, 123, 131] },
  { letter: 'W', name: 'backward for the weights', colour: [180, 83, 9] },
  { letter: 'B', name: 'backward', colour: [43, 125, 70] },
  { letter: 'M', name: 'message', colour: [122, 106, 88] },
  { letter: 'C', name: 'combine', colour: [138, 75, 175] },
  { letter: 'c', name: 'cast', colour: [140, 90, 122] },
  { letter: 'G', name: 'group', colour: [166, 61, 87] },
  { letter: 'U', name: 'update', colour: [107, 114, 128] },
  { letter: 'u', name: 'user', colour: [75, 95, 122] },
];
const css = (colour) => `rgb(${colour.map(Math.round).join(',')})`;
const move = 4;

class Picture {
  // `window` is the part of time that all pictures show: {begin, end} from 0 on.
  constructor(canvas, frame, onPoint) {
    this.canvas = canvas;
    this.frame = frame;
    this.onPoint = onPoint;
    this.selected = -1;
    this.waits = [];
    canvas.addEventListener('pointermove', (event) => this.point(event));
    canvas.addEventListener('pointerleave', (event) => { if (!this.dragged && event.pointerType === 'mouse') this.choose(-1); });
    canvas.addEventListener('click', (event) => { if (this.drawn) this.choose(this.hit(event.offsetX, event.offsetY), event.clientX, event.clientY); });
    canvas.addEventListener('pointerdown', (event) => { this.dragged = { x: event.clientX, ...this.frame.window }; });
    canvas.addEventListener('pointerup', () => { this.dragged = null; });
    canvas.addEventListener('pointercancel', () => { this.dragged = null; });
    canvas.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.frame.zoom(event.deltaY < 0 ? 0.8 : 1.25, this.timeAt(event.offsetX));
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => this.press(event));
  }

  // rows: how many rows a rank has (2 for a trace with a prediction). begins: the time 0 of each row.
  // live: where the curve of each rank begins, of bytes if `sized`, otherwise of parts: `share` of them are one
  // microbatch on the share of a rank. limit: bytes that a rank has, 0 for any number.
  set(arrays, { ranks, actions, rows = 1, begins = [0, 0], live = null, share = 1, sized = false, limit = 0 }) {
    Object.assign(this, { drawn: arrays.drawn, times: arrays.times, live: arrays.live, ranks, actions, rows, begins,
                          liveBegins: live, share, sized, limit });
    this.selected = -1;
    this.waits = [];
    const count = ranks * rows, lists = Array.from({ length: count }, () => []);
    const stages = Array.from({ length: ranks }, () => new Set());
    for (let i = 0; i < actions; ++i) {
      const at = 8 * i, from = this.drawn[at + 2];
      if (from !== this.drawn[at + 3] || this.drawn[at] === move) continue;
      lists[from * rows + this.drawn[at + 7]].push(i);
      if (this.drawn[at] < move) stages[from].add(this.drawn[at + 4]);
    }
    this.lists = lists;
    // A row labels all boxes of a kind or none: what its longest label and its shortest box are.
    this.labels = lists.map((list) => {
      const found = new Map();
      for (const i of list) {
        const kind = this.drawn[8 * i], time = this.end(i) - this.start(i), item = this.drawn[8 * i + 5];
        const entry = found.get(kind) || { time: Infinity, item: 0 };
        found.set(kind, { time: Math.min(entry.time, time), item: Math.max(entry.item, item) });
      }
      return found;
    });
    this.stripes = stages.map((set) => {
      const sorted = [...set].sort((a, b) => a - b);
      return new Map(sorted.map((stage, i) => [stage, i / sorted.length]));
    });
    this.rowHeight = Math.max(8, Math.min(26, Math.floor(560 / count)));
    this.liveHeight = live ? 84 : 0;
  }

  // The module's memory may have moved.
  refresh(arrays) { Object.assign(this, { drawn: arrays.drawn, times: arrays.times, live: arrays.live }); }

  start(i) { return this.times[3 * i] - this.begins[this.drawn[8 * i + 7]]; }
  end(i) { return this.times[3 * i + 1] - this.begins[this.drawn[8 * i + 7]]; }
  arrival(i) { return this.times[3 * i + 2] - this.begins[this.drawn[8 * i + 7]]; }
  get left() { return 44; }
  get width() { return this.canvas.clientWidth - this.left - 6; }
  x(time) {
    const { begin, end } = this.frame.window;
    return this.left + (time - begin) / (end - begin) * this.width;
  }
  timeAt(x) {
    const { begin, end } = this.frame.window;
    return begin + (x - this.left) / this.width * (end - begin);
  }
  y(rank, row = 0) { return (rank * this.rows + row) * this.rowHeight; }

  draw() {
    const { canvas, rowHeight } = this, count = this.ranks * this.rows;
    const bottom = count * rowHeight, height = bottom + 20 + this.liveHeight;
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const text = colour('--text'), soft = colour('--soft'), idle = colour('--idle'), page = colour('--page');
    const g = canvas.getContext('2d');
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    const font = (size) => `${size}px system-ui, "DejaVu Sans", sans-serif`;
    g.textBaseline = 'middle';
    const step = Math.ceil(12 / (rowHeight * this.rows));
    g.save();
    g.beginPath();
    g.rect(this.left, 0, this.width, height);
    g.clip();
    const gap = rowHeight > 12 ? 2 : 1, { begin, end } = this.frame.window;
    let seen = 0;
    for (const list of this.lists) seen += this.firstAfter(list, end) - this.firstAfter(list, begin);
    if (seen > 10 * this.width) this.drawDense(g, idle, gap);
    else this.drawBoxes(g, idle, page, gap, font);
    if (this.frame.lines) this.drawMessages(g, text);
    if (this.selected >= 0) this.drawSelected(g, text, page);
    if (this.liveHeight) this.drawLive(g, bottom + 20, text, colour('--wrong'), idle, font);
    g.restore();
    g.font = font(11);
    g.fillStyle = soft;
    g.textAlign = 'right';
    for (let rank = 0; rank < this.ranks; rank += step)
      g.fillText(this.ranks > 9 ? `${rank}` : `rank ${rank}`, this.left - 5, this.y(rank) + rowHeight * this.rows / 2);
    g.textAlign = 'center';
    const raw = (end - begin) / Math.max(2, this.width / 80), power = 10 ** Math.floor(Math.log10(raw));
    const tick = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
    for (let n = Math.ceil(begin / tick); n * tick <= end; ++n) {
      const x = this.x(n * tick);
      g.fillRect(x, bottom, 1, 4);
      if (x > this.left + 8 && x < width - 14) g.fillText(this.frame.timeText(n * tick, tick), x, bottom + 12);
    }
    canvas.setAttribute('aria-label', `${this.title}. ${this.ranks} ranks. Arrow keys choose an action.`);
  }

  firstAfter(list, time) {  // the first box that ends after `time`
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end(list[middle]) < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  drawBoxes(g, idle, page, gap, font) {
    const { rowHeight } = this, { begin, end } = this.frame.window, height = rowHeight - gap;
    this.lists.forEach((list, row) => {
      const top = row * rowHeight;
      g.fillStyle = idle;
      g.fillRect(this.left, top, this.width, height);
      g.font = font(Math.min(12, rowHeight - 4));
      const labelled = new Set();
      for (const [kind, { time, item }] of rowHeight > 11 ? this.labels[row] : [])
        if (g.measureText(`${kinds[kind].letter}${item}`).width < time / (end - begin) * this.width - 3) labelled.add(kind);
      let filled = -1;
      for (let n = this.firstAfter(list, begin); n < list.length; ++n) {
        const i = list[n], from = this.start(i);
        if (from > end) break;
        const x0 = this.x(from), x1 = this.x(this.end(i));
        if (x1 - x0 < 0.5 && Math.floor(x1) <= filled) continue;  // less than a pixel that has a box
        filled = Math.floor(x1);
        const { colour, letter } = kinds[this.drawn[8 * i]];
        const width = Math.max(x1 - x0 - (x1 - x0 > 3 ? 1 : 0), 0.5);
        g.fillStyle = css(colour);
        g.fillRect(x0, top, width, height);
        // A further stage of the rank has a stripe below, which is higher for later ones.
        const stripe = this.stripes[this.drawn[8 * i + 2]].get(this.drawn[8 * i + 4]) || 0;
        if (stripe > 0 && width > 2) {
          g.fillStyle = page;
          g.globalAlpha = 0.7;
          g.fillRect(x0, top + height * (0.82 - 0.3 * stripe), width, Math.max(2, 0.1 * height));
          g.globalAlpha = 1;
        }
        if (labelled.has(this.drawn[8 * i])) {
          g.fillStyle = '#fff';
          g.textAlign = 'center';
          g.fillText(`${letter}${this.drawn[8 * i + 5]}`, x0 + width / 2, top + height * 0.5 + 1);
        }
      }
    });
  }

  // Many boxes: a line of pixels for each row, drawn as high as the row.
  drawDense(g, idle, gap) {
    const { begin, end } = this.frame.window, ratio = window.devicePixelRatio || 1;
    const width = Math.max(1, Math.round(this.width * ratio)), lines = new ImageData(width, this.lists.length);
    const pixels = new Uint32Array(lines.data.buffer);
    const [r, g0, b] = [1, 3, 5].map((at) => parseInt(idle.slice(at, at + 2), 16));
    pixels.fill((255 << 24 | b << 16 | g0 << 8 | r) >>> 0);
    const colours = kinds.map(({ colour }) => (255 << 24 | colour[2] << 16 | colour[1] << 8 | colour[0]) >>> 0);
    const scale = width / (end - begin);
    this.lists.forEach((list, row) => {
      for (let n = this.firstAfter(list, begin); n < list.length; ++n) {
        const i = list[n], from = this.start(i);
        if (from > end) break;
        const x0 = Math.max(0, Math.floor((from - begin) * scale));
        const x1 = Math.min(width, Math.max(x0 + 1, Math.floor((this.end(i) - begin) * scale)));
        pixels.fill(colours[this.drawn[8 * i]], row * width + x0, row * width + x1);
      }
    });
    const line = document.createElement('canvas');
    line.width = width;
    line.height = this.lists.length;
    line.getContext('2d').putImageData(lines, 0, 0);
    g.imageSmoothingEnabled = false;
    for (let row = 0; row < this.lists.length; ++row)
      g.drawImage(line, 0, row, width, 1, this.left, row * this.rowHeight, this.width, this.rowHeight - gap);
  }

  drawMessages(g, colour) {
    const { begin, end } = this.frame.window;
    g.strokeStyle = colour;
    g.globalAlpha = 0.5;
    g.lineWidth = 1;
    g.beginPath();
    let drawn = 0;
    for (let i = 0; i < this.actions && drawn < 20000; ++i) {
      if (this.drawn[8 * i] !== move || this.arrival(i) < begin || this.start(i) > end) continue;
      this.messageLine(g, i);
      ++drawn;
    }
    g.stroke();
    g.globalAlpha = 1;
  }
  middle(rank, row) { return this.y(rank, row) + this.rowHeight / 2; }
  messageLine(g, i) {
    const row = this.drawn[8 * i + 7];
    g.moveTo(this.x(this.start(i)), this.middle(this.drawn[8 * i + 2], row));
    g.lineTo(this.x(this.arrival(i)), this.middle(this.drawn[8 * i + 3], row));
  }

  // The chosen action, and an arrow from each action that it waited for.
  drawSelected(g, text, page) {
    const i = this.selected, at = 8 * i, row = this.drawn[at + 7], top = this.y(this.drawn[at + 2], row);
    g.lineWidth = 3;
    g.strokeStyle = text;
    const x0 = this.x(this.start(i)), x1 = this.x(this.end(i));
    g.strokeRect(x0, top + 1, Math.max(x1 - x0 - 1, 2), this.rowHeight - 3);
    for (const wait of this.waits) {
      const other = wait.action, isMove = this.drawn[8 * other] === move;
      const from = { x: this.x(isMove ? this.start(other) : this.end(other)), y: this.middle(this.drawn[8 * other + 2], row) };
      const toX = isMove ? this.x(this.arrival(other)) : x0;
      const to = { x: Math.max(toX, from.x), y: this.middle(this.drawn[at + 2], row) };
      const last = wait.last;
      for (const [width, colour] of [[last ? 5 : 4, page], [last ? 3 : 1.5, text]]) {
        g.lineWidth = width;
        g.strokeStyle = g.fillStyle = colour;
        g.setLineDash(wait.queue ? [3, 3] : []);
        g.beginPath();
        g.moveTo(from.x, from.y);
        g.lineTo(to.x, to.y);
        g.stroke();
        g.setLineDash([]);
        const angle = Math.atan2(to.y - from.y, to.x - from.x);
        g.beginPath();
        g.moveTo(to.x, to.y);
        for (const turn of [2.7, -2.7]) g.lineTo(to.x + 8 * Math.cos(angle + turn), to.y + 8 * Math.sin(angle + turn));
        g.fill();
      }
    }
  }

  drawLive(g, top, text, wrong, idle, font) {
    const height = this.liveHeight - 8, { begin, end } = this.frame.window;
    let most = 0;
    for (let n = 1; n < this.live.length; n += 2) most = Math.max(most, this.live[n]);
    const scale = Math.max(most, this.limit) || 1;
    g.fillStyle = idle;
    g.fillRect(this.left, top, this.width, height);
    const y = (parts) => top + height - 2 - (height - 22) * parts / scale;
    for (let rank = this.ranks - 1; rank >= 0; --rank) {
      const share = this.ranks > 1 ? rank / (this.ranks - 1) : 0;
      g.strokeStyle = `hsl(${Math.round(215 - 185 * share)} 75% ${document.documentElement.dataset.theme === 'dark' ? 66 : 40}%)`;
      g.lineWidth = rank === 0 ? 2.5 : this.ranks > 16 ? 0.7 : 1.5;
      g.beginPath();
      let level = 0, last = -1;
      g.moveTo(this.x(0), y(0));
      for (let n = this.liveBegins[rank]; n < this.liveBegins[rank + 1]; ++n) {
        const time = this.live[2 * n] - this.begins[0];
        const x = this.x(time);
        if (time < begin) { level = this.live[2 * n + 1]; g.moveTo(this.left, y(level)); continue; }
        if (x - last > 0.25 || level !== this.live[2 * n + 1]) {
          g.lineTo(x, y(level));
          g.lineTo(x, y(this.live[2 * n + 1]));
          last = x;
        }
        level = this.live[2 * n + 1];
        if (time > end) break;
      }
      g.lineTo(this.x(end), y(level));
      g.stroke();
    }
    if (this.limit) {
      g.strokeStyle = wrong;
      g.lineWidth = 1.5;
      g.setLineDash([6, 4]);
      g.beginPath();
      g.moveTo(this.left, y(this.limit));
      g.lineTo(this.left + this.width, y(this.limit));
      g.stroke();
      g.setLineDash([]);
    }
    g.font = font(11);
    g.fillStyle = text;
    g.textAlign = 'left';
    // The maximum is to be read on a narrow screen, too.
    const what = this.sized ? 'memory' : 'live activations';
    const peak = this.sized ? bytesText(most) : Number((most * this.share).toPrecision(6));
    const limit = this.limit ? `, limit ${bytesText(this.limit)}` : '';
    const label = [`${what} of the ranks (thick: rank 0), at most ${peak}${limit}`, `${what}, at most ${peak}${limit}`, `at most ${peak}`]
      .find((one) => g.measureText(one).width < this.width - 10);
    if (label) g.fillText(label, this.left + 5, top + 8);
  }

  hit(x, y) {
    const row = Math.floor(y / this.rowHeight);
    if (x < this.left || row < 0 || row >= this.lists.length) return -1;
    const list = this.lists[row], time = this.timeAt(x), n = this.firstAfter(list, time);
    return n < list.length && this.start(list[n]) <= time ? list[n] : -1;
  }

  point(event) {
    if (this.dragged && event.buttons) {
      const { x, begin, end } = this.dragged;
      if (Math.abs(event.clientX - x) > 3) {
        const moved = (x - event.clientX) / this.width * (end - begin);
        this.frame.show(begin + moved, end + moved);
      }
      return;
    }
    this.dragged = null;
    if (!this.drawn) return;
    this.choose(this.hit(event.offsetX, event.offsetY), event.clientX, event.clientY);
  }

  choose(i, x, y) {
    if (i !== this.selected) {
      this.selected = i;
      this.waits = [];
      this.onPoint(this, i, x, y);
      this.draw();
    } else if (i >= 0) {
      this.onPoint(this, i, x, y, true);
    }
  }

  press(event) {
    const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key], down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === '+' || event.key === '=') this.frame.zoom(0.7);
    else if (event.key === '-') this.frame.zoom(1.4);
    else if (event.key === '0') this.frame.showAll();
    else if (event.key === 'Escape') this.choose(-1);
    else if (turn || down) {
      let next = -1;
      if (this.selected < 0) {
        next = (this.lists.find((list) => list.length) || [-1])[0];
      } else {
        const at = 8 * this.selected, row = this.drawn[at + 2] * this.rows + this.drawn[at + 7], list = this.lists[row];
        if (turn) {
          next = list[list.indexOf(this.selected) + turn];
        } else {
          const other = this.lists[row + down];
          if (other && other.length) next = other[Math.min(this.firstAfter(other, (this.start(this.selected) + this.end(this.selected)) / 2), other.length - 1)];
        }
      }
      if (next === undefined || next < 0) return event.preventDefault();
      const box = this.canvas.getBoundingClientRect();
      if (this.start(next) < this.frame.window.begin || this.end(next) > this.frame.window.end) {
        const width = this.frame.window.end - this.frame.window.begin, from = this.start(next) - width / 4;
        this.frame.show(from, from + width);
      }
      this.choose(next, box.left + this.x(this.end(next)), box.top + this.y(this.drawn[8 * next + 2] + 1));
    } else return;
    event.preventDefault();
  }
}
