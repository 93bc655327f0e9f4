// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Attention over a sharded sequence, for tests: random input, this rank's rows of it, and the
/// comparison with a result of all rows.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core/random.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/sequence.hpp>

namespace heddle::test::sequence {

using Exec = Kokkos::DefaultHostExecutionSpace;
template <class Real>
using Real2 = Kokkos::View<Real**, Kokkos::LayoutRight, Exec::memory_space>;
template <class Real>
using Real1 = Kokkos::View<Real*, Kokkos::LayoutRight, Exec::memory_space>;

template <class Real>
Real2<Real> random(const std::string& name, std::size_t rows, std::size_t columns) {
  Real2<Real> made(name, rows, columns);
  const heddle::Random values(5, name);
  for (std::size_t i = 0; i < made.size(); ++i)
    made.data()[i] = static_cast<Real>(values.normal(i));
  return made;
}

/// The rows of `positions`, of each sequence.
template <class Real>
Real2<Real> rows_of(const Real2<Real>& all, std::size_t sequences,
                    const heddle::IndexSet& positions) {
  const std::size_t context = sequences == 0 ? 0 : all.extent(0) / sequences;
  const auto count = static_cast<std::size_t>(positions.size());
  Real2<Real> made("rows", sequences * count, all.extent(1));
  for (std::size_t s = 0; s < sequences; ++s)
    for (std::size_t l = 0; l < count; ++l)
      for (std::size_t c = 0; c < all.extent(1); ++c)
        made(s * count + l, c) =
            all(s * context + static_cast<std::size_t>(positions[static_cast<std::int64_t>(l)]), c);
  return made;
}

template <class Real>
struct Results {
  Real2<Real> output, qkv_grad;
};

/// Forward and backward of this rank's rows.
template <class Real>
Results<Real> attention(const heddle::SequenceLine<Real, Exec>& line,
                        const heddle::SequenceShape& shape, const Real2<Real>& qkv,
                        const Real2<Real>& output_grad) {
  const std::size_t rows = line.rows(shape);
  Results<Real> made{Real2<Real>("output", rows, shape.heads.query_columns()),
                     Real2<Real>("qkv_grad", rows, shape.qkv_columns())};
  Kokkos::deep_copy(made.qkv_grad, Real(7));  // is overwritten
  const Real1<Real> saved("saved", line.saved_size(shape));
  heddle::sequence_attention_forward(line, Exec{}, shape, qkv, saved, made.output);
  heddle::sequence_attention_backward(line, Exec{}, shape, qkv, saved, output_grad, made.qkv_grad);
  return made;
}

template <class View>
double largest(const View& view) {
  double most = 0;
  for (std::size_t i = 0; i < view.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(view.data()[i])));
  return most;
}

/// Whether this rank's part is that of the whole. Errors are relative to the largest entry.
template <class Real>
void check_close(const Real2<Real>& ours, const Real2<Real>& part, const Real2<Real>& whole) {
  REQUIRE(ours.size() == part.size());
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double apart = std::abs(static_cast<double>(ours.data()[i] - part.data()[i]));
    if (!(apart <= worst)) worst = apart;  // also what is not a number
  }
  CHECK(worst <= (std::is_same_v<Real, double> ? 1e-11 : 1e-4) * largest(whole));
}

/// This rank's Q | K | V and gradient of the output, cut out of those of all ranks.
template <class Real>
struct Input {
  Real2<Real> qkv, output_grad;
  explicit Input(const heddle::SequenceShape& shape)
      : qkv(random<Real>("qkv", rows(shape), shape.qkv_columns())),
        output_grad(random<Real>("output_grad", rows(shape), shape.heads.query_columns())) {}
  static std::size_t rows(const heddle::SequenceShape& shape) {
    return shape.sequences * static_cast<std::size_t>(shape.context);
  }
};

template <class Real>
Results<Real> divided(const heddle::SequenceLine<Real, Exec>& line,
                      const heddle::SequenceShape& shape, const Input<Real>& all) {
  const heddle::IndexSet mine = line.positions(shape.context);
  return attention(line, shape, rows_of(all.qkv, shape.sequences, mine),
                   rows_of(all.output_grad, shape.sequences, mine));
}

template <class Real>
void check_equal(const heddle::SequenceLine<Real, Exec>& line, const heddle::SequenceShape& shape,
                 const Results<Real>& ours, const Results<Real>& whole) {
  const heddle::IndexSet mine = line.positions(shape.context);
  check_close(ours.output, rows_of(whole.output, shape.sequences, mine), whole.output);
  check_close(ours.qkv_grad, rows_of(whole.qkv_grad, shape.sequences, mine), whole.qkv_grad);
}

}  // namespace heddle::test::sequence
