// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Redistributions are proved to bring every element to its place. Of lists with one change, the
// proof and a run with numbers agree which ones still do.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "support/cases.hpp"
#include "support/changed_list.hpp"
#include "support/complaint.hpp"
#include "support/coverage.hpp"
#include "support/redistribution_case.hpp"

namespace test_redistribution_proofs {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using schedule::Redistribution;
using schedule::why_not_equivalent;
using test::RedistributionCase;

namespace {

constexpr Bytes element = 8;

std::uint64_t mixed(std::uint64_t state) {
  state = (state ^ state >> 31) * 0x9e3779b97f4a7c15u;
  return state ^ state >> 29;
}

/// A run with numbers. A merge is commutative and not associative, so that its order counts.
/// Returns the arrays "from" and "to" at the end, or nothing if an action has no meaning.
class Numbers {
 public:
  Numbers(const Redistribution& plan, const Schedule& schedule)
      : m_plan(plan), m_schedule(schedule) {
    for (const Buffer& buffer : schedule.buffers()) m_memory.emplace_back(buffer.bytes / element);
    const Layout& source = plan.source;
    for (int r = 0; r < source.mesh().size(); ++r) {
      std::uint64_t part = 1;
      for (const int coordinate : test::part_of(source, Rank{r}))
        part = 31 * part + static_cast<std::uint64_t>(coordinate);
      for (std::size_t b = 0; b < m_memory.size(); ++b) {
        const Buffer& buffer = schedule[BufferId{b}];
        if (buffer.rank != source.ranks()[static_cast<std::size_t>(r)] ||
            schedule[buffer.label] != "from")
          continue;
        test::for_each_element(source, Rank{r}, [&](std::size_t offset, const auto& global) {
          std::uint64_t value = part;
          for (const std::int64_t index : global)
            value = mixed(value + static_cast<std::uint64_t>(index) + 1);
          m_memory[b][offset] = value;
        });
      }
    }
  }

  [[nodiscard]] std::optional<std::vector<std::uint64_t>> run() {
    for (std::size_t i = 0; i < m_schedule.size(); ++i)
      if (!perform(ActionId{i})) return std::nullopt;
    std::vector<std::uint64_t> all;
    for (std::size_t b = 0; b < m_memory.size(); ++b)
      if (!m_schedule[BufferId{b}].transient)
        all.insert(all.end(), m_memory[b].begin(), m_memory[b].end());
    return all;
  }

 private:
  std::uint64_t& at(const Use& use, std::size_t i) {
    const Bytes first = schedule::part_offset(m_schedule[use.buffer], use.first);
    return m_memory[+use.buffer][first / element + i];
  }

  [[nodiscard]] bool perform(ActionId id) {
    const auto uses = m_schedule.uses(id);
    const std::size_t count = m_schedule.bytes(uses[0]) / element;
    const std::size_t other = m_schedule.bytes(uses[1]) / element;
    if (m_schedule[id].kind != Kind::cast) {
      if (count != other) return false;
      const bool moves = m_schedule[id].kind == Kind::move;
      const bool forwards = moves || uses[1].writes();
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t value = at(uses[forwards ? 0 : 1], i);
        std::uint64_t& into = at(uses[forwards ? 1 : 0], i);
        into = moves ? value : mixed(value + into);
      }
      return true;
    }
    if (+m_schedule[id].item >= m_plan.exchange.pieces.size()) return false;
    std::vector<std::size_t> places;
    for (const StridedBlock& block : m_plan.exchange.pieces[+m_schedule[id].item].blocks)
      block.for_each_run([&](std::int64_t offset) {
        for (std::size_t i = 0; i < block.run() / element; ++i)
          places.push_back(static_cast<std::size_t>(offset) / element + i);
      });
    if (places.size() != count) return false;
    for (const std::size_t place : places)
      if (place >= other) return false;
    for (std::size_t i = 0; i < count; ++i)
      if (uses[0].writes())
        at(uses[0], i) = at(uses[1], places[i]);
      else
        at(uses[1], places[i]) = at(uses[0], i);
    return true;
  }

  const Redistribution& m_plan;
  const Schedule& m_schedule;
  std::vector<std::vector<std::uint64_t>> m_memory;
};

Redistribution drawn(std::uint64_t seed, int ranks, test::Coverage* coverage = nullptr) {
  const RedistributionCase test = RedistributionCase::draw(seed, ranks, seed % 5 == 4 ? 3 : 6, 4);
  if (coverage != nullptr) test.count(*coverage, ranks);
  return schedule::redistribution(test.source, test.target, ranks, element);
}

}  // namespace

TEST_CASE("every redistribution is proved to bring each element to its place") {
  test::Coverage coverage("proved redistributions");
  for (std::uint64_t seed = 0; seed < test::cases(1'500, 100'000); ++seed) {
    const int ranks = static_cast<int>(1 + seed % 8);
    const Redistribution plan = drawn(seed, ranks, &coverage);
    INFO("seed " << seed << ": " << plan);
    REQUIRE(why_not_equivalent(schedule::to_schedule(plan, Scalar::i64), plan) == "");
    REQUIRE(why_not_equivalent(schedule::to_schedule(plan.exchange, "packed", Scalar::byte, true),
                               plan) == "");
  }
  INFO(coverage);
  CHECK(coverage.rarer_than(4) == "");
}

TEST_CASE("changes of a redistribution are found, or do not change the numbers") {
  Random random(2, "changed redistributions");
  std::uint64_t index = 0;
  test::Coverage coverage("changed redistributions");
  for (std::uint64_t n = 0; n < test::cases(5'000, 100'000); ++n) {
    const Redistribution plan = drawn(n / 4, static_cast<int>(2 + n / 4 % 7));
    const Schedule whole = schedule::to_schedule(plan, Scalar::i64);
    if (whole.size() == 0) continue;
    const auto change = static_cast<test::Change>(random.below(index++, test::changes));
    const std::optional<Schedule> made = test::changed(whole, change, random, index);
    coverage.count("rejected by the Builder", !made);
    if (!made) continue;
    const std::string why = why_not_equivalent(*made, plan);
    INFO("case " << n << ", change " << static_cast<int>(change) << ": " << why << '\n' << plan);
    const auto numbers = Numbers(plan, *made).run();
    const bool same = numbers && numbers == Numbers(plan, whole).run();
    REQUIRE(why.empty() == same);
    coverage.count("harmless", same);
    if (change != test::Change::overwrite)
      coverage.count(text("found, change ", static_cast<int>(change)), !same);
  }
  INFO(coverage);
  CHECK(coverage.rarer_than(20) == "");
}

TEST_CASE("a difference of a redistribution is named") {
  const MeshShape mesh{{"a", 3}};
  const Layout rows(mesh, {6, 4}, {Shard{0}}), columns(mesh, {6, 4}, {Shard{1}});
  const Layout parts(mesh, {6, 4}, {Partial{}});
  /// The complaint about the list without the actions that `dropped` names, or with them twice.
  const auto complaint = [](const Redistribution& plan, auto&& times) {
    const Schedule good = schedule::to_schedule(plan);
    Builder builder = Builder::like(good, [](Buffer buffer) {
      buffer.transient = false;
      return buffer;
    });
    for (std::size_t i = 0; i < good.size(); ++i)
      for (int n = times(good[ActionId{i}]); n > 0; --n)
        builder.add(good, ActionId{i}, good.uses(ActionId{i}));
    return why_not_equivalent(std::move(builder).build(), plan);
  };
  const Redistribution turned = schedule::redistribution(rows, columns, 3, element);
  const auto without = [](Kind kind, Rank rank) {
    return
        [=](const Action& action) { return action.kind == kind && +action.stage == +rank ? 0 : 1; };
  };
  CHECK(complaint(turned, [](const Action&) { return 1; }) == "");
  CHECK_THAT(complaint(turned, without(Kind::move, Rank{1})),
             ContainsSubstring("element (2, 0) on rank 0 has no value"));
  CHECK_THAT(complaint(turned, without(Kind::cast, Rank{1})),
             ContainsSubstring("element (2, 0) on rank 0 depends on ") &&
                 ContainsSubstring("which reads no value from element 0 of 'packed' on rank 1"));
  const Redistribution summed = schedule::redistribution(parts, rows, 3, element);
  CHECK_THAT(complaint(summed, without(Kind::combine, Rank{1})),
             ContainsSubstring("element (2, 0) on rank 1 lacks part "));
  CHECK_THAT(
      complaint(summed,
                [](const Action& action) {
                  return action.kind == Kind::combine && +action.stage == 2 ? 2 : 1;
                }),
      ContainsSubstring("element (4, 0) on rank 2 has part ") && ContainsSubstring(" twice"));
  // The same list for another target.
  CHECK_THAT(test::message_of<contract_error>([&] {
               (void)why_not_equivalent(schedule::to_schedule(turned),
                                        schedule::redistribution(rows, rows, 4, element));
             }),
             ContainsSubstring("the schedule is not of the ranks of the plan") &&
                 ContainsSubstring("the schedule has 3 ranks, the plan 4 arrays 'from'"));
  CHECK_THAT(test::message_of<contract_error>([&] {
               (void)why_not_equivalent(
                   schedule::to_schedule(turned),
                   schedule::redistribution(rows, Layout(mesh, {6, 4}, {Replicate{}}), 3, element));
             }),
             ContainsSubstring("an array of the schedule is not that of the plan") &&
                 ContainsSubstring("'to' of rank 0 has "));
}

TEST_CASE("a plan whose arrays are not those of its layouts is rejected") {
  const MeshShape mesh{{"a", 3}};
  const Layout rows(mesh, {6, 4}, {Shard{0}}), columns(mesh, {6, 4}, {Shard{1}});
  const Redistribution good = schedule::redistribution(rows, columns, 3, element);
  const Schedule list = schedule::to_schedule(good);
  const auto complaint = [](const Schedule& of, const Redistribution& plan) {
    return test::message_of<contract_error>([&] { (void)why_not_equivalent(of, plan); });
  };
  // Layouts of other tensors and of ranks that the plan lacks.
  Redistribution wrong = good;
  wrong.source = Layout(mesh, {6, 5}, {Shard{0}});
  CHECK_THAT(complaint(list, wrong),
             ContainsSubstring("the layouts of the plan are of two tensors or of other ranks"));
  wrong = good;
  wrong.target = Layout(MeshShape{{"a", 4}}, {6, 4}, {Shard{0}});
  CHECK_THAT(complaint(list, wrong), ContainsSubstring("arrays of 3 ranks"));
  // Every rank has all elements, but has memory for a share only.
  const Layout everywhere(mesh, {6, 4}, {Replicate{}});
  for (const bool source : {true, false}) {
    wrong = good;
    (source ? wrong.source : wrong.target) = everywhere;
    CHECK_THAT(complaint(list, wrong),
               ContainsSubstring("an array of the plan is not that of its layout"));
  }
  // Neither the plan nor the list has an array.
  const Redistribution none = schedule::redistribution(
      Layout(mesh, {0, 4}, {Shard{0}}), Layout(mesh, {0, 4}, {Shard{1}}), 3, element);
  Redistribution lost = none;
  lost.source = rows;
  lost.target = columns;
  CHECK_THAT(
      complaint(schedule::to_schedule(none), lost),
      ContainsSubstring("'from' of rank 0 has 0 bytes, the layout 8 with elements of 1 bytes"));
  // The array of a rank outside of the mesh.
  const Layout two(MeshShape{{"a", 2}}, {6, 4}, {Shard{0}});
  Redistribution more = schedule::redistribution(two, two, 3, element);
  more.exchange.to[2] = element;
  CHECK_THAT(complaint(schedule::to_schedule(more), more),
             ContainsSubstring("'to' of rank 2 has 8 bytes, the layout 0"));
}

}  // namespace test_redistribution_proofs
