// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The local memory of one emulated core: its heap, and the rules about what may lie where.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/core_group/impl/arenas.hpp>
#include <heddle/device/core_group/impl/transfers.hpp>
#include <heddle/device/core_group/options.hpp>
#include <heddle/device/core_group/reply.hpp>

namespace heddle::inline v0::emulated::impl {

/// "core 9 (row 1, column 1)".
[[nodiscard]] inline std::string core_text(int core) {
  return text("core ", core, " (row ", core / CoreGrid::columns, ", column ",
              core % CoreGrid::columns, ")");
}

/// A stack of blocks. All checks throw contract_error, which names kernel and core.
class LocalMemory {
 public:
  LocalMemory(const Arenas& arenas, int core)
      : m_arenas(&arenas), m_heap(arenas.heap(core)), m_core(core) {}

  /// Empties it for the next kernel.
  void begin(std::string_view kernel) noexcept {
    m_kernel = kernel;
    m_used = m_peak = 0;
  }

  /// `alignment`: a power of two.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    const auto heap = reinterpret_cast<std::uintptr_t>(m_heap);
    const std::size_t start = ((heap + m_used + alignment - 1) & ~(alignment - 1)) - heap;
    const std::size_t size = m_arenas->heap_bytes();
    expects(start <= size && bytes <= size - start, [&] {
      return complaint("local memory is exhausted",
                       text(bytes, " bytes asked for, ", free(), " of ", size, " free"),
                       "use smaller tiles, or release() what is no longer needed");
    });
    m_used = start + bytes;
    m_peak = std::max(m_peak, m_used);
    return m_heap + start;
  }

  /// Gives back all beyond `mark`, where `transfers` do not use it.
  void release(std::size_t mark, const Transfers& transfers) {
    expects(mark <= m_used, [&] {
      return complaint("release() of a mark that was released before",
                       text("mark ", mark, ", ", m_used, " bytes in use"));
    });
    const Transfer* const user = transfers.first_from(m_heap + mark, m_used - mark);
    expects(user == nullptr, [&] {
      return complaint("release() of memory that a transfer uses",
                       text("a ", user->name, " of ", user->bytes(), " bytes"),
                       "wait() for it first");
    });
    m_used = mark;
  }

  [[nodiscard]] std::size_t used() const noexcept { return m_used; }
  [[nodiscard]] std::size_t peak() const noexcept { return m_peak; }
  [[nodiscard]] std::size_t free() const noexcept { return m_arenas->heap_bytes() - m_used; }

  /// Returns true if [data, data + bytes) is allocated.
  [[nodiscard]] bool owns(const void* data, std::size_t bytes) const noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(m_heap);
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    return address >= begin && address - begin <= m_used && bytes <= m_used - (address - begin);
  }

  /// The place in this memory that `data` is in `other`.
  template <class T>
  [[nodiscard]] T* same_place(T* data, const LocalMemory& other) const noexcept {
    const auto offset = reinterpret_cast<const std::byte*>(data) - other.m_heap;
    return reinterpret_cast<T*>(m_heap + offset);
  }

  // --- The rules of a transfer.

  void check_size(const char* call, std::size_t bytes, std::size_t piece, std::size_t gap) const {
    // A field of a DMA descriptor has 18 bits.
    expects(bytes > 0 && bytes < std::size_t{1} << 18, [&] {
      return complaint(text(call, ": a transfer must have at least 4 bytes and less than 256 KB"),
                       text(bytes, " bytes"), "split it, or leave it out");
    });
    expects(piece > 0 && bytes % piece == 0, [&] {
      return complaint(text(call, ": the pieces of a strided transfer must be equally long"),
                       text(bytes, " bytes in pieces of ", piece));
    });
    expects((bytes | piece | gap) % 4 == 0, [&] {
      return complaint(text(call, ": sizes must be multiples of 4 bytes"),
                       text(bytes, " bytes in pieces of ", piece, " with gaps of ", gap),
                       "move the rest by direct loads or stores");
    });
  }

  void check_local(const char* call, const void* data, std::size_t bytes) const {
    check_aligned(call, data);
    expects(owns(data, bytes), [&] {
      return complaint(text(call, ": the local side is not in the core's allocated local memory"),
                       text(bytes, " bytes at ", data), "take the buffer from Core::allocate()");
    });
  }

  void check_main(const char* call, const void* data, std::size_t bytes) const {
    check_aligned(call, data);
    expects(data != nullptr && !m_arenas->touch(data, bytes), [&] {
      return complaint(text(call, ": the memory side is not in main memory"),
                       text(bytes, " bytes at ", data), "between cores use rma_put or rma_get");
    });
  }

  void check_reply(const char* call, const Reply& reply) const {
    expects(owns(&reply, sizeof(Reply)), [&] {
      return complaint(text(call, ": the reply is not in the core's local memory"), {},
                       "take it from Core::reply()");
    });
  }

  [[nodiscard, gnu::noinline, gnu::cold]] ErrorInfo complaint(std::string what,
                                                              std::string why = {},
                                                              std::string fix = {}) const {
    return {where(), std::move(what), std::move(why), std::move(fix)};
  }
  /// Returns the place that its errors name.
  [[nodiscard]] std::string where() const {
    return text("kernel \"", m_kernel, "\" on ", core_text(m_core));
  }

 private:
  void check_aligned(const char* call, const void* data) const {
    expects(reinterpret_cast<std::uintptr_t>(data) % 4 == 0, [&] {
      return complaint(text(call, ": addresses must be multiples of 4 bytes"),
                       text("address ", data), "move the rest by direct loads or stores");
    });
  }

  const Arenas* m_arenas;
  std::byte* m_heap;
  std::string_view m_kernel;
  std::size_t m_used = 0;
  std::size_t m_peak = 0;
  int m_core;
};

}  // namespace heddle::inline v0::emulated::impl
