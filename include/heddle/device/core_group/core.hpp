// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// emulated::Core: what a kernel sees of the core that it runs on. It does what the machine would
/// do and throws contract_error where the machine would corrupt memory, hang or trap.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/core_group/counters.hpp>
#include <heddle/device/core_group/impl/arenas.hpp>
#include <heddle/device/core_group/impl/transfers.hpp>
#include <heddle/device/core_group/options.hpp>
#include <heddle/device/core_group/price.hpp>
#include <heddle/device/core_group/reply.hpp>

namespace heddle::inline v0::emulated {

class CoreGroup;

/// One of 64 cores, during one launch. Used by the kernel that it runs, and by nobody else.
///
/// Every call throws contract_error, which names kernel and core, where it breaks a rule of the
/// machine. The launch ends with that error; let it pass.
class alignas(64) Core {
 public:
  Core(const impl::Arenas& arenas, int index)
      : m_arenas(&arenas), m_heap(arenas.heap(index)), m_index(index) {}
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Its number in the group, 8 * row() + column().
  [[nodiscard]] int index() const noexcept { return m_index; }
  [[nodiscard]] int row() const noexcept { return m_index / CoreGrid::columns; }
  [[nodiscard]] int column() const noexcept { return m_index % CoreGrid::columns; }

  // --- Local memory: a stack of blocks, empty but for the kernel when the launch begins.

  /// `bytes` of uninitialised local memory. Valid until release() of an earlier mark() or the end
  /// of the kernel.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = 32) {
    const auto heap = reinterpret_cast<std::uintptr_t>(m_heap);
    const std::size_t start = (heap + m_used + alignment - 1) / alignment * alignment - heap;
    const std::size_t size = m_arenas->heap_bytes();
    expects(start <= size && bytes <= size - start, [&] {
      return complaint(
          "local memory is exhausted",
          text(bytes, " bytes are asked for, ", local_free(), " of ", size, " are free"),
          "use smaller tiles, or release() what is no longer needed");
    });
    m_used = start + bytes;
    m_peak = std::max(m_peak, m_used);
    return m_heap + start;
  }

  /// The same for `count` objects, which are not constructed.
  template <class T>
  [[nodiscard]] T* allocate(std::size_t count) {
    return static_cast<T*>(allocate(count * sizeof(T), std::max<std::size_t>(alignof(T), 32)));
  }

  /// Bytes of local memory that are left.
  [[nodiscard]] std::size_t local_free() const noexcept { return m_arenas->heap_bytes() - m_used; }

  /// What is allocated after mark() goes with release(mark).
  [[nodiscard]] std::size_t mark() const noexcept { return m_used; }
  void release(std::size_t mark) {
    expects(mark <= m_used, [&] {
      return complaint("release() of a mark that has been released already",
                       text("mark ", mark, ", in use ", m_used, " bytes"));
    });
    m_used = mark;
  }

  /// A counter for transfers, at zero, in local memory.
  [[nodiscard]] Reply& reply() { return *new (allocate(sizeof(Reply), alignof(Reply))) Reply; }

  // --- Transfers between main and local memory. Addresses and sizes are multiples of 4 bytes, a
  // --- transfer is shorter than 256 KB. The data arrive at the wait(), not before; until then
  // --- the bytes at a get's destination are 0xff.

  /// Begins to copy `bytes` from main memory; `reply` counts one when they are here.
  void get(void* local, const void* memory, std::size_t bytes, Reply& reply) {
    get_strided(local, memory, bytes, bytes, 0, reply);
  }
  /// Begins to copy `bytes` to main memory. Leave them alone until the wait().
  void put(void* memory, const void* local, std::size_t bytes, Reply& reply) {
    put_strided(memory, local, bytes, bytes, 0, reply);
  }
  /// The same for `bytes` that lie in pieces of `piece` bytes in main memory, with `gap` bytes
  /// between one piece and the next. In local memory they are contiguous.
  void get_strided(void* local, const void* memory, std::size_t bytes, std::size_t piece,
                   std::size_t gap, Reply& reply) {
    const auto from = static_cast<const std::byte*>(memory);
    const auto to = static_cast<std::byte*>(local);
    check_transfer("get", local, memory, bytes, piece, gap, reply);
    count(m_counters->get_bytes, m_counters->get_requests, from, bytes, piece, gap, true);
    m_latency += CoreGroupPrices::get_nanoseconds;
    std::memset(local, 0xff, bytes);
    m_transfers.begin({"get", to, from, bytes / piece, piece, piece, piece + gap, &reply});
  }
  void put_strided(void* memory, const void* local, std::size_t bytes, std::size_t piece,
                   std::size_t gap, Reply& reply) {
    const auto to = static_cast<std::byte*>(memory);
    const auto from = static_cast<const std::byte*>(local);
    check_transfer("put", local, memory, bytes, piece, gap, reply);
    count(m_counters->put_bytes, m_counters->put_requests, to, bytes, piece, gap, false);
    m_latency += CoreGroupPrices::put_nanoseconds;
    m_transfers.begin({"put", to, from, bytes / piece, piece, piece + gap, piece, &reply});
  }

  /// Returns when `reply` has counted at least `value` transfers.
  void wait(Reply& reply, std::uint32_t value) {
    check_reply("wait", reply);
    m_transfers.complete(reply, value);
    expects(reply.count >= value, [&] {
      return complaint("a wait that can never be met",
                       text("for a count of ", value, " where it is ", reply.count,
                            " and no transfer with this reply is left"),
                       "begin the transfers first, or wait for fewer");
    });
  }

  // --- Accesses to main memory without a transfer. The emulation cannot see them: code that makes
  // --- them says so.

  void count_direct_loads(std::uint64_t number) noexcept {
    m_counters->direct_loads += number;
    m_latency += number * CoreGroupPrices::get_nanoseconds;
  }
  void count_direct_stores(std::uint64_t number) noexcept {
    m_counters->direct_stores += number;
    m_latency += number * CoreGroupPrices::put_nanoseconds;
  }

 private:
  friend class CoreGroup;

  [[nodiscard, gnu::noinline, gnu::cold]] Complaint complaint(std::string what,
                                                              std::string why = {},
                                                              std::string fix = {}) const {
    return {text("kernel \"", m_label, "\" on core ", m_index, " (row ", row(), ", column ",
                 column(), ")"),
            std::move(what), std::move(why), std::move(fix)};
  }

  /// Whether [data, data + bytes) is allocated local memory of this core.
  [[nodiscard]] bool owns(const void* data, std::size_t bytes) const noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(m_heap);
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    return address >= begin && address - begin <= m_used && bytes <= m_used - (address - begin);
  }

  void check_reply(const char* call, const Reply& reply) const {
    expects(owns(&reply, sizeof(Reply)), [&] {
      return complaint(text(call, ": the reply is not in the core's local memory"), {},
                       "take it from Core::reply()");
    });
  }

  void check_transfer(const char* call, const void* local, const void* memory, std::size_t bytes,
                      std::size_t piece, std::size_t gap, const Reply& reply) const {
    const auto address = [](const void* data) { return reinterpret_cast<std::uintptr_t>(data); };
    expects(bytes > 0 && bytes < max_transfer, [&] {
      return complaint(text(call, ": a transfer has at least 4 bytes and less than 256 KB"),
                       text(bytes, " bytes"), "split it, or leave it out");
    });
    expects(piece > 0 && bytes % piece == 0, [&] {
      return complaint(text(call, ": the pieces of a strided transfer are equally long"),
                       text(bytes, " bytes in pieces of ", piece));
    });
    expects((address(local) | address(memory) | bytes | piece | gap) % 4 == 0, [&] {
      return complaint(text(call, ": addresses and sizes are multiples of 4 bytes"),
                       text("local ", local, ", memory ", memory, ", ", bytes,
                            " bytes in pieces of ", piece, " with gaps of ", gap),
                       "move the rest by direct loads or stores");
    });
    expects(owns(local, bytes), [&] {
      return complaint(text(call, ": the local side is not in the core's allocated local memory"),
                       text(bytes, " bytes at ", local), "take the buffer from Core::allocate()");
    });
    const std::size_t span = bytes + (bytes / piece - 1) * gap;
    expects(memory != nullptr && !m_arenas->touch(memory, span), [&] {
      return complaint(text(call, ": the memory side is not in main memory"),
                       text(span, " bytes at ", memory));
    });
    check_reply(call, reply);
  }

  void count(std::uint64_t& bytes_of, std::uint64_t& requests_of, const std::byte* memory,
             std::size_t bytes, std::size_t piece, std::size_t gap, bool get) noexcept {
    constexpr std::size_t segment = 128;
    bytes_of += bytes;
    ++requests_of;
    if (piece < 256)
      ++m_counters->short_requests;
    else
      m_counters->long_bytes += bytes;
    std::size_t off = 0;  // pieces that start off a segment
    for (std::size_t done = 0; done < bytes; done += piece, memory += piece + gap) {
      const std::size_t start = reinterpret_cast<std::uintptr_t>(memory) % segment;
      if (start == 0) continue;
      ++off;
      const bool tail = start + piece > segment && (start + piece) % segment != 0;
      if (!get) m_counters->misaligned_put_segments += tail ? 2 : 1;
    }
    if (off > 0) ++m_counters->misaligned_requests;
    if (get) m_counters->misaligned_get_bytes += off * piece;
  }

  /// A field of a DMA descriptor has 18 bits.
  static constexpr std::size_t max_transfer = std::size_t{1} << 18;

  const impl::Arenas* m_arenas;
  std::byte* m_heap;
  CoreGroupCounters* m_counters = nullptr;
  std::string_view m_label;
  std::size_t m_used = 0;
  std::size_t m_peak = 0;
  std::uint64_t m_latency = 0;
  impl::Transfers m_transfers;
  int m_index;
};

namespace impl {
inline constinit thread_local Core* the_current_core = nullptr;
}  // namespace impl

/// The core that the calling code runs on, null outside a launch: for code that a kernel calls
/// without handing on its Core.
[[nodiscard]] inline Core* current_core() noexcept { return impl::the_current_core; }

}  // namespace heddle::inline v0::emulated
