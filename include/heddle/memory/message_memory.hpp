// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The memory that Heddle's own messages lie in: a pool for each memory space, of memory that other
/// processes and network cards may reach.

#include <atomic>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string_view>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/memory/ipc_safe.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/source/from_space.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/view.hpp>

namespace heddle::inline v0::memory {

/// Where message_memory() has the memory of a space from: the host's from the system, others' from
/// Kokkos. Specialise it for a device of which Kokkos takes memory from asynchronous pools.
template <class MemorySpace>
struct MessageSource {
  /// A Resource.
  using type = FromSpace<MemorySpace>;
  /// One of these.
  [[nodiscard]] static type make() { return type(); }
};
/// The host's, of which a chunk can grow.
template <>
struct MessageSource<Kokkos::HostSpace> {
  /// The system's.
  using type = Pages;
  /// With addresses for 64 GiB, or as many as the process may reserve.
  [[nodiscard]] static type make() {
    return Pages(HugePages::yes, Pages::room(std::size_t{64} << 30));
  }
};

namespace impl {

/// IpcSafe, but of memory that the host reaches, as managed memory: MPI copies that itself.
template <class MemorySpace, class Source = typename MessageSource<MemorySpace>::type>
using MessageUpstream =
    std::conditional_t<is_ipc_safe<Source> || !on_host<MemorySpace>, IpcSafe<Source>, Source>;

}  // namespace impl

/// The pool of `MemorySpace` that Heddle takes the memory of its own messages from; programs may
/// too. One for a process, by any thread, of what is_ipc_safe or managed memory, which MPI copies
/// itself. It keeps what has come back for what comes next, until
/// `message_memory<MemorySpace>().trim()`; what is free, and no other thread has at hand, goes back
/// when Kokkos is finalised, the host's when the process ends. Views of it end before Kokkos does,
/// as all do.
template <class MemorySpace>
[[nodiscard]] auto& message_memory() {
  using Pool = memory::Pool<impl::MessageUpstream<MemorySpace>>;
  // The lock of a static that is made by another thread would stay locked in a child of fork().
  static constinit std::atomic<Pool*> the_pool{nullptr};
  Pool* pool = the_pool.load(std::memory_order_acquire);
  if (pool != nullptr) [[likely]]
    return *pool;
  auto made = std::make_unique<Pool>(
      impl::MessageUpstream<MemorySpace>(MessageSource<MemorySpace>::make()));
  if (!the_pool.compare_exchange_strong(pool, made.get())) return *pool;
  pool = made.release();
  if constexpr (!std::same_as<MemorySpace, Kokkos::HostSpace>)
    Kokkos::push_finalize_hook([pool] { pool->trim(); });
  return *pool;
}

/// So many bytes of message_memory(), uninitialised: a plain View.
template <class MemorySpace>
[[nodiscard]] Kokkos::View<std::byte*, MemorySpace> message_buffer(std::string_view label,
                                                                   std::size_t bytes) {
  return impl::make_plain<std::byte*, void>(Ref(message_memory<MemorySpace>()), label,
                                            "heddle::memory::message_buffer", bytes);
}

}  // namespace heddle::inline v0::memory
