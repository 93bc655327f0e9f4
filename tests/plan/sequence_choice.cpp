// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// sequence_choice(): bytes and messages of every method equal closed forms, and those of uneven
// shapes a count of single elements; times equal closed forms; refusals say why.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"

namespace test_sequence_choice {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using plan::NearAxis;
using plan::SequenceCandidate;
using schedule::AttentionForm;

namespace {

/// 24 heads of 4 columns, and tokens and heads that every number of ranks here divides.
AttentionForm form_of(int ranks, int kv_heads = 24) {
  return {.ranks = ranks,
          .mask = {.causal = false},
          .tokens = 48 * ranks,
          .heads = 24,
          .kv_heads = kv_heads,
          .head_width = 4};
}

Machine even_machine(int ranks, double bandwidth = 1e9) {
  return Machine::uniform(ranks, {}, {.latency = 0, .bandwidth = bandwidth});
}

const SequenceCandidate& find(const std::vector<SequenceCandidate>& all, SequenceMethod method,
                              int heads, int ring, int ways = 1, NearAxis near = NearAxis::heads) {
  const auto found = std::ranges::find_if(all, [&](const SequenceCandidate& each) {
    return each.method == method && each.heads == heads && each.ring == ring && each.ways == ways &&
           each.near == near;
  });
  REQUIRE(found != all.end());
  return *found;
}

}  // namespace

TEST_CASE("bytes and messages of a rank are those of the closed forms") {
  for (const int p : {2, 3, 4, 6, 8})
    for (const int kv_heads : {24, 12, 8}) {
      const AttentionForm form = form_of(p, kv_heads);
      const auto n = static_cast<std::uint64_t>(p);
      // Q of a rank, and K of a rank.
      const Bytes unit = 48 * form.query_bytes(), keys = 48 * form.key_bytes();
      const auto all = plan::sequence_choice(form, even_machine(p), {});
      std::size_t usp = 0;
      for (const SequenceCandidate& each : all) {
        CAPTURE(p, kv_heads, text(each));
        const auto u = static_cast<std::uint64_t>(each.heads);
        const auto r = static_cast<std::uint64_t>(each.ring), ways = each.ways == 2 ? 2ul : 1ul;
        CHECK(u * r == n);
        REQUIRE(each.refused.empty());
        if (each.method == SequenceMethod::token_ring) {
          const Bytes state = 48 * form.state_bytes();
          CHECK(each.forward.bytes == (n - 1) * (unit + state));
          CHECK(each.forward.moves == 2 * (n - 1));
          CHECK(!each.backward);
          continue;
        }
        REQUIRE(each.backward);
        if (each.method == SequenceMethod::rsa) {
          CHECK(each.forward.bytes == 2 * keys * (n - 1));
          CHECK(each.forward.moves == 2 * (n - 1));
          CHECK(each.backward->bytes == 4 * keys * (n - 1));
          CHECK(each.backward->moves == 4 * (n - 1));
          continue;
        }
        usp += each.method == SequenceMethod::usp ? 1 : 0;
        if (kv_heads % each.heads != 0) continue;
        const Bytes exchanged = (2 * unit + 2 * keys) * (u - 1) / u;
        CHECK(each.forward.bytes == exchanged + 2 * keys * (r - 1));
        CHECK(each.backward->bytes == exchanged + 4 * keys * (r - 1));
        CHECK(each.forward.all_bytes == n * each.forward.bytes);
        CHECK(each.backward->all_bytes == n * each.backward->bytes);
        CHECK(each.forward.moves == 2 * (u - 1) + ways * (r - 1));
        CHECK(each.backward->moves == 2 * (u - 1) + 2 * ways * (r - 1));
      }
      std::size_t degrees = 0;
      for (int u = 2; u < p; ++u) degrees += p % u == 0 ? 1 : 0;
      CHECK(usp == 4 * degrees);
      CHECK(all.size() == usp + 5);
    }
}

TEST_CASE("bytes of uneven shapes are those of the elements that change ranks, one by one") {
  for (const std::int64_t tokens : {1, 5, 37})
    for (const auto& [heads, kv_heads] : {std::pair(6, 3), std::pair(7, 7)})
      for (const ShardOrder& order : {ShardOrder::even(), ShardOrder::zigzag()}) {
        AttentionForm form{.ranks = 6,
                           .order = order,
                           .mask = {.causal = false},
                           .tokens = tokens,
                           .heads = heads,
                           .kv_heads = kv_heads,
                           .head_width = 2};
        for (const auto& each : plan::sequence_choice(form, even_machine(6), {})) {
          if (each.method != SequenceMethod::ulysses && each.method != SequenceMethod::usp)
            continue;
          if (each.heads > kv_heads) {
            CHECK(!each.refused.empty());
            continue;
          }
          // The rank that has a K,V head, and the ring rank and heads rank that have a token.
          Bytes exchanged = 0;
          for (int r = 0; r < each.ring; ++r) {
            const std::int64_t rows = order.share(tokens, each.ring, r).size();
            for (std::int64_t row = 0; row < rows; ++row)
              for (int kv = 0; kv < kv_heads; ++kv) {
                int of_row = 0, of_head = 0;
                while (!ShardOrder().share(rows, each.heads, of_row).position(row)) ++of_row;
                while (!ShardOrder().share(kv_heads, each.heads, of_head).position(kv)) ++of_head;
                if (of_row != of_head)
                  exchanged += (2 * static_cast<Bytes>(heads / kv_heads) + 2) * 2 * 8;
              }
          }
          // Around a ring every piece takes the room of the longest one, and one that no query
          // needs stays.
          const auto up = [](std::int64_t of, std::int64_t by) { return (of + by - 1) / by; };
          std::int64_t room = up(tokens, each.ring);
          if (each.ring > 1 && order == ShardOrder::zigzag()) room = 2 * up(tokens, 2 * each.ring);
          if (each.ring > 1 && order == ShardOrder::even() && each.ways == 2)
            room = 2 * up(up(tokens, each.ring), 2);
          const Bytes around =
              static_cast<Bytes>(room * (each.ring - 1) * each.ring) * 2 * form.key_bytes();
          INFO(tokens << " tokens, " << heads << " / " << kv_heads << " heads, " << order << ": "
                      << each);
          if (tokens == 37) {
            CHECK(each.forward.all_bytes == exchanged + around);
            CHECK(each.backward->all_bytes == exchanged + 2 * around);
          } else {
            CHECK(each.forward.all_bytes >= exchanged);
            CHECK(each.forward.all_bytes <= exchanged + around);
          }
        }
      }
}

TEST_CASE("times on private links: exchanges before and behind a ring that hides its moves") {
  for (const int p : {2, 4, 8})
    for (const int kv_heads : {24, 8})
      for (const double product : {0.0, 1e-9, 1e-6}) {
        const AttentionForm form = form_of(p, kv_heads);
        const double bandwidth = 1e9;
        const double unit = 48 * static_cast<double>(form.query_bytes()) / bandwidth;
        const double keys = 48 * static_cast<double>(form.key_bytes()) / bandwidth;
        const auto tokens = static_cast<double>(form.tokens);
        for (const auto& each :
             plan::sequence_choice(form, even_machine(p, bandwidth), {.product = product})) {
          if (each.method == SequenceMethod::rsa || each.method == SequenceMethod::token_ring)
            continue;
          const double u = each.heads, r = each.ring;
          const double block = 2 * product * tokens * tokens / p / r;
          const double move = each.ways == 2 ? keys : 2 * keys;
          const double exchanges = each.heads == 1 ? 0 : (2 * unit + 2 * keys) / u;
          const double around = std::max(r * block, (r - 1) * move + block);
          INFO(p << " ranks, " << kv_heads << " K,V heads, product " << product << ": " << each);
          if (each.ways == 1) CHECK_THAT(each.forward.time, WithinRel(exchanges + around, 1e-9));
          CHECK(each.forward.time <= (exchanges + around) * (1 + 1e-9));
          CHECK(each.time == each.forward.time);
        }
      }
}

TEST_CASE("candidates come by time, and with a backward pass by the time of both") {
  AttentionForm form = form_of(8);
  for (const bool training : {false, true}) {
    form.backward = training;
    const auto all = plan::sequence_choice(form, even_machine(8, 1e8), {.product = 1e-8});
    for (std::size_t i = 0; i < all.size(); ++i) {
      const SequenceCandidate& each = all[i];
      if (!each.refused.empty()) {
        CHECK(training);
        CHECK(each.method == SequenceMethod::token_ring);
        CHECK_THAT(each.refused, ContainsSubstring("no backward pass"));
        CHECK(i + 1 == all.size());
        continue;
      }
      CHECK(each.time == each.forward.time + (training ? each.backward->time : 0));
      if (i > 0) CHECK(all[i - 1].time <= each.time);
    }
  }
}

TEST_CASE("the axis whose ranks are near lies within the nodes") {
  // 2 nodes of 4 ranks; between the nodes nothing is as fast as within them.
  const Machine machine = Machine::hierarchical(
      std::vector<Device>(8), {{.name = "node", .ranks = 4, .link = {0, 1e12}, .ports = {}},
                               {.name = "cluster", .ranks = 8, .link = {0, 1e6}, .ports = {}}});
  const auto all = plan::sequence_choice(form_of(8), machine, {});
  const double unit = 48.0 * 24 * 4 * 8 / 1e6;  // of a rank, between nodes
  CHECK_THAT(find(all, SequenceMethod::usp, 4, 2, 1, NearAxis::heads).time,
             WithinRel(2 * unit, 1e-4));  // one move of K and V
  CHECK_THAT(find(all, SequenceMethod::usp, 2, 4, 1, NearAxis::ring).time,
             WithinRel(4 * unit / 2, 1e-4));  // Q, K, V and the output to one peer
  const SequenceCandidate near_heads{.method = SequenceMethod::usp, .heads = 4, .ring = 2};
  const SequenceCandidate near_ring{
      .method = SequenceMethod::usp, .heads = 4, .ring = 2, .near = NearAxis::ring};
  CHECK(near_heads.rank(3, 1) == 7);
  CHECK(near_heads.rank(1, 0) == 1);
  CHECK(near_ring.rank(1, 0) == 2);
  CHECK(near_ring.rank(3, 1) == 7);
}

TEST_CASE("several sequences share their exchanges and go around the ring one by one") {
  const auto one = plan::sequence_choice(form_of(4), even_machine(4), {.product = 1e-9});
  const auto three =
      plan::sequence_choice(form_of(4), even_machine(4), {.sequences = 3, .product = 1e-9});
  const SequenceCandidate &a = find(one, SequenceMethod::usp, 2, 2),
                          &b = find(three, SequenceMethod::usp, 2, 2);
  CHECK(b.forward.bytes == 3 * a.forward.bytes);
  CHECK(a.forward.moves == 2 + 1);
  CHECK(b.forward.moves == 2 + 3);
  CHECK_THAT(b.time, WithinRel(3 * a.time, 1e-9));
}

TEST_CASE("packing, joining and the softmax of RSA are priced") {
  const AttentionForm form = form_of(4);
  const auto time = [&](SequenceMethod method, const plan::AttentionWork& work) {
    for (const auto& each : plan::sequence_choice(form, even_machine(4, 1e30), work))
      if (each.method == method) return each.time;
    return -1.0;
  };
  // Columns of Q, K and V are packed, rows arrive in place; the output is unpacked.
  const double unit = 48.0 * static_cast<double>(form.query_bytes());
  CHECK_THAT(time(SequenceMethod::ulysses, {.cast = 1}), WithinRel(4 * unit, 1e-12));
  CHECK(time(SequenceMethod::ulysses, {.combine = 1}) < 1e-20);
  CHECK_THAT(time(SequenceMethod::rsa, {.user = 2}), WithinRel(2.0, 1e-12));
  CHECK(time(SequenceMethod::token_ring, {.combine = 1}) > 0);
  CHECK(time(SequenceMethod::ring, {.combine = 1}) < 1e-20);
}

TEST_CASE("one rank sends nothing, whatever the method") {
  const auto all = plan::sequence_choice(form_of(1), even_machine(1), {.product = 0.5});
  CHECK(all.size() == 4);
  for (const SequenceCandidate& each : all) {
    CHECK(each.refused.empty());
    CHECK(each.forward.all_bytes == 0);
    CHECK(each.forward.moves == 0);
    CHECK(each.time == 48 * 48);
  }
}

TEST_CASE("what cannot be used is refused with its reason") {
  const auto all = plan::sequence_choice(form_of(8, 2), even_machine(8), {});
  CHECK_THAT(find(all, SequenceMethod::ulysses, 8, 1).refused,
             ContainsSubstring("8 heads ranks, but only 2 K,V heads") &&
                 ContainsSubstring("take the ring axis"));
  CHECK(find(all, SequenceMethod::usp, 2, 4).refused.empty());
  const std::string table = plan::to_table(all);
  CHECK_THAT(table, ContainsSubstring("refused: 8 heads ranks") &&
                        ContainsSubstring("usp 2 x 4, ring near, two ways"));
  CHECK(std::ranges::count(table, '\n') == static_cast<std::ptrdiff_t>(all.size() + 2));
  AttentionForm weighted = form_of(4);
  weighted.order = ShardOrder::weighted({1, 3});
  for (const auto& each : plan::sequence_choice(weighted, even_machine(4), {}))
    if (each.ring == 2)
      CHECK(each.refused.empty());
    else
      CHECK_THAT(each.refused, ContainsSubstring("weights for another number of ring ranks"));
}

TEST_CASE("a machine, a form or costs that are no good are named") {
  const auto complaint = [](const AttentionForm& form, int ranks, const plan::AttentionWork& work) {
    return test::message_of<contract_error>(
        [&] { (void)plan::sequence_choice(form, even_machine(ranks), work); });
  };
  CHECK_THAT(complaint(form_of(4), 2, {}), ContainsSubstring("4 ranks, 2 on the machine"));
  CHECK_THAT(complaint(form_of(4), 4, {.sequences = 0}), ContainsSubstring("0 sequences"));
  CHECK_THAT(complaint(form_of(4, 7), 4, {}), ContainsSubstring("must be a multiple of"));
  CHECK_THAT(complaint(form_of(4), 4, {.cast = -1}), ContainsSubstring("cast = -1"));
  CHECK_THAT(test::message_of<contract_error>([&] {
               (void)plan::sequence_schedule({.heads = 3, .ring = 2}, form_of(4), false);
             }),
             ContainsSubstring("3 heads ranks times 2 ring ranks; 4 ranks"));
}

}  // namespace test_sequence_choice
