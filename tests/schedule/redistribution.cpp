// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Redistributions as Schedules, run from top to bottom, against what each element must be; their
// bytes against the least that there can be, and against sequences of steps along one axis.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/complaint.hpp"
#include "support/redistribution_case.hpp"

namespace test_redistribution {

using namespace heddle;
using namespace heddle::schedule;
using Catch::Matchers::ContainsSubstring;
using test::RedistributionCase;

namespace {

using Number = std::int32_t;
constexpr Number untouched = -1;
using Indices = std::vector<std::int64_t>;

/// Memory of every buffer, and the actions of a redistribution done to it in the order of the list.
class Serial {
 public:
  Serial(const Redistribution& plan, const Schedule& schedule) : m_plan(plan), m_run(schedule) {
    for (const Buffer& buffer : schedule.buffers())
      m_memory.emplace_back(buffer.bytes / sizeof(Number), untouched);
  }

  /// The array of a rank; null: it has none.
  Number* array(Rank rank, const char* role) {
    for (std::size_t b = 0; b < m_memory.size(); ++b) {
      const Buffer& buffer = m_run[BufferId{b}];
      if (buffer.rank == rank && m_run[buffer.label] == role) return m_memory[b].data();
    }
    return nullptr;
  }

  void run(Merge merge) {
    for (std::size_t i = 0; i < m_run.size(); ++i) {
      const ActionId id{i};
      const Action& action = m_run[id];
      const auto uses = m_run.uses(id);
      std::byte* const first = at(uses[0]);
      std::byte* const second = at(uses[1]);
      const Bytes bytes = m_run.bytes(uses[0]);
      const auto& blocks = m_plan.exchange.pieces[+action.item].blocks;
      if (action.kind == Kind::move) {
        REQUIRE(m_run.bytes(uses[1]) == bytes);
        std::memcpy(second, first, bytes);
      } else if (action.kind == Kind::combine) {
        const bool ahead = uses[0].access() == Access::update;
        REQUIRE(uses[ahead ? 1 : 0].access() == Access::read);
        for (Bytes b = 0; b < bytes; b += sizeof(Number)) {
          Number left, right;
          std::memcpy(&left, second + b, sizeof left);
          std::memcpy(&right, first + b, sizeof right);
          left = test::merged(merge, left, right);
          std::memcpy((ahead ? first : second) + b, &left, sizeof left);
        }
      } else {
        REQUIRE(action.kind == Kind::cast);
        Bytes done = 0;
        for (const StridedBlock& block : blocks) {
          if (uses[0].access() == Access::write)
            pack(block, second, first + done);
          else
            unpack(block, first + done, second);
          done += block.bytes();
        }
        REQUIRE(done == bytes);
      }
    }
  }

 private:
  std::byte* at(const Use& use) {
    return reinterpret_cast<std::byte*>(m_memory[+use.buffer].data()) +
           part_offset(m_run[use.buffer], use.first);
  }
  const Redistribution& m_plan;
  const Schedule& m_run;
  std::vector<std::vector<Number>> m_memory;
};

/// The least elements that must be sent: for every element, and every choice of axes that stay
/// Partial, p parts to k ranks. See Redistribution.
std::int64_t least(const RedistributionCase& test) {
  struct Element {
    std::set<std::vector<int>> parts;
    std::set<std::size_t> holds, needs;
  };
  const bool stays = test.target.partial().has_value();
  std::map<std::pair<Indices, std::vector<int>>, Element> all;  // by index, and what stays Partial
  const auto staying = [&](Rank rank) {
    return stays ? test::part_of(test.target, rank) : std::vector<int>{};
  };
  for (int r = 0; r < test.source.mesh().size(); ++r)
    test::for_each_element(test.source, Rank{r}, [&](std::size_t, const Indices& global) {
      Element& element = all[{global, staying(Rank{r})}];
      element.parts.insert(test::part_of(test.source, Rank{r}));
      element.holds.insert(+test.source.ranks()[static_cast<std::size_t>(r)]);
    });
  for (int r = 0; r < test.target.mesh().size(); ++r)
    test::for_each_element(test.target, Rank{r}, [&](std::size_t, const Indices& global) {
      all[{global, staying(Rank{r})}].needs.insert(
          +test.target.ranks()[static_cast<std::size_t>(r)]);
    });
  std::int64_t sum = 0;
  for (const auto& [key, element] : all) {
    std::int64_t held = 0;
    for (const std::size_t rank : element.needs) held += element.holds.contains(rank) ? 1 : 0;
    const auto p = static_cast<std::int64_t>(element.parts.size());
    const auto k = static_cast<std::int64_t>(element.needs.size());
    // Values: whoever has none gets one. Parts: they meet on one rank, which tells the others.
    sum += p == 1 ? k - held : p - (held > 0 ? 1 : 0) + k - 1;
  }
  return sum;
}

/// Elements that a collective along `axis` sends to bring `from` to `to`, which differ in the
/// placement there only; each element is told to whoever lacks it. None: there is no such step.
std::optional<std::int64_t> step_cost(const Layout& from, const Layout& to, std::size_t axis) {
  const Placement& before = from.placements()[axis];
  const Placement& after = to.placements()[axis];
  if (std::holds_alternative<Partial>(after)) return std::nullopt;
  // Others shard what this axis leaves to them: not along one line then.
  const auto dim_of = [](const Placement& one) {
    const Shard* const shard = std::get_if<Shard>(&one);
    return shard == nullptr ? -1 : shard->dim;
  };
  for (std::size_t later = axis + 1; later < from.placements().size(); ++later) {
    const int dim = dim_of(from.placements()[later]);
    if (dim >= 0 && (dim == dim_of(before) || dim == dim_of(after))) return std::nullopt;
  }
  return least({from, to});
}

/// The least of all sequences of steps along one axis, by Dijkstra's algorithm over the placements
/// of `palette` on each axis.
std::int64_t least_of_sequences(const RedistributionCase& test,
                                const std::vector<Placement>& palette) {
  std::vector<Layout> known = {test.source};
  std::vector<std::int64_t> cost = {0};
  using Entry = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> next;
  next.emplace(0, 0);
  while (!next.empty()) {
    const auto [so_far, at] = next.top();
    next.pop();
    if (so_far > cost[at]) continue;
    const Layout here = known[at];
    if (here == test.target) return so_far;
    for (std::size_t axis = 0; axis < here.placements().size(); ++axis)
      for (const Placement& placement : palette) {
        if (placement == here.placements()[axis]) continue;
        auto placements = here.placements();
        placements[axis] = placement;
        const Layout there = here.with(placements);
        const auto price = step_cost(here, there, axis);
        if (!price) continue;
        const auto found = std::ranges::find(known, there);
        const auto number = static_cast<std::size_t>(found - known.begin());
        if (found == known.end()) {
          known.push_back(there);
          cost.push_back(so_far + *price);
        } else if (so_far + *price < cost[number]) {
          cost[number] = so_far + *price;
        } else {
          continue;
        }
        next.emplace(cost[number], number);
      }
  }
  FAIL("there is always a way by Replicate");
  return 0;
}

Redistribution plan_of(const RedistributionCase& test, int ranks) {
  return redistribution(test.source, test.target, ranks, sizeof(Number));
}

}  // namespace

TEST_CASE(
    "run from top to bottom, every element is where and what it must be, and nothing else is "
    "touched") {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const int ranks = static_cast<int>(1 + seed % 8);
    // Every fifth has as many dimensions as there may be.
    const RedistributionCase test = seed % 5 == 4 ? RedistributionCase::draw(seed, ranks, 3, 8)
                                                  : RedistributionCase::draw(seed, ranks);
    const Redistribution plan = plan_of(test, ranks);
    INFO("seed " << seed << ": " << plan);
    const Schedule schedule = to_schedule(plan, Scalar::i32);
    Serial serial(plan, schedule);
    for (int r = 0; r < test.source.mesh().size(); ++r) {
      const auto part = test::part_of(test.source, Rank{r});
      Number* const array = serial.array(test.source.ranks()[static_cast<std::size_t>(r)], "from");
      test::for_each_element(test.source, Rank{r}, [&](std::size_t offset, const Indices& global) {
        array[offset] = test::value_of<Number>(global, part, seed);
      });
    }
    serial.run(test.source.partial().value_or(Merge::sum));
    for (int r = 0; r < test.target.mesh().size(); ++r) {
      const Number* const array =
          serial.array(test.target.ranks()[static_cast<std::size_t>(r)], "to");
      std::set<std::size_t> owned;
      bool right = true;
      test::for_each_element(test.target, Rank{r}, [&](std::size_t offset, const Indices& global) {
        right = right && array[offset] == test::expected<Number>(test, Rank{r}, global, seed);
        owned.insert(offset);
      });
      REQUIRE(right);
      std::size_t elements = 1;
      for (const std::int64_t extent : test.target.extents(Rank{r}))
        elements *= static_cast<std::size_t>(extent);
      for (std::size_t i = 0; array != nullptr && i < elements; ++i)
        right = right && (owned.contains(i) || array[i] == untouched);
      REQUIRE(right);
    }
  }
}

TEST_CASE("no plan sends less, element by element") {
  for (std::uint64_t seed = 5000; seed < 5600; ++seed) {
    const int ranks = static_cast<int>(1 + seed % 8);
    const RedistributionCase test = seed % 5 == 4 ? RedistributionCase::draw(seed, ranks, 3, 8)
                                                  : RedistributionCase::draw(seed, ranks, 5);
    const Redistribution plan = plan_of(test, ranks);
    INFO("seed " << seed << ": " << plan);
    REQUIRE(plan.bytes() == sizeof(Number) * static_cast<Bytes>(least(test)));
    // What the schedule moves between ranks is the same.
    const Schedule schedule = to_schedule(plan, Scalar::i32);
    Bytes moved = 0;
    for (std::size_t i = 0; i < schedule.size(); ++i)
      if (!schedule[schedule[ActionId{i}].queue].local())
        moved += schedule.bytes(schedule.uses(ActionId{i})[0]);
    REQUIRE(moved == plan.bytes());
  }
}

TEST_CASE("no sequence of steps along one axis sends less") {
  const std::vector<Placement> palette = {Shard{0}, Shard{1}, Replicate{}};
  std::size_t fewer = 0;
  for (const MeshShape& mesh : {MeshShape{{"a", 2}, {"b", 2}}, MeshShape{{"a", 2}, {"b", 3}}})
    for (const Indices& sizes : {Indices{4, 6}, Indices{5, 3}, Indices{1, 7}}) {
      std::vector<std::vector<Placement>> all;
      for (const Placement& a : {palette[0], palette[1], palette[2], Placement(Partial{})})
        for (const Placement& b : {palette[0], palette[1], palette[2], Placement(Partial{})})
          all.push_back({a, b});
      for (const auto& from : all)
        for (const auto& to : all) {
          const Layout source(mesh, sizes, from);
          const Layout target(mesh, sizes, to);
          if (target.partial()) continue;
          const RedistributionCase test{source, target};
          const Redistribution plan = plan_of(test, mesh.size());
          INFO(plan);
          const auto sequence =
              sizeof(Number) * static_cast<Bytes>(least_of_sequences(test, palette));
          CHECK(plan.bytes() <= sequence);
          if (plan.bytes() < sequence) ++fewer;
        }
    }
  CHECK(fewer > 0);  // going straight there pays
}

TEST_CASE("steps are named for what they do, and print") {
  const MeshShape mesh{{"data", 2}, {"tensor", 2}};
  const auto steps = [&](std::vector<Placement> from, std::vector<Placement> to) {
    const Layout source(mesh, {8, 8}, std::move(from));
    return redistribution(source, source.with(std::move(to)), 4, 8).steps();
  };
  CHECK(steps({Shard{0}, Replicate{}}, {Shard{1}, Replicate{}}) == "all_to_all");
  CHECK(steps({Shard{0}, Shard{1}}, {Shard{0}, Replicate{}}) == "all_gather");
  CHECK(steps({Replicate{}, Replicate{}}, {Shard{1}, Replicate{}}) == "local");
  CHECK(steps({Shard{0}, Replicate{}}, {Shard{0}, Replicate{}}) == "local");
  CHECK(steps({Partial{}, Shard{1}}, {Shard{0}, Shard{1}}) == "reduce_scatter");
  // Two parts: it takes as much where every rank merges them. Three: one does, and tells the
  // others.
  CHECK(steps({Partial{}, Replicate{}}, {Replicate{}, Replicate{}}) == "all_reduce");
  const Layout much(mesh, {64, 65}, {Partial{}, Replicate{}});
  CHECK(redistribution(much, much.with({Replicate{}, Replicate{}}), 4, 8).steps() ==
        "reduce_scatter, all_gather");
  const Layout three(MeshShape{{"data", 3}}, {8, 8}, {Partial{}});
  CHECK(redistribution(three, three.with({Replicate{}}), 3, 8).steps() ==
        "reduce_scatter, all_gather");
  CHECK(steps({Partial{}, Shard{0}}, {Replicate{}, Shard{0}}) == "all_reduce");
  CHECK(steps({Partial{}, Partial{}}, {Partial{}, Shard{0}}) == "reduce_scatter");
  CHECK(steps({Partial{}, Shard{0}}, {Partial{}, Shard{1}}) == "all_to_all");
  const Layout empty(mesh, {0, 8}, {Shard{0}, Shard{1}});
  CHECK(redistribution(empty, empty.with({Replicate{}, Shard{1}}), 4, 8).steps() == "nothing");
  const Layout source(MeshShape{{"all", 2}}, {2, 2}, {Shard{0}});
  CHECK(text(redistribution(source, source.with({Shard{1}}), 2, 8)) ==
        "2 x 2 on all=2 as Shard(0)\n"
        "  to 2 x 2 on all=2 as Shard(1)\n"
        "  by all_to_all, 16 bytes between ranks");
}

TEST_CASE("what lies in one run is not packed, and a step costs what its messages cost") {
  const Layout rows(MeshShape{{"all", 2}}, {4, 4}, {Shard{0}});
  const auto schedule = [&](const Placement& to) {
    return to_schedule(redistribution(rows, rows.with({to}), 2, 8), Scalar::f64);
  };
  // Rows to everybody: a message each way and a copy each.
  CHECK(to_text(schedule(Replicate{})) == "0SEND_F3,0RECV_F5,0COPY1\n1RECV_F3,1SEND_F5,1COPY7\n");
  const Schedule columns = schedule(Shard{1});
  CHECK(columns.name() == "redistribute by all_to_all");
  // Columns of rows lie apart, and are rows of columns: they are packed, and arrive in their place.
  CHECK(to_text(columns) == "0RECV_F3,0CAST5,0SEND_F5,0CAST1\n1CAST3,1SEND_F3,1RECV_F5,1CAST7\n");
  // 4 x 8 bytes go each way at 1 a byte, after they are packed.
  CHECK(simulate(columns, {.per_byte = 1}).makespan() == 32);
  CHECK(simulate(columns, {.cast = 1, .per_byte = 1}).makespan() == 64);
}

TEST_CASE("parts are merged where they arrive, and none is copied first") {
  for (int ranks = 2; ranks <= 4; ++ranks) {
    const Layout parts(MeshShape{{"all", ranks}}, {24, 100}, {Partial{}});
    for (const Placement& to : {Placement(Shard{0}), Placement(Replicate{})}) {
      const Schedule schedule = to_schedule(redistribution(parts, parts.with({to}), ranks, 8));
      INFO(to_text(schedule));
      int combines = 0, ahead = 0;
      for (std::size_t i = 0; i < schedule.size(); ++i) {
        const ActionId id{i};
        const bool local = schedule[schedule[id].queue].local();
        if (schedule[id].kind == Kind::combine) {
          ++combines;
          ahead += schedule.uses(id)[0].access() == Access::update ? 1 : 0;
        } else {
          CHECK(schedule[id].kind == Kind::move);
          CHECK_FALSE(local);
        }
      }
      // The first rank merges the part that arrives behind its own.
      CHECK(combines == ranks * (ranks - 1));
      CHECK(ahead == 1);
      // Of the others one message is no longer beside the result.
      Bytes arrived = 0;
      for (const Buffer& buffer : schedule.buffers())
        if (buffer.transient && buffer.rank == Rank{0}) arrived += buffer.bytes;
      CHECK(arrived == static_cast<Bytes>(ranks - 2) * 24 / static_cast<Bytes>(ranks) * 800);
    }
  }
}

TEST_CASE("a plan refuses what is no redistribution") {
  const MeshShape mesh{{"a", 2}, {"b", 2}};
  const Layout source(mesh, {4, 4}, {Partial{}, Shard{0}});
  const auto refusal = [&](const Layout& target, int ranks = 4) {
    return test::message_of<contract_error>(
        [&] { (void)redistribution(source, target, ranks, 8); });
  };
  CHECK_THAT(refusal(Layout(mesh, {4, 5}, {Replicate{}, Shard{0}})),
             ContainsSubstring("heddle::schedule::redistribution: the two layouts are of tensors "
                               "of other sizes (4 x 4 on"));
  const Layout huge(mesh, {std::int64_t{1} << 61, 1}, {Shard{0}, Replicate{}});
  CHECK_THAT(test::message_of<contract_error>([&] { (void)redistribution(huge, huge, 4, 8); }),
             ContainsSubstring("heddle::ArrayShape::bytes: 63 bits hold the bytes of an array (") &&
                 ContainsSubstring(" elements of 8 bytes"));
  CHECK_THAT(refusal(source.with({Replicate{}, Shard{0}}), 3),
             ContainsSubstring("a layout has a rank that the communicator has not (rank 3 of 3)"));
  CHECK_THAT(refusal(source.with({Partial{Merge::max}, Shard{0}})),
             ContainsSubstring("values do not become Partial (axis 'a' is to be Partial(max), it "
                               "is 4 x 4 on a=2 x b=2 as Partial(sum), Shard(0)); redistribute to "
                               "Shard or Replicate, or leave the axis as it is"));
  CHECK_THAT(refusal(source.with({Shard{0}, Partial{}})),
             ContainsSubstring("values do not become Partial (axis 'b'"));
  CHECK_THAT(refusal(Layout(MeshShape{{"a", 2}, {"c", 2}}, {4, 4}, {Partial{}, Shard{1}})),
             ContainsSubstring("values do not become Partial"));
}

}  // namespace test_redistribution
