// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// program: its own
// space: its own

// RSA and TokenRing against attention on one rank; the bytes and messages that they send, what they
// keep, and what they reject.

#include <cstddef>
#include <cstdint>
#include <type_traits>
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

#include "support/complaint.hpp"
#include "support/sent_bytes.hpp"
#include "support/sequence_case.hpp"
#include "support/world.hpp"

namespace test_rsa_token_ring {

namespace hd = heddle;
using namespace hd::test::sequence;
using Catch::Matchers::ContainsSubstring;
using hd::test::count_sent_bytes;
using hd::test::message_of;
using hd::test::sent_bytes;
using hd::test::sent_messages;
using hd::test::world_size;

namespace {

/// All ranks on the ring axis.
struct Ring {
  hd::DeviceMesh mesh{MPI_COMM_WORLD, {{"ring", world_size()}, {"heads", 1}}};
  template <class Real>
  [[nodiscard]] hd::SequenceLine<Real, Exec> line(hd::SequenceOptions options) const {
    return {mesh["heads"], mesh["ring"], std::move(options)};
  }
};

/// A prime context, fewer tokens than ranks, no mask, packed segments, an empty context; as many
/// K,V heads as heads, half of them, and a quarter.
std::vector<hd::SequenceShape> shapes() {
  return {{2, 37, {4, 2, 3}},
          {1, 3, {3, 3, 2}},
          {1, 24, {4, 4, 4}, {.causal = false}},
          {1, 41, {8, 2, 2}, {true, {5, 6, 29}}},
          {1, 30, {2, 1, 5}, {false, {7, 20}}},
          {2, 0, {4, 4, 2}}};
}

struct Sent {
  std::uint64_t bytes = 0, messages = 0;

  friend bool operator==(const Sent&, const Sent&) = default;
};

/// What this rank sends in `call`.
template <class Call>
Sent sent_by(const Call& call) {
  count_sent_bytes();
  call();
  return {sent_bytes, sent_messages};
}

/// The matrices of this rank, with any numbers.
struct Matrices {
  Real2<double> qkv, output, grad;
  Real1<double> saved;
  Matrices(const hd::SequenceLine<double, Exec>& line, const hd::SequenceShape& shape)
      : qkv(random<double>("qkv", line.rows(shape), shape.qkv_columns())),
        output("output", line.rows(shape), shape.heads.query_columns()),
        grad("grad", line.rows(shape), shape.qkv_columns()),
        saved("saved", line.saved_size(shape)) {}
};

}  // namespace

TEMPLATE_TEST_CASE("rsa: equals attention on one rank, forward and backward", "", double, float) {
  const Ring ring;
  const hd::SequenceLine<TestType, Exec> alone;
  for (const hd::ShardOrder& order :
       {hd::ShardOrder(), hd::ShardOrder::zigzag(), hd::ShardOrder::cyclic()}) {
    // The schedules do not depend on the type, so float need not see all of them.
    if (std::is_same_v<TestType, float> && order != hd::ShardOrder::zigzag()) continue;
    const auto line =
        ring.template line<TestType>({.method = hd::SequenceMethod::rsa, .order = order});
    for (const hd::SequenceShape& shape : shapes()) {
      INFO(hd::text(order, ", ", shape));
      const Input<TestType> all(shape);
      const Results<TestType> whole = attention(alone, shape, all.qkv, all.output_grad);
      for (int call = 0; call < 2; ++call)  // the second one finds what the first one left
        check_equal(line, shape, divided(line, shape, all), whole);
    }
  }
}

TEMPLATE_TEST_CASE("token ring: equals attention on one rank", "", double, float) {
  const Ring ring;
  const hd::SequenceLine<TestType, Exec> alone;
  for (const hd::ShardOrder& order :
       {hd::ShardOrder(), hd::ShardOrder::zigzag(), hd::ShardOrder::cyclic()}) {
    if (std::is_same_v<TestType, float> && order != hd::ShardOrder::zigzag()) continue;
    const auto line =
        ring.template line<TestType>({.method = hd::SequenceMethod::token_ring, .order = order});
    for (const hd::SequenceShape& shape : shapes()) {
      INFO(hd::text(order, ", ", shape));
      const Input<TestType> all(shape);
      const Results<TestType> whole = attention(alone, shape, all.qkv, all.output_grad);
      const hd::IndexSet mine = line.positions(shape.context);
      const auto qkv = rows_of(all.qkv, shape.sequences, mine);
      for (int call = 0; call < 2; ++call) {
        const Real2<TestType> output("output", line.rows(shape), shape.heads.query_columns());
        const Real1<TestType> saved("saved", line.saved_size(shape));
        hd::sequence_attention_forward(line, Exec{}, shape, qkv, saved, output);
        check_close(output, rows_of(whole.output, shape.sequences, mine), whole.output);
      }
    }
  }
}

TEST_CASE("rsa: sends 2 (P - 1) in 2 (P - 1) messages, and 4 (P - 1) backward") {
  const Ring ring;
  const auto p = static_cast<std::uint64_t>(world_size());
  const auto line = ring.line<double>({.method = hd::SequenceMethod::rsa});
  const hd::SequenceShape shape{1, static_cast<std::int64_t>(6 * p), {4, 4, 2}, {.causal = false}};
  const std::uint64_t unit = 8 * 6 * shape.heads.query_columns();  // N d / P elements
  const Matrices m(line, shape);
  for (int call = 0; call < 2; ++call) {
    CHECK(sent_by([&] {
            hd::sequence_attention_forward(line, Exec{}, shape, m.qkv, m.saved, m.output);
          }) == Sent{2 * (p - 1) * unit, 2 * (p - 1)});
    CHECK(sent_by([&] {
            hd::sequence_attention_backward(line, Exec{}, shape, m.qkv, m.saved, m.output, m.grad);
          }) == Sent{4 * (p - 1) * unit, 4 * (p - 1)});
  }
}

TEST_CASE("token ring: sends (P - 1)(2 + 2 H / d)") {
  const Ring ring;
  const auto p = static_cast<std::uint64_t>(world_size());
  const auto line = ring.line<double>({.method = hd::SequenceMethod::token_ring});
  const hd::SequenceShape shape{1, static_cast<std::int64_t>(6 * p), {4, 2, 5}, {.causal = false}};
  const std::uint64_t unit = 8 * 6 * shape.heads.query_columns();
  const Matrices m(line, shape);
  // Two numbers of the softmax for each head, of 5 columns.
  CHECK(sent_by([&] {
          hd::sequence_attention_forward(line, Exec{}, shape, m.qkv, m.saved, m.output);
        }) == Sent{(p - 1) * (2 * unit + 2 * unit / 5), 2 * (p - 1)});
}

TEST_CASE("rsa: keeps the scores of P pairs of blocks; the state of other methods does not grow") {
  if (world_size() == 1) return;  // block attention
  const Ring ring;
  const auto p = static_cast<std::size_t>(world_size());
  const std::size_t rows = 10;  // of a rank
  for (const std::size_t longer : {1, 2}) {
    const hd::SequenceShape shape{
        1, static_cast<std::int64_t>(rows * longer * p), {6, 2, 3}, {.causal = false}};
    const std::size_t block = rows * longer;
    CHECK(ring.line<double>({.method = hd::SequenceMethod::rsa}).saved_size(shape) ==
          block * 6 * 3 + p * (6 * block * block));
    CHECK(ring.line<double>({.method = hd::SequenceMethod::token_ring}).saved_size(shape) ==
          block * 6 * (3 + 2));
  }
}

TEST_CASE("token ring: rejects a backward pass on every rank, and says what to train with") {
  const Ring ring;
  const auto line = ring.line<double>({.method = hd::SequenceMethod::token_ring});
  const hd::SequenceShape shape{1, 12, {2, 2, 2}};
  const Matrices m(line, shape);
  hd::sequence_attention_forward(line, Exec{}, shape, m.qkv, m.saved, m.output);
  CHECK_THAT(message_of<hd::contract_error>([&] {
               hd::sequence_attention_backward(line, Exec{}, shape, m.qkv, m.saved, m.output,
                                               m.grad);
             }),
             ContainsSubstring("heddle::sequence_attention_backward") &&
                 ContainsSubstring("token_ring has no backward pass") &&
                 ContainsSubstring("train with the method ring"));
  // Nothing is lost: the line goes on.
  hd::sequence_attention_forward(line, Exec{}, shape, m.qkv, m.saved, m.output);
}

TEST_CASE("every method along a ring rejects segments that do not ascend, on every rank") {
  const Ring ring;
  for (const hd::SequenceMethod method :
       {hd::SequenceMethod::ring, hd::SequenceMethod::usp, hd::SequenceMethod::rsa,
        hd::SequenceMethod::token_ring}) {
    INFO(hd::text(method));
    const auto line = ring.line<double>({.method = method});
    const hd::SequenceShape good{1, 12, {2, 2, 2}};
    const Matrices m(line, good);
    hd::SequenceShape bad = good;
    bad.mask.segments = {5, 3};
    CHECK_THAT(message_of<hd::contract_error>([&] {
                 hd::sequence_attention_forward(line, Exec{}, bad, m.qkv, m.saved, m.output);
               }),
               ContainsSubstring("the segments do not ascend"));
    CHECK_THAT(message_of<hd::contract_error>([&] {
                 hd::sequence_attention_backward(line, Exec{}, bad, m.qkv, m.saved, m.output,
                                                 m.grad);
               }),
               ContainsSubstring("the segments do not ascend"));
    // Nothing is sent, so the line goes on.
    hd::sequence_attention_forward(line, Exec{}, good, m.qkv, m.saved, m.output);
  }
}

TEST_CASE("usp rejects more heads ranks than K,V heads in both passes, on every rank") {
  if (world_size() != 4) return;
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", 2}, {"heads", 2}});
  const hd::SequenceLine<double, Exec> line(mesh["heads"], mesh["ring"],
                                            {.method = hd::SequenceMethod::usp});
  const hd::SequenceShape shape{1, 12, {4, 1, 2}};
  const Real2<double> qkv("qkv", line.rows(shape), shape.qkv_columns()),
      output("output", line.rows(shape), shape.heads.query_columns());
  const Real1<double> saved("saved", 1);
  const auto check_refused = [](const auto& call) {
    CHECK_THAT(message_of<hd::contract_error>(call),
               ContainsSubstring("there are more heads ranks than K,V heads") &&
                   ContainsSubstring("use the ring axis for the other ranks"));
  };
  check_refused([&] { hd::sequence_attention_forward(line, Exec{}, shape, qkv, saved, output); });
  check_refused(
      [&] { hd::sequence_attention_backward(line, Exec{}, shape, qkv, saved, output, qkv); });
}

TEST_CASE("rsa and token ring: reject two ways and a heads axis") {
  const Ring ring;
  for (const hd::SequenceMethod method :
       {hd::SequenceMethod::rsa, hd::SequenceMethod::token_ring}) {
    CHECK_THAT(message_of<hd::contract_error>(
                   [&] { (void)ring.line<double>({.method = method, .ways = 2}); }),
               ContainsSubstring("blocks of this method go around in one way") &&
                   ContainsSubstring(hd::text(method)) && ContainsSubstring("set ways to 1"));
    if (world_size() == 1) continue;
    const hd::DeviceMesh turned(MPI_COMM_WORLD, {{"ring", 1}, {"heads", world_size()}});
    CHECK_THAT(message_of<hd::contract_error>([&] {
                 const hd::SequenceLine<double, Exec> made(turned["heads"], turned["ring"],
                                                           {.method = method});
               }),
               ContainsSubstring("the method uses no heads axis"));
  }
  CHECK_THAT(message_of<hd::contract_error>(
                 [&] { (void)ring.line<double>({.method = hd::SequenceMethod::ring, .ways = 3}); }),
             ContainsSubstring("got ways = 3"));
}

}  // namespace test_rsa_token_ring
