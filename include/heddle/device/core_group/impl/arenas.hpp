// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The local memories of an emulated core group: one heap per core, each ending at a page that
/// nobody may touch, so that an overrun stops the program where it happens.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/core_group/options.hpp>

namespace heddle::inline v0::emulated::impl {

/// Checks the division of the local memory.
inline void check(const CoreGroupOptions& options) {
  const auto complain = [&](const char* what, const char* fix) {
    return ErrorInfo{"heddle::CoreGroup", what,
                     text("local memory ", options.local_memory, ", cache ", options.cache,
                          ", stack ", options.stack),
                     fix};
  };
  expects(options.local_memory <= 256 * 1024, [&] {
    return complain("more local memory than any core has", "give at most 262144 bytes");
  });
  expects((options.local_memory | options.cache | options.stack) % 128 == 0, [&] {
    return complain("all parts of the local memory must be multiples of 128 bytes",
                    "round the sizes");
  });
  expects(options.cache <= options.local_memory / 2, [&] {
    return complain("at most half of the local memory can be cache", "give it less");
  });
  expects(options.stack < options.local_memory - options.cache,
          [&] { return complain("cache and stack leave no heap", "make them smaller"); });
}

/// Address space for all cores in one mapping. A page costs memory from its first use on.
class Arenas {
 public:
  explicit Arenas(const CoreGroupOptions& options) : m_heap((check(options), options.heap())) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t pages = (m_heap + page - 1) / page * page;
    m_stride = pages + page;
    m_bytes = page + CoreGrid::cores * m_stride;
    void* const mapping =
        mmap(nullptr, m_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) throw no_memory();
    m_begin = static_cast<std::byte*>(mapping);
    m_first = m_begin + page + (pages - m_heap);
    for (int core = 0; core < CoreGrid::cores; ++core) {
      std::byte* const start = m_begin + page + static_cast<std::size_t>(core) * m_stride;
      if (mprotect(start, pages, PROT_READ | PROT_WRITE) == 0) continue;
      munmap(mapping, m_bytes);
      throw no_memory();
    }
  }
  Arenas(const Arenas&) = delete;
  Arenas& operator=(const Arenas&) = delete;
  ~Arenas() { munmap(m_begin, m_bytes); }

  /// The heap of a core; it ends at a guard page.
  [[nodiscard]] std::byte* heap(int core) const noexcept {
    return m_first + static_cast<std::size_t>(core) * m_stride;
  }
  [[nodiscard]] std::size_t heap_bytes() const noexcept { return m_heap; }

  /// Returns true if a byte of [data, data + bytes) is local memory, of whichever core.
  [[nodiscard]] bool touch(const void* data, std::size_t bytes) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const auto begin = reinterpret_cast<std::uintptr_t>(m_begin);
    return address < begin + m_bytes && address + bytes > begin;
  }

 private:
  [[nodiscard]] out_of_memory no_memory() const {
    return out_of_memory({"heddle::CoreGroup",
                          "the host cannot allocate the local memories of the cores",
                          text(m_bytes, " bytes of address space: ", std::strerror(errno))});
  }

  std::size_t m_heap;
  std::size_t m_stride = 0;
  std::size_t m_bytes = 0;
  std::byte* m_begin = nullptr;
  std::byte* m_first = nullptr;
};

}  // namespace heddle::inline v0::emulated::impl
