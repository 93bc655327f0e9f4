// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// after() and carried() against all pairs of uses, by brute force, on random lists.

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/random_schedule.hpp"

namespace test_derived_dependencies {

using namespace heddle;

namespace {

/// Three events of an action: it starts, ends at its source, arrives at its destination (for all
/// but moves the end). Two copies of the list, so that dependencies on the previous step show.
class Events {
 public:
  explicit Events(const Schedule& schedule) : m_schedule(schedule), m_before(6 * schedule.size()) {
    const std::size_t length = schedule.size();
    const std::vector<heddle::impl::Carried> carry = schedule::impl::carried(schedule);
    std::map<QueueId, std::size_t> last;
    std::size_t next = 0;
    for (std::size_t n = 0; n < 2 * length; ++n) {
      const ActionId id{n % length};
      if (const auto [before, fresh] = last.try_emplace(schedule[id].queue, n); !fresh) {
        order(end(before->second), start(n));
        order(arrival(before->second), arrival(n));
        before->second = n;
      }
      for (const After& after : schedule.after(id)) edge(n, after, n - +id);
      if (n >= length)
        for (; next < carry.size() && carry[next].action == id; ++next) edge(n, carry[next].on, 0);
      order(start(n), end(n));
      order(end(n), arrival(n));
    }
    complete = next == carry.size();
  }

  bool complete = false;  ///< every carried edge was met, in the order of the waiting actions

  /// The first pair that conflicts and is not ordered: what is written before it is read or written
  /// again, what is read before it is written again. Empty where there is none.
  [[nodiscard]] std::string unordered() const {
    const std::size_t length = m_schedule.size();
    for (std::size_t b = 0; b < 2 * length; ++b)
      for (std::size_t a = 0; a < b; ++a)
        for (const Use& one : m_schedule.uses(ActionId{a % length}))
          for (const Use& two : m_schedule.uses(ActionId{b % length})) {
            if (!overlap(one, two)) continue;
            const std::size_t begins = writes_at_destination(b, two) ? arrival(b) : start(b);
            if ((one.writes() && !before(written(a, one), begins)) ||
                (two.writes() && one.reads() && !before(end(a), begins)))
              return text("action ", b, " is not after ", a, " (", length, " a step)");
          }
    return {};
  }

  /// True where an edge stands for a conflict of the two actions at the ends that it names.
  [[nodiscard]] bool justified(ActionId id, const After& after) const {
    const ActionId on{after.action};
    for (const Use& one : m_schedule.uses(on))
      for (const Use& two : m_schedule.uses(id)) {
        if (!overlap(one, two) || (!one.writes() && !two.writes())) continue;
        const bool ends = (m_schedule[on].kind == Kind::move && one.writes()) == (after.end == 1);
        const bool mine = (m_schedule[id].kind == Kind::move && two.writes()) == (after.mine == 1);
        if (ends && mine) return true;
      }
    return false;
  }

 private:
  using Set = std::bitset<600>;

  static std::size_t start(std::size_t n) { return 3 * n; }
  static std::size_t end(std::size_t n) { return 3 * n + 1; }
  static std::size_t arrival(std::size_t n) { return 3 * n + 2; }

  void order(std::size_t first, std::size_t second) {
    m_before[second] |= m_before[first];
    m_before[second].set(first);
  }
  void edge(std::size_t n, const After& after, std::size_t offset) {
    const std::size_t on = after.action + offset;
    order(after.end ? arrival(on) : end(on), after.mine ? arrival(n) : start(n));
  }
  [[nodiscard]] bool before(std::size_t first, std::size_t second) const {
    return m_before[second].test(first);
  }
  [[nodiscard]] bool writes_at_destination(std::size_t n, const Use& use) const {
    return m_schedule[ActionId{n % m_schedule.size()}].kind == Kind::move && use.writes();
  }
  [[nodiscard]] std::size_t written(std::size_t n, const Use& use) const {
    return writes_at_destination(n, use) ? arrival(n) : end(n);
  }
  static bool overlap(const Use& one, const Use& two) {
    return one.buffer == two.buffer && one.first < two.first + two.count &&
           two.first < one.first + one.count;
  }

  const Schedule& m_schedule;
  std::vector<Set> m_before;
};

constexpr std::size_t most_actions = 100;  // 6 events of each in a Set

}  // namespace

TEST_CASE("derived dependencies order every conflict of random lists, in a step and across two") {
  test::Coverage coverage("random schedules");
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 4);
    const int length = 1 + static_cast<int>(seed * 7 % most_actions);
    const Schedule random = test::random_schedule(seed, ranks, length);
    test::count_schedule(coverage, random);
    const Events events(random);
    REQUIRE(events.complete);
    if (const std::string pair = events.unordered(); !pair.empty())
      FAIL(random.name() << ", " << ranks << " ranks: " << pair);
  }
  std::cout << coverage;
  CHECK(coverage.rarer_than(20) == "");
}

TEST_CASE("no dependency is derived twice, of a later action or without a conflict") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Schedule random = test::random_schedule(seed, 1 + static_cast<int>(seed % 4), 90);
    const Events events(random);
    const auto check = [&](ActionId id, const After& on, auto& known) {
      const QueueId queue = random[ActionId{on.action}].queue;
      const bool unique = known.emplace(queue, on.end + 0u, on.mine + 0u).second;
      // Order in a queue says that an action ends before the next begins, not that it arrives.
      const bool needed = queue != random[id].queue || on.end == 1;
      if (!unique || !needed || !events.justified(id, on))
        FAIL(random.name() << ": action " << id << " after " << on.action);
    };
    for (std::size_t i = 0; i < random.size(); ++i) {
      std::set<std::tuple<QueueId, std::uint32_t, std::uint32_t>> known;
      for (const After& after : random.after(ActionId{i})) {
        if (after.action >= i) FAIL("action " << i << " waits for a later one");
        check(ActionId{i}, after, known);
      }
    }
    std::map<ActionId, std::set<std::tuple<QueueId, std::uint32_t, std::uint32_t>>> known;
    for (const heddle::impl::Carried& edge : schedule::impl::carried(random))
      check(edge.action, edge.on, known[edge.action]);
  }
}

TEST_CASE("a sum that comes one step late is a carried dependency") {
  // The sum of a step's gradients is ready late in the step, and read early in the next.
  Builder builder("late sum", 1);
  const LabelId label = builder.label("data");
  const BufferId gradients = builder.add_buffer({.label = label});
  const BufferId sum = builder.add_buffer({.label = label, .transient = false});
  const QueueId compute = builder.local(Rank{0});
  const QueueId network = builder.local(Rank{0}, Lane{1});
  builder.add({.kind = Kind::backward, .queue = compute},
              {schedule::read(sum), schedule::write(gradients)});
  builder.add({.kind = Kind::group, .queue = network},
              {schedule::read(gradients), schedule::write(sum)});
  const Schedule late = std::move(builder).build();
  REQUIRE(late.after(ActionId{0}).empty());
  REQUIRE(late.after(ActionId{1}).size() == 1);
  CHECK(late.after(ActionId{1})[0].action == 0);
  const std::vector<heddle::impl::Carried> edges = schedule::impl::carried(late);
  REQUIRE(edges.size() == 1);
  CHECK(edges[0].action == ActionId{0});
  CHECK(edges[0].on.action == 1);
}

TEST_CASE("reuse of one slot by two messages is ordered at the receiver, not at the sender") {
  Builder builder("slot", 2);
  const LabelId label = builder.label("data");
  const BufferId from = builder.add_buffer({.parts = 2, .label = label, .transient = false});
  const BufferId slot = builder.add_buffer({.rank = Rank{1}, .label = label});
  const QueueId channel = builder.queue(Rank{0}, Rank{1});
  const QueueId work = builder.local(Rank{1});
  for (std::uint32_t m = 0; m < 2; ++m) {
    builder.add({.kind = Kind::move, .queue = channel},
                {schedule::read(from, m), schedule::write(slot)});
    builder.add({.kind = Kind::user, .queue = work}, {schedule::read(slot)});
  }
  const Schedule list = std::move(builder).build();
  REQUIRE(list.after(ActionId{1}).size() == 1);
  CHECK((list.after(ActionId{1})[0].end == 1 && list.after(ActionId{1})[0].mine == 0));
  REQUIRE(list.after(ActionId{2}).size() == 1);
  CHECK((list.after(ActionId{2})[0].action == 1 && list.after(ActionId{2})[0].mine == 1));
}

TEST_CASE("work in the queue of a move within its rank waits for the arrival") {
  Builder builder("copy", 1);
  const LabelId label = builder.label("data");
  const BufferId from = builder.add_buffer({.label = label, .transient = false, .bytes = 1});
  const BufferId to = builder.add_buffer({.label = label, .bytes = 1});
  const QueueId queue = builder.local(Rank{0});
  builder.add({.kind = Kind::move, .queue = queue}, {schedule::read(from), schedule::write(to)});
  builder.add({.kind = Kind::user, .queue = queue}, {schedule::read(to)});
  const Timeline timeline =
      simulate(std::move(builder).build(), {.user = 1, .latency = 5, .per_byte = 2});
  CHECK(timeline[ActionId{0}].arrival == 7);
  CHECK(timeline[ActionId{1}].start == 7);
}

}  // namespace test_derived_dependencies
