// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3 4
// space: its own
// timeout: 240

// A rank that fails in the middle of a step: every rank ends, the others say who failed and where.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>

#include "support/cases.hpp"

namespace test_failure {

namespace hd = heddle;

namespace {

struct World {
  int rank = 0;
  int size = 0;
  World() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }
};

/// A stage of one layer that computes nothing, until it breaks at call number `breaks_at`.
struct BrittleStage {
  using scalar_type = double;
  using memory_space = Kokkos::HostSpace;

  int layer = 0;
  int layers = 1;
  int* calls_left = nullptr;  ///< null: never breaks
  std::vector<double> values = std::vector<double>(5000);

  std::size_t input_size() const { return layer == 0 ? 0 : 3; }
  std::size_t output_size() const { return layer + 1 == layers ? 0 : 3; }
  std::size_t saved_size() const { return 1; }
  std::size_t delta_size() const { return 1; }
  std::size_t parameter_count() const { return values.size() / 2; }
  double* parameters() { return values.data(); }
  double* gradients() { return values.data() + values.size() / 2; }
  void call() {
    if (calls_left != nullptr && (*calls_left)-- == 0) throw std::runtime_error("the stage broke");
  }
  void forward(const hd::ForwardCall<double>&) { call(); }
  void backward_input(const hd::BackwardCall<double>&) {}
  void backward_weight(const hd::BackwardCall<double>&) { call(); }
  void zero_gradients() {}
  void update() { call(); }
  void fence() {}
};
static_assert(hd::PipelineStage<BrittleStage>);

}  // namespace

TEST_CASE("a stage of a replica that throws, maybe while others sum gradients, ends all ranks") {
  const World world;
  if (world.size % 2 != 0) return;
  const auto sum = GENERATE(hd::GradientSum::ring, hd::GradientSum::library);
  const hd::Random random(11, "failure in a sum");
  const std::uint64_t runs = hd::test::cases(20, 30);
  for (std::uint64_t run = 0; run < runs; ++run) {
    const int pipe = world.size / 2;
    hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", pipe}, {"data", 2}});
    const auto thrower = static_cast<int>(random.below(2 * run, world.size));
    int left = static_cast<int>(random.below(2 * run + 1, 9));  // of 9 calls in a step
    hd::Stages<BrittleStage> model(
        pipe,
        [&](int first, int) {
          return BrittleStage{first, pipe, world.rank == thrower ? &left : nullptr};
        },
        {.gradient_sum = sum});
    std::string told;
    try {
      hd::Runner runner(model, hd::schedule::one_f_one_b({.stages = pipe, .microbatches = 4}), mesh,
                        {.execute = {.watchdog = 30}});
      for (int step = 0; step < 3; ++step) runner.step();
    } catch (const hd::communication_error& error) {
      told = error.what();
    } catch (const std::runtime_error& error) {
      told = error.what();
    }
    INFO("run " << run << ": rank " << thrower << " throws; told: " << told);
    REQUIRE(told.find("the stage broke") != std::string::npos);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("a stage that throws on one rank at a random action ends all ranks, many times") {
  const World world;
  const hd::Random random(7, "failure");
  const std::uint64_t runs = hd::test::cases(40, 100);
  for (std::uint64_t run = 0; run < runs; ++run) {
    // Messages below and above what MPI sends eagerly.
    const hd::Bytes bytes = run % 2 == 0 ? 64 : 256 * 1024;
    const auto schedule = hd::schedule::one_f_one_b(
        {.stages = world.size,
         .microbatches = 6,
         .sizes = {.activation = bytes, .saved = bytes, .parameters = 8}});
    const auto thrower = static_cast<int>(random.below(2 * run, world.size));
    const int actions = 3 * (2 * 6 + 1);  // of a rank, in the three steps below
    int left = static_cast<int>(random.below(2 * run + 1, actions));
    bool threw = false;
    std::string told;
    hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world.size}});
    try {
      hd::Runner runner(
          [&](const hd::Task&) {
            if (world.rank != thrower || left-- > 0) return;
            threw = true;
            throw std::runtime_error("the stage broke");
          },
          schedule, mesh, {.execute = {.watchdog = 30}});
      for (int step = 0; step < 3; ++step) runner.step();
      runner.drain();
    } catch (const hd::communication_error& error) {
      told = error.what();
    } catch (const std::runtime_error& error) {
      told = error.what();
    }
    INFO("run " << run << ": rank " << thrower << " throws; told: " << told);
    if (world.rank == thrower) {
      REQUIRE(threw);
      REQUIRE(told == "the stage broke");
    } else if (!told.empty()) {
      // A rank that was through before the failure reached it has nothing to say.
      REQUIRE(told.find("rank " + std::to_string(thrower) + " failed at") != std::string::npos);
      REQUIRE(told.find("the stage broke") != std::string::npos);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("a rank that does not answer is named by the watchdog") {
  const World world;
  const auto schedule = hd::schedule::one_f_one_b(
      {.stages = world.size, .microbatches = 2, .sizes = {.activation = 64}});
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world.size}});
  std::string told;
  {
    const auto idle = [](const hd::Task&) {};
    // Its neighbour loses patience first; the others hear of it from there.
    const double patience = world.rank == world.size - 2 ? 0.3 : 30;
    hd::Runner runner(idle, schedule, mesh, {.execute = {.watchdog = patience}});
    // The last rank stays away from the step.
    try {
      if (world.rank != world.size - 1) runner.step();
    } catch (const hd::communication_error& error) {
      told = error.what();
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (world.rank == world.size - 2) {
    INFO(told);
    CHECK(told.find("stuck: ") != std::string::npos);
    CHECK(told.find("rank " + std::to_string(world.size - 1) + " did not complete") !=
          std::string::npos);
  } else if (world.rank < world.size - 2) {
    INFO(told);
    CHECK(told.find("rank " + std::to_string(world.size - 2) + " failed at") != std::string::npos);
    CHECK(told.find("stuck: ") != std::string::npos);
  }
}

namespace {

/// A stage that makes a call of its own in its update.
struct SummingStage : BrittleStage {
  std::function<void()> sum;
  void update() { sum(); }
};

}  // namespace

TEST_CASE("a rank that does not make a collective call of an update is named, with the call") {
  const World world;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world.size}});
  const Kokkos::View<double*, Kokkos::HostSpace> values("values", 3);
  const auto sum = [&] {
    if (world.rank == 0) return;
    hd::all_reduce(Kokkos::DefaultHostExecutionSpace{}, values, hd::Sum{}, mesh.all(),
                   {.watch_library = true, .wait = {.watchdog = 1, .grace = 2}});
  };
  const int layers = 2 * world.size;
  hd::Stages<SummingStage> model(layers, [&](int begin, int) {
    return SummingStage{{begin, layers}, sum};
  });
  std::string told;
  {
    hd::Runner runner(model,
                      hd::schedule::zb_v({.ranks = world.size, .microbatches = 2 * world.size}),
                      mesh, {.execute = {.watchdog = 10}});
    try {
      runner.step();
    } catch (const hd::communication_error& error) {
      told = error.what();
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  INFO(told);
  // Rank 0 waits for the others at the end of the step, where it hears of their error.
  const std::string call = "heddle::collective::all_reduce, rank ";
  CHECK(told.find(world.rank == 0 ? call : call + std::to_string(world.rank)) != std::string::npos);
  CHECK(told.find("stuck: rank 0 does not take part in the call") != std::string::npos);
}

TEST_CASE(
    "a replica that does not come to the sum of gradients does not keep the others for ever") {
  const World world;
  const auto sum = GENERATE(hd::GradientSum::ring, hd::GradientSum::library);
  // By the library, each half of four ranks has a sum of its own.
  const int sums = sum == hd::GradientSum::library && world.size == 4 ? 2 : 1;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"part", sums}, {"pipe", 1}, {"data", world.size / sums}});
  hd::Stages<BrittleStage> model(1,
                                 [&](int, int) {
                                   return BrittleStage{0, 1, nullptr};
                                 },
                                 {.gradient_sum = sum, .shard_axes = {"part"}});
  // The ranks of the other half wait for the end of the step.
  const bool misses_one = world.rank >= world.size - world.size / sums;
  std::string told;
  {
    hd::Runner runner(model, hd::schedule::one_f_one_b({.stages = 1, .microbatches = 2}), mesh,
                      {.execute = {.watchdog = misses_one ? 0.3 : 30, .grace = 2}});
    MPI_Barrier(MPI_COMM_WORLD);
    try {
      if (world.rank != world.size - 1) runner.step();
    } catch (const hd::communication_error& error) {
      told = error.what();
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (world.rank == world.size - 1) return;
  INFO(told);
  CHECK(told.find("stuck: ") != std::string::npos);
  if (sum == hd::GradientSum::ring) return;
  CHECK(told.find("the sum of gradients by MPI: stuck: rank " + std::to_string(world.size - 1) +
                  " does not take part in the call") != std::string::npos);
}

TEST_CASE("a name in shard_axes that is no axis of the mesh is refused on every rank") {
  const World world;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"part", world.size}, {"pipe", 1}});
  for (const char* const wrong : {"parts", "pipe"}) {
    hd::Stages<BrittleStage> model(1,
                                   [&](int, int) {
                                     return BrittleStage{0, 1, nullptr};
                                   },
                                   {.shard_axes = {wrong}});
    std::string told;
    try {
      hd::Runner runner(model, hd::schedule::one_f_one_b({.stages = 1, .microbatches = 2}), mesh);
    } catch (const hd::contract_error& error) {
      told = error.what();
    }
    INFO(told);
    CHECK(told.find("no axis '" + std::string(wrong) + "'") != std::string::npos);
    CHECK(told.find("the mesh has part") != std::string::npos);
    CHECK(told.find("StagesOptions::shard_axes") != std::string::npos);
  }
}

}  // namespace test_failure
