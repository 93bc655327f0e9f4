// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"

namespace test_weave_refusals {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

Order order(Kind kind, int stage, int item) { return {kind, Stage{stage}, Item{item}}; }

/// What weave() says of these lists, one per rank, over a chain of stages.
template <class E>
std::string refusal(const std::vector<std::vector<Order>>& ranks, int stages = 2) {
  return test::message_of<E>([&] {
    (void)weave(Orders{"mine", ranks, StageGraph::chain(stages)});
  });
}

constexpr Kind F = Kind::forward, I = Kind::backward_input, W = Kind::backward_weight,
               B = Kind::backward;

}  // namespace

TEST_CASE("orders that cannot progress name every stuck head and what it waits for") {
  CHECK_THAT(
      refusal<infeasible>({{order(F, 0, 0), order(B, 0, 0), order(F, 0, 1), order(B, 0, 1)},
                           {order(F, 1, 1), order(B, 1, 1), order(F, 1, 0), order(B, 1, 0)}}),
      ContainsSubstring("heddle::weave(mine): the orders cannot progress") &&
          ContainsSubstring("rank 0 waits at 0B0 for 1B0") &&
          ContainsSubstring("rank 1 waits at 1F1 for 0F1") &&
          ContainsSubstring("reorder one of these actions"));
  // A backward before its own forward; the rank that is done is not named.
  const std::string own = refusal<infeasible>({{order(F, 0, 0)}, {order(B, 1, 0), order(F, 1, 0)}});
  CHECK_THAT(own, ContainsSubstring("rank 1 waits at 1B0 for 1F0"));
  CHECK_THAT(own, !ContainsSubstring("rank 0"));
  // W before I; a stage that splits is waited for by its I.
  CHECK_THAT(refusal<infeasible>({{order(F, 0, 0), order(W, 0, 0), order(I, 0, 0)}}, 1),
             ContainsSubstring("waits at 0W0 for 0I0"));
  CHECK_THAT(refusal<infeasible>({{order(F, 0, 0), order(B, 0, 0)},
                                  {order(F, 1, 0), order(W, 1, 0), order(I, 1, 0)}}),
             ContainsSubstring("waits at 0B0 for 1I0") && ContainsSubstring("at 1W0 for 1I0"));
  // The forward that would unblock it is not there at all.
  CHECK_THAT(refusal<infeasible>({{order(F, 0, 0)}, {order(F, 1, 1), order(F, 1, 0)}}),
             ContainsSubstring("rank 1 waits at 1F1 for 0F1"));
}

TEST_CASE("1F1B with two actions swapped is refused") {
  Orders orders = schedule::one_f_one_b(4, 8);
  CHECK_NOTHROW(weave(orders));
  // A backward before its forward.
  std::swap(orders.ranks[3][0], orders.ranks[3][1]);
  CHECK_THROWS_AS(weave(orders), infeasible);
  // Rank 0 may wait for its first backward before its forward 3, but not before its forward 2,
  // which rank 1 wants first.
  orders = schedule::one_f_one_b(4, 8);
  std::swap(orders.ranks[0][3], orders.ranks[0][4]);
  CHECK_NOTHROW(weave(orders));
  std::swap(orders.ranks[0][2], orders.ranks[0][3]);
  CHECK_THAT(test::message_of<infeasible>([&] { (void)weave(orders); }),
             ContainsSubstring("rank 0 waits at 0B0 for 1B0") &&
                 ContainsSubstring("rank 1 waits at 1F2 for 0F2") &&
                 ContainsSubstring("rank 2 waits at 2F2 for 1F2"));
}

TEST_CASE("an action twice, a stage on two ranks or none, an action of no stage are refused") {
  CHECK_THAT(refusal<contract_error>({{order(F, 0, 0), order(F, 0, 0)}}, 1),
             ContainsSubstring("an action appears twice (0F0 on rank 0)"));
  CHECK_THAT(refusal<contract_error>({{order(F, 0, 0), order(B, 0, 0), order(B, 0, 0)}}, 1),
             ContainsSubstring("an action appears twice (0B0 on rank 0)"));
  CHECK_THAT(refusal<contract_error>({{order(F, 0, 0), order(B, 0, 0), order(W, 0, 0)}}, 1),
             ContainsSubstring("an action appears twice (0W0 on rank 0)"));
  CHECK_THAT(refusal<contract_error>({{order(F, 0, 0), order(I, 0, 0), order(B, 0, 0)}}, 1),
             ContainsSubstring("an action appears twice (0B0 on rank 0)"));
  CHECK_THAT(
      refusal<contract_error>({{order(F, 0, 0)}, {order(F, 1, 0), order(F, 0, 1)}}),
      ContainsSubstring("a stage is on two ranks (stage 0 on ranks 0 and 1, which has 0F1)"));
  CHECK_THAT(refusal<contract_error>({{order(F, 0, 0)}, {}}),
             ContainsSubstring("no rank runs a stage (stage 1)"));
  CHECK_THAT(
      refusal<contract_error>({{order(F, 0, 0), order(F, 2, 0)}, {order(F, 1, 0)}}),
      ContainsSubstring("names a stage that is not in the graph (2F0 on rank 0, stages 0 to 1)"));
  CHECK_THAT(
      refusal<contract_error>({{order(F, 0, 0), order(Kind::move, 0, 0)}}, 1),
      ContainsSubstring("orders may contain only F, I, W, B and UPDATE (found 0MOVE0 on rank 0)"));
  CHECK_THAT(refusal<contract_error>({{order(F, 0, 0), order(Kind::update, 0, 0)}}, 1),
             ContainsSubstring("a microbatch is in flight at the last update (0UPDATE0"));
  CHECK_THAT(refusal<contract_error>({}, 1), ContainsSubstring("at least one rank"));
}

TEST_CASE("a microbatch that a stage does not finish is refused, and what it lacks is named") {
  // Rank 1 never gets microbatch 1.
  CHECK_THAT(refusal<contract_error>({{order(F, 0, 0), order(F, 0, 1)}, {order(F, 1, 0)}}),
             ContainsSubstring("a stage does not finish a microbatch (no rank has 1F1)"));
  CHECK_THAT(refusal<contract_error>({{order(F, 0, 0), order(F, 0, 1), order(B, 0, 0)}}, 1),
             ContainsSubstring("(no rank has 0B1, or 0I1 and 0W1)"));
  CHECK_THAT(refusal<contract_error>({{order(F, 0, 0), order(I, 0, 0)}}, 1),
             ContainsSubstring("(no rank has 0W0)"));
  // Numbers of microbatches have no gaps.
  CHECK_THAT(refusal<contract_error>({{order(F, 0, 0), order(F, 0, 2)}}, 1),
             ContainsSubstring("(no rank has 0F1)"));
}

TEST_CASE("where an action is missing, weave names it before the heads that wait for it") {
  CHECK(refusal<infeasible>({{order(F, 0, 0), order(F, 0, 1), order(B, 0, 0), order(B, 0, 1)},
                             {order(F, 1, 0), order(B, 1, 0), order(F, 1, 1)}}) ==
        "heddle::weave(mine): a stage does not finish a microbatch (no 1B1, or 1I1 and 1W1, after "
        "1F1; so rank 0 waits at 0B1 for 1B1)");
  CHECK(refusal<infeasible>({{order(F, 0, 0)}, {order(F, 1, 1), order(F, 1, 0)}}) ==
        "heddle::weave(mine): an action is missing (no rank has 0F1, which comes before 1F1; so "
        "rank 1 waits at 1F1 for 0F1)");
  // Any action of any rank of some orders.
  for (const Orders& whole : {schedule::one_f_one_b(3, 4), schedule::zb_h1(3, 4),
                              schedule::zb_v(2, 3), schedule::chimera(4, 4)})
    for (std::size_t rank = 0; rank < whole.ranks.size(); ++rank)
      for (std::size_t i = 0; i < whole.ranks[rank].size(); ++i) {
        Orders lacking = whole;
        lacking.ranks[rank].erase(lacking.ranks[rank].begin() + static_cast<std::ptrdiff_t>(i));
        const std::string lost = text(whole.ranks[rank][i]);
        std::string why;
        try {
          (void)weave(lacking);
        } catch (const infeasible& error) {  // somebody waits
          why = error.complaint().why;
        } catch (const contract_error& error) {  // nobody does
          why = error.complaint().why;
        }
        INFO(whole.name << " without " << lost << ": " << why);
        CHECK(why.substr(0, why.find("; so ")).find(lost) != std::string::npos);
      }
}

TEST_CASE("a stage graph with an edge to no stage, or no stages, is refused") {
  const auto on = [](StageGraph graph) { return Orders{"mine", {{order(F, 0, 0)}}, graph}; };
  CHECK_THAT(test::message_of<contract_error>([&] {
               (void)weave(on({1, {{Stage{0}, Stage{1}}}}));
             }),
             ContainsSubstring("an edge to no stage (0 -> 1)"));
  CHECK_THAT(
      test::message_of<contract_error>([&] {
        (void)weave(on({1, {{Stage{0}, Stage{0}, Kind::backward_weight}}}));
      }),
      ContainsSubstring("an edge must end at a forward (F) or a backward pass (B) (0 -> 0 at W)"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)StageGraph::chain(0); }),
             ContainsSubstring("at least one stage") && ContainsSubstring("stages = 0"));
  // A stage that is its own input would read what it has not written.
  CHECK_THROWS_AS(weave(on({1, {{Stage{0}, Stage{0}}}})), error);
}

}  // namespace test_weave_refusals
