// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/trace/dot.hpp>

#include "support/complaint.hpp"

namespace test_catalogue {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Whether a step of `orders` trains, and every stage is updated at its end.
bool trains_synchronously(const Orders& orders) {
  bool backward = false;
  for (const auto& rank : orders.ranks) {
    for (const Order& order : rank) {
      if (order.kind == Kind::update) return false;
      backward |= order.kind != Kind::forward;
    }
  }
  return backward;
}

/// Whether every stage has one before it and one behind it, but the first and the last.
bool is_chain(const StageGraph& graph) {
  return graph.edges == StageGraph::chain(graph.stages).edges;
}

}  // namespace

TEST_CASE("every schedule of the catalogue has a name of its own that it is found by") {
  std::set<std::string_view> names;
  for (const auto& entry : schedule::catalogue()) {
    INFO(entry.name);
    CHECK(names.insert(entry.name).second);
    CHECK(&schedule::find_schedule(entry.name) == &entry);
    CHECK(entry.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") ==
          std::string_view::npos);
    CHECK(!entry.about.empty());
    CHECK(!entry.source.empty());
  }
}

TEST_CASE("every schedule of the catalogue exists for four ranks and eight microbatches") {
  for (const auto& entry : schedule::catalogue()) {
    INFO(entry.name);
    const Orders orders = entry.orders({});
    CHECK(orders.ranks.size() == 4);
    CHECK(entry.synchronous == trains_synchronously(orders));
    CHECK(entry.branches == !is_chain(orders.graph));
    CHECK(!orders.name.empty());
  }
}

TEST_CASE("every schedule of the catalogue heeds what it says of a shape, and no more") {
  using schedule::ShapeOption;
  for (const auto& entry : schedule::catalogue()) {
    INFO(entry.name);
    const Orders plain = entry.orders({.microbatches = 12});
    const auto heeds = [&](ShapeOption option, const schedule::PipelineShape& other) {
      CHECK((entry.orders(other).ranks != plain.ranks) == entry.uses(option));
    };
    heeds(ShapeOption::stages_per_rank, {.microbatches = 12, .stages_per_rank = 3});
    heeds(ShapeOption::group, {.microbatches = 12, .group = 6});
    heeds(ShapeOption::pairs, {.microbatches = 12, .pairs = 2});
    heeds(ShapeOption::most_live, {.microbatches = 12, .most_live = 2});
  }
}

TEST_CASE("naive orders take turns: M P (F + B), one live activation") {
  for (const auto& [p, m] : {std::pair{1, 1}, {1, 4}, {3, 1}, {4, 5}}) {
    const Timeline timeline = simulate(weave(schedule::naive(p, m)), {.forward = 1, .backward = 2});
    CHECK(timeline.makespan() == m * p * 3);
    for (int rank = 0; rank < p; ++rank)
      CHECK(schedule::peak(timeline, Rank{rank}, role::saved).parts == 1);
  }
}

TEST_CASE("the C++ call that the catalogue names makes the same schedule") {
  using namespace heddle::schedule;
  constexpr int p = 4, m = 8;
  const PipelineOptions chain{.ranks = p, .microbatches = m};
  const InterleavedOptions chunks{.ranks = p, .microbatches = m};
  const PipelineOptions folded{.ranks = p, .microbatches = m};
  const ChimeraOptions pipelines{.ranks = p, .microbatches = m};
  const std::vector<std::pair<std::string_view, Schedule>> calls = {
      {"gpipe()", gpipe(chain)},
      {"one_f_one_b()", one_f_one_b(chain)},
      {"interleaved()", interleaved(chunks)},
      {"grouped_interleaved()", grouped_interleaved({.ranks = p, .microbatches = m})},
      {"combined_1f1b()", combined_1f1b({.ranks = p, .microbatches = m})},
      {"gis()", gis(chunks)},
      {"looped_bfs()", looped_bfs(chunks)},
      {"kfkb()", kfkb({.ranks = p, .microbatches = m})},
      {"seq_1f1b()", seq_1f1b({.ranks = p, .microbatches = m})},
      {"dapple({.warm_up = DappleOptions::WarmUp::policy_b})",
       dapple({.ranks = p, .microbatches = m, .warm_up = DappleOptions::WarmUp::policy_b})},
      {"chimera()", chimera(pipelines)},
      {"chimera({.double_forwards = true})",
       chimera({.ranks = p, .microbatches = m, .double_forwards = true})},
      {"zb_h1()", zb_h1(chain)},
      {"zb_h2()", zb_h2(chain)},
      {"interleaved_zb1p()", interleaved_zb1p(chunks)},
      {"zb_v()", zb_v(folded)},
      {"one_f_one_b_v()", one_f_one_b_v(folded)},
      {"v_half()", v_half(folded)},
      {"v_min()", v_min(folded)},
      {"dualpipe()", dualpipe(chain)},
      {"dualpipe_v()", dualpipe_v(folded)},
      {"two_bp(naive())", weave(two_bp(naive(p, m)))},
      {"two_bp(gpipe())", weave(two_bp(gpipe(p, m)))},
      {"two_bp(one_f_one_b())", weave(two_bp(one_f_one_b(p, m)))},
      {"flexpipe()", flexpipe({.ranks = p, .microbatches = m})},
      {"pipedream()", pipedream({.ranks = p, .microbatches = m})},
      {"pipedream({.vertical_sync = true})",
       pipedream({.ranks = p, .microbatches = m, .vertical_sync = true})},
      {"stream()", stream(chain)},
  };
  REQUIRE(calls.size() == catalogue().size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const NamedSchedule& entry = catalogue()[i];
    INFO(entry.name);
    CHECK(entry.call == calls[i].first);
    CHECK(trace::to_dot(weave(entry.orders({}))) == trace::to_dot(calls[i].second));
  }
}

TEST_CASE("a name that the catalogue lacks is refused with those it has") {
  const std::string said =
      test::message_of<contract_error>([] { (void)schedule::find_schedule("zigzag"); });
  CHECK_THAT(said, ContainsSubstring("no schedule 'zigzag'"));
  for (const auto& entry : schedule::catalogue())
    CHECK_THAT(said, ContainsSubstring(std::string(entry.name)));
  CHECK_THAT(said, !ContainsSubstring("did you mean"));
}

TEST_CASE("a name that is nearly one of the catalogue, or its C++ function's, is told that one") {
  for (const auto& [wrong, meant] : {std::pair{"zbv", "zb-v"},
                                     {"zb_v", "zb-v"},
                                     {"1F1B", "1f1b"},
                                     {"gipe", "gpipe"},
                                     {"one_f_one_b", "1f1b"},
                                     {"dualpipev", "dualpipe-v"},
                                     {"two_bp", "2bp-naive"}}) {
    INFO(wrong);
    const std::string said =
        test::message_of<contract_error>([&] { (void)schedule::find_schedule(wrong); });
    CHECK_THAT(said, ContainsSubstring(text("no schedule '", wrong, "'; did you mean '", meant,
                                            "'? there are gpipe, ")));
  }
}

}  // namespace test_catalogue
