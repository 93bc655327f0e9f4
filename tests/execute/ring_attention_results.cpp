// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The schedules of schedule/attention/ over threads, with an exact monoid in the place of softmax
// (integers under max-plus, and under sum): bitwise equal to the serial result. And what
// combine_records() joins and rejects.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/attention_meaning.hpp"
#include "support/complaint.hpp"

namespace test_ring_attention_results {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using schedule::AttentionForm;
using schedule::AttentionPieces;
using Number = std::int64_t;

namespace {

/// The two operations of a semiring: `plus` merges, `times` weighs. Max-plus, or sum and product.
struct Semiring {
  bool max_plus = false;
  [[nodiscard]] Number zero() const {
    return max_plus ? std::numeric_limits<Number>::min() / 4 : 0;
  }
  [[nodiscard]] Number plus(Number a, Number b) const { return max_plus ? std::max(a, b) : a + b; }
  [[nodiscard]] Number times(Number a, Number b) const { return max_plus ? a + b : a * b; }
};

/// Element `what` (Q, K, V or the gradient of the output) of the token at a position.
Number element(int what, std::int64_t position) {
  return static_cast<Number>(test::pair_weight(what, position) % 199) - 99;
}

/// A state has an output and two numbers of the softmax for each query: here twice the sum of the
/// scores.
struct Handle {
  const AttentionForm& form;
  const AttentionPieces& pieces;
  Semiring ring;

  void operator()(const Task& task) const {
    if (task.kind() == Kind::combine && !heddle::impl::combines_records(task))
      return combine_on_host(task);
    if (task.kind() == Kind::combine)
      return combine_records<Number>(task, [&](const Number* from, Number* into, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) into[i] = ring.plus(into[i], from[i]);
      });
    const schedule::AttentionPieces::Block block = pieces.block(task.schedule(), task.id());
    const auto uses = task.uses();
    const auto room = static_cast<std::size_t>(pieces.capacity());
    const auto at = [&](std::size_t use, std::uint32_t piece, std::size_t each) {
      return reinterpret_cast<Number*>(uses[use].data) + piece * each * room;
    };
    const bool backward = task.kind() == Kind::backward;
    const std::size_t result = backward ? 4 : 2, rows = backward ? 1 : 3;
    for (const std::size_t use : {result, uses.size() - 1})
      if (uses[use].access == Access::write)
        std::fill_n(at(use, 0, 1), uses[use].bytes / sizeof(Number), ring.zero());
    for (std::uint32_t qp = 0; qp < block.query_count; ++qp)
      for (std::uint32_t kp = 0; kp < block.key_count; ++kp) {
        const IndexSet& queries = pieces.positions(block.queries, block.first_query + qp);
        const IndexSet& keys = pieces.positions(block.keys, block.first_key + kp);
        for (std::int64_t i = 0; i < queries.size(); ++i)
          for (std::int64_t j = 0; j < keys.size(); ++j) {
            if (!test::sees(form.mask, queries[i], keys[j])) continue;
            const Number q = at(0, qp, 1)[i], k = at(1, kp, 2)[j];
            const Number v = at(1, kp, 2)[room + static_cast<std::size_t>(j)];
            Number* const into = at(result, qp, rows) + i;
            const Number score = ring.times(q, k);
            if (!backward) {
              *into = ring.plus(*into, ring.times(score, v));
              for (const std::size_t number : {room, 2 * room})
                into[number] = ring.plus(into[number], score);
            } else {
              const Number d = at(3, qp, 1)[i];
              *into += d * k * v;
              at(5, kp, 2)[j] += d * q * v;
              at(5, kp, 2)[room + static_cast<std::size_t>(j)] += d * score;
            }
          }
      }
  }
};

/// The memory of all buffers of a schedule, and what the generators expect in it.
class Memory {
 public:
  Memory(const Schedule& schedule, const AttentionPieces& pieces) : m_schedule(schedule) {
    const auto room = static_cast<std::size_t>(pieces.capacity());
    for (const Buffer& buffer : schedule.buffers()) {
      m_data.emplace_back(buffer.bytes / sizeof(Number), 777);  // what nobody reads
      const std::string& label = schedule[buffer.label];
      const bool pair = label == "keys_values";
      if (!pair && label != "queries" && label != "output_grads") continue;
      for (std::uint32_t piece = 0; piece < pieces.pieces(); ++piece) {
        const IndexSet& here = pieces.positions(buffer.rank.value, piece);
        for (std::int64_t i = 0; i < here.size(); ++i) {
          Number* const row = m_data.back().data() + piece * room * (pair ? 2 : 1) + i;
          *row = element(pair ? 1 : label == "queries" ? 0 : 3, here[i]);
          if (pair) row[room] = element(2, here[i]);
        }
      }
    }
  }

  [[nodiscard]] std::byte* begin(BufferId id) {
    return reinterpret_cast<std::byte*>(m_data[+id].data());
  }
  [[nodiscard]] Number at(std::string_view label, std::uint32_t rank, std::size_t i) const {
    for (std::size_t b = 0; b < m_data.size(); ++b) {
      const Buffer& buffer = m_schedule.buffers()[b];
      if (m_schedule[buffer.label] == label && buffer.rank == rank) return m_data[b][i];
    }
    throw std::logic_error("no such buffer");
  }

 private:
  const Schedule& m_schedule;
  std::vector<std::vector<Number>> m_data;
};

/// The serial result for the token at position t, as query or as key.
struct Expected {
  Number output, scores, query_grad = 0, key_grad = 0, value_grad = 0;
};
Expected expected(const AttentionForm& form, const Semiring& ring, std::int64_t t) {
  Expected all{ring.zero(), ring.zero()};
  for (std::int64_t s = 0; s < form.tokens; ++s) {
    if (test::sees(form.mask, t, s)) {
      const Number score = ring.times(element(0, t), element(1, s));
      all.output = ring.plus(all.output, ring.times(score, element(2, s)));
      all.scores = ring.plus(all.scores, score);
      all.query_grad += element(3, t) * element(1, s) * element(2, s);
    }
    if (test::sees(form.mask, s, t)) {
      all.key_grad += element(3, s) * element(0, s) * element(2, t);
      all.value_grad += element(3, s) * element(0, s) * element(1, t);
    }
  }
  return all;
}

/// Runs `schedule` on threads, twice, and compares.
void check(const Schedule& schedule, const AttentionForm& form, const Semiring& ring) {
  const AttentionPieces pieces(form);
  Memory memory(schedule, pieces);
  run_threads(form.ranks, [&](ThreadTransport& transport) {
    const Handle handle{form, pieces, ring};
    Executor<ThreadTransport> executor(
        slice(schedule, transport.rank(),
              [&](BufferId id, const Buffer&) { return memory.begin(id); }),
        transport, {});
    executor.step(handle);
    executor.step(handle);
    executor.drain();
  });
  const auto room = static_cast<std::size_t>(pieces.capacity());
  bool equal = true;
  for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(form.ranks); ++r)
    for (std::uint32_t piece = 0; piece < pieces.pieces(); ++piece)
      for (std::int64_t i = 0; i < pieces.positions(r, piece).size(); ++i) {
        const Expected all = expected(form, ring, pieces.positions(r, piece)[i]);
        const std::size_t one = piece * room + static_cast<std::size_t>(i);
        const std::size_t two = 2 * piece * room + static_cast<std::size_t>(i);
        const std::size_t three = 3 * piece * room + static_cast<std::size_t>(i);
        if (form.backward)
          equal &= memory.at("query_grads", r, one) == all.query_grad &&
                   memory.at("key_value_grads", r, two) == all.key_grad &&
                   memory.at("key_value_grads", r, two + room) == all.value_grad;
        else
          equal &= memory.at("state", r, three) == all.output &&
                   memory.at("state", r, three + room) == all.scores &&
                   memory.at("state", r, three + 2 * room) == all.scores;
      }
  if (!equal) FAIL(schedule.name() << " differs from the serial result, " << form.tokens);
}

}  // namespace

TEST_CASE("rings and TokenRing over threads equal the serial result bitwise, P = 1 to 8") {
  for (int p = 1; p <= 8; ++p)
    for (const ShardOrder& order : {ShardOrder::even(), ShardOrder::zigzag(), ShardOrder::cyclic()})
      for (const std::int64_t tokens : {std::int64_t{4} * p, std::int64_t{29}, std::int64_t{3}})
        for (const int ways : {1, 2}) {
          AttentionForm form{
              .ranks = p, .order = order, .ways = ways, .tokens = tokens, .type = Scalar::i64};
          if (tokens == 29) form.mask.segments = {5, 17};
          form.mask.causal = tokens != 3;
          std::vector<Schedule> lists = {schedule::ring_attention(form)};
          if (ways == 1) lists.push_back(schedule::token_ring(form));
          for (const Schedule& list : lists)
            for (const bool max_plus : {true, false})
              check(schedule::fold_attention(schedule::drop_unread(list), form), form, {max_plus});
          form.backward = true;
          check(
              schedule::fold_attention(schedule::drop_unread(schedule::ring_attention(form)), form),
              form, {});
        }
}

TEST_CASE("the two passes of rsa over threads equal the serial result bitwise") {
  for (int p = 1; p <= 8; ++p)
    for (const std::int64_t tokens : {std::int64_t{4} * p, std::int64_t{13}})
      for (const bool max_plus : {true, false}) {
        const AttentionForm form{
            .ranks = p, .order = ShardOrder::zigzag(), .tokens = tokens, .type = Scalar::i64};
        const AttentionPieces pieces(form);
        const Semiring ring{max_plus};
        const Schedule list =
            schedule::fold_attention(schedule::drop_unread(schedule::rsa(form)), form);
        const auto room = static_cast<std::size_t>(pieces.block_capacity());
        std::vector<std::vector<Number>> data;
        for (const Buffer& buffer : list.buffers()) {
          data.emplace_back(buffer.bytes / sizeof(Number), 777);
          const std::string& label = list[buffer.label];
          const int what = label == "queries" ? 0 : label == "keys" ? 1 : label == "values" ? 2 : 3;
          const IndexSet here = pieces.positions(buffer.rank.value, 0, 2);
          for (std::int64_t i = 0; what < 3 && i < here.size(); ++i)
            data.back()[static_cast<std::size_t>(i)] = element(what, here[i]);
        }
        run_threads(p, [&](ThreadTransport& transport) {
          const auto handle = [&](const Task& task) {
            if (task.kind() == Kind::user) return;
            const auto uses = task.uses();
            const bool first = task.has("queries");
            const auto rows = [&](std::size_t use) {
              return reinterpret_cast<Number*>(uses[use].data);
            };
            const IndexSet queries = pieces.positions(task.stage().value, 0, 2);
            const IndexSet keys = pieces.positions(task.item().value, 0, 2);
            if (uses[2].access == Access::write)
              std::fill_n(rows(2), uses[2].bytes / sizeof(Number), ring.zero());
            for (std::int64_t i = 0; i < queries.size(); ++i)
              for (std::int64_t j = 0; j < keys.size(); ++j) {
                if (!test::sees(form.mask, queries[i], keys[j])) continue;
                Number& score = rows(
                    first ? 2
                          : 0)[static_cast<std::size_t>(i) * room + static_cast<std::size_t>(j)];
                if (first)
                  score = ring.times(rows(0)[i], rows(1)[j]);
                else
                  rows(2)[i] = ring.plus(rows(2)[i], ring.times(score, rows(1)[j]));
              }
          };
          execute(slice(list, transport.rank(),
                        [&](BufferId id, const Buffer&) {
                          return reinterpret_cast<std::byte*>(data[+id].data());
                        }),
                  handle, transport);
        });
        bool equal = true;
        for (std::size_t b = 0; b < data.size(); ++b) {
          if (list[list.buffers()[b].label] != "output") continue;
          const IndexSet here = pieces.positions(list.buffers()[b].rank.value, 0, 2);
          for (std::int64_t i = 0; i < here.size(); ++i)
            equal &= data[b][static_cast<std::size_t>(i)] == expected(form, ring, here[i]).output;
        }
        CHECK(equal);
      }
}

TEST_CASE("combine_records joins record by record, and rejects what are none") {
  const auto list = [](std::uint32_t from_record, std::uint32_t into_record, Scalar type) {
    Builder builder("records", 1);
    const BufferId from = builder.add_buffer({.parts = 2,
                                              .label = builder.label("from"),
                                              .type = type,
                                              .transient = false,
                                              .bytes = 12 * size_of(type),
                                              .record = from_record});
    const BufferId into = builder.add_buffer({.parts = 2,
                                              .label = builder.label("into"),
                                              .type = type,
                                              .transient = false,
                                              .bytes = 12 * size_of(type),
                                              .record = into_record});
    builder.add({.kind = Kind::combine, .queue = builder.local(Rank{0})},
                {schedule::read(from, 0, 2), schedule::update(into, 0, 2)});
    return std::move(builder).build();
  };
  std::vector<Number> from(12), into(12);
  const auto run = [&](const Schedule& schedule, auto&& body) {
    run_threads(1, [&](ThreadTransport& transport) {
      const auto handle = [&](const Task& task) { body(task); };
      execute(slice(schedule, Rank{0},
                    [&](BufferId id, const Buffer&) {
                      return reinterpret_cast<std::byte*>(+id == 0 ? from.data() : into.data());
                    }),
              handle, transport);
    });
  };
  for (std::size_t i = 0; i < 12; ++i) {
    from[i] = static_cast<Number>(i);
    into[i] = 100;
  }
  // A record of three numbers: the greatest first one wins, and brings the two others.
  int records = 0;
  run(list(3, 3, Scalar::i64), [&](const Task& task) {
    REQUIRE(heddle::impl::combines_records(task));
    combine_records<Number>(task, [&](const Number* a, Number* b, std::size_t length) {
      ++records;
      REQUIRE(length == 3);
      if (a[0] >= 6) std::copy_n(a, length, b);
    });
  });
  CHECK(records == 4);
  CHECK(into == std::vector<Number>{100, 100, 100, 100, 100, 100, 6, 7, 8, 9, 10, 11});

  const auto refusal = [&](const Schedule& schedule, auto body) {
    return test::message_of<contract_error>([&] { run(schedule, body); });
  };
  const auto nothing = [](auto*, auto*, std::size_t) {};
  CHECK_THAT(refusal(list(3, 3, Scalar::i64), [](const Task& task) { combine_on_host(task); }),
             ContainsSubstring("records of 3 elements") && ContainsSubstring("combine_records()"));
  CHECK_THAT(refusal(list(2, 3, Scalar::i64),
                     [&](const Task& task) { combine_records<Number>(task, nothing); }),
             ContainsSubstring("records of 2 i64") && ContainsSubstring("records of 3 i64"));
  CHECK_THAT(refusal(list(3, 3, Scalar::i64),
                     [&](const Task& task) { combine_records<double>(task, nothing); }),
             ContainsSubstring("expected elements of f64"));
  CHECK_THAT(refusal(list(0, 0, Scalar::i64),
                     [&](const Task& task) {
                       CHECK_FALSE(heddle::impl::combines_records(task));
                       combine_records<Number>(task, nothing);
                     }),
             ContainsSubstring("do not hold records of the same type and size"));
  CHECK_THAT(test::message_of<contract_error>([&] { (void)list(3, 5, Scalar::i64); }),
             ContainsSubstring("a buffer of records needs parts of whole records") &&
                 ContainsSubstring("records of 5 i64, 96 bytes in 2 parts"));
}

TEST_CASE("the hash tells records from numbers and from blocks of scales") {
  const auto list = [](std::uint32_t record, std::uint32_t block) {
    Builder builder("hash", 1);
    builder.add_buffer({.bytes = 12, .block = block, .record = record});
    return hash(std::move(builder).build());
  };
  CHECK(list(0, 0) != list(4, 0));
  CHECK(list(4, 0) != list(0, 4));
  CHECK(list(4, 0) != list(2, 0));
}

TEST_CASE("parts of records are cut between records") {
  const Buffer buffer{.parts = 2, .type = Scalar::f64, .bytes = 72, .record = 3};
  CHECK(schedule::part_bytes(buffer, 0, 1) == 48);
  CHECK(schedule::part_bytes(buffer, 1, 1) == 24);
  CHECK_FALSE(heddle::impl::is_cut_evenly(buffer));
}

}  // namespace test_ring_attention_results
