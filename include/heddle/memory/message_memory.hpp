// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The memory that Heddle's own messages lie in: a pool for each memory space, of memory that other
/// processes and network cards may reach.

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/memory/from_space.hpp>
#include <heddle/memory/ipc_safe.hpp>
#include <heddle/memory/pages.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/view.hpp>

namespace heddle::inline v0::memory {

/// Where message_memory() has the memory of a space from: the host's from the system, others' from
/// Kokkos. Specialise it for a space of which Kokkos gives memory that messages must not lie in.
template <class MemorySpace>
struct MessageSource {
  using type = FromSpace<MemorySpace>;  ///< a Resource that is_ipc_safe
};
/// The host's.
template <>
struct MessageSource<Kokkos::HostSpace> {
  using type = Pages;  ///< of the system
};

/// The pool of `MemorySpace` that Heddle takes the memory of its own messages from; programs may
/// too. One for a process, of what is_ipc_safe. It lasts until Kokkos is finalised; the host's
/// until the process ends. By any thread.
template <class MemorySpace>
[[nodiscard]] Pool<IpcSafe<typename MessageSource<MemorySpace>::type>>& message_memory() {
  using Source = IpcSafe<typename MessageSource<MemorySpace>::type>;
  // Never destroyed: objects that end later than any other may hold Views of it.
  static Pool<Source>* const pool = [] {
    auto* const made = new Pool<Source>(Source(typename MessageSource<MemorySpace>::type()));
    if constexpr (!std::same_as<MemorySpace, Kokkos::HostSpace>)
      Kokkos::push_finalize_hook([made] { made->trim(); });
    return made;
  }();
  return *pool;
}

/// So many bytes of message_memory(), uninitialised: a plain View.
template <class MemorySpace>
[[nodiscard]] Kokkos::View<std::byte*, MemorySpace> message_buffer(std::string_view label,
                                                                   std::size_t bytes) {
  return make_view<std::byte*>(message_memory<MemorySpace>(), label, bytes);
}

}  // namespace heddle::inline v0::memory
