// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FromSpace: memory of a Kokkos memory space, and so of any device that Kokkos supports.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/impl/mutex.hpp>
#include <heddle/memory/resource.hpp>

namespace heddle::inline v0::memory {

/// A resource that allocates from an instance of a Kokkos memory space. Tools see each block with
/// the label "heddle::memory::block". When a block is deallocated, Kokkos waits for all work of all
/// execution spaces, as it always does before it frees memory.
///
/// Kokkos returns addresses that are multiples of 64. For a larger alignment this resource
/// allocates a longer block, and stores its begin in a separate map. Copies share the same map.
///
/// Kokkos must be initialised before a block is allocated, and must not be finalised before all
/// blocks are deallocated.
///
/// A child of fork() may hang when it deallocates a block, because Kokkos locks mutexes to fence
/// its execution spaces and does not release them in the child. The child is safe if no other
/// thread of the parent is inside Kokkos at the time of the fork: in a kernel, in a fence, or in
/// the deallocation of a View or of a block of this resource. Pages do not call Kokkos.
template <class MemorySpace = Kokkos::HostSpace>
requires Kokkos::is_memory_space_v<MemorySpace>
class FromSpace {
 public:
  using memory_space = MemorySpace;  ///< the memory space of the blocks

  /// Constructs a resource over `space`.
  explicit FromSpace(MemorySpace space = MemorySpace())
      : m_space(std::move(space)), m_longer(std::make_shared<Longer>()) {}

  /// Allocates a block of the space. @throws out_of_memory if the space has no more memory.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return nullptr;
    if (bytes > most || alignment > most)
      throw out_of_memory({where, text("the address space cannot hold ", bytes, " B"),
                           text("aligned to ", alignment, " B")});
    try {
      return alignment <= given ? plain(bytes, alignment) : longer(bytes, alignment);
    } catch (const contract_error&) {
      throw;
    } catch (const std::exception& error) {  // the only common base of Kokkos' exceptions
      throw out_of_memory(
          {where, text(MemorySpace::name(), " cannot allocate ", bytes, " B"), error.what()});
    }
  }
  /// Returns a block to the space.
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block == nullptr) return;
    if (alignment <= given) {
      m_space.deallocate(label, block, bytes);
      return;
    }
    void* begin = nullptr;
    {
      const std::lock_guard lock(m_longer->mutex);
      begin = m_longer->begins.extract(block).mapped();
    }
    m_space.deallocate(label, begin, bytes + alignment - given);
  }

 private:
  static constexpr const char* where = "heddle::memory::FromSpace";
  static constexpr const char* label = "heddle::memory::block";
  static constexpr std::size_t given = 64;  ///< the alignment of Kokkos' own blocks

  /// The most bytes and the largest alignment, so that their sum does not overflow.
  static constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / 4;

  /// The begins of the blocks that are longer than requested.
  struct Longer {
    impl::Mutex mutex;
    std::unordered_map<void*, void*> begins;
  };

  [[nodiscard]] void* plain(std::size_t bytes, std::size_t alignment) {
    void* const block = m_space.allocate(label, bytes);
    if (reinterpret_cast<std::uintptr_t>(block) % alignment != 0) {
      m_space.deallocate(label, block, bytes);
      expects(false, [&] {
        return ErrorInfo{where, text(MemorySpace::name(), " returned an address not aligned to ",
                                     alignment, " B")};
      });
    }
    return block;
  }

  [[nodiscard]] void* longer(std::size_t bytes, std::size_t alignment) {
    const std::size_t size = bytes + alignment - given;
    auto* const begin = static_cast<std::byte*>(plain(size, given));
    const std::size_t before =
        (alignment - reinterpret_cast<std::uintptr_t>(begin) % alignment) % alignment;
    try {
      const std::lock_guard lock(m_longer->mutex);
      m_longer->begins.emplace(begin + before, begin);
    } catch (...) {
      m_space.deallocate(label, begin, size);
      throw;
    }
    return begin + before;
  }

  MemorySpace m_space;
  std::shared_ptr<Longer> m_longer;
};

static_assert(Resource<FromSpace<Kokkos::HostSpace>>);

/// Host memory is overcommitted.
template <>
inline constexpr bool is_overcommitted<FromSpace<Kokkos::HostSpace>> = true;

/// Host memory is IPC-safe, and so are device memory and pinned host memory. Managed memory, device
/// memory that Kokkos allocates from asynchronous pools, and unknown memory spaces are not.
template <>
inline constexpr bool is_ipc_safe<FromSpace<Kokkos::HostSpace>> = true;
#if defined(KOKKOS_ENABLE_CUDA)
template <>
inline constexpr bool is_ipc_safe<FromSpace<Kokkos::CudaHostPinnedSpace>> = true;
#if !defined(KOKKOS_ENABLE_IMPL_CUDA_MALLOC_ASYNC) &&   \
    !defined(KOKKOS_ENABLE_IMPL_CUDA_UNIFIED_MEMORY) && \
    !defined(KOKKOS_ENABLE_IMPL_CUDA_EMULATE_UNIFIED_MEMORY)
template <>
inline constexpr bool is_ipc_safe<FromSpace<Kokkos::CudaSpace>> = true;
#endif
#endif
#if defined(KOKKOS_ENABLE_HIP)
template <>
inline constexpr bool is_ipc_safe<FromSpace<Kokkos::HIPHostPinnedSpace>> = true;
#if !defined(KOKKOS_ENABLE_IMPL_HIP_MALLOC_ASYNC)
template <>
inline constexpr bool is_ipc_safe<FromSpace<Kokkos::HIPSpace>> = true;
#endif
#endif
#if defined(KOKKOS_ENABLE_SYCL)
template <>
inline constexpr bool is_ipc_safe<FromSpace<Kokkos::SYCLHostUSMSpace>> = true;
template <>
inline constexpr bool is_ipc_safe<FromSpace<Kokkos::SYCLDeviceUSMSpace>> = true;
#endif

}  // namespace heddle::inline v0::memory
