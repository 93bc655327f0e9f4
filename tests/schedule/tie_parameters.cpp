// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Tied parameters in every schedule of the catalogue, with replicas and divided updates: both
// copies get the sum of all gradients, and nothing else changes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/layout.hpp>
#include <heddle/schedule.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/simulate.hpp>

#include "support/complaint.hpp"
#include "support/execution.hpp"

namespace test_tie_parameters {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::message_of;

namespace {

constexpr Bytes word = sizeof(std::int64_t);
constexpr std::size_t parameters = 11;

/// The schedule with `parameters` parameters for each stage.
Schedule sized(const Schedule& schedule) {
  return schedule.with_sizes([&](Buffer& buffer) {
    const std::string& label = schedule[buffer.label];
    const bool whole = label == role::weights || label == role::gradients;
    buffer.type = Scalar::i64;
    buffer.bytes = word * buffer.parts * (whole ? parameters : 1);
  });
}

/// What a backward pass adds to a gradient on a line.
std::int64_t term(std::size_t line, std::uint32_t stage, std::uint32_t item, std::size_t element) {
  return static_cast<std::int64_t>(1 + line * 1000003 + stage * 10007 + item * 101 + element * 13);
}

int stages_of(const Schedule& schedule) {
  int stages = 0;
  for (const Buffer& buffer : schedule.buffers())
    stages = std::max(stages, static_cast<int>(+buffer.stage) + 1);
  return stages;
}

/// Performs the list from top to bottom and returns the storage of every buffer. Rank r belongs to
/// line r / `length`.
std::vector<std::vector<std::int64_t>> performed(const Schedule& schedule, std::size_t length) {
  std::vector<std::vector<std::int64_t>> memory;
  for (const Buffer& buffer : schedule.buffers()) memory.emplace_back(buffer.bytes / word);
  const auto at = [&](const Use& use) {
    return memory[+use.buffer].data() +
           schedule::part_offset(schedule[use.buffer], use.first) / word;
  };
  const auto count = [&](const Use& use) {
    return schedule::part_bytes(schedule[use.buffer], use.first, use.count) / word;
  };
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    const auto uses = schedule.uses(ActionId{i});
    if (action.kind == Kind::move) {
      REQUIRE(count(uses[0]) == count(uses[1]));
      std::copy_n(at(uses[0]), count(uses[0]), at(uses[1]));
    } else if (action.kind == Kind::combine || action.kind == Kind::update) {
      REQUIRE(count(uses[0]) == count(uses[1]));
      for (std::size_t e = 0; e < count(uses[0]); ++e) at(uses[1])[e] += at(uses[0])[e];
    } else if (action.kind == Kind::group) {
      for (std::size_t e = 0; e < count(uses[0]); ++e) {
        std::int64_t sum = 0;
        for (const Use& use : uses) sum += at(use)[e];
        for (const Use& use : uses) at(use)[e] = sum;
      }
    } else if (action.kind == Kind::backward || action.kind == Kind::backward_weight) {
      const Use& use = uses.back();
      REQUIRE(count(use) == parameters);
      for (std::size_t e = 0; e < parameters; ++e) {
        if (use.access() == Access::write) at(use)[e] = 0;
        at(use)[e] +=
            term(+schedule[action.queue].from / length, action.stage.value, action.item.value, e);
      }
    }
  }
  return memory;
}

/// Every synchronous schedule of chains in a few shapes.
std::vector<Schedule> all_schedules() {
  std::vector<Schedule> all;
  for (const auto& entry : schedule::catalogue())
    for (const auto& [ranks, microbatches] : {std::tuple{1, 2}, {2, 4}, {4, 8}})
      if (entry.synchronous && !entry.branches) try {
          all.push_back(weave(entry.orders({ranks, microbatches, 2})));
        } catch (const infeasible&) {  // not for this shape
        }
  return all;
}

std::vector<TiedRanges> ties_of(int stages) {
  const Stage last{stages - 1};
  // The second pair lies within one stage if there is only one.
  return {{Stage{0}, 0, last, 6 * word, 4 * word}, {Stage{0}, 5 * word, last, 10 * word, word}};
}

void expect_sums(const Schedule& tied, int stages, std::size_t length, std::size_t lines) {
  INFO(tied.name());
  const auto memory = performed(tied, length);
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> terms;  // line, stage, item
  for (std::size_t i = 0; i < tied.size(); ++i)
    if (const Action& a = tied[ActionId{i}];
        a.kind == Kind::backward || a.kind == Kind::backward_weight)
      terms.insert(
          {static_cast<std::uint32_t>(+tied[a.queue].from / length), a.stage.value, a.item.value});
  const auto sum = [&](std::uint32_t stage, std::size_t element) {
    std::int64_t all = 0;
    for (const auto& [line, s, item] : terms)
      if (s == stage) all += term(line, stage, item, element);
    return all;
  };
  const std::uint32_t last = static_cast<std::uint32_t>(stages - 1);
  std::size_t compared = 0;
  for (std::size_t b = 0; b < tied.buffers().size(); ++b) {
    const Buffer& buffer = tied[BufferId{b}];
    if (tied[buffer.label] != role::weights) continue;
    std::vector<std::int64_t> expected;
    for (std::size_t e = 0; e < parameters; ++e) expected.push_back(sum(buffer.stage.value, e));
    for (const TiedRanges& tie : ties_of(stages))
      for (std::size_t e = 0; e < tie.bytes / word; ++e) {
        const std::size_t one = tie.offset / word + e, two = tie.other_offset / word + e;
        const std::int64_t both = sum(0, one) + sum(last, two);
        if (buffer.stage == tie.stage) expected[one] = both;
        if (buffer.stage == tie.other) expected[two] = both;
      }
    CHECK(memory[b] == expected);
    compared += parameters;
  }
  CHECK(compared >= parameters * lines * static_cast<std::size_t>(stages));
}

/// Stages that sum and divide their own gradients over the lines of a mesh, as ParameterShards
/// does: backward passes add to the whole gradients, which are summed later, or to the summed
/// share.
struct OwnSums {
  std::size_t length, lines;
  bool whole;

  [[nodiscard]] Share share(Rank rank) const {
    return even_share(parameters, lines, +rank / length);
  }
  [[nodiscard]] Schedule sized(const Schedule& schedule) const {
    return test_tie_parameters::sized(schedule).with_sizes([&](Buffer& buffer) {
      const std::string& label = schedule[buffer.label];
      if (label == role::weights || (label == role::gradients && !whole))
        buffer.bytes = word * share(buffer.rank).count;
    });
  }
  [[nodiscard]] std::vector<UpdateShare> shares(const Schedule& schedule) const {
    std::vector<UpdateShare> all;
    for (const Buffer& buffer : schedule.buffers()) {
      if (schedule[buffer.label] != role::gradients) continue;
      const Share own = share(buffer.rank);
      all.push_back({buffer.rank, buffer.stage, word * own.first, word * own.count,
                     whole ? word * own.first : 0});
    }
    return all;
  }
};

/// Performs what concerns gradients and weights, and returns the storage of every buffer.
std::vector<std::vector<std::int64_t>> performed(const Schedule& schedule, const OwnSums& sums) {
  std::vector<std::vector<std::int64_t>> memory;
  for (const Buffer& buffer : schedule.buffers()) memory.emplace_back(buffer.bytes / word);
  const auto at = [&](const Use& use) {
    return memory[+use.buffer].data() +
           schedule::part_offset(schedule[use.buffer], use.first) / word;
  };
  std::set<std::size_t> summed;  // buffers of gradients
  // What a stage does in a group action, or without one in its update.
  const auto sum_over_lines = [&](BufferId gradients) {
    const Buffer& mine = schedule[gradients];
    const Share own = sums.share(mine.rank);
    if (!sums.whole || !summed.insert(+gradients).second) return;
    for (std::size_t b = 0; b < memory.size(); ++b) {
      const Buffer& other = schedule[BufferId{b}];
      if (schedule[other.label] != role::gradients || other.stage != mine.stage ||
          other.rank == mine.rank || +other.rank % sums.length != +mine.rank % sums.length)
        continue;
      for (std::size_t e = own.first; e < own.end(); ++e) memory[+gradients][e] += memory[b][e];
    }
  };
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    const auto uses = schedule.uses(ActionId{i});
    const Rank rank = schedule[action.queue].from;
    const Share own = sums.share(rank);
    const std::size_t begin = sums.whole ? own.first : 0;
    const auto count = [&](const Use& use) {
      return schedule::part_bytes(schedule[use.buffer], use.first, use.count) / word;
    };
    if (action.kind == Kind::move) {
      REQUIRE(count(uses[0]) == count(uses[1]));
      std::copy_n(at(uses[0]), count(uses[0]), at(uses[1]));
    } else if (action.kind == Kind::combine) {
      for (std::size_t e = 0; e < count(uses[0]); ++e) at(uses[1])[e] += at(uses[0])[e];
    } else if (action.kind == Kind::update) {
      sum_over_lines(uses[0].buffer);
      for (std::size_t e = 0; e < own.count; ++e) at(uses[1])[e] += at(uses[0])[begin + e];
    } else if (action.kind == Kind::group && uses.size() > 1) {  // of replicas in a line
      for (std::size_t e = 0; e < count(uses[0]); ++e) {
        std::int64_t sum = 0;
        for (const Use& use : uses) sum += at(use)[e];
        for (const Use& use : uses) at(use)[e] = sum;
      }
    } else if (action.kind == Kind::group) {  // by the stage, over the lines
      CHECK(count(uses[0]) == schedule[uses[0].buffer].bytes / word);
      sum_over_lines(uses[0].buffer);
    } else if (action.kind == Kind::backward || action.kind == Kind::backward_weight) {
      const Use& use = uses.back();
      for (std::size_t e = 0; e < count(use); ++e) {
        if (use.access() == Access::write) at(use)[e] = 0;
        for (std::size_t line = 0; line < sums.lines; ++line)
          if (!sums.whole || line == +rank / sums.length)
            at(use)[e] +=
                term(line, action.stage.value, action.item.value, e + (sums.whole ? 0 : own.first));
      }
    }
  }
  return memory;
}

}  // namespace

TEST_CASE("both copies of tied parameters get the sum of their gradients in every schedule") {
  std::size_t several = 0;
  for (const Schedule& schedule : all_schedules()) {
    const auto length = static_cast<std::size_t>(schedule.ranks());
    const int stages = stages_of(schedule);
    for (const int lines : {1, 3}) {
      const Schedule replicas = sized(schedule::data_parallel(
          schedule, MeshShape({{"data", lines}, {"pipe", schedule.ranks()}}), "pipe"));
      for (const bool eager : {false, true}) {
        const Schedule summed = eager ? schedule::eager_sums(replicas) : replicas;
        const auto ties = ties_of(stages);
        const auto count = static_cast<std::size_t>(lines);
        expect_sums(schedule::tie_parameters(summed, ties), stages, length, count);
        const Schedule ring =
            schedule::tie_parameters(schedule::expand(summed, schedule::CollectiveForm{}), ties);
        expect_sums(ring, stages, length, count);
        if (ring.ranks() <= 4) CHECK(test::difference_from_oracle(schedule::fold(ring), 2) == "");
        const Schedule shards = schedule::tie_parameters(schedule::shard_updates(summed), ties);
        expect_sums(shards, stages, length, count);
        if (shards.ranks() <= 3)
          CHECK(test::difference_from_oracle(schedule::fold(shards), 2) == "");
        ++several;
      }
    }
  }
  CHECK(several > 100);
}

TEST_CASE("copies are tied if their stages sum and divide their own gradients") {
  std::size_t several = 0;
  for (const Schedule& schedule : all_schedules()) {
    const auto length = static_cast<std::size_t>(schedule.ranks());
    const int stages = stages_of(schedule);
    const bool replicas = std::ranges::any_of(
        schedule.actions(), [](const Action& a) { return a.kind == Kind::group; });
    for (const std::size_t lines : {1, 2, 3})
      for (const bool whole : {true, false}) {
        if (replicas && !whole && lines > 1) continue;  // their parts are alike: nothing new
        INFO(schedule.name() << ", " << lines << (whole ? " whole" : " divided"));
        const OwnSums sums{length, lines, whole};
        const Schedule sized = sums.sized(schedule::data_parallel(
            schedule, MeshShape({{"data", static_cast<int>(lines)}, {"pipe", schedule.ranks()}}),
            "pipe", {"data"}));
        const Schedule tied = schedule::tie_parameters(sized, ties_of(stages), sums.shares(sized));
        const Schedule whole_step = test_tie_parameters::sized(schedule::data_parallel(
            schedule, MeshShape({{"data", static_cast<int>(lines)}, {"pipe", schedule.ranks()}})));
        const auto reference =
            performed(schedule::tie_parameters(whole_step, ties_of(stages)), length);
        const auto memory = performed(tied, sums);
        std::size_t compared = 0;
        for (std::size_t b = 0; b < sized.buffers().size(); ++b) {
          const Buffer& buffer = tied[BufferId{b}];
          if (tied[buffer.label] != role::weights) continue;
          const Share own = sums.share(buffer.rank);
          const std::vector<std::int64_t> expected(
              reference[b].begin() + static_cast<std::ptrdiff_t>(own.first),
              reference[b].begin() + static_cast<std::ptrdiff_t>(own.end()));
          CHECK(memory[b] == expected);
          compared += own.count;
        }
        CHECK(compared >= parameters * static_cast<std::size_t>(stages));
        ++several;
      }
  }
  CHECK(several > 50);
}

TEST_CASE("the sum of tied gradients is printed and takes time") {
  const Schedule before = sized(schedule::one_f_one_b({.ranks = 2, .microbatches = 2}));
  const Schedule after = schedule::tie_parameters(before, ties_of(2));
  CHECK(after.size() == before.size() + 8);  // two ranges, both ways, a move and a sum each
  CHECK_THAT(to_text(after), ContainsSubstring("0SEND_B") && ContainsSubstring("COMBINE"));
  const StageCosts costs{.forward = 1, .backward = 2, .per_byte = 1};
  CHECK(simulate(after, costs).makespan() > simulate(before, costs).makespan());
  CHECK(schedule::tie_parameters(before, {}).size() == before.size());
  const Schedule inference = schedule::stream({.ranks = 2, .microbatches = 2});
  CHECK(schedule::tie_parameters(inference, ties_of(2)).size() == inference.size());
}

TEST_CASE("tied parameters that cannot be summed are rejected with the reason") {
  const auto tie = [](const Schedule& schedule, const std::vector<TiedRanges>& ties) {
    return [=] { (void)schedule::tie_parameters(sized(schedule), ties); };
  };
  for (const auto& entry : schedule::catalogue()) {
    if (entry.synchronous || entry.branches) continue;
    const Schedule schedule = weave(entry.orders({2, 4, 2}));
    const bool updates = std::ranges::any_of(
        schedule.actions(), [](const Action& a) { return a.kind == Kind::update; });
    if (!updates) continue;
    INFO(entry.name);
    CHECK_THAT(message_of<infeasible>(tie(schedule, ties_of(stages_of(schedule)))),
               ContainsSubstring("asynchronous"));
  }
  const Schedule schedule = schedule::one_f_one_b({.ranks = 2, .microbatches = 2});
  CHECK_THAT(
      message_of<contract_error>(tie(schedule, {{Stage{0}, 0, Stage{1}, 8 * word, 4 * word}})),
      ContainsSubstring("not among the gradients of its stage") &&
          ContainsSubstring("stage 1 has 88 bytes"));
  CHECK_THAT(
      message_of<contract_error>(tie(schedule, {{Stage{0}, 0, Stage{1}, 0, 2 * word},
                                                {Stage{0}, word, Stage{1}, 3 * word, word}})),
      ContainsSubstring("overlap"));
  CHECK_THAT(message_of<contract_error>(tie(schedule, {{Stage{0}, 0, Stage{1}, 4, word}})),
             ContainsSubstring("elements of 8"));
  const auto share = [&](Bytes bytes, Bytes at) {
    return message_of<contract_error>([&] {
      (void)schedule::tie_parameters(sized(schedule), ties_of(2),
                                     {{Rank{1}, Stage{1}, 4 * word, bytes, at}});
    });
  };
  CHECK_THAT(share(8 * word, 4 * word),
             ContainsSubstring("stage 1 on rank 1 has 88 bytes in elements of 8, the share begins "
                               "at byte 32 and has 64"));
  CHECK_THAT(share(4, 0), ContainsSubstring("not among the gradients of its rank"));
  CHECK_THAT(share(word, 0), ContainsSubstring("no rank updates the other copy"));
  CHECK_THAT(message_of<contract_error>(tie(schedule, {{Stage{0}, 0, Stage{7}, 0, word}})),
             ContainsSubstring("no rank updates the other copy"));
}

}  // namespace test_tie_parameters
