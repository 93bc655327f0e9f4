// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Copies between the memory of an execution space and vectors on the host. A space whose memory is
/// the host's copies too: the same lines run on every device.

#include <cstddef>
#include <vector>

#include <Kokkos_Core.hpp>

namespace examples {

template <class T, class Memory>
using Span = Kokkos::View<T*, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// `count` elements at `data`, which lies in the memory of `Space`. All kernels must be over.
template <class Space, class T>
[[nodiscard]] std::vector<T> copy_to_host(const T* data, std::size_t count) {
  std::vector<T> host(count);
  Kokkos::deep_copy(Span<T, Kokkos::HostSpace>(host.data(), count),
                    Span<const T, typename Space::memory_space>(data, count));
  return host;
}

/// Fills the memory of `Space` at `data` with all elements of `host`.
template <class Space, class T>
void copy_from_host(const std::vector<T>& host, T* data) {
  Kokkos::deep_copy(Span<T, typename Space::memory_space>(data, host.size()),
                    Span<const T, Kokkos::HostSpace>(host.data(), host.size()));
}

}  // namespace examples
