// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The schedules of schedule/attention/: which pairs they compute, the bytes and messages that they
// send, and what they reject.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/random.hpp>
#include <heddle/schedule.hpp>
#include <heddle/trace.hpp>

#include "support/attention_meaning.hpp"
#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/rational.hpp"

namespace test_ring_attention {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using schedule::AttentionForm;
using test::Rational;

namespace {

constexpr int heads = 4;
constexpr int width = 8;

/// A form whose pieces all have the same number of tokens.
AttentionForm even_form(int p, ShardOrder order, int ways, bool causal) {
  return {.ranks = p,
          .order = std::move(order),
          .ways = ways,
          .mask = {.causal = causal},
          .tokens = 12 * std::int64_t{p},
          .heads = heads,
          .head_width = width};
}

/// One random number after another.
class Draw {
 public:
  explicit Draw(const char* name) : m_random(27, name) {}
  std::uint64_t below(std::uint64_t bound) { return m_random.below(m_next++, bound); }

 private:
  Random m_random;
  std::uint64_t m_next = 0;
};

struct Sent {
  Bytes bytes = 0;
  std::int64_t messages = 0;
};

/// What all ranks send.
Sent sent(const Schedule& schedule) {
  Sent all;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    if (schedule[ActionId{i}].kind != Kind::move) continue;
    all.bytes += schedule.bytes(schedule.uses(ActionId{i})[0]);
    ++all.messages;
  }
  return all;
}

/// Bytes that a rank sends on average, in units of N d / P elements.
Rational units(const Schedule& schedule, const AttentionForm& form) {
  const auto unit = form.query_bytes() * static_cast<Bytes>(form.all_tokens());  // of all ranks
  return Rational(sent(schedule).bytes) / Rational(unit);
}

/// The most units that any directed link between two ranks carries.
Rational busiest_link(const Schedule& schedule, const AttentionForm& form) {
  std::map<std::pair<Rank, Rank>, Bytes> load;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const Queue& queue = schedule[schedule[id].queue];
    if (!queue.local()) load[{queue.from, queue.to}] += schedule.bytes(schedule.uses(id)[0]);
  }
  Bytes most = 0;
  for (const auto& [link, bytes] : load) most = std::max(most, bytes);
  return Rational(most) * Rational(form.ranks) /
         Rational(form.query_bytes() * static_cast<Bytes>(form.all_tokens()));
}

AttentionForm backward(AttentionForm form) {
  form.backward = true;
  return form;
}

}  // namespace

TEST_CASE("without a mask, bytes are those of the table") {
  for (const int p : {1, 2, 3, 4, 8}) {
    const std::int64_t steps = p - 1;
    for (const int ways : {1, 2}) {
      for (const ShardOrder& order :
           {ShardOrder::even(), ShardOrder::zigzag(), ShardOrder::cyclic()}) {
        const AttentionForm form = even_form(p, order, ways, false);
        CHECK(units(schedule::ring_attention(form), form) == Rational(2 * steps));
        CHECK(units(schedule::ring_attention(backward(form)), form) == Rational(4 * steps));
      }
    }
    const AttentionForm form = even_form(p, ShardOrder::even(), 1, false);
    const Schedule two_passes = schedule::rsa(form);
    CHECK(units(two_passes, form) == Rational(2 * steps));
    CHECK(sent(two_passes).messages == 2 * steps * p);
    CHECK(sent(schedule::ring_attention(form)).messages == steps * p);
    CHECK(units(schedule::rsa(backward(form)), form) == Rational(4 * steps));
    // 2 H / d = 2 / head width.
    CHECK(units(schedule::token_ring(form), form) == Rational(steps) * (2 + Rational(2, width)));
    // No move is useless, because every rank reads every block.
    for (const Schedule& each :
         {schedule::ring_attention(form), two_passes, schedule::token_ring(form),
          schedule::ring_attention(backward(form)), schedule::rsa(backward(form))})
      CHECK(hash(schedule::drop_unread(each)) == hash(each));
  }
}

TEST_CASE("fewer heads of K and V shrink the ring's messages, not TokenRing's") {
  for (const int groups : {2, 4}) {
    AttentionForm form = even_form(4, ShardOrder::even(), 1, false);
    form.kv_heads = heads / groups;
    CHECK(units(schedule::ring_attention(form), form) == Rational(6, groups));
    CHECK(units(schedule::ring_attention(backward(form)), form) == Rational(12, groups));
    CHECK(units(schedule::token_ring(form), form) == Rational(3) * (2 + Rational(2, width)));
  }
}

TEST_CASE("under a causal mask drop_unread leaves 1/2, 1 - 1/(2P) and 3/4 of the bytes") {
  for (const int p : {2, 3, 4, 8}) {
    const auto share = [&](ShardOrder order, int ways) {
      const AttentionForm form = even_form(p, std::move(order), ways, true);
      return units(schedule::drop_unread(schedule::ring_attention(form)), form) /
             Rational(2 * (p - 1));
    };
    CHECK(share(ShardOrder::even(), 1) == Rational(1, 2));
    CHECK(share(ShardOrder::zigzag(), 1) == 1 - Rational(1, 2 * p));
    CHECK(share(ShardOrder::zigzag(), 2) == Rational(3, 4));
    CHECK(share(ShardOrder::cyclic(), 1) == Rational(1));
  }
}

TEST_CASE("TokenRing under a causal mask in zigzag order passes half of some queries on") {
  for (const int p : {2, 3, 4, 8}) {
    const AttentionForm form = even_form(p, ShardOrder::zigzag(), 1, true);
    const Schedule all = schedule::token_ring(form);
    const Schedule needed = schedule::drop_unread(all);
    CHECK(sent(needed).bytes < sent(all).bytes);
    // The first half of the queries of block q goes as far as the rank before it, which has keys
    // in front of it; from block 0 it need not go at all.
    Bytes halves = 0;
    for (std::size_t i = 0; i < needed.size(); ++i) {
      const auto uses = needed.uses(ActionId{i});
      const bool queries = needed[ActionId{i}].kind == Kind::move && uses[1].count == 1 &&
                           needed[needed[uses[1].buffer].label] == "ring";
      halves += queries;
    }
    CHECK(halves == static_cast<Bytes>(p - 1));
  }
}

TEST_CASE("on private links TokenRing's busiest one carries P + 2 H/d, a ring's 2(P - 1) or half") {
  for (const int p : {2, 3, 4, 8}) {
    const AttentionForm form = even_form(p, ShardOrder::even(), 1, false);
    AttentionForm two_ways = form;
    two_ways.ways = 2;
    const Rational ring = busiest_link(schedule::ring_attention(form), form);
    const Rational token = busiest_link(schedule::token_ring(form), form);
    CHECK(ring == Rational(2 * (p - 1)));
    CHECK(token == Rational(p) + Rational(2, width));
    CHECK(token / ring == Rational(p, 2 * (p - 1)) + Rational(2, width) / ring);
    // Two ranks have one link in each direction, so that two ways share it.
    CHECK(busiest_link(schedule::ring_attention(two_ways), form) ==
          (p == 2 ? ring : ring * Rational(1, 2)));
    AttentionForm grouped = form;
    grouped.kv_heads = 1;  // G = 4
    if (p >= 4)
      CHECK(busiest_link(schedule::ring_attention(grouped), form) <
            busiest_link(schedule::token_ring(grouped), form));
  }
}

TEST_CASE("on a ring of links in two directions, states return the shorter way") {
  // Without the numbers of softmax: the busiest link carries 2, 4 and 13 units at P = 2, 4, 8.
  constexpr std::array<std::pair<int, int>, 3> expected = {{{2, 2}, {4, 4}, {8, 13}}};
  for (const auto& [p, units] : expected) {
    const AttentionForm form = even_form(p, ShardOrder::even(), 1, false);
    const Schedule list = schedule::token_ring(form);
    const auto ranks = static_cast<std::size_t>(p);
    std::map<std::pair<std::size_t, std::size_t>, int> load;  // of the link between neighbours
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Queue& queue = list[list[ActionId{i}].queue];
      if (queue.local()) continue;
      const std::size_t clockwise = (+queue.to + ranks - +queue.from) % ranks;
      const bool on = clockwise < ranks - clockwise || (queue.lane == 0);
      for (std::size_t at = +queue.from; at != +queue.to;) {
        const std::size_t next = (at + (on ? 1 : ranks - 1)) % ranks;
        ++load[{at, next}];
        at = next;
      }
    }
    int most = 0;
    for (const auto& [link, count] : load) most = std::max(most, count);
    CHECK(most == units);
  }
}

TEST_CASE("scores of rsa are P times those of one pair of blocks") {
  for (const int p : {1, 2, 4, 7}) {
    const AttentionForm form = even_form(p, ShardOrder::even(), 1, false);
    const Schedule list = schedule::rsa(form);
    for (const Buffer& buffer : list.buffers())
      if (list[buffer.label] == "scores") {
        const Bytes tokens = 12;
        CHECK(buffer.bytes == static_cast<Bytes>(p) * tokens * tokens * heads * sizeof(double));
      }
  }
}

TEST_CASE("folded to two slots, a ring needs room for two blocks of K and V") {
  for (const int p : {2, 3, 4, 8})
    for (const int ways : {1, 2}) {
      const AttentionForm form = even_form(p, ShardOrder::zigzag(), ways, true);
      const Schedule list =
          schedule::fold_attention(schedule::drop_unread(schedule::ring_attention(form)), form);
      for (const Buffer& buffer : list.buffers())
        if (list[buffer.label] == "ring")
          CHECK(buffer.bytes ==
                std::min<Bytes>(2, static_cast<Bytes>(p - 1)) * 12 * 2 * form.key_bytes());
    }
}

TEST_CASE("with a rank's own block as a slot, a ring has two blocks of K and V in all") {
  for (const int p : {1, 2, 3, 4, 8})
    for (const int ways : {1, 2})
      for (const bool backward : {false, true}) {
        AttentionForm form = even_form(p, ShardOrder::zigzag(), ways, true);
        form.backward = backward;
        const Schedule folded =
            schedule::fold_attention(schedule::drop_unread(schedule::ring_attention(form)), form);
        const Schedule list = schedule::reuse_own_block(folded, form);
        CHECK(list.size() == folded.size());
        std::map<Rank, Bytes> bytes;
        for (const Buffer& buffer : list.buffers())
          if (list[buffer.label] == "ring" || list[buffer.label] == "keys_values")
            bytes[buffer.rank] += buffer.bytes;
        for (const auto& [rank, sum] : bytes)
          CHECK(sum == (p == 1 ? 1 : 2) * Bytes{12} * 2 * form.key_bytes());
      }
  // A list that still writes every part once has no slots to share.
  const AttentionForm form = even_form(4, ShardOrder::even(), 1, false);
  CHECK_THAT(test::message_of<contract_error>(
                 [&] { (void)schedule::reuse_own_block(schedule::ring_attention(form), form); }),
             ContainsSubstring("heddle::schedule::reuse_own_block") &&
                 ContainsSubstring("fold_attention() it to two slots first"));
}

TEST_CASE("the mask decides the shape of a pair of blocks") {
  using PairShape = schedule::AttentionPieces::PairShape;
  const auto shapes = [](ShardOrder order, std::uint32_t q, std::uint32_t k) {
    const schedule::AttentionPieces pieces(even_form(4, std::move(order), 1, true));
    return pieces.shape(pieces.visible(q, k, 0, pieces.pieces()));
  };
  CHECK(shapes(ShardOrder::even(), 1, 1) == PairShape::diagonal);
  CHECK(shapes(ShardOrder::even(), 2, 1) == PairShape::full);
  CHECK(shapes(ShardOrder::even(), 1, 2) == PairShape::empty);
  CHECK(shapes(ShardOrder::zigzag(), 1, 1) == PairShape::diagonal);
  CHECK(shapes(ShardOrder::zigzag(), 2, 1) == PairShape::half);
  CHECK(shapes(ShardOrder::zigzag(), 1, 2) == PairShape::half);
  CHECK(shapes(ShardOrder::cyclic(), 1, 2) == PairShape::diagonal);
}

TEST_CASE("a grid names the owners of queries and keys") {
  CHECK(to_grid(schedule::ring_attention({.ranks = 4, .order = ShardOrder::zigzag(), .ways = 1})) ==
        "ring attention P=4 zigzag causal: 4 ranks, 28 actions\n"
        "rank 0  0F0 0F3 0F2 0F1\n"
        "rank 1  1F1 1F0 1F3 1F2\n"
        "rank 2  2F2 2F1 2F0 2F3\n"
        "rank 3  3F3 3F2 3F1 3F0\n"
        "4 slots, 0 of 16 cells idle\n");
}

TEST_CASE("every visible pair is computed once, and no part is read before it is written") {
  Draw random("forms");
  const std::uint64_t count = test::cases(1'000, 100'000);
  std::uint64_t checked = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    AttentionForm form{.ranks = 1 + static_cast<int>(random.below(8))};
    const std::uint64_t order = random.below(6);
    form.order = order == 0   ? ShardOrder::even()
                 : order <= 2 ? ShardOrder::zigzag()
                 : order == 3 ? ShardOrder::cyclic()
                 : order == 4 ? ShardOrder::cyclic(1 + static_cast<std::int64_t>(random.below(4)))
                              : ShardOrder::strided(1 + static_cast<std::int64_t>(random.below(3)));
    form.ways = 1 + static_cast<int>(random.below(2));
    form.mask.causal = random.below(4) != 0;
    form.tokens = 1 + static_cast<std::int64_t>(random.below(33));
    form.backward = random.below(2) == 0;
    for (std::int64_t begin = 0; random.below(3) == 0;) {
      begin += static_cast<std::int64_t>(random.below(9));
      if (!form.mask.segments.empty() && begin <= form.mask.segments.back()) break;
      form.mask.segments.push_back(begin);
    }
    std::vector<Schedule> lists = {schedule::ring_attention(form)};
    if (form.ways == 1) lists.push_back(schedule::rsa(form));
    if (form.ways == 1 && !form.backward) lists.push_back(schedule::token_ring(form));
    for (const Schedule& list : lists) {
      const Schedule needed = schedule::drop_unread(list);
      const Schedule folded = schedule::fold_attention(needed, form);
      for (const Schedule& each : {list, needed, schedule::fold_attention(list, form), folded,
                                   schedule::reuse_own_block(folded, form)}) {
        const std::string fault = test::attention_fault(each, form);
        if (!fault.empty()) FAIL(fault << ", case " << i << ", " << form.tokens << " tokens");
        ++checked;
      }
    }
  }
  CHECK(checked >= 5 * count);
}

TEST_CASE("exact numbers of pairs equal a count one by one") {
  Draw random("pairs");
  for (int i = 0; i < 300; ++i) {
    AttentionForm form{.ranks = 1 + static_cast<int>(random.below(5)),
                       .order = i % 3 == 0   ? ShardOrder::even()
                                : i % 3 == 1 ? ShardOrder::zigzag()
                                             : ShardOrder::cyclic(1 + i % 4),
                       .ways = 1 + i % 2,
                       .mask = {.causal = i % 5 != 0},
                       .tokens = 1 + static_cast<std::int64_t>(random.below(40))};
    if (i % 4 == 0) form.mask.segments = {2, 3, 11, 50};
    const schedule::AttentionPieces pieces(form);
    for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(form.ranks); ++q)
      for (std::uint32_t k = 0; k < static_cast<std::uint32_t>(form.ranks); ++k) {
        std::int64_t visible = 0;
        const IndexSet queries = form.order.share(form.tokens, form.ranks, q);
        const IndexSet keys = form.order.share(form.tokens, form.ranks, k);
        for (const Interval& a : queries.intervals())
          for (const Interval& b : keys.intervals())
            for (std::int64_t x = a.begin; x < a.end; ++x)
              for (std::int64_t y = b.begin; y < b.end; ++y) visible += test::sees(form.mask, x, y);
        REQUIRE(pieces.pairs({q, k, 0, pieces.pieces(), 0, pieces.pieces()}) == visible);
      }
  }
}

TEST_CASE("forms without a schedule are rejected with their numbers") {
  const auto message = [](auto call) { return test::message_of<contract_error>(call); };
  CHECK_THAT(
      message([] { (void)schedule::ring_attention({.ranks = 0}); }),
      ContainsSubstring("heddle::schedule::ring_attention") && ContainsSubstring("ranks = 0"));
  CHECK_THAT(message([] { (void)schedule::ring_attention({.ranks = 2, .ways = 3}); }),
             ContainsSubstring("expected 1 or 2, got ways = 3"));
  CHECK_THAT(message([] { (void)schedule::rsa({.ranks = 2, .ways = 2}); }),
             ContainsSubstring("got ways = 2") && ContainsSubstring("ring_attention()"));
  CHECK_THAT(message([] { (void)schedule::token_ring({.ranks = 2, .ways = 2}); }),
             ContainsSubstring("got ways = 2"));
  CHECK_THAT(message([] { (void)schedule::token_ring({.ranks = 2, .backward = true}); }),
             ContainsSubstring("TokenRing has no backward pass") &&
                 ContainsSubstring("train with ring_attention()"));
  CHECK_THAT(message([] { (void)schedule::rsa({.ranks = 2, .heads = 6, .kv_heads = 4}); }),
             ContainsSubstring("heads = 6, kv_heads = 4"));
  CHECK_THAT(
      message([] {
        (void)schedule::ring_attention({.ranks = 2, .order = ShardOrder::weighted({1, 2, 3})});
      }),
      ContainsSubstring("weighted(1, 2, 3), 2 ranks"));
  CHECK_THAT(message([] {
               (void)schedule::ring_attention({.ranks = 2, .mask = {.segments = {4, 4}}});
             }),
             ContainsSubstring("segments do not ascend"));
  CHECK_THAT(message([] { (void)schedule::ring_attention({.ranks = 2, .tokens = -1}); }),
             ContainsSubstring("tokens = -1"));
  // A zigzag without a mask is useless, and done.
  CHECK_THAT(schedule::ring_attention(
                 {.ranks = 2, .order = ShardOrder::zigzag(), .mask = {.causal = false}})
                 .name(),
             ContainsSubstring("zigzag balances nothing without a causal mask"));
}

}  // namespace test_ring_attention
