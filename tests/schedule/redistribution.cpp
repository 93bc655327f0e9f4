// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Redistributions as Schedules, run from top to bottom, against what each element must be; what
// they are called, and what is refused.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
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
           schedule::part_offset(m_run[use.buffer], use.first);
  }
  const Redistribution& m_plan;
  const Schedule& m_run;
  std::vector<std::vector<Number>> m_memory;
};

Redistribution plan_of(const RedistributionCase& test, int ranks) {
  return redistribution(test.source, test.target, ranks, sizeof(Number));
}

}  // namespace

TEST_CASE(
    "run from top to bottom, every element is where and what it must be, and nothing else is "
    "touched") {
  test::Coverage coverage("random redistributions");
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const int ranks = static_cast<int>(1 + seed % 8);
    // Every fifth has as many dimensions as there may be.
    const RedistributionCase test = seed % 5 == 4 ? RedistributionCase::draw(seed, ranks, 3, 8)
                                                  : RedistributionCase::draw(seed, ranks);
    test.count(coverage, ranks);
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
  std::cout << coverage;
  CHECK(coverage.rarer_than(5) == "");
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
             ContainsSubstring("heddle::schedule::redistribution: the two layouts have different "
                               "tensor sizes (4 x 4 on"));
  const Layout huge(mesh, {std::int64_t{1} << 61, 1}, {Shard{0}, Replicate{}});
  CHECK_THAT(
      test::message_of<contract_error>([&] { (void)redistribution(huge, huge, 4, 8); }),
      ContainsSubstring(
          "heddle::SharedRegion::Array::bytes: the size of an array does not fit in 63 bits (") &&
          ContainsSubstring(" elements of 8 bytes"));
  CHECK_THAT(refusal(source.with({Replicate{}, Shard{0}}), 3),
             ContainsSubstring("a layout has a rank outside of the communicator (rank 3 of 3)"));
  CHECK_THAT(refusal(source.with({Partial{Merge::max}, Shard{0}})),
             ContainsSubstring("an axis cannot become Partial (axis 'a' is to be Partial(max), it "
                               "is 4 x 4 on a=2 x b=2 as Partial(sum), Shard(0)); redistribute to "
                               "Shard or Replicate, or keep the placement of the axis"));
  CHECK_THAT(refusal(source.with({Shard{0}, Partial{}})),
             ContainsSubstring("an axis cannot become Partial (axis 'b'"));
  CHECK_THAT(refusal(Layout(MeshShape{{"a", 2}, {"c", 2}}, {4, 4}, {Partial{}, Shard{1}})),
             ContainsSubstring("an axis cannot become Partial"));
}

}  // namespace test_redistribution
