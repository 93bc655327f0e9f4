// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// IpcSafe: a resource whose memory other processes and network cards may reach, as a type.

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

/// Blocks of an upstream that is_ipc_safe, which a function that sends them can ask for by type;
/// and whether an address lies in one, whatever the upstream. It remembers each block, so that it
/// best stands below a pool, as in message_memory().
template <Resource Up>
class IpcSafe {
  static_assert(is_ipc_safe<Up>,
                "heddle::memory::IpcSafe: other processes and network cards cannot reach the "
                "memory of this resource; take one for which is_ipc_safe holds (for messages of "
                "Heddle: specialise memory::MessageSource)");

 public:
  using Upstream = Up;  ///< where its blocks come from

  /// Of the blocks of `upstream`.
  template <class Given>
  requires(!std::same_as<std::remove_cvref_t<Given>, IpcSafe> &&
           std::constructible_from<Up, Given>) explicit IpcSafe(Given&& upstream)
      : m_upstream(std::forward<Given>(upstream)) {}

  /// Of the upstream. @throws what that throws, and std::bad_alloc where the host has no memory to
  /// remember it.
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
  /// To the upstream.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block == nullptr) return;
    {
      const std::lock_guard lock(m_mutex);
      m_blocks.erase(block);
    }
    m_upstream.deallocate(block, bytes, alignment);
  }
  /// By the upstream.
  [[nodiscard]] bool extend(void* block, std::size_t bytes,
                            std::size_t more) noexcept requires ExtendableResource<Up> {
    if (!m_upstream.extend(block, bytes, more)) return false;
    const std::lock_guard lock(m_mutex);
    m_blocks.find(block)->second += more;
    return true;
  }
  /// Likewise.
  void shrink(void* block, std::size_t bytes,
              std::size_t less) noexcept requires ExtendableResource<Up> {
    {
      const std::lock_guard lock(m_mutex);
      m_blocks.find(block)->second -= less;
    }
    m_upstream.shrink(block, bytes, less);
  }
  /// Whether it lies in a block that is out.
  [[nodiscard]] bool owns(const void* address) const {
    const std::lock_guard lock(m_mutex);
    const auto after = m_blocks.upper_bound(address);
    if (after == m_blocks.begin()) return false;
    const auto& [block, bytes] = *std::prev(after);
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(block) <
           bytes;
  }
  /// Where its blocks come from.
  [[nodiscard]] Up& upstream() noexcept { return m_upstream; }

 private:
  Up m_upstream;
  mutable impl::Mutex m_mutex;
  std::map<const void*, std::size_t> m_blocks;  // bytes from each address on
};

/// Of a temporary, which it then owns, or a resource with a name; see UpstreamOf.
template <class Given>
explicit IpcSafe(Given&&) -> IpcSafe<UpstreamOf<Given>>;

static_assert(OwningResource<IpcSafe<Pages>> && ExtendableResource<IpcSafe<Pages>>);

}  // namespace heddle::inline v0::memory
