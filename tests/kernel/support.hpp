// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// For the kernel tests: matrices with a host and a device side, and the comparison of a gradient
/// with finite differences.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core/random.hpp>
#include <heddle/kernel.hpp>

#include "space.hpp"

namespace kernel_test {

namespace hk = heddle::kernel;
using Exec = examples::Space;  // which the build may name

/// A row-major matrix on the host, `at`, and its copy where kernels run, `view()`.
template <class T>
class Tensor {
 public:
  Tensor(std::size_t rows, std::size_t columns, T value = {})
      : m_rows(rows),
        m_columns(columns),
        m_host(rows * columns, value),
        m_device("t", rows, columns) {
    push();
  }
  /// Normal numbers, f(name, index).
  Tensor(std::size_t rows, std::size_t columns,
         std::string_view name) requires std::floating_point<T> : Tensor(rows, columns) {
    const heddle::Random random(7, name);
    for (std::size_t i = 0; i < m_host.size(); ++i) m_host[i] = static_cast<T>(random.normal(i));
    push();
  }

  [[nodiscard]] std::size_t rows() const { return m_rows; }
  [[nodiscard]] std::size_t columns() const { return m_columns; }
  [[nodiscard]] std::size_t size() const { return m_host.size(); }
  [[nodiscard]] T& at(std::size_t i) { return m_host[i]; }
  [[nodiscard]] T at(std::size_t i) const { return m_host[i]; }
  [[nodiscard]] T at(std::size_t row, std::size_t column) const {
    return m_host[row * m_columns + column];
  }
  [[nodiscard]] const std::vector<T>& values() const { return m_host; }

  [[nodiscard]] hk::Matrix<T, Exec> view() const { return m_device; }
  [[nodiscard]] hk::Vector<T, Exec> flat() const {
    return hk::Vector<T, Exec>(m_device.data(), m_host.size());
  }

  void push() { Kokkos::deep_copy(m_device, host()); }
  Tensor& pull() {
    Kokkos::deep_copy(host(), m_device);
    return *this;
  }

 private:
  [[nodiscard]] auto host() {
    return Kokkos::View<T**, Kokkos::LayoutRight, Kokkos::HostSpace,
                        Kokkos::MemoryTraits<Kokkos::Unmanaged>>(m_host.data(), m_rows, m_columns);
  }

  std::size_t m_rows, m_columns;
  std::vector<T> m_host;
  Kokkos::View<T**, Kokkos::LayoutRight, Exec::memory_space> m_device;
};

template <class T>
[[nodiscard]] double largest(const Tensor<T>& t) {
  double found = 0;
  for (const T value : t.values()) found = std::max(found, std::abs(static_cast<double>(value)));
  return found;
}

/// max |a - b|; equal sizes are required.
template <class A, class B>
[[nodiscard]] double difference(const Tensor<A>& a, const Tensor<B>& b) {
  REQUIRE(a.size() == b.size());
  double found = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    found = std::max(found, std::abs(static_cast<double>(a.at(i)) - static_cast<double>(b.at(i))));
  return found;
}

/// sum(a b): with a random `a`, the scalar whose gradient the checks take.
[[nodiscard]] inline double dot(const Tensor<double>& a, const Tensor<double>& b) {
  long double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<long double>(a.at(i)) * b.at(i);
  return static_cast<double>(sum);
}

/// Compares `gradient` of loss() with respect to `x` with central differences (f(x + h) - f(x - h))
/// / 2 h. Their error is h^2 |f'''| / 6 from the series and eps |f| / h from rounding; h =
/// eps^(1/3) = 6e-6 balances the two near 4e-11 for f and f''' of order 1. f is a sum of up to some
/// hundred terms and f''' reaches some ten, so 1e-8 of the largest entry leaves two digits of room
/// and is a hundred times below the 1e-6 that a wrong term would have to hide under.
inline void check_gradient(Tensor<double>& x, const Tensor<double>& gradient,
                           const std::function<double()>& loss) {
  REQUIRE(x.size() == gradient.size());
  const double bound = 1e-8 * std::max(1.0, largest(gradient));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double middle = x.at(i), h = 6e-6 * std::max(1.0, std::abs(middle));
    x.at(i) = middle + h;
    const double above = x.at(i);
    x.push();
    const double upper = loss();
    x.at(i) = middle - h;
    const double below = x.at(i);
    x.push();
    const double lower = loss();
    x.at(i) = middle;
    x.push();
    const double numeric = (upper - lower) / (above - below);  // the distance as it was rounded
    INFO("element " << i << ": finite difference " << numeric << ", gradient " << gradient.at(i));
    REQUIRE(std::abs(numeric - gradient.at(i)) <= bound);
  }
}

/// A batch of tokens below `vocabulary`.
[[nodiscard]] inline Tensor<std::uint8_t> tokens(std::size_t rows, std::size_t columns,
                                                 std::size_t vocabulary) {
  Tensor<std::uint8_t> t(rows, columns);
  const heddle::Random random(3, "tokens");
  for (std::size_t i = 0; i < t.size(); ++i)
    t.at(i) = static_cast<std::uint8_t>(random.below(i, vocabulary));
  t.push();
  return t;
}

}  // namespace kernel_test
