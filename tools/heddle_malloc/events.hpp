// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Events: the trace that libheddle_malloc.so writes.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <heddle/memory/impl/brief_mutex.hpp>

#include "raw_event.hpp"

namespace heddle_malloc {

/// The calls of a process, in a file that is mapped. Each call is written when it is made. Only
/// growing the file takes a lock.
class Events {
 public:
  /// Makes the file that HEDDLE_MALLOC_TRACE names, if it does. Uses at most so many addresses.
  void open(std::size_t addresses) noexcept {
    const char* const name = std::getenv("HEDDLE_MALLOC_TRACE");
    if (name == nullptr) return;
    // Another program may have had the same process before, which has become this one.
    for (int program = 0; m_file < 0 && program < 100; ++program) {
      char path[4096], number[8] = "";
      if (program > 0) std::snprintf(number, sizeof number, ".%d", program);
      const int length = std::snprintf(path, sizeof path, "%s.%d%s", name, ::getpid(), number);
      if (length < 0 || length >= static_cast<int>(sizeof path)) return;
      m_file = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (m_file < 0 && errno != EEXIST) return;
    }
    if (m_file < 0) return;
    // Out of the way of the program, which may say of itself which one it opens.
    if (const int far = ::fcntl(m_file, F_DUPFD_CLOEXEC, 500); far >= 0) {
      ::close(m_file);
      m_file = far;
    }
    if (::fstat(m_file, &m_identity) != 0) return;
    // Addresses for all that may come; the file follows.
    const std::size_t room = std::min(most, addresses / sizeof(RawEvent));
    void* const mapped = ::mmap(nullptr, room * sizeof(RawEvent), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_NORESERVE, m_file, 0);
    if (mapped == MAP_FAILED) return;
    m_most = room;
    ::clock_gettime(CLOCK_MONOTONIC, &m_begin);
    if (!grow(0)) return;
    std::memcpy(mapped, raw_magic.data(), sizeof(RawEvent));
    m_events = static_cast<RawEvent*>(mapped);
  }
  void taken(const void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (m_events != nullptr) write(block, bytes, alignment);
  }
  void given(const void* block) noexcept {
    if (m_events != nullptr) write(block, 0, 1);
  }
  /// Stops writing, because the file belongs to the parent after a fork.
  void forget() noexcept { m_events = nullptr; }
  /// Shortens the file to the calls that have begun. Other threads may go on.
  void close() noexcept {
    if (m_events == nullptr) return;
    const std::size_t events = m_next.exchange(most);
    const std::scoped_lock lock(m_growing);
    if (events < m_room && resize(events)) m_room = events;
    m_most = 0;
  }

 private:
  static constexpr std::size_t most = std::size_t{1} << 28;

  void write(const void* block, std::size_t bytes, std::size_t alignment) noexcept {
    const std::size_t at = m_next.fetch_add(1, std::memory_order_relaxed);
    if (at >= m_room.load(std::memory_order_acquire) && !grow(at)) return;
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    const auto time =
        (now.tv_sec - m_begin.tv_sec) * 1000000 + (now.tv_nsec - m_begin.tv_nsec) / 1000;
    RawEvent& event = m_events[at];
    event.block = reinterpret_cast<std::uintptr_t>(block);
    event.bytes = bytes;
    event.microseconds = static_cast<std::uint32_t>(time);
    // The program may end anywhere here, by another thread.
    std::atomic_ref(event.alignment)
        .store(static_cast<std::uint32_t>(std::min(alignment, std::size_t{1} << 31)),
               std::memory_order_release);
  }

  /// Makes the file hold event `at`, and as many again. Where it may not the trace ends.
  [[nodiscard]] bool grow(std::size_t at) noexcept {
    if (at >= m_most.load(std::memory_order_relaxed)) return false;
    const std::scoped_lock lock(m_growing);
    if (at < m_room) return true;
    const std::size_t room = std::min<std::size_t>(m_most, std::max(2 * at, std::size_t{1} << 14));
    if (at < room && resize(room)) {
      m_room.store(room, std::memory_order_release);
      return true;
    }
    m_most = 0;
    return false;
  }
  /// The file, unless the program has put another one in its place.
  [[nodiscard]] bool resize(std::size_t events) noexcept {
    struct ::stat now {};
    if (::fstat(m_file, &now) != 0 || now.st_dev != m_identity.st_dev ||
        now.st_ino != m_identity.st_ino)
      return false;
    rlimit limit{};  // beyond which the system ends the program
    const std::size_t bytes = events * sizeof(RawEvent);
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) return false;
    return ::ftruncate(m_file, static_cast<off_t>(bytes)) == 0;
  }

  RawEvent* m_events = nullptr;
  int m_file = -1;
  timespec m_begin{};
  struct ::stat m_identity {};
  std::atomic<std::size_t> m_most{0};  ///< events for which there are addresses
  heddle::memory::impl::BriefMutex m_growing;
  std::atomic<std::size_t> m_room{0};  ///< events for which there is a file
  std::atomic<std::size_t> m_next{1};
};

}  // namespace heddle_malloc
