// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The host memory through which messages from and to a device are copied.

#include <type_traits>

#include <Kokkos_Core.hpp>

namespace heddle::inline v0::impl {

/// Pinned where the device has such, which its kernels reach too.
#if defined(KOKKOS_HAS_SHARED_HOST_PINNED_SPACE)
template <class MemorySpace>
using HostMemoryBeside =
    std::conditional_t<Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible,
                       Kokkos::HostSpace, Kokkos::SharedHostPinnedSpace>;
#else
template <class MemorySpace>
using HostMemoryBeside = Kokkos::HostSpace;
#endif

}  // namespace heddle::inline v0::impl
