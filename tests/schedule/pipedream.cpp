// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// PipeDream's asynchronous 1F1B: which version of its weights a stage uses when, and how many of
// them it keeps. tests/pipeline/asynchronous.cpp executes it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/schedule_battery.hpp"

namespace test_pipedream {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Follows the versions through the parts of the weights, and says where one is read that is not
/// the formula's, or begins where it should not.
std::string wrong_version(const Schedule& schedule, int stages, bool vertical_sync) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> held;  // (stage, part): version
  std::vector<int> newest(static_cast<std::size_t>(stages), 0);
  for (int s = 0; s < stages; ++s) held[{s, 0}] = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const Action& action = schedule[id];
    const auto stage = action.stage.value;
    for (const Use& use : schedule.uses(id)) {
      if (schedule[schedule[use.buffer].label] != role::weights) continue;
      int& version = held[{stage, use.first}];
      int& latest = newest[stage];
      if (action.kind == Kind::update) {
        if (use.reads() && version != latest) return "an old version updated: " + text(i);
        if (use.writes()) version = ++latest;
      } else if (version !=
                 schedule::PipeDreamOptions{.ranks = stages, .vertical_sync = vertical_sync}
                     .version(static_cast<int>(stage), static_cast<int>(action.item.value))) {
        return schedule::action_text(schedule, id) + text(" uses version ", version);
      }
    }
  }
  for (int s = 0; s < stages; ++s)
    if (held[{s, 0}] != newest[static_cast<std::size_t>(s)])
      return text("stage ", s, " ends with its last version elsewhere");
  return {};
}

/// Where an action on a microbatch reads other weights than its forward did.
std::string mixed_versions(const Schedule& schedule) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> held, used;
  std::map<std::uint32_t, int> newest;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const auto [stage, item] = std::pair(schedule[id].stage.value, schedule[id].item.value);
    for (const Use& use : schedule.uses(id)) {
      if (schedule[schedule[use.buffer].label] != role::weights) continue;
      int& version = held[{stage, use.first}];
      if (schedule[id].kind == Kind::forward) used[{stage, item}] = version;
      if (schedule[id].kind == Kind::update && use.writes()) version = ++newest[stage];
      if (schedule[id].kind != Kind::update && version != used[{stage, item}])
        return schedule::action_text(schedule, id) + text(" uses version ", version);
    }
    const auto reads_weights = [&](const Use& use) {
      return schedule[schedule[use.buffer].label] == role::weights;
    };
    if (schedule[id].kind != Kind::move && std::ranges::none_of(schedule.uses(id), reads_weights))
      return schedule::action_text(schedule, id) + " names no weights";
  }
  return {};
}

int versions_of(const Schedule& schedule, int stage) {
  for (const Buffer& buffer : schedule.buffers())
    if (buffer.stage == Stage{stage} && schedule[buffer.label] == role::weights)
      return static_cast<int>(buffer.parts);
  return 0;
}

}  // namespace

TEST_CASE("every microbatch is computed with the version that the formula names") {
  for (int stages = 1; stages <= 9; ++stages)
    for (const int microbatches : {1, 2, 3, 5, 8, 13, 31})
      for (const bool vertical_sync : {false, true}) {
        const schedule::PipeDreamOptions options{
            .ranks = stages, .microbatches = microbatches, .vertical_sync = vertical_sync};
        const Schedule schedule = schedule::pipedream(options);
        INFO(schedule.name());
        CHECK(wrong_version(schedule, stages, vertical_sync) == "");
        for (int s = 0; s < stages; ++s) {
          CHECK(versions_of(schedule, s) == options.versions(s));
          if (microbatches > 2 * stages)
            CHECK(versions_of(schedule, s) == (vertical_sync ? stages : stages - s));
        }
      }
}

TEST_CASE("both halves of a backward pass use the version of their forward, however far apart") {
  for (int stages = 1; stages <= 5; ++stages)
    for (const bool vertical_sync : {false, true}) {
      Orders orders = schedule::split_backward(schedule::pipedream(stages, 11, vertical_sync));
      for (auto& list : orders.ranks)  // F comes before the W that stands in front of it
        for (std::size_t i = 0; i + 2 < list.size(); ++i)
          if (list[i].kind == Kind::backward_weight && list[i + 2].kind == Kind::forward)
            std::rotate(&list[i], &list[i + 2], &list[i + 2] + 1);
      const Schedule schedule = weave(orders);
      INFO(schedule.name());
      CHECK(mixed_versions(schedule) == "");
      test::schedule_battery(schedule);
    }
}

TEST_CASE("PipeDream is a schedule like any other") {
  for (int stages = 1; stages <= 4; ++stages)
    for (const int microbatches : {1, 2, 7})
      for (const bool vertical_sync : {false, true})
        test::schedule_battery(schedule::pipedream(
            {.ranks = stages, .microbatches = microbatches, .vertical_sync = vertical_sync}));
}

TEST_CASE("an update after every backward pass costs no bubble but its own time") {
  // (M + P - 1)(F + B), as 1F1B, where an update is free.
  for (int stages = 1; stages <= 8; ++stages)
    for (const int microbatches : {1, 4, 9}) {
      const auto timeline =
          simulate(schedule::pipedream({.ranks = stages, .microbatches = microbatches}),
                   BasicStageCosts<int>{.forward = 1, .backward = 2});
      CHECK(timeline.makespan() == 3 * (microbatches + stages - 1));
    }
}

TEST_CASE("a PipeDream without stages or microbatches is refused") {
  CHECK_THAT(test::message_of<contract_error>([] { (void)schedule::pipedream({.ranks = 0}); }),
             ContainsSubstring("a pipeline needs at least one stage"));
  CHECK_THAT(
      test::message_of<contract_error>([] { (void)schedule::pipedream({.microbatches = 0}); }),
      ContainsSubstring("a step needs at least one microbatch"));
}

}  // namespace test_pipedream
