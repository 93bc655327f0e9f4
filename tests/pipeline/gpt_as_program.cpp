// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2

// The GPT as a tensor program, with its generated backward program: the loss and all gradients are
// those of the GPT's own kernels, on one rank and divided by Rhino on two.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/reverse_program.hpp>
#include <heddle/systems/hap/run_program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/systems/rhino/rhino.hpp>

#include "gpt.hpp"
#include "gpt_program.hpp"
#include "gpt_weights.hpp"
#include "space.hpp"

namespace test_gpt_as_program {

namespace hd = heddle;
namespace hp = heddle::systems;
using namespace examples;

namespace {

/// The loss and the gradients of a microbatch, by GptStage.
struct ByKernels {
  double loss = 0;
  std::vector<double> gradients = {};
};
ByKernels by_kernels(const GptConfig& config, std::span<const double> weights,
                     std::span<const std::uint8_t> tokens) {
  using Stage = GptStage<double, Space>;
  using Memory = typename Stage::memory_space;
  using Host = Kokkos::View<const double*, Kokkos::HostSpace>;
  using Flat = Kokkos::View<double*, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  Stage stage(config, 0, config.layers);
  REQUIRE(stage.parameter_count() == weights.size());
  Kokkos::deep_copy(Flat(stage.parameters(), weights.size()), Host(weights.data(), weights.size()));
  stage.parameters_written();
  stage.begin_step(tokens, 1);
  stage.zero_gradients();
  const Kokkos::View<double*, Memory> saved("saved", stage.saved_size());
  const Kokkos::View<double*, Memory> delta("delta", stage.delta_size());
  stage.forward({.item = hd::Item{0}, .saved = saved.data()});
  stage.backward_input({.item = hd::Item{0}, .saved = saved.data(), .delta = delta.data()});
  stage.backward_weight({.item = hd::Item{0}, .saved = saved.data(), .delta = delta.data()});
  stage.fence();
  ByKernels result{stage.loss(hd::Item{0}), std::vector<double>(weights.size())};
  Kokkos::deep_copy(
      Kokkos::View<double*, Kokkos::HostSpace>(result.gradients.data(), weights.size()),
      Flat(stage.gradients(), weights.size()));
  return result;
}

}  // namespace

TEST_CASE("the GPT as a program has the loss and the gradients of its kernels", "[program][gpt]") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  for (const int kv_heads : {4, 2}) {
    CAPTURE(kv_heads);
    const GptConfig config{.layers = 2,
                           .width = 8,
                           .heads = 4,
                           .context = 4,
                           .sequences = 2,
                           .vocabulary = 6,
                           .kv_heads = kv_heads};
    GptWeights<double> weights = first_weights<double>(config, 3);
    // Norms and biases too are any numbers.
    const hd::Random random(5, "change");
    for (std::size_t i = 0; i < weights.values.size(); ++i)
      weights.values[i] += 0.3 * random.normal(i);
    std::vector<std::uint8_t> tokens(10);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = static_cast<std::uint8_t>(random.below(i, 6));
    const ByKernels expected = by_kernels(config, weights.values, tokens);

    const hp::TensorProgram program = reverse(gpt_program(config), "loss");
    const hp::RhinoPlan plan = hp::rhino(
        program, hd::Machine::uniform(comm.size(), {}, {1e-6, 1e9}), {.flops = 1e5, .start = 0});
    const hp::ShardedProgram sharded = sharded_program(program, plan);
    const auto divided = [](const hp::ShardInstruction& instruction) {
      return instruction.kind > hp::ShardInstructionKind::slice;
    };
    CHECK((comm.size() == 1 || std::ranges::count_if(sharded.instructions, divided) > 1));
    hd::systems::ProgramRun<double, Space> run(comm, program, sharded);
    const std::span<const double> flat(weights.values);
    for (const auto& [name, values] : gpt_parameters(config, flat)) run.set(name, values);
    for (const auto& [name, values] : gpt_inputs(config, tokens)) run.set(name, values);
    run.set("loss_gradient", std::vector<double>{1});
    run.run();

    CHECK(std::abs(run.whole("loss").at(0) - expected.loss) < 1e-12 * expected.loss);
    const std::span<const double> gradients(expected.gradients);
    for (const auto& [name, wanted] : gpt_parameters(config, gradients)) {
      CAPTURE(name);
      const std::vector<double> found = run.whole(name + "_gradient");
      REQUIRE(found.size() == wanted.size());
      double worst = 0, most = 0;
      for (std::size_t i = 0; i < found.size(); ++i) {
        worst = std::max(worst, std::abs(found[i] - wanted[i]));
        most = std::max(most, std::abs(wanted[i]));
      }
      CHECK(worst < 1e-12);
      // Keys' biases move all scores of a query alike, so they have no gradient.
      CHECK((most > 1e-6 || name.ends_with("k_bias")));
    }
  }
}

}  // namespace test_gpt_as_program
