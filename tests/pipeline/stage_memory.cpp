// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3
// space: its own

// What Stages says and does about memory: where buffers lie, which way messages go, and that the
// caller's options hold for what ranks say to each other before a run.

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/memory/limit.hpp>

#include "support/label_recorder.hpp"
#include "support/world.hpp"

namespace test_stage_memory {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

constexpr std::size_t elements = 1009;

/// Adds its number + 1 to every element on the way forward, and to every gradient on the way back.
struct AddingStage {
  using scalar_type = double;
  using memory_space = Kokkos::HostSpace;

  int number = 0;
  int stages = 1;
  std::vector<double>* seen = nullptr;  ///< the last element of every result of the last stage
  std::vector<double> values = std::vector<double>(2);

  std::size_t input_size() const { return number == 0 ? 0 : elements; }
  std::size_t output_size() const { return number + 1 == stages ? 0 : elements; }
  std::size_t saved_size() const { return 1; }
  std::size_t delta_size() const { return 1; }
  std::size_t parameter_count() const { return 1; }
  double* parameters() { return values.data(); }
  double* gradients() { return values.data() + 1; }
  void forward(const hd::ForwardCall<double>& call) {
    for (std::size_t i = 0; i < elements; ++i) {
      const double x =
          call.input == nullptr ? static_cast<double>(+call.item * elements + i) : call.input[i];
      if (call.output != nullptr) call.output[i] = x + number + 1;
      if (call.output == nullptr && i + 1 == elements) seen->push_back(x + number + 1);
    }
  }
  void backward_input(const hd::BackwardCall<double>& call) {
    for (std::size_t i = 0; i < elements && call.input_grad != nullptr; ++i)
      call.input_grad[i] = (call.output_grad == nullptr ? 0 : call.output_grad[i]) + number + 1;
    if (number == 0) seen->push_back(call.output_grad[elements - 1]);
  }
  void backward_weight(const hd::BackwardCall<double>&) {}
  void zero_gradients() {}
  void update() {}
  void fence() {}
};
static_assert(hd::PipelineStage<AddingStage>);

}  // namespace

TEST_CASE("messages go the way that is chosen, which is told, and bring the same") {
  const int stages = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", stages}});
  for (const auto& [path, way] :
       {std::pair{hd::DevicePath::automatic, "messages from and to Host are handed over"},
        std::pair{hd::DevicePath::direct, "messages from and to Host are handed over"},
        std::pair{hd::DevicePath::staged, "messages from and to Host go through host memory"}}) {
    std::vector<double> seen;
    std::string told;
    hd::Stages<AddingStage> model(stages,
                                  [&](int first, int) {
                                    return AddingStage{first, stages, &seen};
                                  },
                                  {.path = path});
    hd::RunOptions options;
    options.execute.log = [&](std::string_view line) { told += line; };
    hd::Runner run(model, hd::schedule::one_f_one_b({.ranks = stages, .microbatches = 5}), mesh,
                   options);
    CHECK_THAT(told, ContainsSubstring("heddle::Stages: ") && ContainsSubstring(way));
    CHECK_THAT(told, ContainsSubstring(
                         hd::text("heddle::kernel::gemm: ",
                                  hd::kernel::blas_library<Kokkos::DefaultHostExecutionSpace>())));
    for (int step = 0; step < 3; ++step) static_cast<void>(run.step());
    run.drain();
    // 1 + 2 + ... is added to the last element of each microbatch, and back again from the last on.
    const int sum = stages * (stages + 1) / 2;
    std::vector<double> expected;
    for (int step = 0; step < 3; ++step)
      for (std::size_t m = 0; m < 5; ++m)
        expected.push_back(world_rank() == 0 ? sum - 1
                                             : static_cast<double>((m + 1) * elements - 1) + sum);
    if (world_rank() == 0 || world_rank() == stages - 1) CHECK(seen == expected);
  }
}

TEST_CASE("buffers are counted whoever allocates them") {
  const int stages = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", stages}});
  std::vector<double> seen;
  hd::Stages<AddingStage> model(stages, [&](int first, int) {
    return AddingStage{first, stages, &seen};
  });
  hd::Runner run(model, hd::schedule::one_f_one_b({.ranks = stages, .microbatches = 5}), mesh);
  hd::Bytes bytes = 0;
  for (const hd::Buffer& buffer : run.schedule().buffers()) {
    const std::string& label = run.schedule()[buffer.label];
    if (buffer.rank == mesh.rank() && label != hd::role::weights && label != hd::role::gradients)
      bytes += buffer.bytes;
  }
  CHECK(bytes > elements * sizeof(double));
  CHECK(run.allocated() == bytes);
}

TEST_CASE("buffers come from the caller's memory, and what does not fit is an error") {
  const int stages = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", stages}});
  std::vector<double> seen;
  const auto schedule = hd::schedule::one_f_one_b({.ranks = stages, .microbatches = 5});
  const auto model_in = [&](auto& limit) {
    return hd::Stages<AddingStage>(
        stages,
        [&](int first, int) {
          return AddingStage{first, stages, &seen};
        },
        {.allocate = [&limit](hd::Bytes bytes) {
          auto* const block = static_cast<std::byte*>(limit.allocate(bytes, 64));
          std::memset(block, 0xff, bytes);
          return std::shared_ptr<std::byte>(
              block, [&limit, bytes](std::byte* ours) { limit.deallocate(ours, bytes, 64); });
        }});
  };
  hd::memory::Limit limit(hd::memory::Pages{}, std::size_t{1} << 20);
  {
    auto model = model_in(limit);
    hd::Runner run(model, schedule, mesh);
    CHECK(limit.used() == run.allocated());
    static_cast<void>(run.step());
    run.drain();
  }
  CHECK(limit.used() == 0);
  hd::memory::Limit little(hd::memory::Pages{}, elements);
  auto model = model_in(little);
  CHECK_THROWS_AS(hd::Runner(model, schedule, mesh), hd::out_of_memory);
  CHECK(little.used() == 0);
}

TEST_CASE("a profiler is shown what Stages allocates by its room") {
  const int stages = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", stages}});
  std::vector<double> seen;
  const hd::test::LabelRecorder recorder;
  hd::Stages<AddingStage> model(stages, [&](int first, int) {
    return AddingStage{first, stages, &seen};
  });
  hd::Runner run(model, hd::schedule::one_f_one_b({.ranks = stages, .microbatches = 2}), mesh);
  static_cast<void>(run.step());
  run.drain();
  CHECK(hd::test::LabelRecorder::strangers({"pipeline"}) == std::vector<std::string>{});
  const auto ours = hd::test::LabelRecorder::ours();
  CHECK(ours.contains("heddle::pipeline::buffer"));
  CHECK(ours.contains("heddle::pipeline::delta"));
}

TEST_CASE("the caller's watchdog holds for what is said before a run") {
  const int stages = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", stages}});
  std::vector<double> seen;
  hd::Stages<AddingStage> model(stages, [&](int first, int) {
    return AddingStage{first, stages, &seen};
  });
  if (mesh.rank() == hd::Rank{1}) {  // stays away
    while (!mesh.transport().aborted()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK_THAT(mesh.transport().aborted()->reason, ContainsSubstring("watchdog after 0.3 s"));
  } else {
    CHECK_THROWS_AS(
        hd::Runner(model, hd::schedule::one_f_one_b({.ranks = stages, .microbatches = 2}), mesh,
                   {.execute = {.watchdog = 0.3}}),
        hd::communication_error);
  }
}

}  // namespace test_stage_memory
