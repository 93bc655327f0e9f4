// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// program: its own
// space: its own

// Attention by Ulysses against attention on one rank, forward and backward, with uneven tokens and
// heads; the bytes that it sends, as MPI is told to send them; and what it rejects.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel.hpp>
#include <heddle/sequence.hpp>
#include <heddle/tensor/tensor_line.hpp>

#include "support/complaint.hpp"
#include "support/label_recorder.hpp"
#include "support/sent_bytes.hpp"
#include "support/sequence_case.hpp"
#include "support/world.hpp"

namespace test_ulysses {

namespace hd = heddle;
namespace hk = heddle::kernel;
using Catch::Matchers::ContainsSubstring;
using hd::test::count_sent_bytes;
using hd::test::LabelRecorder;
using hd::test::message_of;
using hd::test::sent_bytes;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

using namespace hd::test::sequence;

/// The ranks of the heads axis, and one rank for the ring axis.
struct Axes {
  hd::DeviceMesh mesh{MPI_COMM_WORLD, {{"ring", 1}, {"heads", world_size()}}};
  template <class Real>
  [[nodiscard]] hd::SequenceLine<Real, Exec> line(hd::SequenceOptions options = {}) const {
    return {mesh["heads"], mesh["ring"], std::move(options)};
  }
};

/// The same by the attention that keeps all probabilities: causal, one segment, as many K,V heads.
template <class Real>
Results<Real> oracle(const hd::SequenceShape& shape, const Real2<Real>& qkv,
                     const Real2<Real>& output_grad) {
  const hk::AttentionShape whole{shape.sequences, static_cast<std::size_t>(shape.context),
                                 shape.heads.heads, shape.heads.query_columns()};
  Real2<Real> probabilities("p", whole.probability_rows(), whole.context),
      scratch("s", whole.probability_rows(), whole.context);
  Results<Real> made{Real2<Real>("output", whole.rows(), whole.width),
                     Real2<Real>("qkv_grad", whole.rows(), 3 * whole.width)};
  hk::attention_forward(Exec{}, whole, qkv, probabilities, made.output);
  hk::attention_backward_input(Exec{}, whole, qkv, probabilities, output_grad, scratch,
                               made.qkv_grad);
  return made;
}

}  // namespace

TEMPLATE_TEST_CASE("ulysses: equals attention on one rank", "", double, float) {
  const Axes axes;
  const auto line = axes.line<TestType>();
  const hd::SequenceShape shapes[] = {{1, 16, {4, 4, 3}}, {2, 13, {5, 5, 2}}, {3, 1, {4, 4, 1}},
                                      {1, 2, {7, 7, 5}},  {0, 8, {4, 4, 3}},  {2, 0, {4, 4, 3}},
                                      {1, 97, {6, 6, 8}}};
  for (const hd::SequenceShape& shape : shapes) {
    INFO(hd::text(shape));
    const Input<TestType> all(shape);
    check_equal(line, shape, divided(line, shape, all), oracle(shape, all.qkv, all.output_grad));
  }
}

TEMPLATE_TEST_CASE("ulysses: every mask, and fewer K,V heads than heads", "", double, float) {
  const Axes axes;
  const auto line = axes.line<TestType>({.order = hd::ShardOrder::zigzag()});
  const hd::SequenceLine<TestType, Exec> alone;
  for (const hk::AttentionHeads& heads :
       {hk::AttentionHeads{8, 4, 3}, hk::AttentionHeads{16, 4, 2}, hk::AttentionHeads{10, 5, 3}})
    for (const bool causal : {true, false})
      for (const auto& segments :
           {std::vector<std::int64_t>{}, {1, 2, 9}, {0, 5, 11, 12, 13}, {40}}) {
        const hd::SequenceShape shape{2, 19, heads, {causal, segments}};
        INFO(hd::text(shape));
        const Input<TestType> all(shape);
        // On one rank it is block attention, which tests/kernel compares with the definition.
        check_equal(line, shape, divided(line, shape, all),
                    attention(alone, shape, all.qkv, all.output_grad));
      }
}

TEST_CASE("ulysses: usp along a ring of one rank is the same") {
  const Axes axes;
  const auto ulysses = axes.line<double>(), usp = axes.line<double>({hd::SequenceMethod::usp});
  const hd::SequenceShape shape{2, 11, {5, 5, 3}};
  const Input<double> all(shape);
  const Results<double> a = divided(ulysses, shape, all), b = divided(usp, shape, all);
  for (std::size_t i = 0; i < a.output.size(); ++i)
    REQUIRE(a.output.data()[i] == b.output.data()[i]);
  for (std::size_t i = 0; i < a.qkv_grad.size(); ++i)
    REQUIRE(a.qkv_grad.data()[i] == b.qkv_grad.data()[i]);
}

TEST_CASE("ulysses: a line of one rank is attention, and sends nothing") {
  const hd::SequenceLine<double, Exec> line;
  CHECK(line.size() == 1);
  const hd::SequenceShape shape{2, 9, {4, 4, 3}};
  CHECK(line.positions(9) == hd::IndexSet(9));
  CHECK(line.saved_size(shape) == 18 * 4 * (3 + 2));
  const Input<double> all(shape);
  count_sent_bytes();
  const auto ours = attention(line, shape, all.qkv, all.output_grad);
  CHECK(sent_bytes == 0);
  check_equal(line, shape, ours, oracle(shape, all.qkv, all.output_grad));
}

TEST_CASE("ulysses: sends 4 (P - 1) / P of a rank's tokens, forward and backward") {
  const Axes axes;
  const auto line = axes.line<double>();
  const auto ranks = static_cast<std::uint64_t>(world_size());
  const auto me = static_cast<std::size_t>(world_rank());
  for (const hk::AttentionHeads& heads :
       {hk::AttentionHeads{12, 12, 2}, hk::AttentionHeads{24, 12, 1}, hk::AttentionHeads{48, 12, 1},
        hk::AttentionHeads{7, 7, 3}, hk::AttentionHeads{10, 5, 2}})
    for (const std::int64_t context : {24, 48, 23, 3}) {
      const hd::SequenceShape shape{2, context, heads};
      INFO(hd::text(shape));
      // What leaves this rank, element by element: all heads of its tokens, but for its own; then
      // the other tokens of its heads.
      const std::uint64_t all = 2 * static_cast<std::uint64_t>(context), mine = line.rows(shape);
      const hk::AttentionHeads own = line.own_heads(heads);
      const std::uint64_t others = shape.qkv_columns() - own.query_columns() - 2 * own.kv_columns();
      const std::uint64_t forward = mine * others + (all - mine) * own.query_columns();
      const std::uint64_t backward = mine * (heads.query_columns() - own.query_columns()) +
                                     (all - mine) * (own.query_columns() + 2 * own.kv_columns());
      if (context % 12 == 0 && heads.kv_heads == 12) {
        // The closed form: (2 + 2 / G) (P - 1) / P in units of N d / P, which is 4 (P - 1) / P
        // where there are as many K,V heads.
        const std::uint64_t unit = all * heads.query_columns() / ranks;
        const std::uint64_t group = heads.heads / heads.kv_heads;
        CHECK(forward * group * ranks == (2 * group + 2) * (ranks - 1) * unit);
        CHECK(backward == forward);
      }
      const Input<double> input(shape);
      const hd::IndexSet positions = line.positions(context);
      const auto qkv = rows_of(input.qkv, 2, positions);
      const auto output_grad = rows_of(input.output_grad, 2, positions);
      const Real1<double> saved("saved", line.saved_size(shape));
      const Real2<double> output("output", mine, heads.query_columns()),
          qkv_grad("qkv_grad", mine, shape.qkv_columns());
      for (int call = 0; call < 2; ++call) {  // planned first, then as it is kept
        count_sent_bytes();
        hd::sequence_attention_forward(line, Exec{}, shape, qkv, saved, output);
        CHECK(sent_bytes == 8 * forward);
        count_sent_bytes();
        hd::sequence_attention_backward(line, Exec{}, shape, qkv, saved, output_grad, qkv_grad);
        CHECK(sent_bytes == 8 * backward);
        // One message to each other rank in each direction of the exchange.
        CHECK(hd::test::sent_to.size() <= ranks - 1);
        CHECK(!hd::test::sent_to.contains(static_cast<int>(me)));
      }
    }
}

TEST_CASE("ulysses: sends 1 / P of what sharded rows of a TensorLine send") {
  const Axes axes;
  const auto line = axes.line<double>();
  const hd::SequenceShape shape{1, 24, {12, 12, 2}};
  const std::size_t rows = line.rows(shape), width = shape.heads.query_columns();
  const auto qkv = random<double>("qkv", rows, 3 * width);
  const Real1<double> saved("saved", line.saved_size(shape));
  const Real2<double> output("output", rows, width), room("room", 24, width);
  count_sent_bytes();
  hd::sequence_attention_forward(line, Exec{}, shape, qkv, saved, output);
  const std::uint64_t ulysses = sent_bytes;
  // Megatron's sequence parallelism: attention and the layer behind it gather and sum once each.
  const hd::TensorLine<double, Exec> rows_line(axes.mesh["heads"]);
  count_sent_bytes();
  for (int layer = 0; layer < 2; ++layer) {
    (void)rows_line.gather(Exec{}, output, room);
    rows_line.sum(Exec{}, room, output);
  }
  CHECK(sent_bytes == ulysses * static_cast<std::uint64_t>(world_size()));
  CHECK((ulysses > 0) == (world_size() > 1));
}

TEST_CASE("ulysses: positions and saved elements of a rank") {
  const Axes axes;
  const auto line = axes.line<double>({.order = hd::ShardOrder::zigzag()});
  const auto ranks = static_cast<std::size_t>(world_size());
  CHECK(line.size() == ranks);
  CHECK(line.heads_size() == ranks);
  CHECK(line.heads_rank() == static_cast<std::size_t>(world_rank()));
  CHECK(line.ring_size() == 1);
  // The ring axis has one rank, so the order leaves all positions to the heads axis.
  CHECK(line.positions(13) ==
        hd::ShardOrder().share(13, static_cast<std::int64_t>(ranks), world_rank()));
  // At a fixed number of tokens a rank, what is saved does not grow with the context.
  const auto saved = [&](std::int64_t context) {
    return line.saved_size({1, context, {12, 12, 2}});
  };
  if (ranks > 1) {
    CHECK(saved(24 * world_size()) == 24 * 12 * (4 * 2 + 2));
    CHECK(saved(48 * world_size()) == 2 * saved(24 * world_size()));
  }
}

TEST_CASE("ulysses: rejects on every rank what it cannot do") {
  const Axes axes;
  const auto line = axes.line<double>();
  const hd::SequenceShape shape{1, 8, {8, 8, 2}};
  const std::size_t rows = line.rows(shape);
  const Real2<double> qkv("qkv", rows, 48), output("output", rows, 16), wide("wide", rows, 96);
  const Real1<double> saved("saved", line.saved_size(shape)), little("little", 1);
  const auto forward = [&](const hd::SequenceShape& of, const auto& from, const auto& kept) {
    hd::sequence_attention_forward(line, Exec{}, of, from, kept, output);
  };
  const auto complaint = [&](const auto&... arguments) {
    return message_of<hd::contract_error>([&] { forward(arguments...); });
  };
  CHECK_THAT(complaint(shape, output, saved),
             ContainsSubstring("heddle::sequence_attention_forward") &&
                 ContainsSubstring("qkv has the wrong shape"));
  CHECK_THAT(complaint(shape, qkv, little), ContainsSubstring("saved has the wrong size"));
  CHECK_THAT(complaint(hd::SequenceShape{1, 8, {8, 8, 2}, {true, {5, 3}}}, qkv, saved),
             ContainsSubstring("the segments do not ascend"));
  if (rows > 1)
    CHECK_THAT(
        complaint(shape,
                  Kokkos::subview(wide, Kokkos::ALL, std::pair<std::size_t, std::size_t>(0, 48)),
                  saved),
        ContainsSubstring("the rows of qkv have gaps between them"));
  if (world_size() > 1)
    CHECK_THAT(message_of<hd::contract_error>([&] {
                 (void)line.own_heads({8, 1, 2});
               }),
               ContainsSubstring("there are more heads ranks than K,V heads") &&
                   ContainsSubstring("expected at most 1") &&
                   ContainsSubstring("use the ring axis"));

  // Axes that a method cannot use.
  const hd::DeviceMesh turned(MPI_COMM_WORLD, {{"ring", world_size()}, {"heads", 1}});
  if (world_size() > 1) {
    CHECK_THAT(message_of<hd::contract_error>([&] {
                 const hd::SequenceLine<double, Exec> made(turned["heads"], turned["ring"]);
               }),
               ContainsSubstring("ulysses uses no ring axis") && ContainsSubstring("usp"));
    CHECK_THAT(message_of<hd::contract_error>(
                   [&] { (void)axes.line<double>({hd::SequenceMethod::ring}); }),
               ContainsSubstring("the method uses no heads axis") && ContainsSubstring("usp"));
  }
}

TEST_CASE("ulysses: methods, orders and ways that differ by rank are rejected on every rank") {
  if (world_size() == 1) return;
  const bool odd = world_rank() == world_size() - 1;
  const auto complaint = [&](const char* heads, const char* ring, const hd::DeviceMesh& mesh,
                             const hd::SequenceOptions& options) {
    return message_of<hd::contract_error>(
        [&] { const hd::SequenceLine<double, Exec> made(mesh[heads], mesh[ring], options); });
  };
  {
    const Axes axes;
    CHECK_THAT(complaint("heads", "ring", axes.mesh,
                         {odd ? hd::SequenceMethod::usp : hd::SequenceMethod::ulysses}),
               ContainsSubstring("method"));
  }
  {
    const Axes axes;
    CHECK_THAT(complaint("heads", "ring", axes.mesh,
                         {.order = odd ? hd::ShardOrder::zigzag() : hd::ShardOrder()}),
               ContainsSubstring("order") && ContainsSubstring("zigzag"));
  }
  {
    const Axes axes;
    CHECK_THAT(complaint("heads", "ring", axes.mesh, {.ways = odd ? 2 : 1}),
               ContainsSubstring("ways"));
  }
  if (world_size() != 4) return;
  // On two axes, ranks of the other row hear of it along the ring.
  const hd::DeviceMesh square(MPI_COMM_WORLD, {{"ring", 2}, {"heads", 2}});
  CHECK_THAT(complaint("heads", "ring", square,
                       {odd ? hd::SequenceMethod::usp : hd::SequenceMethod::ulysses}),
             ContainsSubstring("differ") || ContainsSubstring("method"));
}

TEST_CASE("ulysses: its memory and kernels have labels of the rooms that make them") {
  const Axes axes;
  const auto line = axes.line<double>();
  const hd::SequenceShape shape{1, 40, {8, 8, 8}};
  const Input<double> all(shape);
  const LabelRecorder recorder;
  const hd::IndexSet mine = line.positions(shape.context);
  const std::size_t rows = line.rows(shape);
  const Real1<double> saved("heddle::test::saved", line.saved_size(shape));
  const Real2<double> qkv("heddle::test::qkv", rows, shape.qkv_columns()),
      output("heddle::test::output", rows, shape.heads.query_columns());
  hd::sequence_attention_forward(line, Exec{}, shape, qkv, saved, output);
  hd::sequence_attention_backward(line, Exec{}, shape, qkv, saved, output, qkv);
  CHECK(LabelRecorder::strangers({"sequence", "tensor", "kernel", "collective", "comm", "test"}) ==
        std::vector<std::string>{});
  CHECK(LabelRecorder::ours().contains("heddle::sequence::tile"));
  CHECK(LabelRecorder::ours().contains("heddle::sequence::exchange") == (world_size() > 1));
}

}  // namespace test_ulysses
