// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// with_product() and overlap(): the pieces, their order on every rank, and that nothing else
// changes. Times: tests/simulate/overlap_closed_forms.cpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"
#include "support/interpreter.hpp"

namespace test_overlap {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using schedule::Algorithm;
using schedule::Collective;
using schedule::overlap;
using schedule::PartOrder;
using schedule::with_product;

namespace {

constexpr Bytes row = 24;  ///< of what a collective carries: three numbers, of two on the far side

/// Every collective that a product goes with, by every algorithm that performs it on `p` ranks.
template <class Check>
void for_products(int p, Check&& check) {
  for (const Collective collective : {Collective::reduce_scatter, Collective::all_reduce,
                                      Collective::all_gather, Collective::all_to_all})
    for (std::size_t a = 0; a < schedule::algorithm_count; ++a)
      for (const int chunks : {1, 3})
        for (const Bytes rows : {0, 1, 5, 13, 24}) {
          const auto algorithm = static_cast<Algorithm>(a);
          const schedule::CollectiveOptions options{
              .ranks = p, .bytes = rows * row, .element = row, .chunks = chunks};
          if (schedule::why_not(collective, algorithm, options).empty())
            check(with_product(collective, algorithm, options, 16), collective);
        }
}

/// What the list leaves in the persistent buffers, run from top to bottom. The product maps rows to
/// rows, of numbers whose sums are rounded.
std::vector<double> left_by(const Schedule& list) {
  test::Storage storage(list, std::byte{0x7f});
  for (std::size_t i = 0; i < list.size(); ++i) {
    const ActionId id{i};
    const auto numbers = [&](std::size_t use) {
      const Use& parts = list.uses(id)[use];
      double* const begin = reinterpret_cast<double*>(storage.begin(parts.buffer)) +
                            schedule::part_offset(list[parts.buffer], parts.first) / sizeof(double);
      return std::span(begin, static_cast<std::size_t>(list.bytes(parts)) / sizeof(double));
    };
    const std::span<double> from = numbers(0), to = numbers(1);
    if (list[id].kind == Kind::forward) {
      const std::size_t read = list[list[list.uses(id)[0].buffer].label] == "operand" ? 2 : 3;
      const std::size_t written = 5 - read;
      REQUIRE(from.size() / read == to.size() / written);
      for (std::size_t n = 0; n < to.size(); ++n)
        to[n] = from[n / written * read] / 3 +
                from[n / written * read + 1] * static_cast<double>(n % written);
    } else {
      REQUIRE(from.size() == to.size());
      for (std::size_t n = 0; n < to.size(); ++n)
        to[n] = list[id].kind == Kind::combine ? to[n] + from[n] : from[n];
    }
  }
  std::vector<double> left;
  for (std::size_t b = 0; b < list.buffers().size(); ++b) {
    const BufferId id{b};
    if (list[id].transient) continue;
    const double* const begin = reinterpret_cast<double*>(storage.begin(id));
    left.insert(left.end(), begin, begin + list[id].bytes / sizeof(double));
  }
  return left;
}

/// The items of the Fs of every rank, in their order.
std::vector<std::vector<std::uint32_t>> parts_in_order(const Schedule& list) {
  std::vector<std::vector<std::uint32_t>> parts(static_cast<std::size_t>(list.ranks()));
  for (const Action& action : list.actions())
    if (action.kind == Kind::forward) parts[+list[action.queue].from].push_back(action.item.value);
  return parts;
}

}  // namespace

TEST_CASE("a product beside a collective leaves the same numbers whole, in parts, in any order") {
  for (int p = 1; p <= 5; ++p)
    for_products(p, [](const Schedule& serial, Collective) {
      const std::vector<double> expected = left_by(serial);
      for (const PartOrder order : {PartOrder::as_needed, PartOrder::ascending})
        if (left_by(overlap(serial, order)) != expected) FAIL(serial.name());
    });
}

TEST_CASE("of the list only the product changes: the same messages and sums in the same order") {
  for (int p = 1; p <= 5; ++p)
    for_products(p, [](const Schedule& serial, Collective) {
      const Schedule together = overlap(serial);
      std::vector<std::string> before, after;
      for (const auto& [list, lines] : {std::pair{&serial, &before}, {&together, &after}})
        for (std::size_t i = 0; i < list->size(); ++i) {
          if ((*list)[ActionId{i}].kind == Kind::forward) continue;
          std::string line = schedule::action_text(*list, ActionId{i});
          for (const Use& use : list->uses(ActionId{i}))
            line += text(' ', use.buffer, ':', use.first, '+', use.count, '/', use.mode);
          lines->push_back(line);
        }
      REQUIRE(before == after);
    });
}

TEST_CASE("the product covers each row once, and its far side is cut as the near one is") {
  for (int p = 1; p <= 5; ++p)
    for_products(p, [&](const Schedule& serial, Collective collective) {
      const Schedule together = overlap(serial);
      const bool merges =
          collective == Collective::reduce_scatter || collective == Collective::all_reduce;
      std::vector<std::vector<int>> seen;
      for (const Buffer& buffer : together.buffers()) seen.emplace_back(buffer.parts, 0);
      for (std::size_t i = 0; i < together.size(); ++i) {
        if (together[ActionId{i}].kind != Kind::forward) continue;
        const auto uses = together.uses(ActionId{i});
        REQUIRE(uses.size() == 2);
        CHECK(uses[0].access() == Access::read);
        CHECK(uses[1].access() == Access::write);
        CHECK(uses[0].first == uses[1].first);
        CHECK(together[ActionId{i}].item == Item{uses[1].first});
        CHECK(together.bytes(uses[0]) * (merges ? 3 : 2) ==
              together.bytes(uses[1]) * (merges ? 2 : 3));
        for (const Use& use : uses) {
          REQUIRE(use.count == 1);
          ++seen[+use.buffer][use.first];
        }
      }
      for (std::size_t b = 0; b < seen.size(); ++b) {
        const std::string& label = together[together.buffers()[b].label];
        const bool product =
            label == "operand" || label == "result" || label == "data" || label == "output";
        // A buffer of one part is not cut: that F is whole, and was counted all the same.
        for (const int times : seen[b]) REQUIRE(times == (product ? 1 : 0));
      }
    });
}

TEST_CASE("beside a ring every rank begins with another block") {
  const auto list = [](Collective collective, PartOrder order) {
    return parts_in_order(
        overlap(with_product(collective, Algorithm::ring, {.ranks = 4, .bytes = 32}, 8), order));
  };
  using Parts = std::vector<std::vector<std::uint32_t>>;
  // Rank r sends block r - 1 first and merges into r - 2, r - 3, ... what it then sends.
  CHECK(list(Collective::reduce_scatter, PartOrder::as_needed) ==
        Parts{{3, 2, 1, 0}, {0, 3, 2, 1}, {1, 0, 3, 2}, {2, 1, 0, 3}});
  // It has its own block first and gets r - 1, r - 2, ...
  CHECK(list(Collective::all_gather, PartOrder::as_needed) ==
        Parts{{0, 3, 2, 1}, {1, 0, 3, 2}, {2, 1, 0, 3}, {3, 2, 1, 0}});
  for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather})
    CHECK(list(collective, PartOrder::ascending) == Parts(4, {0, 1, 2, 3}));
}

TEST_CASE("a rank that walks the list works while its messages are under way") {
  const auto lines = [](Collective collective, Algorithm algorithm) {
    return to_text(overlap(with_product(collective, algorithm, {.ranks = 3, .bytes = 24}, 8)));
  };
  // Each part is made just before it is sent or merged into.
  CHECK_THAT(lines(Collective::reduce_scatter, Algorithm::ring),
             ContainsSubstring("0F2,0SEND_B2,0RECV_B1,0F1,0COMBINE1,0SEND_B1,0RECV_B0,0F0,"
                               "0COMBINE0\n"));
  // Each part is used when all is sent that could be, and before the rank waits for the next.
  CHECK_THAT(lines(Collective::all_gather, Algorithm::ring),
             ContainsSubstring("0SEND_F0,0RECV_F2,0F0,0SEND_F2,0RECV_F1,0F2,0F1\n"));
  CHECK_THAT(lines(Collective::all_to_all, Algorithm::direct),
             ContainsSubstring("0COPY0,0SEND_F1,0RECV_F0,0SEND_F2,0RECV_F0,0F0,0F2,0F1\n"));
}

TEST_CASE("every message is triggered by what fills it: P - 1 a rank and chunk") {
  for (int p = 1; p <= 8; ++p) {
    for (const int chunks : {1, 2, 5}) {
      const auto m = static_cast<Bytes>(8 * p * chunks);
      const Schedule list = overlap(with_product(Collective::reduce_scatter, Algorithm::ring,
                                                 {.ranks = p, .bytes = m, .chunks = chunks}, 8));
      std::vector<int> by_product(static_cast<std::size_t>(p), 0), by_sum = by_product;
      std::vector<Bytes> sent(static_cast<std::size_t>(p), 0);
      for (std::size_t i = 0; i < list.size(); ++i) {
        const ActionId id{i};
        if (list[id].kind != Kind::move) continue;
        sent[+list[list[id].queue].from] += list.bytes(list.uses(id)[0]);
        int triggers = 0;
        for (const After& after : list.after(id)) {
          if (after.mine != 0) continue;
          ++triggers;
          // The counter of a part: what came in has been added to what was made, which the sum
          // waits for.
          const bool sum = list[ActionId{after.action}].kind == Kind::combine;
          ++(sum ? by_sum : by_product)[+list[list[id].queue].from];
        }
        REQUIRE(triggers == 1);
      }
      for (std::size_t r = 0; r < sent.size(); ++r) {
        REQUIRE(by_product[r] == (p > 1 ? chunks : 0));
        REQUIRE(by_product[r] + by_sum[r] == (p - 1) * chunks);
        REQUIRE(sent[r] * static_cast<Bytes>(p) == m * static_cast<Bytes>(p - 1));
      }
    }
  }
}

TEST_CASE("a rank reads and writes (6P - 5)/P of the product in memory, whole or in parts") {
  for (int p = 1; p <= 8; ++p) {
    const auto m = static_cast<Bytes>(8 * p);
    const Schedule serial =
        with_product(Collective::reduce_scatter, Algorithm::ring, {.ranks = p, .bytes = m}, 8);
    for (const Schedule& list : {serial, overlap(serial)}) {
      std::vector<Bytes> touched(static_cast<std::size_t>(p), 0);
      for (std::size_t i = 0; i < list.size(); ++i)
        for (const Use& use : list.uses(ActionId{i})) {
          const Buffer& buffer = list[use.buffer];
          if (list[buffer.label] == "operand") continue;
          const Bytes times = use.access() == Access::update ? 2 : 1;
          touched[+buffer.rank] += times * list.bytes(use);
        }
      // Made: P blocks; of P - 1 each a message read and one written, and of what is merged two
      // reads and a write.
      for (const Bytes bytes : touched)
        REQUIRE(bytes * static_cast<Bytes>(p) == m * static_cast<Bytes>(6 * p - 5));
    }
  }
}

TEST_CASE("two layers are overlapped one after another, and each keeps to its collective") {
  // An all-gather, two products of the same rows, and a reduce-scatter of the second one's.
  constexpr std::uint32_t p = 3;
  Builder builder("two layers", p);
  std::vector<Use> x, y, z;
  for (std::size_t r = 0; r < p; ++r)
    for (auto* const members : {&x, &y, &z}) {
      const BufferId id = builder.add_buffer({.rank = Rank{r},
                                              .parts = p,
                                              .type = Scalar::f64,
                                              .transient = members != &x,
                                              .bytes = 48});
      members->push_back(schedule::update(id, 0, p));
    }
  using schedule::CollectiveForm;
  CollectiveForm{.collective = Collective::all_gather}(builder, x, Stage{0});
  const auto work = [&](Stage stage, const std::vector<Use>& from, const std::vector<Use>& to) {
    for (std::size_t r = 0; r < p; ++r)
      builder.add({.kind = Kind::forward, .queue = builder.local(Rank{r}), .stage = stage},
                  {schedule::read(from[r].buffer, 0, p), schedule::write(to[r].buffer, 0, p)});
  };
  work(Stage{0}, x, y);
  work(Stage{1}, y, z);
  CollectiveForm{.collective = Collective::reduce_scatter}(builder, z, Stage{0});
  const Schedule layers = std::move(builder).build();
  CHECK_THAT(test::message_of<contract_error>([&] { (void)overlap(layers); }),
             ContainsSubstring(
                 "heddle::schedule::overlap: pieces of different actions depend on each other") &&
                 ContainsSubstring("a part of buffer 1 in actions 6 and 9") &&
                 ContainsSubstring("choose independent actions"));
  Schedule list = layers;
  for (const Stage stage : {Stage{0}, Stage{1}})
    list = overlap(list, [&](ActionId id) {
      return list[id].kind == Kind::forward && list[id].stage == stage;
    });
  const auto is_before = [&](std::size_t rank, std::string_view first, std::string_view second) {
    const std::string all = to_text(list);
    std::size_t begin = 0;
    for (std::size_t r = 0; r < rank; ++r) begin = all.find('\n', begin) + 1;
    const std::size_t a = all.find(first, begin), b = all.find(second, begin);
    return a < b && b < all.find('\n', begin);
  };
  CHECK(is_before(0, "0F0", "0F2"));
  CHECK(is_before(0, "0F2", "0F1"));
  CHECK(is_before(0, "1F2", "0SEND_B2"));
  CHECK(is_before(0, "0SEND_B2", "1F1"));
  CHECK(is_before(0, "1F1", "1F0"));
}

TEST_CASE("two products that use the same parts both begin before the ring is over") {
  constexpr std::uint32_t p = 3;
  const Schedule one = with_product(Collective::all_gather, Algorithm::ring,
                                    {.ranks = static_cast<int>(p), .bytes = 24}, 8);
  Builder builder = Builder::like(one, [](const Buffer& buffer) { return buffer; });
  for (std::size_t i = 0; i < one.size(); ++i) builder.add(one, ActionId{i}, one.uses(ActionId{i}));
  for (std::size_t r = 0; r < p; ++r) {
    const BufferId to = builder.add_buffer({.rank = Rank{r}, .parts = p, .bytes = 24});
    builder.add({.kind = Kind::forward, .queue = builder.local(Rank{r}), .stage = Stage{1}},
                {schedule::read(BufferId{r}, 0, p), schedule::write(to, 0, p)});
  }
  const std::string lines = to_text(overlap(std::move(builder).build()));
  CHECK(lines.starts_with("0SEND_F0,0RECV_F2,0F0,1F0,0SEND_F2,0RECV_F1,0F2,0F1,1F2,1F1\n"));
}

TEST_CASE("pieces stay between the neighbours of their action in its queue") {
  Builder builder("neighbours", 2);
  const BufferId data = builder.add_buffer({.parts = 2, .bytes = 2});
  const BufferId other = builder.add_buffer({.bytes = 1});
  const BufferId there = builder.add_buffer({.rank = Rank{1}, .parts = 2, .bytes = 2});
  const QueueId here = builder.local(Rank{0}), channel = builder.queue(Rank{0}, Rank{1});
  builder.add({.kind = Kind::forward, .queue = here}, {schedule::write(data, 0, 2)});
  builder.add({.kind = Kind::move, .queue = channel, .item = Item{1}},
              {schedule::read(data, 1), schedule::write(there, 1)});
  builder.add({.kind = Kind::forward, .queue = here, .stage = Stage{1}}, {schedule::write(other)});
  builder.add({.kind = Kind::move, .queue = channel},
              {schedule::read(data, 0), schedule::write(there, 0)});
  const Schedule list = std::move(builder).build();
  CHECK(to_text(overlap(list)) == "0F1,0SEND_F1,0F0,1F0,0SEND_F0\n0RECV_F1,0RECV_F0\n");
  CHECK(to_text(overlap(list, PartOrder::ascending)) ==
        "0F0,0F1,0SEND_F1,1F0,0SEND_F0\n0RECV_F1,0RECV_F0\n");

  // A consumer would begin before the rank waits for part 1, but stage 1 comes before it.
  Builder uses("uses", 2);
  const BufferId come = uses.add_buffer({.parts = 2, .bytes = 2});
  const BufferId result = uses.add_buffer({.parts = 2, .bytes = 2});
  const BufferId away =
      uses.add_buffer({.rank = Rank{1}, .parts = 2, .transient = false, .bytes = 2});
  for (const std::uint32_t part : {0u, 1u})
    uses.add({.kind = Kind::move, .queue = uses.queue(Rank{1}, Rank{0}), .item = Item{part}},
             {schedule::read(away, part), schedule::write(come, part)});
  uses.add({.kind = Kind::user, .queue = uses.local(Rank{0}, Lane{2})}, {schedule::read(come, 1)});
  uses.add({.kind = Kind::forward, .queue = uses.local(Rank{0}), .stage = Stage{1}}, {});
  uses.add({.kind = Kind::forward, .queue = uses.local(Rank{0})},
           {schedule::read(come, 0, 2), schedule::write(result, 0, 2)});
  CHECK(to_text(overlap(std::move(uses).build())) ==
        "0RECV_F0,0RECV_F1,0USER0,1F0,0F0,0F1\n0SEND_F0,0SEND_F1\n");
}

TEST_CASE("pieces come between no two actions that are fused") {
  // A pair in another queue, whose second half uses part 1.
  const auto add_pair = [](Builder& builder, BufferId data) {
    const QueueId second = builder.local(Rank{0}, Lane{2});
    const BufferId own = builder.add_buffer({.bytes = 1});
    builder.add(
        {.kind = Kind::forward, .queue = second, .stage = Stage{7}, .flags = flag::with_next},
        {schedule::write(own)});
    builder.add({.kind = Kind::backward, .queue = second, .stage = Stage{7}},
                {schedule::read(data, 1)});
  };
  Builder makes("makes", 1);
  const BufferId made = makes.add_buffer({.parts = 2, .bytes = 2});
  makes.add({.kind = Kind::forward, .queue = makes.local(Rank{0})}, {schedule::write(made, 0, 2)});
  add_pair(makes, made);
  CHECK(to_text(overlap(std::move(makes).build())) == "0F1,7F0,7B0,0F0\n");

  Builder uses("uses", 2);
  const BufferId come = uses.add_buffer({.parts = 2, .bytes = 2});
  const BufferId result = uses.add_buffer({.parts = 2, .bytes = 2});
  const BufferId away =
      uses.add_buffer({.rank = Rank{1}, .parts = 2, .transient = false, .bytes = 2});
  for (const std::uint32_t part : {0u, 1u})
    uses.add({.kind = Kind::move, .queue = uses.queue(Rank{1}, Rank{0}), .item = Item{part}},
             {schedule::read(away, part), schedule::write(come, part)});
  add_pair(uses, come);
  uses.add({.kind = Kind::forward, .queue = uses.local(Rank{0})},
           {schedule::read(come, 0, 2), schedule::write(result, 0, 2)});
  // Between its halves it would be before the rank waits for part 1.
  CHECK(to_text(overlap(std::move(uses).build())) ==
        "0RECV_F0,0RECV_F1,7F0,7B0,0F0,0F1\n0SEND_F0,0SEND_F1\n");
}

TEST_CASE("what cannot be done in parts is refused") {
  Builder builder("refused", 2);
  const BufferId two = builder.add_buffer({.parts = 2, .bytes = 2});
  const BufferId three = builder.add_buffer({.parts = 3, .bytes = 3});
  const BufferId there = builder.add_buffer({.rank = Rank{1}, .parts = 2, .bytes = 2});
  const QueueId queue = builder.local(Rank{0});
  builder.add({.kind = Kind::forward, .queue = queue},
              {schedule::write(two, 0, 2), schedule::write(three, 0, 3)});
  builder.add({.kind = Kind::user, .queue = queue}, {schedule::read(two, 0, 2)});
  builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
              {schedule::read(two, 0, 2), schedule::write(there, 0, 2)});
  builder.add({.kind = Kind::forward, .queue = queue, .flags = flag::with_next},
              {schedule::write(two, 0, 2)});
  builder.add({.kind = Kind::backward, .queue = queue}, {schedule::write(three, 0, 3)});
  builder.add({.kind = Kind::forward, .queue = queue},  // each part from the one before it
              {schedule::read(three, 0, 2), schedule::update(three, 1, 2)});
  const Schedule list = std::move(builder).build();
  const auto refusal = [&](std::size_t action) {
    return test::message_of<contract_error>(
        [&] { (void)overlap(list, [&](ActionId id) { return +id == action; }); });
  };
  CHECK_THAT(refusal(0),
             ContainsSubstring("heddle::schedule::overlap: an action must write the same number of "
                               "parts of every buffer (2 and 3 parts of action 0)"));
  const std::string local =
      "only local work that writes something can be divided into parts (action ";
  CHECK_THAT(refusal(1), ContainsSubstring(local + "1 is USER, writes 0 parts)"));
  CHECK_THAT(refusal(2), ContainsSubstring(local + "2 is MOVE, writes 2 parts)"));
  CHECK_THAT(refusal(3), ContainsSubstring(local + "3 is F, fused, writes 2 parts)"));
  CHECK_THAT(refusal(4), ContainsSubstring(local + "4 is B, fused, writes 3 parts)"));
  CHECK_THAT(
      refusal(5),
      ContainsSubstring("pieces of different actions depend on each other (a part of buffer 1 in "
                        "actions 5 and 5)"));
}

TEST_CASE("a product goes with what is merged, gathered or exchanged only") {
  const auto refusal = [](Collective collective, Bytes bytes) {
    return test::message_of<error>(
        [&] { (void)with_product(collective, Algorithm::ring, {.ranks = 2, .bytes = 16}, bytes); });
  };
  for (const Collective collective : {Collective::broadcast, Collective::reduce, Collective::gather,
                                      Collective::scatter, Collective::barrier})
    CHECK_THAT(
        refusal(collective, 8),
        ContainsSubstring(
            text("heddle::schedule::with_product: no product can be combined with ", collective)) &&
            ContainsSubstring("use reduce_scatter, all_reduce, all_gather or all_to_all"));
  for (const Bytes bytes : {0, 4, 12})
    CHECK_THAT(refusal(Collective::all_gather, bytes),
               ContainsSubstring(text("a row must be whole elements (", bytes, " bytes")));
  CHECK_THROWS_AS(
      with_product(Collective::all_to_all, Algorithm::ring, {.ranks = 2, .bytes = 16}, 8),
      infeasible);
}

TEST_CASE("a list without work, and an empty one, stay as they are") {
  const Schedule ring =
      schedule::collective(Collective::all_reduce, Algorithm::ring, {.ranks = 3, .bytes = 24});
  CHECK(to_text(overlap(ring)) == to_text(ring));
  CHECK(
      overlap(schedule::collective(Collective::all_reduce, Algorithm::ring, {.ranks = 1})).empty());
}

}  // namespace test_overlap
