// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#pragma once

/// @file
/// A network of few layers with parallel streams, after Goyal and others, "Non-deep networks"
/// (ParNet), 2021. Streams of unequal length compute at three resolutions, and fusions join them.
/// Plain C++, one image at a time.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/schedule/order/stage_graph.hpp>

namespace examples {

using Reals = std::vector<float>;

/// The shape of a network.
struct StreamShape {
  int image = 64;                          ///< side of the image in pixels, a multiple of 32
  int stem = 6;                            ///< channels behind the first layer
  std::vector<int> planes = {16, 32, 64};  ///< channels of the streams; each is half of the next
  std::vector<int> blocks = {5, 6, 6};     ///< layers of a stream; the last one joins the next
  int last = 256;                          ///< channels behind the last layer
  int classes = 10;                        ///< number of outputs
};

/// A layer: a block of convolutions on one or two maps, or the head.
struct StreamLayer {
  std::vector<int> inputs;  ///< the layers that it reads; empty: the image
  int channels = 0;         ///< channels that it reads, of all inputs
  int side = 0;             ///< side of the maps that it reads
  int out = 0;              ///< channels of its output
  int stride = 1;           ///< 2: halves the side
  int groups = 1;           ///< 2: each half of the channels is made from one half of the inputs
  bool head = false;        ///< averages its map and multiplies by a matrix

  [[nodiscard]] int out_side() const { return head ? 1 : side / stride; }
  [[nodiscard]] std::size_t out_size() const {
    return static_cast<std::size_t>(out) * static_cast<std::size_t>(out_side() * out_side());
  }
  /// Returns the multiply-adds of its 3x3 convolution, or of the matrix of the head.
  [[nodiscard]] double work() const {
    return (head ? 1.0 : 9.0) * out_side() * out_side() * out * channels / groups;
  }
  /// Returns true if the block adds its input to its output.
  [[nodiscard]] bool has_identity() const { return stride == 1 && groups == 1 && !head; }
};

/// Returns the layers of a network; a layer comes behind its inputs.
[[nodiscard]] inline std::vector<StreamLayer> stream_layers(const StreamShape& shape) {
  std::vector<StreamLayer> layers;
  const auto add = [&](std::vector<int> inputs, int out, int stride, int groups = 1) {
    StreamLayer layer{.inputs = inputs, .out = out, .stride = stride, .groups = groups};
    layer.channels = inputs.empty() ? 3 : 0;
    layer.side = shape.image;
    for (const int input : inputs) {
      layer.channels += layers[static_cast<std::size_t>(input)].out;
      layer.side = layers[static_cast<std::size_t>(input)].out_side();
    }
    layers.push_back(layer);
    return static_cast<int>(layers.size()) - 1;
  };
  int begin = add({}, shape.stem, 2);
  std::vector<int> begins;
  for (const int planes : shape.planes) begins.push_back(begin = add({begin}, planes, 2));
  int joined = -1;
  for (std::size_t s = 0; s < begins.size(); ++s) {
    int at = begins[s];
    for (int block = 1; block < shape.blocks[s]; ++block) at = add({at}, shape.planes[s], 1);
    const bool is_last = s + 1 == begins.size();
    const int out = shape.planes[is_last ? s : s + 1];
    joined = s == 0 ? add({at}, out, 2) : add({at, joined}, out, is_last ? 1 : 2, 2);
  }
  add({add({joined}, shape.last, 2)}, shape.classes, 1);
  layers.back().head = true;
  return layers;
}

/// Returns the graph of the layers: layer l is stage l.
[[nodiscard]] inline heddle::StageGraph graph_of(const std::vector<StreamLayer>& layers) {
  heddle::StageGraph graph{static_cast<int>(layers.size())};
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (const int input : layers[l].inputs)
      graph.edges.push_back({heddle::Stage{input}, heddle::Stage{l}});
  return graph;
}

/// Returns the bytes of the output of every layer.
[[nodiscard]] inline std::vector<heddle::Bytes> output_bytes(
    const std::vector<StreamLayer>& layers) {
  std::vector<heddle::Bytes> bytes;
  for (const StreamLayer& layer : layers) bytes.push_back(sizeof(float) * layer.out_size());
  return bytes;
}

/// Adds a convolution of size 1 or 3 to `output`, with zeros around the map. `weights` has an
/// element for each output, input of its group, row and column.
inline void convolve(const StreamLayer& layer, int size, const Reals& weights,
                     std::span<const float> input, std::span<float> output) {
  const int inputs = layer.channels / layer.groups, outputs = layer.out / layer.groups;
  const int side = layer.side, out_side = layer.out_side(), reach = size / 2;
  const auto at = [](int a, int n, int b, int m, int c) {
    return static_cast<std::size_t>((a * n + b) * m + c);
  };
  for (int o = 0; o < layer.out; ++o)
    for (int y = 0; y < out_side; ++y)
      for (int x = 0; x < out_side; ++x) {
        double sum = 0;
        for (int i = 0; i < inputs; ++i)
          for (int v = -reach; v <= reach; ++v)
            for (int u = -reach; u <= reach; ++u) {
              const int row = y * layer.stride + v, column = x * layer.stride + u;
              if (row < 0 || row >= side || column < 0 || column >= side) continue;
              sum += double{weights[at(o * inputs + i, size, v + reach, size, u + reach)]} *
                     input[at(o / outputs * inputs + i, side, row, side, column)];
            }
        output[at(o, out_side, y, out_side, x)] += static_cast<float>(sum);
      }
}

/// The numbers of a layer. Its block is the sum of a 3x3 convolution, a 1x1 convolution and the
/// identity, each with a factor for every channel, and of a shift. merge() makes it one 3x3
/// convolution.
struct StreamBlock {
  Reals wide;      ///< 3x3, or the matrix of the head
  Reals narrow;    ///< 1x1; empty if merged
  Reals identity;  ///< by channel; empty if merged, or if the layer has none
  Reals shift;     ///< by channel
  Reals gate;      ///< by channel: the weight of its mean, for squeeze and excitation

  StreamBlock(const StreamLayer& layer, std::uint64_t seed, std::size_t number) {
    const auto draw = [&](const char* name, int count, float scale, float mean = 0) {
      const heddle::Random random(seed, heddle::text(name, number));
      Reals values;
      for (int i = 0; i < count; ++i)
        values.push_back(mean +
                         scale * static_cast<float>(random.normal(static_cast<std::uint64_t>(i))));
      return values;
    };
    const int pairs = layer.out * layer.channels / layer.groups;
    const float inputs = static_cast<float>(layer.channels) / static_cast<float>(layer.groups);
    const int taps = layer.head ? 1 : 9;
    wide = draw("wide", taps * pairs, 1 / std::sqrt(static_cast<float>(taps) * inputs));
    shift = draw("shift", layer.out, 0.1f);
    if (layer.head) return;
    narrow = draw("narrow", pairs, 0.5f / std::sqrt(inputs));
    if (!layer.has_identity()) return;
    identity = draw("identity", layer.out, 0.1f, 0.5f);
    gate = draw("gate", layer.out, 0.5f);
  }

  /// Adds the 1x1 convolution and the identity to the centres of the 3x3 kernels.
  void merge(const StreamLayer& layer) {
    if (layer.head) return;
    const auto inputs = static_cast<std::size_t>(layer.channels / layer.groups);
    for (std::size_t p = 0; p < narrow.size(); ++p) wide[9 * p + 4] += narrow[p];
    for (std::size_t c = 0; c < identity.size(); ++c) wide[9 * (c * inputs + c) + 4] += identity[c];
    narrow.clear();
    identity.clear();
  }

  /// Computes the sum of the branches, without the gate and the activation.
  void sum_of_branches(const StreamLayer& layer, std::span<const float> input,
                       std::span<float> output) const {
    const std::size_t each = output.size() / shift.size();
    for (std::size_t c = 0; c < shift.size(); ++c)
      std::fill_n(output.begin() + static_cast<std::ptrdiff_t>(c * each), each, shift[c]);
    convolve(layer, 3, wide, input, output);
    if (!narrow.empty()) convolve(layer, 1, narrow, input, output);
    for (std::size_t c = 0; c < identity.size(); ++c)
      for (std::size_t i = c * each; i < (c + 1) * each; ++i) output[i] += identity[c] * input[i];
  }
};

/// A network with weights. As a Model of a heddle::Runner it computes layer l at stage l.
class StreamNetwork {
 public:
  /// With `merged`, every block is one 3x3 convolution.
  StreamNetwork(std::vector<StreamLayer> layers, std::uint64_t seed, bool merged = true)
      : m_layers(std::move(layers)) {
    for (std::size_t l = 0; l < m_layers.size(); ++l) {
      m_blocks.emplace_back(m_layers[l], seed, l);
      if (merged) m_blocks.back().merge(m_layers[l]);
    }
  }

  /// The scores of the classes, on the rank that has the last layer.
  Reals scores;

  void begin_step(const Reals& image) {
    m_image = image;
    scores.clear();
  }

  /// Computes the layer of a task.
  void operator()(const heddle::Task& task) {
    const std::size_t l = +task.stage();
    const auto map = [&](std::size_t use) {
      return std::span<float>(reinterpret_cast<float*>(task.uses()[use].data),
                              static_cast<std::size_t>(task.uses()[use].bytes) / sizeof(float));
    };
    std::vector<std::span<const float>> inputs;
    for (std::size_t i = 0; i < m_layers[l].inputs.size(); ++i) inputs.emplace_back(map(i));
    if (l + 1 < m_layers.size())
      compute(l, inputs, map(inputs.size()));
    else
      compute(l, inputs, scores_of(m_layers[l]));
  }

  /// Returns the scores of an image, layer after layer in one loop.
  [[nodiscard]] Reals forward(const Reals& image) {
    begin_step(image);
    std::vector<Reals> outputs;
    for (std::size_t l = 0; l < m_layers.size(); ++l) {
      std::vector<std::span<const float>> inputs;
      for (const int input : m_layers[l].inputs)
        inputs.emplace_back(outputs[static_cast<std::size_t>(input)]);
      outputs.emplace_back(m_layers[l].out_size());
      compute(l, inputs, outputs.back());
    }
    return outputs.back();
  }

 private:
  [[nodiscard]] std::span<float> scores_of(const StreamLayer& layer) {
    scores.assign(layer.out_size(), 0);
    return scores;
  }

  void compute(std::size_t l, std::span<const std::span<const float>> inputs,
               std::span<float> output) {
    const StreamLayer& layer = m_layers[l];
    const StreamBlock& block = m_blocks[l];
    if (inputs.size() == 2) {
      interleave(layer, inputs[0], inputs[1]);
      return activate(layer, block, m_joined, output);
    }
    const std::span<const float> input =
        inputs.empty() ? std::span<const float>(m_image) : inputs[0];
    if (layer.head)
      multiply(layer, block, input, output);
    else
      activate(layer, block, input, output);
  }

  /// Puts the channels of two maps side by side, alternately, so that each group has some of both.
  void interleave(const StreamLayer& layer, std::span<const float> a, std::span<const float> b) {
    const auto each = static_cast<std::size_t>(layer.side * layer.side);
    m_joined.resize(a.size() + b.size());
    for (std::size_t i = 0; i < m_joined.size(); ++i) {
      const std::size_t channel = i / each;
      m_joined[i] = (channel % 2 == 0 ? a : b)[channel / 2 * each + i % each];
    }
  }

  /// Computes a block: its branches, the gate of squeeze and excitation, and x / (1 + exp(-x)).
  static void activate(const StreamLayer& layer, const StreamBlock& block,
                       std::span<const float> input, std::span<float> output) {
    block.sum_of_branches(layer, input, output);
    const std::size_t each = output.size() / block.shift.size();
    for (std::size_t c = 0; c < block.gate.size(); ++c) {
      float mean = 0;
      for (std::size_t i = c * each; i < (c + 1) * each; ++i) mean += input[i];
      const float open = 1 / (1 + std::exp(-block.gate[c] * mean / static_cast<float>(each)));
      for (std::size_t i = c * each; i < (c + 1) * each; ++i) output[i] += open * input[i];
    }
    for (float& value : output) value /= 1 + std::exp(-value);
  }

  static void multiply(const StreamLayer& layer, const StreamBlock& block,
                       std::span<const float> input, std::span<float> output) {
    const auto channels = static_cast<std::size_t>(layer.channels);
    const std::size_t each = input.size() / channels;
    for (std::size_t o = 0; o < output.size(); ++o) {
      output[o] = block.shift[o];
      for (std::size_t i = 0; i < input.size(); ++i)
        output[o] += block.wide[o * channels + i / each] * input[i] / static_cast<float>(each);
    }
  }

  std::vector<StreamLayer> m_layers;
  std::vector<StreamBlock> m_blocks;
  Reals m_image, m_joined;
};

/// Returns an image of random pixels.
[[nodiscard]] inline Reals random_image(const StreamShape& shape, std::uint64_t seed) {
  const heddle::Random random(seed, "image");
  Reals image;
  for (int i = 0; i < 3 * shape.image * shape.image; ++i)
    image.push_back(static_cast<float>(random.uniform(static_cast<std::uint64_t>(i))));
  return image;
}

}  // namespace examples
