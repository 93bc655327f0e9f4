// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// IpcSafe: a resource whose memory other processes and network cards may reach, as a type.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <type_traits>
#include <utility>

#include <heddle/memory/free_ranges.hpp>
#include <heddle/memory/impl/mutex.hpp>
#include <heddle/memory/pages.hpp>
#include <heddle/memory/resource.hpp>

namespace heddle::inline v0::memory {

/// Whether any process or network card may be given the memory of R: pages of the host are, device
/// memory of a plain allocation is, that of the driver's asynchronous pools is not. False unless a
/// source says otherwise with a specialisation; of an adaptor what it is of its upstream.
template <class R>
inline constexpr bool is_ipc_safe = false;
/// Of an adaptor.
template <class R>
requires requires { typename R::Upstream; }
inline constexpr bool is_ipc_safe<R> = is_ipc_safe<typename R::Upstream>;
/// They are.
template <>
inline constexpr bool is_ipc_safe<Pages> = true;

/// Blocks of an upstream that is_ipc_safe, which a function that sends them can ask for by type;
/// and whether an address lies in one, whatever the upstream. It remembers each block, so that it
/// best stands below a pool: `Pool(IpcSafe(Pages{}))`.
template <Resource Up>
class IpcSafe {
  static_assert(is_ipc_safe<Up>,
                "heddle::memory::IpcSafe: other processes and network cards cannot reach the "
                "memory of this resource; take one for which is_ipc_safe holds");

 public:
  using Upstream = Up;  ///< where its blocks come from

  /// Of the blocks of `upstream`.
  template <class Given>
  requires(!std::same_as<std::remove_cvref_t<Given>, IpcSafe> &&
           std::constructible_from<Up, Given>) explicit IpcSafe(Given&& upstream)
      : m_upstream(std::forward<Given>(upstream)) {}

  /// Of the upstream. @throws what that throws, out_of_memory where there are no pages to remember
  /// it.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    void* const block = m_upstream.allocate(bytes, alignment);
    if (block == nullptr) return block;
    try {
      const std::lock_guard lock(m_mutex);
      m_blocks.add(reinterpret_cast<std::uintptr_t>(block), bytes);
    } catch (...) {
      m_upstream.deallocate(block, bytes, alignment);
      throw;
    }
    return block;
  }
  /// To the upstream.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block == nullptr) return;
    {
      const std::lock_guard lock(m_mutex);
      m_blocks.remove(reinterpret_cast<std::uintptr_t>(block));
    }
    m_upstream.deallocate(block, bytes, alignment);
  }
  /// Whether it lies in a block that is out.
  [[nodiscard]] bool owns(const void* address) const {
    const std::lock_guard lock(m_mutex);
    return m_blocks.chunk_of(reinterpret_cast<std::uintptr_t>(address)).has_value();
  }
  /// Where its blocks come from.
  [[nodiscard]] Up& upstream() noexcept { return m_upstream; }

 private:
  Up m_upstream;
  mutable impl::Mutex m_mutex;
  FreeRanges m_blocks;  // each a chunk of its own, never cut
};

/// Of a temporary, which it then owns, or a resource with a name; see UpstreamOf.
template <class Given>
explicit IpcSafe(Given&&) -> IpcSafe<UpstreamOf<Given>>;

static_assert(OwningResource<IpcSafe<Pages>>);

}  // namespace heddle::inline v0::memory
