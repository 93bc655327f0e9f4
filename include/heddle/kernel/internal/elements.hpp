// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Copies, zeros and sums of adjacent elements, which depend on the execution space and the element
/// type only. Those of the host are compiled once.

#include <cstddef>

#include <Kokkos_Core.hpp>

#include <heddle/core/linkage.hpp>
#include <heddle/kernel/impl/host_exec.hpp>
#include <heddle/kernel/map.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel::impl {

/// A sum of two numbers.
struct Plus {
  template <class T>
  KOKKOS_FUNCTION T operator()(T a, T b) const {
    return a + b;
  }
};

/// Queues a copy of `count` elements in `exec`.
template <class Exec, class T>
void copy_elements(const Exec& exec, const T* from, T* into, std::size_t count) {
  Kokkos::deep_copy(exec, Vector<T, Exec>(into, count), Vector<const T, Exec>(from, count));
}

/// Queues zeros for `count` elements in `exec`.
template <class Exec, class T>
void clear_elements(const Exec& exec, T* data, std::size_t count) {
  Kokkos::deep_copy(exec, Vector<T, Exec>(data, count), T{});
}

/// Queues an addition of `count` elements to those at `sum` in `exec`.
template <class Exec, class T>
void add_elements(const Exec& exec, const T* from, T* sum, std::size_t count) {
  const Vector<T, Exec> into(sum, count);
  map(exec, Plus{}, into, into, Vector<const T, Exec>(from, count));
}

}  // namespace heddle::inline v0::kernel::impl

#if HEDDLE_DEFINES_KERNEL
#include <heddle/kernel/internal/elements.ipp>
#else
namespace heddle::inline v0::kernel::impl {
extern template void copy_elements(const HostExec&, const float*, float*, std::size_t);
extern template void copy_elements(const HostExec&, const double*, double*, std::size_t);
extern template void clear_elements(const HostExec&, float*, std::size_t);
extern template void clear_elements(const HostExec&, double*, std::size_t);
extern template void add_elements(const HostExec&, const float*, float*, std::size_t);
extern template void add_elements(const HostExec&, const double*, double*, std::size_t);
}  // namespace heddle::inline v0::kernel::impl
#endif
