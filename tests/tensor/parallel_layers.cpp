// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// program: its own

// The divided layers against the undivided ones of kernel/, with uneven shares, shares of nothing
// and both forms of rows; and the bytes that they send, as MPI is told to send them.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/core/random.hpp>
#include <heddle/kernel.hpp>
#include <heddle/tensor.hpp>

#include "gpt.hpp"  // with it TensorLine is compiled already
#include "support/complaint.hpp"
#include "support/sent_bytes.hpp"
#include "support/world.hpp"

namespace test_parallel_layers {

namespace hd = heddle;
namespace hk = heddle::kernel;
using Catch::Matchers::ContainsSubstring;
using hd::test::sent_bytes;
using hd::test::world_size;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Line = hd::TensorLine<double, Exec>;
using Real2 = Kokkos::View<double**, Kokkos::LayoutRight, Exec::memory_space>;
using Real1 = Kokkos::View<double*, Kokkos::LayoutRight, Exec::memory_space>;
using Tokens = Kokkos::View<std::uint8_t**, Kokkos::LayoutRight, Exec::memory_space>;

Real2 random(const std::string& name, std::size_t rows, std::size_t columns) {
  Real2 made(name, rows, columns);
  const hd::Random values(5, name);
  for (std::size_t i = 0; i < made.size(); ++i) made.data()[i] = values.normal(i);
  return made;
}
Real1 random(const std::string& name, std::size_t size) {
  Real1 made(name, size);
  const hd::Random values(5, name);
  for (std::size_t i = 0; i < size; ++i) made(i) = values.normal(i);
  return made;
}

/// The part of a matrix, as a matrix of its own.
Real2 part(const Real2& of, const hd::Share& rows, const hd::Share& columns) {
  Real2 made("part", rows.count, columns.count);
  for (std::size_t i = 0; i < rows.count; ++i)
    for (std::size_t j = 0; j < columns.count; ++j)
      made(i, j) = of(rows.first + i, columns.first + j);
  return made;
}
Real1 part(const Real1& of, const hd::Share& share) {
  Real1 made("part", share.count);
  for (std::size_t i = 0; i < share.count; ++i) made(i) = of(share.first + i);
  return made;
}
hd::Share all(std::size_t count) { return {0, count}; }

/// The largest difference, over the largest number there is. Sums of at most some hundred terms in
/// another order: 1e-13 is a hundred times what their rounding can do.
template <class View>
double apart(const View& ours, const View& theirs) {
  REQUIRE(ours.size() == theirs.size());
  double most = 0, size = 1e-300;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    size = std::max(size, std::abs(theirs.data()[i]));
    const double difference = std::abs(ours.data()[i] - theirs.data()[i]);
    if (!(difference <= most)) most = difference;  // also what is not a number
  }
  return most / size;
}
constexpr double close_to = 1e-13;

template <class Visit>
void for_each_form(Visit&& visit) {
  for (const hd::RowForm form : {hd::RowForm::whole, hd::RowForm::sharded}) {
    INFO((form == hd::RowForm::whole ? "whole" : "sharded"));
    visit(form);
  }
}

Tokens random_tokens(std::size_t sequences, std::size_t context, std::size_t vocabulary) {
  Tokens tokens("tokens", sequences, context);
  const hd::Random values(5, "tokens");
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens.data()[i] = static_cast<std::uint8_t>(values.below(i, vocabulary));
  return tokens;
}

}  // namespace

TEST_CASE("a layer divided by columns and one by rows make the undivided two") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const Exec exec;
  for_each_form([&](hd::RowForm form) {
    const Line line(world, form);
    const std::vector<std::array<std::size_t, 3>> sizes = {
        {7, 5, 13}, {1, 3, 2}, {0, 4, 4}, {12, 8, 16}, {3, 1, 1}};
    for (const auto& [rows, width, hidden] : sizes) {
      INFO(rows << " x " << width << ", hidden " << hidden);
      const auto x = random("x", rows, width), dy = random("dy", rows, width);
      const auto w1 = random("w1", width, hidden), w2 = random("w2", hidden, width);
      const auto b1 = random("b1", hidden), b2 = random("b2", width);

      Real2 h("h", rows, hidden), y("y", rows, width), dh("dh", rows, hidden),
          dx("dx", rows, width), dw1("dw1", width, hidden), dw2("dw2", hidden, width);
      Real1 db1("db1", hidden), db2("db2", width);
      hk::linear_forward(exec, x, w1, b1, h);
      hk::linear_forward(exec, h, w2, b2, y);
      hk::linear_backward_input(exec, w2, dy, dh);
      hk::linear_backward_input(exec, w1, dh, dx);
      hk::linear_backward_weight(exec, x, dh, dw1, db1);
      hk::linear_backward_weight(exec, h, dy, dw2, db2);

      const hd::Share own = line.share(hidden), mine = line.rows(rows), wide = all(width);
      const auto x_own = part(x, mine, wide), dy_own = part(dy, mine, wide);
      const auto w1_own = part(w1, wide, own), w2_own = part(w2, own, wide);
      const auto b1_own = part(b1, own);
      Real2 h_own("h", rows, own.count), dh_own("dh", rows, own.count),
          y_own("y", mine.count, width), dx_own("dx", mine.count, width),
          dw1_own("dw1", width, own.count), dw2_own("dw2", own.count, width),
          room("room", rows, width), kept("kept", rows, width);
      Real1 db1_own("db1", own.count), db2_own("db2", width);
      hd::column_parallel_forward(line, exec, x_own, room, w1_own, b1_own, h_own);
      hd::row_parallel_forward(line, exec, h_own, w2_own, b2, room, y_own);
      hd::row_parallel_backward_input(line, exec, w2_own, dy_own, kept, dh_own);
      hd::column_parallel_backward_input(line, exec, w1_own, dh_own, room, dx_own);
      hd::column_parallel_backward_weight(line, exec, x_own, room, dh_own, dw1_own, db1_own);
      hd::row_parallel_backward_weight(line, exec, h_own, dy_own, kept, dw2_own, db2_own);

      CHECK(apart(h_own, part(h, all(rows), own)) <= close_to);
      CHECK(apart(y_own, part(y, mine, wide)) <= close_to);
      CHECK(apart(dh_own, part(dh, all(rows), own)) <= close_to);
      CHECK(apart(dx_own, part(dx, mine, wide)) <= close_to);
      CHECK(apart(dw1_own, part(dw1, wide, own)) <= close_to);
      CHECK(apart(db1_own, part(db1, own)) <= close_to);
      CHECK(apart(dw2_own, part(dw2, own, wide)) <= close_to);
      CHECK(apart(db2_own, db2) <= close_to);
    }
  });
}

TEST_CASE("an embedding divided by the vocabulary is the undivided one") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const Exec exec;
  for_each_form([&](hd::RowForm form) {
    const Line line(world, form);
    for (const std::size_t vocabulary : {1, 2, 7, 64}) {  // some ranks have none of the first two
      INFO("vocabulary " << vocabulary);
      constexpr std::size_t sequences = 3, context = 5, width = 6, rows = sequences * context;
      const auto tokens = random_tokens(sequences, context, vocabulary);
      const auto table = random("table", vocabulary, width);
      const auto positions = random("positions", context, width);
      const auto dy = random("dy", rows, width);
      Real2 y("y", rows, width), dtable("dtable", vocabulary, width),
          dpositions("dpositions", context, width);
      hk::embedding_forward(exec, tokens, table, positions, y);
      hk::embedding_backward_weight(exec, tokens, dy, dtable, dpositions);

      const hd::Share own = line.share(vocabulary), mine = line.rows(rows), wide = all(width);
      Real2 y_own("y", mine.count, width), room("room", rows, width),
          dtable_own("dtable", own.count, width), dpositions_own("dpositions", context, width);
      hd::vocabulary_embedding_forward(line, exec, tokens, own, part(table, own, wide), positions,
                                       room, y_own);
      hd::vocabulary_embedding_backward_weight(line, exec, tokens, own, part(dy, mine, wide), room,
                                               dtable_own, dpositions_own);
      CHECK(apart(y_own, part(y, mine, wide)) == 0);  // one term of each sum is not zero
      CHECK(apart(dtable_own, part(dtable, own, wide)) <= close_to);
      CHECK(apart(dpositions_own, dpositions) <= close_to);
    }
  });
}

TEST_CASE("an embedding of some positions takes their rows of the position table") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const Exec exec;
  constexpr std::size_t sequences = 3, columns = 4, context = 9, width = 6, vocabulary = 7;
  constexpr std::size_t rows = sequences * columns;
  // Positions of their own, and those of two packed sequences.
  using At = std::array<std::size_t, columns>;
  const At at = GENERATE(At{0, 2, 3, 8}, At{2, 3, 2, 8});
  Kokkos::View<std::size_t*, Kokkos::LayoutRight, Exec::memory_space> some("some", columns);
  std::copy(at.begin(), at.end(), some.data());
  const auto tokens = random_tokens(sequences, columns, vocabulary);
  const auto table = random("table", vocabulary, width);
  const auto positions = random("positions", context, width), dy = random("dy", rows, width);
  // The same by the undivided embedding: its positions are these rows alone.
  Real2 picked("picked", columns, width), y("y", rows, width), dpicked("dpicked", columns, width),
      dtable("dtable", vocabulary, width), dpositions("dpositions", context, width);
  for (std::size_t i = 0; i < columns; ++i)
    for (std::size_t j = 0; j < width; ++j) picked(i, j) = positions(at[i], j);
  hk::embedding_forward(exec, tokens, table, picked, y);
  hk::embedding_backward_weight(exec, tokens, dy, dtable, dpicked);
  for (std::size_t i = 0; i < columns; ++i)
    for (std::size_t j = 0; j < width; ++j) dpositions(at[i], j) += dpicked(i, j);

  const auto check_equal = [&](const Line& line) {
    const hd::Share own = line.share(vocabulary), mine = line.rows(rows), wide = all(width);
    Real2 y_own("y", mine.count, width), room("room", rows, width),
        dtable_own("dtable", own.count, width), dpositions_own("dpositions", context, width);
    hd::vocabulary_embedding_forward(line, exec, tokens, own, part(table, own, wide), positions,
                                     room, y_own, some);
    hd::vocabulary_embedding_backward_weight(line, exec, tokens, own, part(dy, mine, wide), room,
                                             dtable_own, dpositions_own, some);
    CHECK(apart(y_own, part(y, mine, wide)) == 0);
    CHECK(apart(dtable_own, part(dtable, own, wide)) <= close_to);
    CHECK(apart(dpositions_own, dpositions) <= close_to);
  };
  check_equal(Line());  // of one rank
  for_each_form([&](hd::RowForm form) { check_equal(Line(world, form)); });
  const auto two = Kokkos::subview(some, std::pair(0, 2));
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] {
               hd::vocabulary_embedding_forward(Line(), exec, tokens, all(vocabulary), table,
                                                positions, Real2(), y, two);
             }),
             ContainsSubstring("positions"));
}

TEST_CASE("a cross-entropy divided by classes is the undivided one") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const Exec exec;
  const Line line(world);
  for (const std::size_t classes : {1, 2, 7, 64}) {
    // Also logits so far apart that a sum of exponentials over one rank alone would overflow, or
    // another rank's odds vanish.
    for (const double scale : {1.0, 300.0}) {
      INFO(classes << " classes, scale " << scale);
      constexpr std::size_t sequences = 2, context = 5, rows = sequences * context;
      const auto targets = random_tokens(sequences, context, classes);
      auto logits = random("logits", rows, classes);
      for (std::size_t i = 0; i < logits.size(); ++i) logits.data()[i] *= scale;
      const hd::Share own = line.share(classes);
      const auto logits_own = part(logits, all(rows), own);
      Real1 row_loss("row_loss", rows), loss("loss", 1), loss_own("loss", 1);
      Real2 grad("grad", rows, classes), grad_own("grad", rows, own.count);
      hk::cross_entropy_forward(exec, targets, 0.5, logits, row_loss, loss);
      hk::cross_entropy_backward_input(exec, targets, 0.5, logits, grad);

      Kokkos::View<hd::RowPartial<double>*, Exec::memory_space> partials("partials", rows);
      hd::vocabulary_cross_entropy_forward(line, exec, targets, own, 0.5, logits_own, partials,
                                           row_loss, loss_own);
      hd::vocabulary_cross_entropy_backward_input(line, exec, targets, own, 0.5, logits_own,
                                                  grad_own);
      CHECK(std::abs(loss_own(0) - loss(0)) <= 1e-13 * std::abs(loss(0)));
      CHECK(apart(logits_own, part(logits, all(rows), own)) <= close_to);
      CHECK(apart(grad_own, part(grad, all(rows), own)) <= close_to);
    }
  }
}

TEST_CASE("a line sends the bytes of its closed forms") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const Exec exec;
  const Line line(world), whole(world, hd::RowForm::whole);
  const std::size_t ranks = line.size(), next = (line.rank() + 1) % ranks;
  for (const std::size_t rows : {0, 1, 3, 7, 12}) {
    INFO(rows << " rows");
    constexpr std::size_t width = 5;
    const auto bytes_without = [&](std::size_t rank) {
      return ranks == 1 ? 0 : (rows - hd::even_share(rows, ranks, rank).count) * width * 8;
    };
    const Real2 room("room", rows, width), mine("mine", line.rows(rows).count, width);
    sent_bytes = 0;
    static_cast<void>(line.gather(exec, mine, room));
    CHECK(sent_bytes == bytes_without(next));
    sent_bytes = 0;
    line.sum(exec, room, mine);
    CHECK(sent_bytes == bytes_without(line.rank()));
    sent_bytes = 0;
    static_cast<void>(whole.gather(exec, room, room));
    CHECK(sent_bytes == 0);
  }
}

TEST_CASE("what a line refuses it refuses with the remedy") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const Line line(world);
  const std::size_t ranks = line.size();
  const auto own = line.own_heads({2, 8, 2 * ranks, 10 * ranks});
  CHECK(own.heads == 2);
  CHECK(own.width == 10);
  if (ranks == 1) return;
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] {
               static_cast<void>(line.own_heads({2, 8, ranks + 1, 4 * (ranks + 1)}));
             }),
             ContainsSubstring("the number of heads must be a multiple of the ranks of the line") &&
                 ContainsSubstring("use a number of ranks that divides the heads"));
  const Exec exec;
  const Real2 room("room", 4 * ranks, 3), wrong("wrong", 3, 3);
  CHECK_THAT(hd::test::message_of<hd::contract_error>(
                 [&] { static_cast<void>(line.gather(exec, wrong, room)); }),
             ContainsSubstring("rows has the wrong shape (it is 3 x 3, expected 4 x 3)"));
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] { line.sum(exec, room, wrong); }),
             ContainsSubstring("rows has the wrong shape"));
}

TEST_CASE("a line without a communicator is of one rank") {
  const Line line;
  CHECK(line.size() == 1);
  CHECK(line.leads());
  CHECK_FALSE(line.sharded());
  CHECK(line.share(7) == hd::Share{0, 7});
}

}  // namespace test_parallel_layers
