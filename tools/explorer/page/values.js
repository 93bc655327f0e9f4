// The settings: key: [group, label, least, most, step, default], [group, label, 'bytes', default],
// [group, label, [choices], default] or [group, label] of a text.
const values = {
  ranks: ['shape', 'ranks', 1, 64, 1, 4],
  microbatches: ['shape', 'microbatches', 1, 512, 1, 8],
  'stages-per-rank': ['shape', 'stages per rank', 1, 8, 1, 2],
  group: ['shape', 'microbatches of a group (0: as usual)', 0, 16, 1, 0],
  pairs: ['shape', 'pipelines in each direction', 1, 8, 1, 1],
  'most-live': ['shape', 'microbatches that fit a rank (0: all)', 0, 64, 1, 0],
  unit: ['costs', 'unit of time', ['', 'us', 'ms', 's'], ''],
  F: ['costs', 'F: forward', 0, 4, 0.05, 1],
  I: ['costs', 'I: backward for the input', 0, 4, 0.05, 1],
  W: ['costs', 'W: backward for the weights', 0, 4, 0.05, 1],
  B: ['costs', 'B: whole backward (0: I and W)', 0, 8, 0.05, 0],
  FB: ['costs', 'fused pair (0: as long as both)', 0, 8, 0.05, 0],
  factors: ['costs', 'factor of each stage, such as 1,1,1.5,1'],
  latency: ['messages', 'time of a transfer', 0, 4, 0.05, 0],
  activation: ['messages', 'bytes of a message', 'bytes', 0],
  bandwidth: ['messages', 'bytes per unit of time (0: any number)', 'bytes', 0],
  depth: ['messages', 'results that wait to be sent (-1: all)', -1, 16, 1, -1],
  saved: ['memory', 'bytes kept for a backward', 'bytes', 0],
  parameters: ['memory', 'bytes of weights (gradients take as many)', 'bytes', 0],
  'cap-bytes': ['memory', 'limit: bytes that a rank has (0: any number)', 'bytes', 0],
};
// What a setting is: 'text', 'choice', 'bytes' (a number such as 1.5 GB, on a logarithmic slider) or 'number'.
const kindOf = (key) => values[key].length < 3 ? 'text' : Array.isArray(values[key][2]) ? 'choice' : values[key][2] === 'bytes' ? 'bytes' : 'number';
const defaultOf = (key) => values[key].length < 3 ? '' : values[key][values[key].length - 1];
// The value that a text means, or undefined.
function parsed(key, text) {
  const kind = kindOf(key);
  if (kind === 'text') return text.replace(/[^0-9eE.,+-]/g, '');
  if (kind === 'choice') return values[key][2].includes(text) ? text : undefined;
  if (kind === 'bytes') return bytesOf(text);
  return text !== '' && Number.isFinite(Number(text)) ? Number(text) : undefined;
}
const onSlider = (bytes) => bytes < 1000 ? 0 : Math.min(120, Math.round(10 * Math.log10(bytes / 100)));
const offSlider = (place) => place === 0 ? 0 : Number((100 * 10 ** (place / 10)).toPrecision(2));
