// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Profiles of published models, computed from the shapes of their layers. The times are those of a
/// device that computes at a constant rate: no measurement of anyone is in them.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/level.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/profile.hpp>

namespace heddle::test {

/// The rate of a V100: half of the 15.7 TFLOP/s that NVIDIA's data sheet (V100 SXM2, 2017) gives
/// for single precision. The half is an assumption of these profiles.
inline constexpr double v100_rate = 0.5 * 15.7e12;

/// Returns a layer of `flops` per sample in the forward; a backward takes twice as long. Elements
/// are of four bytes. `output` and `saved` are elements a sample, `weights` elements.
[[nodiscard]] inline heddle::plan::ProfiledLayer dense_layer(std::string name, double flops,
                                                             double output, double saved,
                                                             double weights) {
  const Seconds forward = flops / v100_rate;
  return {
      .name = std::move(name),
      .output = static_cast<Bytes>(4 * output),
      .saved = static_cast<Bytes>(4 * saved),
      .parameters = static_cast<Bytes>(4 * weights),
      .measured = {
          {.device = "V100",
           .times = {.forward = forward, .backward_input = forward, .backward_weight = forward}}}};
}

/// VGG19 for images of 224 x 224: K. Simonyan, A. Zisserman, "Very deep convolutional networks for
/// large-scale image recognition", ICLR 2015, table 1, column E. A maximum is part of the
/// convolution before it. 143.7 million weights and 39.3 GFLOP a forward. Convolutions of 3 x 3
/// take 2.25 times fewer multiplications by the algorithm F(2 x 2, 3 x 3) of A. Lavin, S. Gray,
/// "Fast algorithms for convolutional neural networks", CVPR 2016, which cuDNN uses.
[[nodiscard]] inline heddle::plan::Profile vgg19() {
  heddle::plan::Profile profile{.model = "VGG19", .input = Bytes{4} * 3 * 224 * 224, .layers = {}};
  double channels = 3, side = 224;
  for (const auto& [outputs, count] :
       {std::pair{64.0, 2}, {128.0, 2}, {256.0, 4}, {512.0, 4}, {512.0, 4}})
    for (int c = 0; c < count; ++c) {
      const double places = side * side;
      const double weights = 9 * channels * outputs;
      if (c + 1 == count) side /= 2;
      profile.layers.push_back(dense_layer(text("conv", side, '_', c), 2 * weights * places / 2.25,
                                           outputs * side * side, outputs * places,
                                           weights + outputs));
      channels = outputs;
    }
  double inputs = channels * side * side;
  for (const double outputs : {4096.0, 4096.0, 1000.0}) {
    profile.layers.push_back(dense_layer(text("fc", outputs), 2 * inputs * outputs, outputs,
                                         outputs, inputs * outputs + outputs));
    inputs = outputs;
  }
  return profile;
}

/// A Transformer encoder with the sizes of BERT-large: J. Devlin et al., "BERT", NAACL 2019, hidden
/// size 1024, 4096 in between, vocabulary of 30522; sequences of 384, as its SQuAD example has. A
/// layer has 12 h^2 weights, used once a token, and 4 s h FLOP a token for the attention. The
/// embedding belongs to the first layer. DAPPLE's BERT-48 has 48 such layers and 640 million
/// weights (Fan et al., PPoPP'21, table 2); these have 636.
[[nodiscard]] inline heddle::plan::Profile bert(int layers) {
  constexpr double h = 1024, s = 384, vocabulary = 30522 + 512 + 2;
  heddle::plan::Profile profile{
      .model = text("BERT-", layers), .input = Bytes{4 * 384}, .layers = {}};
  for (int l = 0; l < layers; ++l)
    profile.layers.push_back(dense_layer(text("layer ", l), s * (24 * h * h + 4 * s * h), s * h,
                                         s * 16 * h,
                                         12 * h * h + 13 * h + (l == 0 ? vocabulary * h : 0)));
  return profile;
}

/// XLNet with 36 layers: Z. Yang et al., "XLNet", NeurIPS 2019: the sizes of BERT-large, a further
/// h^2 for relative positions, vocabulary of 32000, sequences of 512. 504 million weights; DAPPLE's
/// table 2 has 500.
[[nodiscard]] inline heddle::plan::Profile xlnet36() {
  constexpr double h = 1024, s = 512;
  heddle::plan::Profile profile{.model = "XLNet-36", .input = Bytes{4 * 512}, .layers = {}};
  for (int l = 0; l < 36; ++l)
    profile.layers.push_back(dense_layer(text("layer ", l), s * (26 * h * h + 6 * s * h), s * h,
                                         s * 17 * h, 13 * h * h + (l == 0 ? 32000 * h : 0)));
  return profile;
}

/// AmoebaNet-D with 36 cells of 512 filters, in the notation of Y. Huang et al., "GPipe", NeurIPS
/// 2019: three groups of 12 cells on 28 x 28, 14 x 14 and 7 x 7 places. Each group has twice the
/// channels, so four times the weights and as many FLOP. The 933 million weights of DAPPLE's
/// table 2 are divided in these proportions; each weight is used at every place.
[[nodiscard]] inline heddle::plan::Profile amoebanet36() {
  heddle::plan::Profile profile{
      .model = "AmoebaNet-36", .input = Bytes{4} * 3 * 224 * 224, .layers = {}};
  double weights = 933e6 / (12 * (1 + 4 + 16)), side = 28, channels = 4 * 512;
  for (int group = 0; group < 3; ++group, weights *= 4, side /= 2, channels *= 2)
    for (int cell = 0; cell < 12; ++cell) {
      const double places = side * side;
      profile.layers.push_back(dense_layer(text("cell ", 12 * group + cell), 2 * weights * places,
                                           channels * places, 5 * channels * places, weights));
    }
  return profile;
}

/// GNMT with 8 + 8 layers of LSTM: Y. Wu et al., "Google's neural machine translation system",
/// 2016: 1024 units, the first layer of the encoder in both directions, every layer of the decoder
/// with the attention's context beside its input; a vocabulary of 32000 words and 50 words a
/// sentence. The outputs of the encoder travel with those of the decoder, which needs them.
/// 278 million weights; DAPPLE's table 2 has 291.
[[nodiscard]] inline heddle::plan::Profile gnmt16() {
  constexpr double h = 1024, words = 50, vocabulary = 32000;
  heddle::plan::Profile profile{.model = "GNMT-16", .input = Bytes{4 * 100}, .layers = {}};
  const auto lstm = [](double inputs) { return 4 * h * (inputs + h + 2); };
  for (int l = 0; l < 17; ++l) {
    double weights = lstm(h);
    if (l == 0) weights = 2 * lstm(h);
    if (l == 1 || l >= 8) weights = lstm(2 * h);
    if (l == 16) weights = (h + 1) * vocabulary;
    const bool both = l == 0 || (l >= 8 && l < 16);
    const double output = l == 16 ? 1 : words * h * (both ? 2 : 1);
    profile.layers.push_back(dense_layer(text(l < 8    ? "encoder "
                                              : l < 16 ? "decoder "
                                                       : "classifier ",
                                              l),
                                         2 * weights * words, output, 5 * words * h,
                                         weights + (l == 0 || l == 8 ? vocabulary * h : 0)));
  }
  return profile;
}

/// Returns `nodes` nodes of `ranks` V100, without latencies. Bandwidths are in bytes per second.
/// All ranks of a node share its port.
[[nodiscard]] inline Machine v100_nodes(int nodes, int ranks, double inside, double between) {
  return Machine::hierarchical(
      std::vector<Device>(static_cast<std::size_t>(nodes * ranks), {.name = "V100"}),
      {{.name = "node",
        .ranks = ranks,
        .link = {.bandwidth = inside},
        .ports = {.out = between, .in = between}},
       {.name = "cluster", .ranks = nodes * ranks, .link = {.bandwidth = between}}});
}

}  // namespace heddle::test
