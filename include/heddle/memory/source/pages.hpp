// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Pages: memory of the host from the operating system, in whole pages.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/source/system_memory.hpp>

namespace heddle::inline v0::memory {

/// Whether memory is to lie in huge pages, of 2 MiB, where the system has such: less work for what
/// translates addresses, and 512 faults less; but whoever touches a byte of one has it whole.
enum class HugePages : bool { no, yes };

/// Pages of the operating system, which have no place before they are touched: it is then near the
/// core that does, so that threads should first write what they are to use. Zero at first. The
/// system may not have the memory for all that it promises (is_overcommitted); a Pool or a Limit
/// over pages promises no more than there is.
class Pages {
 public:
  /// The size of a huge page.
  static constexpr std::size_t huge = std::size_t{2} << 20;

  /// Blocks of 2 MiB and more lie in huge pages if that is wanted. Blocks have `room` bytes of
  /// addresses, or a multiple of it, where they can grow; 0 for none.
  explicit Pages(HugePages huge_pages = HugePages::yes, std::size_t room = 0) noexcept
      : m_huge_pages(huge_pages), m_room((room + huge - 1) / huge * huge) {}

  /// The size of a page.
  [[nodiscard]] static std::size_t page() noexcept {
    static constinit std::atomic<std::size_t> size{0};  // without a lock, for children of fork()
    if (size.load(std::memory_order_relaxed) == 0)
      size.store(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), std::memory_order_relaxed);
    return size.load(std::memory_order_relaxed);
  }

  /// Addresses for blocks to grow into: `wanted`, or an eighth of what the process may have
  /// (RLIMIT_AS), which counts those that are only reserved.
  [[nodiscard]] static std::size_t room(std::size_t wanted) noexcept {
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
    return std::min<std::size_t>(wanted, limit.rlim_cur / 8);
  }

  /// Whole pages. @throws out_of_memory where the system has none, or never has so many.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return nullptr;
    const std::size_t aligned = std::max(alignment, in_huge_pages(bytes) ? huge : page());
    const std::size_t size = whole(bytes), addresses = with_room(bytes);
    const std::size_t spare = aligned > page() ? aligned - page() : 0;
    if (size < bytes || addresses < size || addresses + spare < addresses || !can_be(size))
      refuse(bytes, ENOMEM);
    void* const mapped = ::mmap(nullptr, addresses + spare, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) refuse(bytes, errno);
    // What lies before the first aligned address, and behind the room, goes back.
    auto* const address = static_cast<std::byte*>(mapped);
    const std::size_t past = reinterpret_cast<std::uintptr_t>(address) % aligned;
    const std::size_t before = past == 0 ? 0 : aligned - past;
    std::byte* const begin = address + before;
    if (before > 0) ::munmap(address, before);
    if (spare > before) ::munmap(begin + addresses, spare - before);
    if (!open(begin, size, in_huge_pages(bytes))) {
      const int error = errno;
      ::munmap(begin, addresses);
      refuse(bytes, error);
    }
    return begin;
  }
  /// Back to the system.
  void deallocate(void* block, std::size_t bytes, std::size_t) noexcept {
    if (block != nullptr) ::munmap(block, with_room(bytes));
  }

  /// See ExtendableResource; false too where the room is full.
  [[nodiscard]] bool extend(void* block, std::size_t bytes, std::size_t more) noexcept {
    const std::size_t size = whole(bytes), larger = whole(bytes + more);
    if (m_room == 0 || bytes + more < bytes || larger > with_room(bytes) || !can_be(larger))
      return false;
    return larger == size ||
           open(static_cast<std::byte*>(block) + size, larger - size, in_huge_pages(bytes + more));
  }
  /// See ExtendableResource; `less` than all.
  void shrink(void* block, std::size_t bytes, std::size_t less) noexcept {
    const std::size_t size = whole(bytes), smaller = whole(bytes - less);
    const std::size_t room = with_room(bytes - less);
    if (room < with_room(bytes))
      ::munmap(static_cast<std::byte*>(block) + room, with_room(bytes) - room);
    // Other pages in the place of those that go back.
    if (const std::size_t end = std::min(size, room); smaller < end)
      ::mmap(static_cast<std::byte*>(block) + smaller, end - smaller, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }

  /// See PagedResource; false too where the system has no such call, or `to` is locked in memory.
  [[nodiscard]] bool remap(void* from, void* to, std::size_t bytes) noexcept {
#ifdef MREMAP_DONTUNMAP
    // What is locked refuses this, which changes nothing else; what lies beside `from` stays so.
    if (::madvise(to, bytes, MADV_DONTNEED) != 0 || ::munlock(from, bytes) != 0) return false;
    return move(static_cast<std::byte*>(from), static_cast<std::byte*>(to), bytes);
#else
    return static_cast<void>(from), static_cast<void>(to), static_cast<void>(bytes), false;
#endif
  }
  /// See PagedResource.
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
  /// As the system checks it, but for addresses that are only reserved.
  [[nodiscard]] static bool can_be(std::size_t bytes) noexcept {
    if (bytes < huge) return true;
    const SystemMemory all = system_memory();
    return bytes <= all.physical || bytes - all.physical <= all.swap;
  }
  [[nodiscard]] bool in_huge_pages(std::size_t bytes) const noexcept {
    return m_huge_pages == HugePages::yes && bytes >= huge;
  }
#ifdef MREMAP_DONTUNMAP
  /// The pages of one part become those of another. The system is called directly, as libraries
  /// that hook mremap() have lost its last argument (UCX before 1.14); they learn by madvise(),
  /// which they hook, too, that `from` has other pages.
  [[nodiscard]] static bool move(std::byte* from, std::byte* to, std::size_t bytes) noexcept {
    // First to a place of the system's choice: if that fails, nothing has changed.
    const long aside =
        ::syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
    if (aside == -1) {
      // A part that moved before is a mapping of its own, and a call moves no more than one.
      const std::size_t first = bytes / 2 / page() * page();
      return errno == EFAULT && first > 0 && move(from, to, first) &&
             move(from + first, to + first, bytes - first);
    }
    ::madvise(from, bytes, MADV_DONTNEED);
    if (::syscall(SYS_mremap, aside, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != -1)
      return true;
    ::munmap(reinterpret_cast<void*>(aside), bytes);
    // Before it ran out of memory the system may have unmapped what was there.
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    if (::mmap(to, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED && errno != EEXIST)
      std::abort();
    return false;
  }
#endif
  [[nodiscard]] static bool open(std::byte* begin, std::size_t bytes, bool huge_pages) noexcept {
    if (::mprotect(begin, bytes, PROT_READ | PROT_WRITE) != 0) return false;
    if (huge_pages) ::madvise(begin, bytes, MADV_HUGEPAGE);  // where the system has such
    return true;
  }
  /// Without the words of the C library, whose locks may be held where malloc() is called.
  [[noreturn]] static void refuse(std::size_t bytes, int error) {
    throw out_of_memory(
        {"heddle::memory::Pages", text("the system has no ", bytes, " B"),
         error == ENOMEM ? "its memory or a limit is used up" : text("errno ", error)});
  }

  HugePages m_huge_pages;
  std::size_t m_room;
};

static_assert(ExtendableResource<Pages> && PagedResource<Pages>);

/// They are.
template <>
inline constexpr bool is_ipc_safe<Pages> = true;
/// They are.
template <>
inline constexpr bool is_overcommitted<Pages> = true;

}  // namespace heddle::inline v0::memory
