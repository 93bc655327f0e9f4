// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// JoinTo and copy_in(): what a merge does with an element, and copies of bytes.

#include <cstddef>
#include <cstring>

#include <Kokkos_Core.hpp>

namespace heddle::inline v0::impl {

/// A functor: out[i] = right[i] merged into left[i]. `left` and `right` do not overlap, and `out`
/// is one of them. Both cases have the same code, so that the same one of two NaNs is the result.
template <class R, class T>
struct JoinTo {
  R reduction;
  const T* left;
  const T* right;
  T* out;
  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    T value = left[i];
    reduction.join(value, right[i]);
    out[i] = value;
  }
};

/// Copies bytes from memory of `From` to memory of `Into`: queued in `exec` on a device, at once if
/// the host reaches both.
template <class Into, class From, class Exec>
void copy_between(const Exec& exec, const std::byte* from, std::byte* into, std::size_t bytes) {
  if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace, Into>::accessible &&
                Kokkos::SpaceAccessibility<Kokkos::HostSpace, From>::accessible) {
    if (bytes != 0) std::memcpy(into, from, bytes);
  } else if (bytes != 0) {
    using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
    Kokkos::deep_copy(exec, Kokkos::View<std::byte*, Into, Unmanaged>(into, bytes),
                      Kokkos::View<const std::byte*, From, Unmanaged>(from, bytes));
  }
}

/// Copies bytes within a memory space, and waits for it. What is queued in `exec` and writes them
/// must be over.
template <class MemorySpace, class Exec>
void copy_in(const Exec& exec, const std::byte* from, std::byte* into, std::size_t bytes) {
  copy_between<MemorySpace, MemorySpace>(exec, from, into, bytes);
  if constexpr (!Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible)
    exec.fence("heddle::collective::copy");
}

}  // namespace heddle::inline v0::impl
