// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Room: memory of message_memory() without the type of its pool.

#include <cstddef>
#include <memory>
#include <string_view>

#include <Kokkos_Core.hpp>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::memory::impl {

/// Memory that lives as long as it or a copy of it.
struct Room {
  std::byte* data = nullptr;
  Bytes bytes = 0;
  std::shared_ptr<const void> owner = {};
};

/// Returns the memory of a message_buffer().
template <class MemorySpace>
[[nodiscard]] Room message_room(std::string_view label, Bytes bytes);

/// Returns true if `address` lies in memory of message_memory().
template <class MemorySpace>
[[nodiscard]] bool in_message_memory(const void* address);

}  // namespace heddle::inline v0::memory::impl

// The definitions for host memory are compiled in heddle::compiled. Devices have other memory.
#if HEDDLE_DEFINES_MEMORY || defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || \
    defined(KOKKOS_ENABLE_SYCL) || defined(KOKKOS_ENABLE_OPENACC) ||                      \
    defined(KOKKOS_ENABLE_OPENMPTARGET) || defined(KOKKOS_ENABLE_NEXTSILICON)
#include <heddle/memory/internal/message_room.ipp>
#endif
