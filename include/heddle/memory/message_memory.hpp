// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The memory of Heddle's own messages: one pool for each memory space, in memory that other
/// processes and network cards can access.

#include <atomic>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string_view>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/core/linkage.hpp>
#include <heddle/memory/impl/block_pool.hpp>
#include <heddle/memory/impl/chunks.hpp>
#include <heddle/memory/impl/slabs.hpp>
#include <heddle/memory/ipc_safe.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/source/from_space.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/view.hpp>

namespace heddle::inline v0::memory {

/// The source of the memory that message_memory() uses for a memory space. Host memory comes from
/// the system, other memory from Kokkos. Specialise it for a device if Kokkos allocates its memory
/// from asynchronous pools.
template <class MemorySpace>
struct MessageSource {
  /// The type of the source, a Resource.
  using type = FromSpace<MemorySpace>;
  /// Constructs the source.
  [[nodiscard]] static type make() { return type(); }
};
/// The source of host memory, whose chunks can grow.
template <>
struct MessageSource<Kokkos::HostSpace> {
  /// Pages of the operating system.
  using type = Pages;
  /// Returns a source whose chunks can grow to 64 GiB.
  [[nodiscard]] static type make() { return Pages(HugePages::yes, std::size_t{64} << 30); }
};

namespace impl {

/// The source in an IpcSafe, except for sources that are not IPC-safe but host-accessible, such as
/// managed memory, because MPI copies those itself.
template <class MemorySpace, class Source = typename MessageSource<MemorySpace>::type>
using MessageUpstream =
    std::conditional_t<is_ipc_safe<Source> || !on_host<MemorySpace>, IpcSafe<Source>, Source>;

}  // namespace impl

/// Returns the pool from which Heddle allocates the memory of its own messages in `MemorySpace`.
/// Programs may use it, too. There is one pool for each process and memory space, for all threads.
/// Its memory is_ipc_safe, or it is managed memory, which MPI copies itself. The pool caches
/// deallocated memory until `message_memory<MemorySpace>().trim()`. Memory that is free and not in
/// another thread's cache is released when Kokkos is finalised, but host memory when the process
/// ends. As always, Views of this memory must end before Kokkos is finalised.
template <class MemorySpace>
[[nodiscard]] auto& message_memory() {
  using Pool = memory::Pool<impl::MessageUpstream<MemorySpace>>;
  // A function-local static has a lock. If another thread held it during fork(), it would stay
  // locked in the child.
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

/// Allocates an uninitialised plain View of `bytes` bytes from message_memory().
template <class MemorySpace>
[[nodiscard]] Kokkos::View<std::byte*, MemorySpace> message_buffer(std::string_view label,
                                                                   std::size_t bytes) {
  return impl::make_plain<std::byte*, void>(Ref(message_memory<MemorySpace>()), label,
                                            "heddle::memory::message_buffer", bytes);
}

#if !HEDDLE_DEFINES_MEMORY
// The pool of host memory is compiled in heddle::compiled.
extern template class impl::Chunks<IpcSafe<Pages>>;
extern template class impl::Slabs<IpcSafe<Pages>>;
extern template class impl::BlockPool<IpcSafe<Pages>>;
#endif

}  // namespace heddle::inline v0::memory

#if HEDDLE_DEFINES_MEMORY
#include <heddle/memory/message_memory.ipp>
#endif
