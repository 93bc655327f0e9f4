// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Stages whose saved activations are parked on other ranks or in a slower memory: losses and
// weights are those of the run without parking, bit by bit, and the allocated bytes are the
// predicted ones.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/execute/thread_mover.hpp>
#include <heddle/heddle.hpp>
#include <heddle/schedule/pass/park.hpp>

#include "support/mlp_stage.hpp"
#include "support/world.hpp"

namespace test_parking {

namespace hd = heddle;
using hd::test::MlpStage;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

constexpr int layers_per_stage = 2;

/// What a run leaves.
struct Outcome {
  std::vector<double> losses, weights;
  hd::Bytes allocated = 0;  ///< that StagesOptions::allocate was asked for
  hd::Bytes predicted = 0;  ///< of the schedule's buffers of this rank in tier 0
  hd::Bytes parked = 0;     ///< of its buffers for parked values
  bool operator==(const Outcome& other) const {
    return losses == other.losses && weights == other.weights;
  }
};

/// Three steps of `schedule`.
Outcome run(const hd::Schedule& schedule, int microbatches, hd::ExecuteOptions execute = {}) {
  Outcome outcome;
  hd::StagesOptions options;
  options.allocate = [&outcome](hd::Bytes bytes) {
    outcome.allocated += bytes;
    return std::shared_ptr<std::byte>(new std::byte[bytes], std::default_delete<std::byte[]>());
  };
  const int layers = layers_per_stage * world_size();
  hd::Stages<MlpStage> model(
      layers, [=](int first, int last) { return MlpStage(first, last, layers, 0.1); }, options);
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  hd::Runner runner(model, schedule, mesh, {.execute = execute});
  for (int step = 0; step < 3; ++step)
    outcome.losses.push_back(runner.step(step, 0, 1.0 / microbatches).loss);
  model.for_each([&](hd::Stage, MlpStage& stage) {
    outcome.weights.insert(outcome.weights.end(), stage.parameters(),
                           stage.parameters() + stage.parameter_count());
  });
  for (const hd::Buffer& buffer : runner.schedule().buffers()) {
    const auto& label = runner.schedule()[buffer.label];
    if (+buffer.rank != static_cast<std::size_t>(world_rank())) continue;
    if (label == hd::role::parked) outcome.parked += buffer.bytes;
    if (+buffer.tier == 0 && label != hd::role::weights && label != hd::role::gradients)
      outcome.predicted += buffer.bytes;
  }
  return outcome;
}

/// The bytes that a stage of the last rank or of another one saves for a microbatch.
constexpr std::int64_t saved_bytes = (layers_per_stage + 1) * MlpStage::activation * sizeof(double);

}  // namespace

TEST_CASE("activations in a slower memory change no bit, and save the predicted bytes") {
  const int ranks = world_size();
  for (const int microbatches : {1, ranks, 2 * ranks + 3}) {
    const hd::Schedule plain =
        hd::schedule::one_f_one_b({.ranks = ranks, .microbatches = microbatches});
    const Outcome reference = run(plain, microbatches);
    CHECK(reference.allocated == reference.predicted);
    for (int limit = 1; limit <= std::min(ranks, 3); ++limit) {
      std::vector<hd::Parking> parking;
      for (int r = 0; r < ranks; ++r)
        if (std::min(microbatches, ranks - r) > limit)
          parking.push_back({hd::Rank{r}, hd::Rank{r}, hd::Tier{1}, limit});
      const hd::Schedule schedule = hd::schedule::park(plain, parking);
      for (const bool beside : {false, true}) {
        INFO(microbatches << " microbatches, at most " << limit << " kept, "
                          << (beside ? "moved by a thread" : "moved between the passes"));
        hd::ThreadMover mover;
        const Outcome found =
            beside ? run(schedule, microbatches, {.mover = mover}) : run(schedule, microbatches);
        CHECK(found == reference);
        CHECK(found.allocated == found.predicted);
        const int live = std::min(microbatches, ranks - world_rank());
        const std::int64_t away = std::max(0, live - limit) * saved_bytes;
        CHECK(static_cast<std::int64_t>(reference.allocated) -
                  static_cast<std::int64_t>(found.allocated) ==
              away);
        CHECK((found.parked > 0) == (away > 0));
      }
    }
  }
}

TEST_CASE("activations on other ranks change no bit: BPipe") {
  const int ranks = world_size();
  for (const int microbatches : {1, 2 * ranks + 3}) {
    const hd::Schedule plain =
        hd::schedule::one_f_one_b({.ranks = ranks, .microbatches = microbatches});
    const Outcome reference = run(plain, microbatches);
    const Outcome found = run(hd::schedule::park(plain, hd::Parking::bpipe(ranks)), microbatches);
    CHECK(found == reference);
    CHECK(found.allocated == found.predicted);
  }
}

}  // namespace test_parking
