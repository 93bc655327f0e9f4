// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// emulated::Core: the interface of a kernel to the core on which it runs. It does what the machine
/// would do. If the machine would corrupt memory, hang or trap, it throws contract_error instead.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <new>
#include <string>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/core_group/counters.hpp>
#include <heddle/device/core_group/impl/arenas.hpp>
#include <heddle/device/core_group/impl/cooperation.hpp>
#include <heddle/device/core_group/impl/local_memory.hpp>
#include <heddle/device/core_group/impl/traffic.hpp>
#include <heddle/device/core_group/impl/transfers.hpp>
#include <heddle/device/core_group/options.hpp>
#include <heddle/device/core_group/price.hpp>
#include <heddle/device/core_group/reply.hpp>

namespace heddle::inline v0::emulated {

class Core;
class CoreGroup;

namespace impl {
inline constinit thread_local Core* the_current_core = nullptr;
}  // namespace impl

/// Returns the core on which the calling code runs, or null outside a launch. It is for code that a
/// kernel calls without passing its Core.
[[nodiscard]] inline Core* current_core() noexcept { return impl::the_current_core; }

/// One of 64 cores during one launch. Only the kernel that runs on it may use it.
///
/// Every call throws contract_error if it breaks a rule of the machine. The error names the kernel
/// and the core, and ends the launch, so a kernel should not catch it.
class alignas(64) Core {
 public:
  /// Constructs the core. Only a CoreGroup does this; `peers` are its cores.
  Core(const impl::Arenas& arenas, const std::deque<Core>& peers, int index)
      : m_memory(arenas, index), m_peers(&peers), m_index(index) {}
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Returns the number of the core in the group, 8 * row() + column().
  [[nodiscard]] int index() const noexcept { return m_index; }
  /// Returns the row of the core in the grid, 0 to 7.
  [[nodiscard]] int row() const noexcept { return m_index / CoreGrid::columns; }
  /// Returns the column of the core in the grid, 0 to 7.
  [[nodiscard]] int column() const noexcept { return m_index % CoreGrid::columns; }

  // --- Local memory: a stack of blocks, empty but for the kernel when the launch begins.

  /// Allocates `bytes` bytes of uninitialised local memory. The memory is valid until the end of
  /// the kernel, or until release() of an earlier mark().
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = 32) {
    return m_memory.allocate(bytes, alignment);
  }
  /// Allocates local memory for `count` objects, which are not constructed.
  template <class T>
  [[nodiscard]] T* allocate(std::size_t count) {
    return static_cast<T*>(allocate(count * sizeof(T), std::max<std::size_t>(alignof(T), 32)));
  }
  /// Returns the bytes of local memory that are free.
  [[nodiscard]] std::size_t local_free() const noexcept { return m_memory.free(); }
  /// Returns the bytes of local memory in use, for a later release().
  [[nodiscard]] std::size_t mark() const noexcept { return m_memory.used(); }
  /// Releases all memory that was allocated since mark() returned `mark`. No transfer may still use
  /// it.
  void release(std::size_t mark) { m_memory.release(mark, m_transfers); }

  /// Returns a counter for transfers in local memory, with the value 0.
  [[nodiscard]] Reply& reply() { return *new (allocate(sizeof(Reply), alignof(Reply))) Reply; }

  // --- Transfers between main and local memory. Addresses and sizes are multiples of 4 bytes, a
  // --- transfer is shorter than 256 KB. The data arrive at the wait(), not before; until then the
  // --- bytes at the destination of a get are 0xff.

  /// Starts a copy of `bytes` bytes from main memory. `reply` is incremented when the copy is
  /// complete.
  void get(void* local, const void* memory, std::size_t bytes, Reply& reply) {
    get_strided(local, memory, bytes, bytes, 0, reply);
  }
  /// Starts a copy of `bytes` bytes to main memory. Neither side may be accessed before wait() has
  /// returned.
  void put(void* memory, const void* local, std::size_t bytes, Reply& reply) {
    put_strided(memory, local, bytes, bytes, 0, reply);
  }
  /// Starts a copy of `bytes` bytes from main memory, where they are in pieces of `piece` bytes
  /// with gaps of `gap` bytes. In local memory they are contiguous.
  void get_strided(void* local, const void* memory, std::size_t bytes, std::size_t piece,
                   std::size_t gap, Reply& reply) {
    check_dma("get", local, memory, bytes, piece, gap, reply);
    impl::count_get(*m_counters, {memory, bytes, piece, gap});
    m_latency += heddle::impl::CoreGroupPrices::get_nanoseconds;
    begin_poisoned({"get", local, memory, bytes / piece, piece, piece, piece + gap, &reply});
  }
  /// Starts a copy of `bytes` bytes to pieces in main memory; see get_strided().
  void put_strided(void* memory, const void* local, std::size_t bytes, std::size_t piece,
                   std::size_t gap, Reply& reply) {
    check_dma("put", local, memory, bytes, piece, gap, reply);
    impl::count_put(*m_counters, {memory, bytes, piece, gap});
    m_latency += heddle::impl::CoreGroupPrices::put_nanoseconds;
    m_transfers.begin({"put", memory, local, bytes / piece, piece, piece + gap, piece, &reply});
  }

  /// Returns when `reply` has counted at least `value` transfers.
  void wait(Reply& reply, std::uint32_t value) {
    m_memory.check_reply("wait", reply);
    m_transfers.complete(reply, value);
    if (reply.count >= value) return;
    const std::string stuck =
        m_cooperation != nullptr
            ? blocked([&] { return m_cooperation->await(m_index, reply, value); })
            : text("for a count of ", value, " where it is ", reply.count,
                   " and no transfer with this reply is left");
    expects(stuck.empty(), [&] {
      return m_memory.complaint("a wait that can never be met", stuck,
                                "begin the transfers first, or wait for fewer");
    });
  }

  // --- Between cores; in cooperative launches only. `remote` is where this core has the same
  // block:
  // --- all cores allocate alike.

  /// Starts a copy of `bytes` bytes from this core to `core`. It increments `reply` on this core,
  /// and on `core` the reply that has the position of `remote_reply`.
  void rma_put(int core, void* remote, const void* local, std::size_t bytes, Reply& reply,
               Reply& remote_reply) {
    const impl::LocalMemory& there =
        check_rma("rma_put", core, remote, local, bytes, reply, remote_reply);
    begin_poisoned({"rma_put", there.same_place(static_cast<std::byte*>(remote), m_memory), local,
                    1, bytes, 0, 0, &reply, there.same_place(&remote_reply, m_memory)});
  }
  /// Starts a copy of `bytes` bytes from `core` to this core. It increments the replies as
  /// rma_put() does.
  void rma_get(void* local, int core, const void* remote, std::size_t bytes, Reply& reply,
               Reply& remote_reply) {
    const impl::LocalMemory& there =
        check_rma("rma_get", core, remote, local, bytes, reply, remote_reply);
    begin_poisoned({"rma_get", local,
                    there.same_place(static_cast<const std::byte*>(remote), m_memory), 1, bytes, 0,
                    0, &reply, there.same_place(&remote_reply, m_memory)});
  }

  /// Copies `bytes` bytes from `from` on core `root` to `to` on all 64 cores. Other cores ignore
  /// `from`. All cores must make the call with the same `bytes` and `root`, and wait for each
  /// other.
  void broadcast(void* to, const void* from, std::size_t bytes, int root) {
    check_core("broadcast", root, CoreGrid::cores);
    broadcast("broadcast", impl::Scope::group, to, from, bytes, root);
  }
  /// Copies like broadcast() within each row, from its core in column `root`.
  void broadcast_row(void* to, const void* from, std::size_t bytes, int root) {
    check_core("broadcast_row", root, CoreGrid::columns);
    broadcast("broadcast_row", impl::Scope::row, to, from, bytes, CoreGrid::columns * row() + root);
  }
  /// Copies like broadcast() within each column, from its core in row `root`.
  void broadcast_column(void* to, const void* from, std::size_t bytes, int root) {
    check_core("broadcast_column", root, CoreGrid::rows);
    broadcast("broadcast_column", impl::Scope::column, to, from, bytes,
              CoreGrid::columns * root + column());
  }

  /// Waits until all 64 cores have called it.
  void synchronise() { meet({"synchronise", impl::Scope::group}); }
  /// Waits until the 8 cores of the row have called it.
  void synchronise_row() { meet({"synchronise_row", impl::Scope::row}); }
  /// Waits until the 8 cores of the column have called it.
  void synchronise_column() { meet({"synchronise_column", impl::Scope::column}); }

  // --- Accesses to main memory without a transfer. The emulation cannot see them: code that makes
  // --- them says so.

  /// Reports `number` direct loads of main memory.
  void count_direct_loads(std::uint64_t number) noexcept {
    m_counters->direct_loads += number;
    m_latency += number * heddle::impl::CoreGroupPrices::get_nanoseconds;
  }
  /// Reports `number` direct stores to main memory.
  void count_direct_stores(std::uint64_t number) noexcept {
    m_counters->direct_stores += number;
    m_latency += number * heddle::impl::CoreGroupPrices::put_nanoseconds;
  }

 private:
  friend class CoreGroup;

  void check_dma(const char* call, const void* local, const void* memory, std::size_t bytes,
                 std::size_t piece, std::size_t gap, const Reply& reply) const {
    m_memory.check_size(call, bytes, piece, gap);
    m_memory.check_local(call, local, bytes);
    m_memory.check_main(call, memory, bytes + (bytes / piece - 1) * gap);
    m_memory.check_reply(call, reply);
  }

  /// Returns the memory of another core.
  const impl::LocalMemory& check_rma(const char* call, int core, const void* remote,
                                     const void* local, std::size_t bytes, const Reply& reply,
                                     const Reply& remote_reply) {
    check_cooperative(call);
    check_core(call, core, CoreGrid::cores);
    m_memory.check_size(call, bytes, bytes, 0);
    m_memory.check_local(call, local, bytes);
    m_memory.check_local(call, remote, bytes);
    m_memory.check_reply(call, reply);
    m_memory.check_reply(call, remote_reply);
    const impl::LocalMemory& there = (*m_peers)[static_cast<std::size_t>(core)].m_memory;
    expects(there.owns(there.same_place(remote, m_memory), bytes) &&
                there.owns(there.same_place(&remote_reply, m_memory), sizeof(Reply)),
            [&] {
              return m_memory.complaint(
                  text(call, ": ", impl::core_text(core), " has not allocated the remote side"), {},
                  "let all cores allocate the same blocks in the same order, then synchronise()");
            });
    m_counters->rma_bytes += bytes;
    return there;
  }

  void check_cooperative(const char* call) const {
    expects(m_cooperation != nullptr, [&] {
      return m_memory.complaint(text(call, " outside a cooperative launch"), {},
                                "launch the kernel with Cooperative::yes");
    });
  }
  void check_core(const char* call, int number, int count) const {
    expects(number >= 0 && number < count, [&] {
      return m_memory.complaint(text(call, ": no such core"), text(number, " of ", count));
    });
  }

  void begin_poisoned(const impl::Transfer& transfer) {
    transfer.poison();
    m_transfers.begin(transfer);
  }

  void broadcast(const char* call, impl::Scope scope, void* to, const void* from, std::size_t bytes,
                 int root) {
    check_cooperative(call);
    m_memory.check_size(call, bytes, bytes, 0);
    m_memory.check_local(call, to, bytes);
    if (root == m_index)
      m_memory.check_local(call, from, bytes);
    else
      m_counters->rma_bytes += bytes;
    meet({call, scope, bytes, root, static_cast<std::byte*>(to),
          static_cast<const std::byte*>(from)});
  }

  void meet(const impl::Meeting& meeting) {
    check_cooperative(meeting.name);
    const std::string stuck = blocked([&] { return m_cooperation->meet(m_index, meeting); });
    expects(stuck.empty(), [&] {
      return m_memory.complaint(text(meeting.name, ": not all cores take part"), stuck,
                                "let every core of it make the same calls in the same order");
    });
  }

  /// Runs other cores while wait() waits.
  template <class Wait>
  [[nodiscard]] std::string blocked(const Wait& wait) {
    std::string stuck = wait();
    impl::the_current_core = this;
    return stuck;
  }

  impl::LocalMemory m_memory;
  impl::Transfers m_transfers;
  const std::deque<Core>* m_peers;
  impl::Cooperation* m_cooperation = nullptr;
  CoreGroupCounters* m_counters = nullptr;
  std::uint64_t m_latency = 0;  ///< the sum over the requests of this core, in nanoseconds
  int m_index;
};

}  // namespace heddle::inline v0::emulated
