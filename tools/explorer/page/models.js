// Times and sizes of models on devices, from operation counts. They show proportions: a run has others.
// A microbatch is one sequence of s tokens, h is the hidden size, t the tensor-parallel ranks of a stage.
// - forward of a layer: 24 s h^2 + 4 s^2 h operations (Narayanan et al. 2021, "Efficient large-scale
//   language model training on GPU clusters"), divided by t; a backward takes twice that;
// - kept for a backward: 34 s h bytes a layer (Korthikanti et al. 2022, "Reducing activation recomputation
//   in large transformer models", without the scores of attention, which a fused kernel computes again), divided by t;
// - parameters: 12 h^2 a layer, 2 bytes each and as many for the gradient; 12 bytes each are for the optimiser.
const peakShare = 0.4;
const devices = {  // operations per second in bf16, bytes of memory, bytes per second to another node: vendor's data sheets
  'A100 80 GB': { peak: 312e12, memory: 80e9, link: 25e9 },
  'H100 80 GB': { peak: 989e12, memory: 80e9, link: 50e9 },
};
const models = {
  'GPT 1.3B': { layers: 24, hidden: 2048, tokens: 2048, tensor: 1 },
  'GPT 6.7B': { layers: 32, hidden: 4096, tokens: 2048, tensor: 1 },
  'GPT 175B': { layers: 96, hidden: 12288, tokens: 2048, tensor: 8 },
};
const presets = Object.keys(models).flatMap((model) => Object.keys(devices).map((device) => `${model} on ${device}`));

// The settings of a preset on so many ranks, in milliseconds and bytes, and a sentence about them.
function presetSettings(name, ranks) {
  const [model, device] = name.split(' on ');
  const { layers, hidden: h, tokens: s, tensor: t } = models[model], { peak, memory, link } = devices[device];
  const share = layers / ranks / t;
  const time = (operations) => Number((1e3 * operations / (peakShare * peak)).toPrecision(4));
  const forward = time(share * (24 * s * h * h + 4 * s * s * h)), count = Math.round(share * 12 * h * h);
  return {
    settings: {
      F: forward, I: forward, W: forward, B: 0, FB: 0, unit: 'ms', latency: 0.01,
      activation: Math.round(2 * s * h / t), bandwidth: Math.round(link / 1e3),
      saved: Math.round(share * 34 * s * h), parameters: 2 * count, 'cap-bytes': Math.max(1, Math.round(memory - 12 * count)),
    },
    note: `From operation counts at ${100 * peakShare}% of the device's peak, not measured: a microbatch is a sequence of ${s} tokens` +
      `${t > 1 ? `, a stage is on ${t} devices` : ''}; the limit is the memory without the optimiser's 12 bytes for each parameter.`,
  };
}
