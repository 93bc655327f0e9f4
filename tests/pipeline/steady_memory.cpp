// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 4
// timeout: 300

// What Heddle does again and again takes its memory the first time: Views of any memory space, seen
// by the callbacks of Kokkos, and pages of the system, of which the pools of messages tell.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/memory/message_memory.hpp>
#include <heddle/memory/trace.hpp>

#include "gpt_training.hpp"
#include "support/world.hpp"

namespace test_steady_memory {

namespace hd = heddle;
namespace memory = heddle::memory;
using hd::test::world_size;

namespace {

/// That `again` takes no memory after its first call: no View but of message_memory(), and that no
/// pages. How many messages are staged at once is a matter of time: they take Views of it later.
void takes_nothing(const std::function<void(int)>& again) {
  again(0);
  const auto& messages = memory::message_memory<Kokkos::HostSpace>();
  const std::size_t reserved = messages.reserved();
  const memory::ViewRecorder recorder;
  {
    const auto seen = memory::message_buffer<Kokkos::HostSpace>("seen", 1);
    const Kokkos::View<int*> likewise("likewise", 1);
  }
  for (int time = 1; time < 6; ++time) again(time);
  std::vector<std::string> labels = recorder.trace().labels();
  std::erase(labels, "Host: heddle::comm::staging");
  CHECK(labels == std::vector<std::string>{
                      "Host: seen",
                      hd::text(Kokkos::DefaultExecutionSpace::memory_space::name(), ": likewise")});
  CHECK(messages.reserved() == reserved);
}

}  // namespace

TEST_CASE("steps of training a GPT take no memory after the first") {
  examples::GptTraining training;
  training.model = {.layers = 4, .width = 16, .heads = 2, .context = 8, .sequences = 2};
  training.microbatches = 4;
  const int pipe = world_size() % 2 == 0 ? 2 : 1;
  training.replicas = world_size() / pipe;
  const examples::Text words = examples::Text::load({}, 64);
  for (const hd::DevicePath path : {hd::DevicePath::direct, hd::DevicePath::staged}) {
    hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", pipe}, {"data", training.replicas}});
    auto model = examples::make_gpt<float>(training, {.path = path});
    hd::Runner run(model, hd::schedule::one_f_one_b({.ranks = pipe, .microbatches = 4}), mesh);
    takes_nothing([&](int step) {
      const auto tokens = examples::batch(training, words, step, mesh.coordinate("data"));
      (void)run.step(tokens, examples::weight(training));
    });
  }
}

TEST_CASE("collective calls take no memory after the first") {
  const hd::Communicator world(MPI_COMM_WORLD);
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Kokkos::View<double*, Exec> sum("sum", 10'007), part("part", 1'001),
      all("all", 1'001 * world.size());
  using hd::schedule::Algorithm;
  for (const auto algorithm : {std::optional<Algorithm>(), std::optional(Algorithm::ring)})
    for (const bool shared : {false, true}) {
      const hd::CallOptions options{.algorithm = algorithm, .shared_memory = shared};
      takes_nothing([&](int) {
        hd::all_reduce(Exec(), sum, hd::Sum{}, world, options);
        hd::all_gather(Exec(), part, all, world, options);
      });
    }
}

TEST_CASE("redistributions and halos take no memory after the first") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", world_size()}});
  const hd::Sharded<double**, Exec> rows(mesh, {103, 67}, {hd::Shard{0}}),
      columns(mesh, {103, 67}, {hd::Shard{1, {}, 1}});
  hd::Halo halo(columns);
  takes_nothing([&](int) {
    hd::redistribute(Exec(), rows, columns);
    halo.exchange(Exec(), columns);
    hd::redistribute(Exec(), columns, rows);
  });
}

}  // namespace test_steady_memory
