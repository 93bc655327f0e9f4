// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The GPT of the examples trained over ranks with all its buffers in device memory, for
// scripts/gate.

#include <cstdint>
#include <span>

#include <heddle/heddle.hpp>

#include "gpt_decoder_definitions.hpp"
#include "gpt_definitions.hpp"
#include "gpt_generate.hpp"
#include "gpt_training.hpp"
#include "support.hpp"

using GateStage = examples::GptStage<float, gate::Exec>;
template class examples::GptStage<float, gate::Exec>;
template class examples::GptDecoder<float, gate::Exec>;
template class examples::GptGenerator<float, gate::Exec>;
// What gpt.hpp leaves to gpt_travel_float.cpp.
template class heddle::TensorLine<float, gate::Exec>;
template class heddle::ParameterShards<float, gate::Exec>;
static_assert(heddle::PipelineStage<GateStage>);

/// An update whose memory has a name, which the compiler for devices must see as one.
struct GateMemory {
  template <class Visit>
  void for_each_memory(Visit&& visit) {
    visit("memory", gate::vector<float>());
  }
};
static_assert(heddle::UpdateMemory<GateMemory>);

double gate_gpt(heddle::DeviceMesh& mesh, std::span<const std::uint8_t> tokens) {
  heddle::Stages<GateStage> model(
      4, [](int first, int last) { return GateStage({.layers = 4}, first, last); });
  const auto schedule = heddle::schedule::one_f_one_b({.ranks = 2, .microbatches = 4});
  heddle::Runner run(model, schedule, mesh);
  return run.step(tokens, 1.0).loss;
}

// The sum of gradients in a LayerStage whose layers are not split.
void gate_layer_stage(const gate::Exec& exec) {
  const auto sum = gate::vector<float>(), part = gate::vector<float>();
  heddle::kernel::map(exec, heddle::kernel::impl::Plus{}, sum, sum, part);
}
