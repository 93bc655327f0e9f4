// A number of bytes as people write it, and back. `1.5 GB` are 1.5e9 bytes.
const bytePrefixes = ['', 'k', 'M', 'G', 'T', 'P'];
function bytesText(bytes) {
  const power = bytes < 1e4 ? 0 : Math.min(5, Math.floor(Math.log10(bytes) / 3));
  return bytes === 0 ? '0' : power === 0 ? `${bytes} B` : `${Number((bytes / 1000 ** power).toPrecision(4))} ${bytePrefixes[power]}B`;
}
function bytesOf(text) {  // undefined if it is none
  const found = /^\s*(\d+\.?\d*(?:e[+-]?\d+)?)\s*([kMGTP]?)(i?)B?\s*$/i.exec(text);
  if (!found) return undefined;
  const power = bytePrefixes.findIndex((prefix) => prefix.toLowerCase() === found[2].toLowerCase());
  const bytes = Math.round(Number(found[1]) * (found[3] ? 1024 : 1000) ** power);
  return bytes <= 1e15 ? bytes : undefined;
}

// The module: heddle::core as WebAssembly. An Explorer is one instance, which draws one schedule.
const decoder = new TextDecoder(), encoder = new TextEncoder();
let compiled = null;

async function loadModule() {
  // The number of bytes, and five digits in base 85 for each four of them; see scripts/explorer.
  const [size, digits] = document.getElementById('module').textContent.trim().split(/\s+/);
  const room = new DataView(new ArrayBuffer(digits.length / 5 * 4)), bytes = new Uint8Array(room.buffer, 0, Number(size));
  for (let at = 0; at < digits.length; at += 5) {
    let value = 0;
    for (let i = at; i < at + 5; ++i) value = 85 * value + (digits[i] === '}' ? 20 : digits.charCodeAt(i) - 40);
    room.setUint32(at / 5 * 4, value);
  }
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  compiled = await WebAssembly.compile(await new Response(plain).arrayBuffer());
}

// An error that the library threw; `answer` has its text, and the wrong cell of a file.
class LibraryError extends Error {
  constructor(answer) { super(answer.error); this.answer = answer; }
}

class Explorer {
  constructor() { this.exports = null; }

  start() {
    const refuse = () => 52;  // "not supported": the module has no files
    const system = {};
    for (const { name } of WebAssembly.Module.imports(compiled)) system[name] = refuse;
    const made = new WebAssembly.Instance(compiled, { wasi_snapshot_preview1: system }).exports;
    made._initialize();
    this.exports = made;
  }

  // Returns the text that answers `request`, an object of keys and values. Throws a LibraryError if the
  // library throws. An instance that the browser stopped is discarded.
  ask(request, file = '') {
    if (!this.exports) this.start();
    const text = Object.entries(request).map(([key, value]) => `${key}=${value}`).join('&');
    const head = encoder.encode(text), tail = encoder.encode(file);
    let answer;
    try {
      const at = this.exports.input(head.length + tail.length);
      const room = new Uint8Array(this.exports.memory.buffer, at, head.length + tail.length);
      room.set(head);
      room.set(tail, head.length);
      const size = this.exports.answer(head.length);
      answer = decoder.decode(new Uint8Array(this.exports.memory.buffer, this.exports.output(), size));
    } catch (error) {
      this.exports = null;
      throw new LibraryError({ error: `the explorer failed: ${error.message}` });
    }
    if (this.exports.failed()) throw new LibraryError(JSON.parse(answer));
    return answer;
  }

  // The arrays of the drawing. They are views of the module's memory until the next request.
  arrays(actions) {
    const { memory } = this.exports;
    return {
      drawn: new Int32Array(memory.buffer, this.exports.drawn(), 8 * actions),
      times: new Float64Array(memory.buffer, this.exports.times(), 3 * actions),
      live: new Float64Array(memory.buffer, this.exports.live(), this.exports.live_size()),
    };
  }
}
