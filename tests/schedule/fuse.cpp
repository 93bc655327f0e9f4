// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/meaning.hpp"
#include "support/rational.hpp"

namespace test_fuse {

using namespace heddle;
using test::Rational;

namespace {

Orders without_pairs(Orders orders) {
  for (auto& list : orders.ranks)
    for (Order& order : list) order.fused = false;
  return orders;
}

/// Whether `orders` is `fused` with some pairs taken apart.
bool keeps_pairs(const Orders& orders, const Orders& fused) {
  for (std::size_t rank = 0; rank < orders.ranks.size(); ++rank)
    for (std::size_t i = 0; i < orders.ranks[rank].size(); ++i)
      if (orders.ranks[rank][i].fused && !fused.ranks[rank][i].fused) return false;
  return without_pairs(orders).ranks == without_pairs(fused).ranks;
}

}  // namespace

TEST_CASE("1F1B on two ranks, fused, takes F + B + M (F + B) + (M - 1) FB") {
  // No pair on the last rank, whose backwards need the forwards before them: the two ranks take
  // turns, each waiting for the whole of the other's pair.
  const Rational F{1}, B{2}, FB{5, 2};
  for (const int m : {1, 2, 3, 7}) {
    const Orders fused = schedule::fuse(schedule::one_f_one_b(2, m));
    const auto timeline =
        simulate(weave(fused),
                 BasicStageCosts<Rational>{.forward = F, .backward = B, .forward_backward = FB});
    CHECK(timeline.makespan() == F + B + Rational(m) * (F + B) + Rational(m - 1) * FB);
  }
  CHECK(to_string(schedule::fuse(schedule::one_f_one_b(2, 3))) ==
        "0F0,(0F1;0B0)OVERLAP_F_B,(0F2;0B1)OVERLAP_F_B,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
}

TEST_CASE("a pair that is quicker than its halves makes a step shorter where ranks need not wait") {
  // One rank: F0 (F1;B0) B1, twice.
  const Orders one = schedule::group(schedule::one_f_one_b(1, 2), 2);
  CHECK(to_string(schedule::fuse(one)) ==
        "0F0,(0F1;0B0)OVERLAP_F_B,0B1,0F2,(0F3;0B2)OVERLAP_F_B,0B3\n");
  const BasicStageCosts<Rational> costs{.forward = 1, .backward = 2, .forward_backward = {9, 4}};
  CHECK(simulate(weave(one), costs).makespan() == Rational(12));
  CHECK(simulate(weave(schedule::fuse(one)), costs).makespan() == Rational(21, 2));
  // Groups of two on two ranks: by hand in quarters, F 4, B 8, FB 9.
  // Rank 0: F0 0-4, F1 4-8, F2 8-12, (F3;B0) 17-26, B1 26-34; rank 1: F0 4-8, (F1;B0) 8-17,
  // B1 17-25, F2 25-29, (F3;B2) 29-38, B3 38-46; so rank 0 ends with B2 38-46, B3 46-54.
  const Orders two = schedule::kfkb(2, 4, 2);
  CHECK(simulate(weave(schedule::fuse(two)), costs).makespan() == Rational(54, 4));
}

TEST_CASE("no backward goes with a forward that it needs by way of other ranks") {
  // The first backward of GPipe comes after the last forward, on every rank.
  CHECK(to_string(schedule::fuse(schedule::gpipe(3, 2))) ==
        "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n2F0,(2F1;2B0)OVERLAP_F_B,2B1\n");
  // The loss of both branches needs the last forward of either.
  const Orders joint = schedule::flexpipe(1, 2);
  CHECK(to_string(schedule::fuse(joint)).find("(0F0;1B0)") == std::string::npos);
}

TEST_CASE("DualPipe without its pairs has them back") {
  for (const Orders& orders : {schedule::dualpipe(4, 10), schedule::dualpipe_v(3, 8)})
    CHECK(keeps_pairs(orders, schedule::fuse(without_pairs(orders))));
}

TEST_CASE("every schedule of the catalogue can be fused, and computes the same") {
  for (const auto& entry : schedule::catalogue()) {
    for (const auto& [ranks, microbatches, stages_per_rank] :
         {std::tuple{1, 1, 1}, {2, 4, 2}, {3, 6, 1}, {4, 8, 2}, {4, 12, 3}}) {
      Orders orders;
      try {
        orders = entry.orders({ranks, microbatches, stages_per_rank});
      } catch (const infeasible&) {  // not for this shape
        continue;
      }
      for (const Orders& given : {orders, schedule::merge_backward(orders)}) {
        INFO(given.name);
        const Orders fused = schedule::fuse(given);
        CHECK(keeps_pairs(given, fused));
        CHECK(schedule::fuse(fused).ranks == fused.ranks);
        CHECK(test::meaning(weave(fused)) == test::meaning(weave(given)));
        const Orders halves = schedule::split_backward(given);
        CHECK(schedule::fuse(halves).ranks == halves.ranks);
      }
    }
  }
}

TEST_CASE("orders with a fault are not fused") {
  CHECK(test::message_of<infeasible>([] {
          (void)schedule::fuse({"mine", {{{Kind::forward, Stage{1}, Item{0}}}}});
        }) ==
        "heddle::schedule::fuse(mine): an action is missing (no rank has 0F0, which comes before "
        "1F0)");
}

}  // namespace test_fuse
