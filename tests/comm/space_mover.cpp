// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1

// A window of blocks in the memory in which kernels compute, over blocks in host memory: kernels
// see every block, and what they make comes back.

#include <cstddef>
#include <cstdint>
#include <string>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/comm/space_mover.hpp>
#include <heddle/device/mirror.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/schedule/builder.hpp>

#include "support/complaint.hpp"

namespace test_space_mover {

using namespace heddle;
using Exec = Kokkos::DefaultExecutionSpace;
using Words = Kokkos::View<std::uint64_t*, Exec::memory_space>;
static_assert(Mover<SpaceMover<Exec>>);
static_assert(Mover<SpaceMover<Exec, Exec::memory_space, Kokkos::SharedHostPinnedSpace>>);

/// Computes 3 x + k of each word of a block.
struct Triple {
  const std::uint64_t* from;
  std::uint64_t* to;
  std::uint64_t k;
  KOKKOS_FUNCTION void operator()(std::size_t i) const { to[i] = 3 * from[i] + k; }
};

TEST_CASE("kernels compute on blocks that a SpaceMover brings, and it takes the results back") {
  constexpr std::uint32_t blocks = 9, window = 2;
  constexpr std::size_t words = 1013;
  constexpr Bytes size = words * sizeof(std::uint64_t);
  Builder builder("window", 1);
  const auto buffer = [&](const char* label, std::uint32_t parts, Tier tier) {
    return builder.add_buffer({.parts = parts,
                               .label = builder.label(label),
                               .tier = tier,
                               .type = Scalar::i64,
                               .transient = tier == Tier{0},
                               .bytes = parts * size});
  };
  const BufferId weights = buffer("weights", blocks, Tier{1}), slots = buffer("slot", window, {});
  const BufferId made = buffer("made", window, {}), results = buffer("results", blocks, Tier{1});
  const auto move = [&](BufferId from, std::uint32_t first, BufferId to, std::uint32_t second,
                        Lane lane) {
    builder.add({.kind = Kind::move, .queue = builder.local(Rank{0}, lane)},
                {schedule::read(from, first), schedule::write(to, second)});
  };
  const auto load = [&](std::uint32_t k) {
    if (k < blocks) move(weights, k, slots, k % window, Lane{1});
  };
  for (std::uint32_t k = 0; k < window; ++k) load(k);
  for (std::uint32_t k = 0; k < blocks; ++k) {
    builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0}), .item = Item{k}},
                {schedule::read(slots, k % window), schedule::write(made, k % window)});
    load(k + window);
    move(made, k % window, results, k, Lane{2});
  }
  const Schedule schedule = std::move(builder).build();

  const Words near_slots("slots", window * words), near_made("made", window * words);
  Kokkos::View<std::uint64_t*, Kokkos::HostSpace> far("far", blocks * words);
  Kokkos::View<std::uint64_t*, Kokkos::HostSpace> back("back", blocks * words);
  for (std::size_t i = 0; i < far.size(); ++i) far(i) = i * i + 7;
  const Exec computing;
  const auto model = [&](const Task& task) {
    REQUIRE(task.kind() == Kind::forward);
    Kokkos::parallel_for("heddle::test::triple", Kokkos::RangePolicy<Exec>(computing, 0, words),
                         Triple{task.get<const std::uint64_t>("slot").data(),
                                task.get<std::uint64_t>("made").data(), +task.item()});
    computing.fence();
  };
  ThreadHub hub(1);
  ThreadTransport transport(hub, Rank{0});
  SpaceMover<Exec> mover;
  Executor executor(slice(schedule, Rank{0},
                          [&](BufferId id, const Buffer&) {
                            std::uint64_t* const begin = id == weights ? far.data()
                                                         : id == slots ? near_slots.data()
                                                         : id == made  ? near_made.data()
                                                                       : back.data();
                            return reinterpret_cast<std::byte*>(begin);
                          }),
                    transport, {.mover = mover});
  for (int step = 0; step < 3; ++step) {
    Kokkos::deep_copy(back, std::uint64_t{0});
    executor.step(model);
    executor.drain();
    for (std::size_t i = 0; i < back.size(); ++i) REQUIRE(back(i) == 3 * far(i) + i / words);
  }
}

TEST_CASE("a SpaceMover copies within a space, cancels by waiting, and needs memory at both ends") {
  SpaceMover<Exec, Kokkos::HostSpace> mover;
  std::byte from[3] = {std::byte{1}, std::byte{2}, std::byte{3}}, to[3] = {};
  for (const Tier source : {Tier{0}, Tier{1}})
    for (const Tier target : {Tier{0}, Tier{2}}) {
      to[0] = to[1] = std::byte{0};
      auto request = mover.start(Lane{0}, {0, source, 0, from}, {1, target, 0, to}, 2);
      if (source == target)
        mover.cancel(request);
      else
        heddle::impl::finish_move(mover, request);
      CHECK((to[0] == std::byte{1} && to[1] == std::byte{2} && to[2] == std::byte{0}));
      CHECK(mover.test(request));
    }
  auto nothing = mover.start(Lane{0}, {}, {}, 0);
  CHECK(mover.test(nothing));
  CHECK_THAT(test::message_of<contract_error>([&] {
               (void)mover.start(Lane{0}, {.buffer = 4, .tier = Tier{1}}, {1, Tier{0}, 0, to}, 1);
             }),
             Catch::Matchers::ContainsSubstring(
                 "heddle::SpaceMover: a buffer has no memory (buffer 4 in tier 1)"));
}

}  // namespace test_space_mover
