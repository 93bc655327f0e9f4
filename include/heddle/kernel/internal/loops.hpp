// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The loops inside the layers' kernels: sums in a fixed order that the compiler may vectorise, and
/// elementwise loops that suit host cores and devices.

#include <cstddef>
#include <string>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel::impl {

/// Partial sums of one row sum. A constant of the library, not of the machine: the order of a sum
/// is the same everywhere, and eight independent chains fill the host's vector units.
inline constexpr std::size_t lanes = 8;

/// term(0) + ... + term(count - 1). Order: term j is added to lane j mod 8 in ascending j, then the
/// lanes are added pairwise: ((0+4)+(2+6)) + ((1+5)+(3+7)).
template <class Real, class Term>
KOKKOS_INLINE_FUNCTION Real ordered_sum(std::size_t count, const Term& term) {
  Real lane[lanes] = {};
  const std::size_t whole = count - count % lanes;
  for (std::size_t j = 0; j < whole; j += lanes)
    for (std::size_t l = 0; l < lanes; ++l) lane[l] += term(j + l);
  for (std::size_t j = whole; j < count; ++j) lane[j - whole] += term(j);
  for (std::size_t half = lanes / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

/// The largest of values[0 .. count), count > 0.
template <class Real>
KOKKOS_INLINE_FUNCTION Real largest(const Real* values, std::size_t count) {
  Real lane[lanes];
  for (std::size_t l = 0; l < lanes; ++l) lane[l] = values[0];
  const std::size_t whole = count - count % lanes;
  for (std::size_t j = 0; j < whole; j += lanes)
    for (std::size_t l = 0; l < lanes; ++l)
      lane[l] = values[j + l] > lane[l] ? values[j + l] : lane[l];
  Real found = lane[0];
  for (std::size_t l = 1; l < lanes; ++l) found = lane[l] > found ? lane[l] : found;
  for (std::size_t j = whole; j < count; ++j) found = values[j] > found ? values[j] : found;
  return found;
}

/// Calls body(row, column) for every element: on the host one index per row, so that the inner loop
/// vectorises; on a device one index per element, so that neighbours share a memory transaction.
template <ExecutionSpace Exec, class Body>
struct Elementwise {
  Body body;
  std::size_t columns;

  KOKKOS_FUNCTION void operator()(std::size_t index) const {
    if constexpr (runs_on_host<Exec>) {
      for (std::size_t column = 0; column < columns; ++column) body(index, column);
    } else {
      body(index / columns, index % columns);
    }
  }
};

template <ExecutionSpace Exec, class Body>
void for_each_element(const std::string& label, const Exec& exec, std::size_t rows,
                      std::size_t columns, const Body& body) {
  const std::size_t count = runs_on_host<Exec> && columns > 0 ? rows : rows * columns;
  Kokkos::parallel_for(label,
                       Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, count),
                       Elementwise<Exec, Body>{body, columns});
}

/// Columns that one index of a column sum owns: a cache line of floats on the host, one on a
/// device.
template <ExecutionSpace Exec>
inline constexpr std::size_t columns_per_index = runs_on_host<Exec> ? 16 : 1;

/// The term of a plain column sum.
template <ExecutionSpace Exec, class Real>
struct ElementOf {
  Matrix<const Real, Exec> matrix;
  KOKKOS_FUNCTION Real operator()(std::size_t row, std::size_t column) const {
    return matrix(row, column);
  }
};

/// sum(column) += term(0, column) + ... + term(rows - 1, column), rows in ascending order.
template <ExecutionSpace Exec, class Real, class Term>
struct ColumnSum {
  static constexpr std::size_t width = columns_per_index<Exec>;
  Term term;
  Vector<Real, Exec> sum;
  std::size_t rows;

  KOKKOS_FUNCTION void operator()(std::size_t index) const {
    const std::size_t first = index * width;
    if (first + width <= sum.extent(0)) {
      Real partial[width] = {};
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t j = 0; j < width; ++j) partial[j] += term(row, first + j);
      for (std::size_t j = 0; j < width; ++j) sum(first + j) += partial[j];
    } else {
      for (std::size_t column = first; column < sum.extent(0); ++column) {
        Real partial = 0;
        for (std::size_t row = 0; row < rows; ++row) partial += term(row, column);
        sum(column) += partial;
      }
    }
  }
};

template <ExecutionSpace Exec, class Real, class Term>
void add_column_sums(const std::string& label, const Exec& exec, std::size_t rows, const Term& term,
                     const Vector<Real, Exec>& sum) {
  const std::size_t width = columns_per_index<Exec>;
  const std::size_t count = (sum.extent(0) + width - 1) / width;
  Kokkos::parallel_for(label,
                       Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, count),
                       ColumnSum<Exec, Real, Term>{term, sum, rows});
}

}  // namespace heddle::inline v0::kernel::impl
