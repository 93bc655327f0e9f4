// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// IpcSafe: a resource type whose memory other processes and network cards can access.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>

#include <heddle/memory/impl/mutex.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/source/pages.hpp>

namespace heddle::inline v0::memory {

/// A resource that allocates from an upstream that is_ipc_safe. A function that sends blocks can
/// require this type. It also knows whether an address lies in one of its blocks, even if the
/// upstream does not. Because it remembers each block, it is best used below a pool, as in
/// message_memory().
template <Resource Up>
class IpcSafe {
  static_assert(is_ipc_safe<Up>,
                "heddle::memory::IpcSafe: other processes and network cards cannot reach the "
                "memory of this resource; take one for which is_ipc_safe holds (for messages of "
                "Heddle: specialise memory::MessageSource)");

 public:
  using Upstream = Up;  ///< the resource that provides the blocks

  /// Constructs the adaptor over `upstream`.
  template <class Given>
  requires(!std::same_as<std::remove_cvref_t<Given>, IpcSafe> &&
           std::constructible_from<Up, Given>) explicit IpcSafe(Given&& upstream)
      : m_upstream(std::forward<Given>(upstream)) {}

  /// Allocates from the upstream. Throws the upstream's exceptions, and std::bad_alloc if the host
  /// has no memory to remember the block.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    void* const block = m_upstream.allocate(bytes, alignment);
    if (block == nullptr) return block;
    try {
      const std::lock_guard lock(m_mutex);
      m_blocks.emplace(block, bytes);
    } catch (...) {
      m_upstream.deallocate(block, bytes, alignment);
      throw;
    }
    return block;
  }
  /// Deallocates a block through the upstream.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block == nullptr) return;
    {
      const std::lock_guard lock(m_mutex);
      m_blocks.erase(block);
    }
    m_upstream.deallocate(block, bytes, alignment);
  }
  /// Extends a block through the upstream; see ExtendableResource.
  [[nodiscard]] bool extend(void* block, std::size_t bytes,
                            std::size_t more) noexcept requires ExtendableResource<Up> {
    if (!m_upstream.extend(block, bytes, more)) return false;
    const std::lock_guard lock(m_mutex);
    m_blocks.find(block)->second += more;
    return true;
  }
  /// Shrinks a block through the upstream; see ExtendableResource.
  void shrink(void* block, std::size_t bytes,
              std::size_t less) noexcept requires ExtendableResource<Up> {
    {
      const std::lock_guard lock(m_mutex);
      m_blocks.find(block)->second -= less;
    }
    m_upstream.shrink(block, bytes, less);
  }
  /// Returns whether the address lies in a live block.
  [[nodiscard]] bool owns(const void* address) const {
    const std::lock_guard lock(m_mutex);
    const auto after = m_blocks.upper_bound(address);
    if (after == m_blocks.begin()) return false;
    const auto& [block, bytes] = *std::prev(after);
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(block) <
           bytes;
  }
  /// Returns the upstream resource.
  [[nodiscard]] Up& upstream() noexcept { return m_upstream; }

 private:
  Up m_upstream;
  mutable impl::Mutex m_mutex;
  std::map<const void*, std::size_t> m_blocks;  // bytes of the block at each address
};

/// Owns the upstream if it is an rvalue, refers to it if it is an lvalue; see UpstreamOf.
template <class Given>
explicit IpcSafe(Given&&) -> IpcSafe<UpstreamOf<Given>>;

static_assert(OwningResource<IpcSafe<Pages>> && ExtendableResource<IpcSafe<Pages>>);

}  // namespace heddle::inline v0::memory
