// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// alone: yes
// Attention schedules executed on 4 threads that wait in the place of blocks, over links that take
// their time: balance, overlap and two ways gain what the simulation says.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/rounds.hpp"

namespace test_ring_attention_times {

using namespace heddle;
using schedule::AttentionForm;
using schedule::AttentionPieces;

namespace {

constexpr int ranks = 4;
constexpr std::int64_t tokens = 16;    ///< of a rank
constexpr Seconds block_time = 0.015;  ///< of all pairs of two blocks

AttentionForm form_of(ShardOrder order, int ways, bool causal) {
  return {.ranks = ranks,
          .order = std::move(order),
          .ways = ways,
          .mask = {.causal = causal},
          .tokens = tokens * ranks};
}

Schedule list_of(const AttentionForm& form) {
  return schedule::fold_attention(schedule::drop_unread(schedule::ring_attention(form)), form);
}

/// The same list, in which every rank waits for its next block before it computes.
Schedule without_overlap(const Schedule& list) {
  Builder builder = Builder::like(list, [](const Buffer& buffer) { return buffer; });
  std::vector<std::vector<Use>> arrived(ranks);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const ActionId id{i};
    const auto uses = list.uses(id);
    if (list[id].kind == Kind::move) {
      arrived[+list[list[id].queue].to].push_back(
          schedule::read(uses[1].buffer, uses[1].first, uses[1].count));
    } else {
      const Rank rank = list[list[id].queue].from;
      std::vector<Use>& wait = arrived[+rank];
      if (!wait.empty()) builder.add({.kind = Kind::user, .queue = builder.local(rank)}, wait);
      wait.clear();
    }
    builder.add(list, id, uses);
  }
  return std::move(builder).build();
}

/// The time from the first action of any rank to the last. A message of a whole block takes
/// `message`, if it is given.
Seconds time_of(const Schedule& list, const AttentionForm& form, std::optional<Seconds> message) {
  const AttentionPieces pieces(form);
  const double all = static_cast<double>(tokens * tokens);
  std::vector<std::vector<std::byte>> memory;
  for (const Buffer& buffer : list.buffers()) memory.emplace_back(buffer.bytes);
  const double bytes = 2.0 * static_cast<double>(tokens) * static_cast<double>(form.key_bytes());
  std::vector<Seconds> begin(ranks), end(ranks);
  run_threads(ranks, [&](ThreadTransport& inner) {
    const auto work = [&](const Task& task) {
      if (task.kind() != Kind::forward) return;
      const double pairs = static_cast<double>(pieces.pairs(pieces.block(list, task.id())));
      std::this_thread::sleep_for(std::chrono::duration<double>(block_time * pairs / all));
    };
    const auto on = [&](auto& transport) {
      const Rank rank = inner.rank();
      Program program =
          slice(list, rank, [&](BufferId id, const Buffer&) { return memory[+id].data(); });
      begin[+rank] = steady_seconds();
      execute(std::move(program), work, transport, {.idle = Idle::nap});
      end[+rank] = steady_seconds();
    };
    if (!message) return on(inner);
    ShapedTransport shaped(inner, {.link = [&](Rank, Rank, Seconds) {
                             return Link{.latency = 0, .bandwidth = bytes / *message};
                           }});
    on(shaped);
  });
  return *std::ranges::max_element(end) - *std::ranges::min_element(begin);
}

/// Checks that `slow` takes `wanted` times as long as `fast` or longer.
void check_ratio(const test::Form& slow, const test::Form& fast, double wanted) {
  std::array forms{slow, fast};
  const auto ratio = [&] { return forms[0].spread.median() / forms[1].spread.median(); };
  if (!test::measure_in_rounds(forms, [&] { return ratio() >= wanted; })) SKIP(test::no_result);
  CHECK(ratio() >= wanted);
}

}  // namespace

TEST_CASE("zigzag takes 1/1.6 of the time of contiguous causal order, or less (bound 1.75)") {
  const AttentionForm contiguous = form_of(ShardOrder::even(), 1, true);
  const AttentionForm zigzag = form_of(ShardOrder::zigzag(), 1, true);
  check_ratio({"contiguous, s", [&] { return time_of(list_of(contiguous), contiguous, {}); }},
              {"zigzag, s", [&] { return time_of(list_of(zigzag), zigzag, {}); }}, 1.6);
}

TEST_CASE("moves as long as blocks hide behind them: 1.5 times as fast (bound 1.75)") {
  const AttentionForm form = form_of(ShardOrder::even(), 1, false);
  const Schedule list = list_of(form), serial = without_overlap(list);
  check_ratio({"without overlap, s", [&] { return time_of(serial, form, block_time); }},
              {"with overlap, s", [&] { return time_of(list, form, block_time); }}, 1.5);
}

TEST_CASE("two ways are 1.6 times as fast where links are the bottleneck by 4 (bound 13/7)") {
  const AttentionForm one = form_of(ShardOrder::even(), 1, false);
  const AttentionForm two = form_of(ShardOrder::even(), 2, false);
  check_ratio({"one way, s", [&] { return time_of(list_of(one), one, 4 * block_time); }},
              {"two ways, s", [&] { return time_of(list_of(two), two, 4 * block_time); }}, 1.6);
}

}  // namespace test_ring_attention_times
