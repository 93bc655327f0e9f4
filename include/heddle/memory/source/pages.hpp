// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Pages: host memory from the operating system, in whole pages.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/source/system_memory.hpp>

namespace heddle::inline v0::memory {

/// Whether memory should lie in huge pages of 2 MiB if the system has them. They reduce the load on
/// the TLB and cause 512 times fewer page faults. However, touching one byte allocates a whole huge
/// page.
enum class HugePages : bool { no, yes };

/// A resource that maps pages of the operating system. A page is placed when it is first touched,
/// near the core that touches it. Hence threads should first write the memory that they will use.
/// Pages are zero at first. The system may promise more memory than it has (is_overcommitted). A
/// Pool or a Limit over pages promises no more than there is.
class Pages {
 public:
  /// The size of a huge page in bytes.
  static constexpr std::size_t huge = std::size_t{2} << 20;

  /// Constructs the resource. If huge pages are wanted, blocks of at least 2 MiB lie in them. If
  /// `room` is not 0, each block is placed so that it can usually grow to a multiple of `room`
  /// bytes. No addresses are reserved for that, because RLIMIT_AS counts them.
  explicit Pages(HugePages huge_pages = HugePages::yes, std::size_t room = 0) noexcept
      : m_huge_pages(huge_pages), m_room((room + huge - 1) / huge * huge) {}

  /// Returns the size of a page in bytes.
  [[nodiscard]] static std::size_t page() noexcept {
    static constinit std::atomic<std::size_t> size{0};  // lock-free, for children of fork()
    if (size.load(std::memory_order_relaxed) == 0)
      size.store(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), std::memory_order_relaxed);
    return size.load(std::memory_order_relaxed);
  }

  /// Allocates whole pages. @throws out_of_memory if the system has no more memory, or can never
  /// have so much.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return nullptr;
    const std::size_t size = whole(bytes);
    if (size < bytes || with_room(bytes) < size || !can_be(size)) refuse(bytes, ENOMEM);
    const bool huge_pages = in_huge_pages(bytes);
    std::byte* begin = m_room == 0 ? nullptr : map_apart(size, alignment);
    if (begin == nullptr)
      begin = map_aligned(size, huge_pages ? std::max(alignment, huge) : alignment);
    // Near a limit there may be too few addresses for that alignment.
    if (begin == nullptr && huge_pages) begin = map_aligned(size, alignment);
    if (begin == nullptr) refuse(bytes, errno);
    advise(begin, size, huge_pages);
    return begin;
  }
  /// Returns a block to the system.
  void deallocate(void* block, std::size_t bytes, std::size_t) noexcept {
    if (block != nullptr) ::munmap(block, whole(bytes));
  }

  /// Extends a block; see ExtendableResource. Returns false also if the room is full, or if
  /// something else lies behind the block.
  [[nodiscard]] bool extend(void* block, std::size_t bytes, std::size_t more) noexcept {
    const std::size_t size = whole(bytes), larger = whole(bytes + more);
    if (m_room == 0 || bytes + more < bytes || larger > with_room(bytes) || !can_be(larger))
      return false;
    std::byte* const end = static_cast<std::byte*>(block) + size;
    if (larger > size && !map_at(end, larger - size)) return false;
    advise(end, larger - size, in_huge_pages(bytes + more));
    return true;
  }
  /// Shrinks a block; see ExtendableResource. `less` must be less than `bytes`.
  void shrink(void* block, std::size_t bytes, std::size_t less) noexcept {
    const std::size_t size = whole(bytes), smaller = whole(bytes - less);
    if (smaller < size) ::munmap(static_cast<std::byte*>(block) + smaller, size - smaller);
  }

  /// Moves pages; see PagedResource. Returns false also if the system has no such call, or if `to`
  /// is locked in memory.
  [[nodiscard]] bool remap(void* from, void* to, std::size_t bytes) noexcept {
#ifdef MREMAP_DONTUNMAP
    // The first call fails for locked memory and then changes nothing. Pages beside `from` stay
    // locked.
    if (::madvise(to, bytes, MADV_DONTNEED) != 0 || ::munlock(from, bytes) != 0) return false;
    return move(static_cast<std::byte*>(from), static_cast<std::byte*>(to), bytes);
#else
    return static_cast<void>(from), static_cast<void>(to), static_cast<void>(bytes), false;
#endif
  }
  /// Releases pages; see PagedResource.
  [[nodiscard]] bool discard(void* part, std::size_t bytes) noexcept {
    return ::madvise(part, bytes, MADV_DONTNEED) == 0;
  }

 private:
  [[nodiscard]] static std::size_t whole(std::size_t bytes) noexcept {
    return (bytes + page() - 1) / page() * page();
  }
  [[nodiscard]] std::size_t with_room(std::size_t bytes) const noexcept {
    return m_room == 0 ? whole(bytes) : (bytes + m_room - 1) / m_room * m_room;
  }
  /// Returns whether the system could ever have so many bytes. The system checks the same, but not
  /// for MAP_NORESERVE, which is used here.
  [[nodiscard]] static bool can_be(std::size_t bytes) noexcept {
    if (bytes < huge) return true;
    const SystemMemory all = system_memory();
    return bytes <= all.physical || bytes - all.physical <= all.swap;
  }
  [[nodiscard]] bool in_huge_pages(std::size_t bytes) const noexcept {
    return m_huge_pages == HugePages::yes && bytes >= huge;
  }
#ifdef MREMAP_DONTUNMAP
  /// Moves the pages of one part to another. It calls the system directly, because libraries that
  /// hook mremap() have lost its last argument (UCX before 1.14). They also hook madvise(), and
  /// learn from it that `from` has new pages.
  [[nodiscard]] static bool move(std::byte* from, std::byte* to, std::size_t bytes) noexcept {
    // First move to an address that the system chooses. If that fails, nothing has changed.
    const long aside =
        ::syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
    if (aside == -1) {
      // A part that moved before is a mapping of its own, and one call moves only one mapping.
      const std::size_t first = bytes / 2 / page() * page();
      return errno == EFAULT && first > 0 && move(from, to, first) &&
             move(from + first, to + first, bytes - first);
    }
    ::madvise(from, bytes, MADV_DONTNEED);
    if (::syscall(SYS_mremap, aside, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != -1)
      return true;
    ::munmap(reinterpret_cast<void*>(aside), bytes);
    // Before the system ran out of memory, it may have unmapped the old pages.
    if (!map_at(to, bytes) && errno != EEXIST) std::abort();
    return false;
  }
#endif
  static constexpr int protection = PROT_READ | PROT_WRITE;
  static constexpr int mapping = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

  /// Maps pages at an address. Returns false if that fails, for example because there are some.
  [[nodiscard]] static bool map_at(std::byte* at, std::size_t size) noexcept {
    // Older systems do not know the flag, and then map the pages elsewhere.
    void* const mapped = ::mmap(at, size, protection, mapping | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapped == MAP_FAILED || mapped == at) return mapped == at;
    ::munmap(mapped, size);
    errno = EEXIST;
    return false;
  }
  /// Maps pages far from all others, so that they can be extended. Systems place mappings close to
  /// each other, mostly from high addresses down. So the function tries places 64 GiB apart, below
  /// the place where the system would map a page. Returns null if there is none.
  [[nodiscard, gnu::noinline]] static std::byte* map_apart(std::size_t size,
                                                           std::size_t alignment) noexcept {
    constexpr std::uintptr_t apart = std::uintptr_t{64} << 30;
    std::byte* const usual = map_aligned(page(), 1);
    if (usual == nullptr) return nullptr;
    ::munmap(usual, page());
    // The address of a function differs between processes, and stays the same in each.
    std::uintptr_t place = reinterpret_cast<std::uintptr_t>(usual) / apart * apart +
                           reinterpret_cast<std::uintptr_t>(&::munmap) % apart / huge * huge;
    for (int tries = 1024; tries > 0 && place > 2 * apart; --tries) {
      place -= apart;
      auto* const at = reinterpret_cast<std::byte*>(place);
      if (place % alignment == 0 && map_at(at, size)) return at;
      if (errno != EEXIST) break;
    }
    return nullptr;
  }
  /// Maps pages at any multiple of `alignment`, or returns null.
  [[nodiscard, gnu::noinline]] static std::byte* map_aligned(std::size_t size,
                                                             std::size_t alignment) noexcept {
    const std::size_t spare = alignment > page() ? alignment - page() : 0;
    if (size + spare < size) {
      errno = ENOMEM;
      return nullptr;
    }
    void* const mapped = ::mmap(nullptr, size + spare, protection, mapping, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    // Unmap what lies before the first aligned address and after the block.
    auto* const address = static_cast<std::byte*>(mapped);
    const std::size_t past = reinterpret_cast<std::uintptr_t>(address) % alignment;
    const std::size_t before = past == 0 ? 0 : alignment - past;
    if (before > 0) ::munmap(address, before);
    if (spare > before) ::munmap(address + before + size, spare - before);
    return address + before;
  }
  static void advise(std::byte* begin, std::size_t bytes, bool huge_pages) noexcept {
    if (huge_pages && bytes > 0)
      ::madvise(begin, bytes, MADV_HUGEPAGE);  // ignored if there are none
  }
  /// Throws without the C library's error texts, whose locks may be held if malloc() calls this.
  [[noreturn]] static void refuse(std::size_t bytes, int error) {
    throw out_of_memory(
        {"heddle::memory::Pages", text("the system cannot allocate ", bytes, " B"),
         error == ENOMEM ? "its memory or a limit is exhausted" : text("errno ", error)});
  }

  HugePages m_huge_pages;
  std::size_t m_room;
};

static_assert(ExtendableResource<Pages> && PagedResource<Pages>);

/// Host pages are IPC-safe.
template <>
inline constexpr bool is_ipc_safe<Pages> = true;
/// Host pages are overcommitted.
template <>
inline constexpr bool is_overcommitted<Pages> = true;

}  // namespace heddle::inline v0::memory
