// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of message_room.hpp.

#include <memory>
#include <string_view>

#include <Kokkos_Core.hpp>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/memory/internal/message_room.hpp>
#include <heddle/memory/message_memory.hpp>

namespace heddle::inline v0::memory::impl {

template <class MemorySpace>
Room message_room(std::string_view label, Bytes bytes) {
  const auto view = message_buffer<MemorySpace>(label, bytes);
  return {view.data(), bytes, std::make_shared<decltype(view)>(view)};
}

template <class MemorySpace>
bool in_message_memory(const void* address) {
  return message_memory<MemorySpace>().owns(address);
}

#if !HEDDLE_FULL_HEADER_ONLY
template Room message_room<Kokkos::HostSpace>(std::string_view, Bytes);
template bool in_message_memory<Kokkos::HostSpace>(const void*);
#endif

}  // namespace heddle::inline v0::memory::impl
