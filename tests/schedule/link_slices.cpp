// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// link_slices(): which actions of which slices depend on each other, that a fold keeps the values
// of earlier slices, and which orders are rejected.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/complaint.hpp"

namespace test_link_slices {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::message_of;

namespace {

/// The uses of the first action with this text that are of buffers with the label `label`.
std::string uses_of(const Schedule& schedule, std::string_view action, std::string_view label) {
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    if (schedule::action_text(schedule, ActionId{i}) != action) continue;
    std::string found;
    for (const Use& use : schedule.uses(ActionId{i}))
      if (schedule[schedule[use.buffer].label] == label)
        found += text(found.empty() ? "" : " ", use.reads() ? "r" : "", use.writes() ? "w" : "",
                      use.first);
    return found;
  }
  return "no such action";
}

Schedule linked(int ranks, int sequences, int slices) {
  return schedule::link_slices(
      schedule::seq_1f1b({.ranks = ranks, .microbatches = sequences * slices, .slices = slices}),
      slices);
}

}  // namespace

TEST_CASE("link_slices: a slice reads the earlier ones, and backward passes sum in their order") {
  const Schedule schedule = linked(2, 2, 3);
  CHECK(uses_of(schedule, "0F0", role::saved) == "w0");
  CHECK(uses_of(schedule, "0F2", role::saved) == "w2 r0 r1");
  CHECK(uses_of(schedule, "1F4", role::saved) == "w1 r2");
  CHECK(uses_of(schedule, "1B5", role::saved) == "r0 r2 r1");
  CHECK(uses_of(schedule, "1B3", role::saved) == "r2");
  // The last slice begins the sums, the others continue them, and each reads its own.
  CHECK(uses_of(schedule, "0F2", role::slice_grads).empty());
  CHECK(uses_of(schedule, "0B2", role::slice_grads) == "w0 w1");
  CHECK(uses_of(schedule, "0B1", role::slice_grads) == "rw0 r1");
  CHECK(uses_of(schedule, "0B0", role::slice_grads) == "r0");
}

TEST_CASE("link_slices: steps take as long, and keep as many slices") {
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (const int slices : {1, 2, 4})
      for (const int sequences : {1, 3, 4}) {
        const Schedule plain = schedule::seq_1f1b(
            {.ranks = ranks, .microbatches = sequences * slices, .slices = slices});
        const Schedule schedule = schedule::fold(linked(ranks, sequences, slices), 0);
        const StageCosts costs{.forward = 1, .backward = 2};
        const Timeline timeline = simulate(schedule, costs);
        CHECK(timeline.makespan() == simulate(plain, costs).makespan());
        CHECK(timeline.makespan() == 3 * (sequences * slices + ranks - 1));
        for (const Buffer& buffer : schedule.buffers())
          if (schedule[buffer.label] == role::saved)
            CHECK(schedule::peak(timeline, buffer.rank, role::saved).parts == buffer.parts);
        for (int rank = 0; rank < ranks; ++rank)
          CHECK(
              schedule::peak(timeline, Rank{rank}, role::saved).parts ==
              static_cast<std::uint64_t>(std::min(sequences * slices, ranks - 1 - rank + slices)));
      }
}

TEST_CASE("link_slices: orders that compute a slice too early are rejected") {
  const auto complaint = [](const Schedule& schedule, int slices) {
    return message_of<infeasible>([&] { (void)schedule::link_slices(schedule, slices); });
  };
  const Schedule plain = schedule::one_f_one_b({.ranks = 2, .microbatches = 4});
  CHECK_THAT(complaint(plain, 2), ContainsSubstring("B0 of '1F1B P=2 M=4' with slices = 2") &&
                                      ContainsSubstring("precedes the backward of a later slice") &&
                                      ContainsSubstring("seq_1f1b()"));
  CHECK_THAT(complaint(weave(schedule::chimera(2, 4)), 4), ContainsSubstring("is on another rank"));
  CHECK_THAT(message_of<contract_error>([&] { (void)schedule::link_slices(plain, 0); }),
             ContainsSubstring("at least one slice") && ContainsSubstring("as seq_1f1b() has"));
  // Two slices of one sequence, the later one first.
  const Orders by_hand{"by hand",
                       {{{Kind::forward, Stage{0}, Item{1}},
                         {Kind::forward, Stage{0}, Item{0}},
                         {Kind::backward, Stage{0}, Item{1}},
                         {Kind::backward, Stage{0}, Item{0}}}},
                       StageGraph::chain(1)};
  CHECK_THAT(complaint(weave(by_hand), 2),
             ContainsSubstring("0F1 of 'by hand'") &&
                 ContainsSubstring("precedes the forward of an earlier slice"));
}

TEST_CASE("link_slices: a stage ends the backwards of a sequence before those of another one") {
  // All forwards of two sequences of two slices, then backwards in the given order.
  const auto link = [](std::array<int, 4> backwards) {
    Orders orders{"by hand", {{}}, StageGraph::chain(1)};
    for (int m = 0; m < 4; ++m) orders.ranks[0].push_back({Kind::forward, Stage{0}, Item{m}});
    for (const int m : backwards) orders.ranks[0].push_back({Kind::backward, Stage{0}, Item{m}});
    return schedule::link_slices(weave(orders), 2);
  };
  CHECK(uses_of(link({1, 0, 3, 2}), "0B2", role::slice_grads) == "r2");
  CHECK(uses_of(link({3, 2, 1, 0}), "0B0", role::slice_grads) == "r0");
  CHECK_THAT(message_of<infeasible>([&] {
               (void)link({1, 3, 0, 2});
             }),
             ContainsSubstring("0B3 of 'by hand' with slices = 2") &&
                 ContainsSubstring("before those of another one have ended") &&
                 ContainsSubstring("seq_1f1b()"));
}

TEST_CASE("link_slices: microbatches make whole sequences") {
  const auto complaint = [](int microbatches, int slices) {
    const Schedule plain = schedule::gpipe({.ranks = 2, .microbatches = microbatches});
    return message_of<infeasible>([&] { (void)schedule::link_slices(plain, slices); });
  };
  CHECK_THAT(complaint(5, 2), ContainsSubstring("5 microbatches, slices = 2") &&
                                  ContainsSubstring("a schedule with 6 microbatches") &&
                                  ContainsSubstring("divides 5"));
  CHECK_THAT(complaint(3, 4), ContainsSubstring("a schedule with 4 microbatches"));
}

}  // namespace test_link_slices
