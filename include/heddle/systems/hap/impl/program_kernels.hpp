// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The kernels of run_program: one loop over the output's elements for each kind of operation.
/// Tensors are dense arrays; a Nest says where an element of each operand is.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <Kokkos_Core.hpp>

namespace heddle::inline v0::systems::impl {

/// Nested loops over at most 16 named dimensions, with a stride of each of two operands.
struct Nest {
  static constexpr int most = 16;
  int dims = 0;
  std::int64_t count = 1;  ///< elements of all loops
  std::int64_t size[most] = {};
  std::int64_t stride[2][most] = {};

  /// Adds the next faster loop.
  void add(std::int64_t extent, std::int64_t a, std::int64_t b) {
    size[dims] = extent;
    stride[0][dims] = a;
    stride[1][dims] = b;
    count *= extent;
    ++dims;
  }
  /// The places of both operands for element `index` of the loops.
  KOKKOS_FUNCTION void places(std::int64_t index, std::int64_t& a, std::int64_t& b) const {
    for (int d = dims; d-- > 0;) {
      const std::int64_t at = index % size[d];
      index /= size[d];
      a += at * stride[0][d];
      b += at * stride[1][d];
    }
  }
};

/// out = sum of a b over the inner loops, of a alone without b, or the greatest a.
template <class T>
struct SumKernel {
  Nest outer, inner;
  const T* a;
  const T* b;  ///< null: 1
  T* out;
  bool greatest;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    std::int64_t first = 0, second = 0;
    outer.places(i, first, second);
    T result = greatest ? a[first] : T(0);
    for (std::int64_t j = 0; j < inner.count; ++j) {
      std::int64_t at = first, by = second;
      inner.places(j, at, by);
      if (greatest)
        result = a[at] > result ? a[at] : result;
      else
        result += b == nullptr ? a[at] : a[at] * b[by];
    }
    out[i] = result;
  }
};

/// The elementwise functions, in the order of `names`.
enum class ElementFunction : std::uint8_t {
  identity,
  negate,
  relu,
  tanh,
  exp,
  scale,
  add,
  subtract,
  multiply,
  relu_gradient,
  tanh_gradient,
  step,
  log,
  power,
  shift,
  stop_gradient,
  divide,
  equal
};

/// Returns the function of a name that check() of the program knows.
[[nodiscard]] inline ElementFunction element_function(std::string_view name) {
  constexpr std::string_view names[] = {
      "identity", "negate",   "relu",     "tanh",          "exp",           "scale",
      "add",      "subtract", "multiply", "relu_gradient", "tanh_gradient", "step",
      "log",      "power",    "shift",    "stop_gradient", "divide",        "equal"};
  std::uint8_t which = 0;
  while (names[which] != name) ++which;
  return ElementFunction{which};
}

/// out = f(a) or f(a, b).
template <class T>
struct ElementKernel {
  Nest outer;
  const T* a;
  const T* b;  ///< equal to a if there is one input
  T* out;
  ElementFunction function;
  T factor;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    std::int64_t first = 0, second = 0;
    outer.places(i, first, second);
    const T x = a[first], y = b[second];
    switch (function) {
      case ElementFunction::identity:
      case ElementFunction::stop_gradient: out[i] = x; break;
      case ElementFunction::negate: out[i] = -x; break;
      case ElementFunction::relu: out[i] = x > T(0) ? x : T(0); break;
      case ElementFunction::tanh: out[i] = Kokkos::tanh(x); break;
      case ElementFunction::exp: out[i] = Kokkos::exp(x); break;
      case ElementFunction::scale: out[i] = factor * x; break;
      case ElementFunction::add: out[i] = x + y; break;
      case ElementFunction::subtract: out[i] = x - y; break;
      case ElementFunction::multiply: out[i] = x * y; break;
      case ElementFunction::relu_gradient: out[i] = y > T(0) ? x : T(0); break;
      case ElementFunction::tanh_gradient: out[i] = x * (T(1) - y * y); break;
      case ElementFunction::step: out[i] = x - factor * y; break;
      case ElementFunction::log: out[i] = Kokkos::log(x); break;
      case ElementFunction::power: out[i] = Kokkos::pow(x, factor); break;
      case ElementFunction::shift: out[i] = x + factor; break;
      case ElementFunction::divide: out[i] = x / y; break;
      case ElementFunction::equal: out[i] = x == y ? T(1) : T(0); break;
    }
  }
};

/// Rows of a table by index. Rows that this rank does not have give 0.
template <class T>
struct GatherKernel {
  Nest outer;        ///< places in the table without the selected dimension, and in the indices
  std::int64_t row;  ///< stride of the selected dimension
  std::int64_t first, count;  ///< rows that this rank has
  const T* table;
  const T* index;
  T* out;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    std::int64_t at = 0, which = 0;
    outer.places(i, at, which);
    const std::int64_t wanted = static_cast<std::int64_t>(index[which]) - first;
    out[i] = wanted >= 0 && wanted < count ? table[at + wanted * row] : T(0);
  }
};

/// The sum of the rows with the index of each row of a table.
template <class T>
struct ScatterKernel {
  Nest outer;          ///< the rows by the table's loops, and the selected dimension as second
  Nest inner;          ///< the rows and the indices, by the loops over indices
  std::int64_t first;  ///< row of the table that this rank has first
  const T* rows;
  const T* index;
  T* out;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    std::int64_t at = 0, wanted = first;
    outer.places(i, at, wanted);
    T sum = T(0);
    for (std::int64_t j = 0; j < inner.count; ++j) {
      std::int64_t from = at, which = 0;
      inner.places(j, from, which);
      if (static_cast<std::int64_t>(index[which]) == wanted) sum += rows[from];
    }
    out[i] = sum;
  }
};

}  // namespace heddle::inline v0::systems::impl
