// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Lists with one change, such as a dropped or a swapped action. The proof and a run with numbers
// agree on which of them still compute the serial step.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "support/cases.hpp"
#include "support/changed_list.hpp"
#include "support/coverage.hpp"

namespace test_mutations {

using namespace heddle;
using schedule::SerialStep;
using schedule::why_not_equivalent;

namespace {

std::uint64_t mixed(std::uint64_t state, std::uint64_t word) {
  state = (state ^ word) * 0x9e3779b97f4a7c15u;
  return state ^ state >> 29;
}

/// A schedule, and the step that it performs.
struct Case {
  Schedule schedule;
  SerialStep step;

  [[nodiscard]] SerialStep::Place place(Rank rank) const {
    return step.places.empty() ? SerialStep::Place{rank} : step.places[+rank];
  }
};

/// A run with numbers: every part holds a number, and passes and updates return hashes of all that
/// they read. Sums are those of integers, so their order is free. Returns the weights at the end.
class Numbers {
 public:
  explicit Numbers(const Case& of) : m_case(of) {
    for (const Buffer& buffer : of.schedule.buffers()) {
      auto& parts = m_memory.emplace_back(buffer.parts, 0);
      for (std::uint32_t part = 0; part < buffer.parts && !buffer.transient; ++part)
        parts[part] = mixed(mixed(buffer.stage.value, of.place(buffer.rank).shard), part);
    }
  }

  [[nodiscard]] std::vector<std::uint64_t> run(const Schedule& schedule) {
    for (std::size_t i = 0; i < schedule.size(); ++i)
      perform(schedule, schedule[ActionId{i}], schedule.uses(ActionId{i}));
    std::vector<std::uint64_t> weights;
    for (std::size_t b = 0; b < m_memory.size(); ++b)
      if (!schedule[BufferId{b}].transient)
        for (std::uint32_t part = 0; part < newest_parts(b); ++part)
          weights.push_back(m_memory[b][part]);
    return weights;
  }

 private:
  /// The parts of a version; those behind them hold versions that the next step does not read.
  [[nodiscard]] std::uint32_t newest_parts(std::size_t buffer) const {
    const Schedule& schedule = m_case.schedule;
    for (std::size_t i = 0; i < schedule.size(); ++i)
      for (const Use& use : schedule.uses(ActionId{i}))
        if (+use.buffer == buffer && schedule[ActionId{i}].kind == Kind::forward) return use.count;
    return schedule[BufferId{buffer}].parts;
  }
  std::uint64_t& at(const Use& use, std::uint32_t part) {
    return m_memory[+use.buffer][use.first + part];
  }

  void perform(const Schedule& schedule, const Action& action, std::span<const Use> uses) {
    if (action.kind == Kind::move || action.kind == Kind::combine) {
      const bool moves = action.kind == Kind::move;
      for (std::uint32_t part = 0; part < uses[0].count; ++part)
        at(uses[1], part) = at(uses[0], part) + (moves ? 0 : at(uses[1], part));
      return;
    }
    if (action.kind == Kind::group) {
      for (std::uint32_t part = 0; part < uses[0].count; ++part) {
        std::uint64_t sum = 0;
        for (const Use& use : uses) sum += at(use, part);
        for (const Use& use : uses) at(use, part) = sum;
      }
      return;
    }
    std::uint64_t read = mixed(static_cast<std::uint64_t>(action.kind), action.stage.value);
    if (action.kind == Kind::update) {
      const bool alike = uses[0].count == uses[1].count;
      for (std::uint32_t part = 0; part < uses[0].count; ++part)
        read = mixed(read, at(uses[0], part));
      for (std::uint32_t part = 0; part < uses.back().count; ++part)
        at(uses.back(), part) =
            mixed(mixed(at(uses[1], part), action.stage.value), alike ? at(uses[0], part) : read);
      for (std::uint32_t part = 0; part < uses[0].count; ++part)  // it also writes the gradients
        at(uses[0], part) = mixed(at(uses[0], part), 1);
      return;
    }
    read = mixed(mixed(read, action.item.value), m_case.place(schedule[action.queue].from).line);
    for (const Use& use : uses)
      for (std::uint32_t part = 0; !use.writes() && part < use.count; ++part)
        read = mixed(read, at(use, part));
    std::uint64_t written = 0;
    for (const Use& use : uses)
      for (std::uint32_t part = 0; use.writes() && part < use.count; ++part) {
        const std::uint64_t value = mixed(read, ++written);
        at(use, part) = use.reads() ? at(use, part) + value : value;
      }
  }

  const Case& m_case;
  std::vector<std::vector<std::uint64_t>> m_memory;
};

std::vector<Case> cases_to_change() {
  std::vector<Case> cases;
  const auto add = [&](const Schedule& schedule, const SerialStep& step) {
    cases.push_back({schedule, step});
    REQUIRE(why_not_equivalent(schedule, step) == "");
  };
  for (const char* name : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "chimera", "dualpipe-v",
                           "pipedream", "pipedream-vertical"}) {
    const Orders orders = schedule::find_schedule(name).orders({.ranks = 4, .microbatches = 8});
    const SerialStep step = schedule::serial_step(orders);
    const Schedule woven = weave(orders);
    add(woven, step);
    add(schedule::fold(woven, 0), step);
    if (std::string(name) == "1f1b") add(schedule::recompute(schedule::fold(woven, 1)), step);
    if (std::string(name) == "1f1b") add(schedule::park(woven, Parking::bpipe(4)), step);
  }
  for (const bool eager : {false, true}) {
    const MeshShape mesh{{"pipe", 2}, {"data", 3}};
    const Orders orders = schedule::zb_h1(2, 3);
    const SerialStep step = schedule::on_mesh(schedule::serial_step(orders), mesh);
    const Schedule lines = schedule::data_parallel(weave(orders), mesh);
    add(eager ? schedule::eager_updates(lines) : lines, step);
    add(schedule::shard_updates(eager ? schedule::eager_updates(lines) : lines), step);
    add(schedule::expand(lines, schedule::CollectiveForm{}), step);
  }
  return cases;
}

}  // namespace

TEST_CASE("changes of a list are found, or do not change the numbers") {
  const std::vector<Case> cases = cases_to_change();
  std::vector<std::vector<std::uint64_t>> expected;
  for (const Case& each : cases) expected.push_back(Numbers(each).run(each.schedule));
  Random random(1, "mutations");
  std::uint64_t index = 0;
  test::Coverage coverage("changed lists");
  for (std::uint64_t n = 0; n < test::cases(3'000, 100'000); ++n) {
    const std::size_t number = n % cases.size();
    const Case& of = cases[number];
    const auto change = static_cast<test::Change>(random.below(index++, test::changes));
    const std::optional<Schedule> made = test::changed(of.schedule, change, random, index);
    coverage.count("rejected by the Builder", !made);
    if (!made) continue;
    const std::string why = why_not_equivalent(*made, of.step);
    INFO(of.schedule.name() << ", case " << n << ", change " << static_cast<int>(change) << ": "
                            << why);
    const bool same = Numbers(of).run(*made) == expected[number];
    REQUIRE(why.empty() == same);
    coverage.count("harmless", same);
    coverage.count(text("found, change ", static_cast<int>(change)), !same);
  }
  INFO(coverage);
  CHECK(coverage.rarer_than(30) == "");
}

TEST_CASE("a difference is named") {
  const Orders orders = schedule::one_f_one_b(4, 8);
  const Schedule good = weave(orders);
  const SerialStep step = schedule::serial_step(orders);
  /// The complaint about the list in which `change` has changed the uses of an action.
  const auto complaint = [&](const std::string& action, auto&& change) {
    Builder builder = Builder::like(good, [](const Buffer& buffer) { return buffer; });
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::vector<Use> uses(good.uses(ActionId{i}).begin(), good.uses(ActionId{i}).end());
      if (schedule::action_text(good, ActionId{i}) == action) change(uses);
      if (!uses.empty()) builder.add(good, ActionId{i}, uses);
    }
    return why_not_equivalent(std::move(builder).build(), step);
  };
  CHECK(complaint("2B5", [](std::vector<Use>& uses) {
          uses.back() = schedule::write(uses.back().buffer);
        }) == "the gradient of stage 2 lacks microbatch 0");
  CHECK(complaint("2B7", [](std::vector<Use>& uses) { uses.back().first = 0; }) == "");
  CHECK(
      complaint("3F5", [](std::vector<Use>& uses) { uses[0].first = 4; }) ==
      "3F5 on rank 3 reads the output of stage 2 for microbatch 4; expected the output of stage 2 "
      "for microbatch 5");
  CHECK(
      complaint("0SEND_F3 -> 1RECV_F3", [](std::vector<Use>& uses) { uses[0].first = 2; }) ==
      "1F3 on rank 1 reads the output of stage 0 for microbatch 2; expected the output of stage 0 "
      "for microbatch 3");
  CHECK(complaint("1UPDATE0", [](std::vector<Use>& uses) { uses.clear(); })
            .find("reads version 0 of the weights of stage 1; expected version 1") !=
        std::string::npos);

  const Orders asynchronous = schedule::pipedream(3, 8);
  SerialStep stated = schedule::serial_step(asynchronous);
  CHECK(why_not_equivalent(weave(asynchronous), stated) == "");
  stated.versions.clear();
  CHECK(why_not_equivalent(weave(asynchronous), stated) ==
        "2F1 on rank 2 reads version 1 of the weights of stage 2; expected version 0 of the "
        "weights of stage 2");

  SerialStep twice = step;
  twice.microbatches = 9;
  CHECK(why_not_equivalent(good, twice) == "the gradient of stage 0 lacks microbatch 8");
  twice.microbatches = 7;
  CHECK(why_not_equivalent(good, twice).find("is of no microbatch; there are 7") !=
        std::string::npos);
}

}  // namespace test_mutations
