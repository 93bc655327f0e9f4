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

/// The core that the calling code runs on, null outside a launch: for code that a kernel calls
/// without handing on its Core.
[[nodiscard]] inline Core* current_core() noexcept { return impl::the_current_core; }

/// One of 64 cores, during one launch. Used by the kernel that it runs, and by nobody else.
///
/// Every call throws contract_error, which names kernel and core, where it breaks a rule of the
/// machine. The launch ends with that error; let it pass.
class alignas(64) Core {
 public:
  /// Made by a CoreGroup; `peers` are its cores.
  Core(const impl::Arenas& arenas, const std::deque<Core>& peers, int index)
      : m_memory(arenas, index), m_peers(&peers), m_index(index) {}
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Its number in the group, 8 * row() + column().
  [[nodiscard]] int index() const noexcept { return m_index; }
  /// Its row in the grid, 0 to 7.
  [[nodiscard]] int row() const noexcept { return m_index / CoreGrid::columns; }
  /// Its column in the grid, 0 to 7.
  [[nodiscard]] int column() const noexcept { return m_index % CoreGrid::columns; }

  // --- Local memory: a stack of blocks, empty but for the kernel when the launch begins.

  /// `bytes` of uninitialised local memory. Valid until release() of an earlier mark() or the end
  /// of the kernel.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = 32) {
    return m_memory.allocate(bytes, alignment);
  }
  /// The same for `count` objects, which are not constructed.
  template <class T>
  [[nodiscard]] T* allocate(std::size_t count) {
    return static_cast<T*>(allocate(count * sizeof(T), std::max<std::size_t>(alignof(T), 32)));
  }
  /// Bytes of local memory that are left.
  [[nodiscard]] std::size_t local_free() const noexcept { return m_memory.free(); }
  /// The bytes in use, for release().
  [[nodiscard]] std::size_t mark() const noexcept { return m_memory.used(); }
  /// Gives back what was allocated since `mark` was taken; no transfer may use it any more.
  void release(std::size_t mark) { m_memory.release(mark, m_transfers); }

  /// A counter for transfers, at zero, in local memory.
  [[nodiscard]] Reply& reply() { return *new (allocate(sizeof(Reply), alignof(Reply))) Reply; }

  // --- Transfers between main and local memory. Addresses and sizes are multiples of 4 bytes, a
  // --- transfer is shorter than 256 KB. The data arrive at the wait(), not before; until then the
  // --- bytes at the destination of a get are 0xff.

  /// Begins to copy `bytes` from main memory; `reply` counts one when they are here.
  void get(void* local, const void* memory, std::size_t bytes, Reply& reply) {
    get_strided(local, memory, bytes, bytes, 0, reply);
  }
  /// Begins to copy `bytes` to main memory. Leave them alone until the wait().
  void put(void* memory, const void* local, std::size_t bytes, Reply& reply) {
    put_strided(memory, local, bytes, bytes, 0, reply);
  }
  /// get() of `bytes` that lie in pieces of `piece` bytes in main memory, with `gap` bytes between
  /// one piece and the next. In local memory they are contiguous.
  void get_strided(void* local, const void* memory, std::size_t bytes, std::size_t piece,
                   std::size_t gap, Reply& reply) {
    check_dma("get", local, memory, bytes, piece, gap, reply);
    impl::count_get(*m_counters, {memory, bytes, piece, gap});
    m_latency += CoreGroupPrices::get_nanoseconds;
    begin_poisoned({"get", local, memory, bytes / piece, piece, piece, piece + gap, &reply});
  }
  /// put() of pieces; see get_strided().
  void put_strided(void* memory, const void* local, std::size_t bytes, std::size_t piece,
                   std::size_t gap, Reply& reply) {
    check_dma("put", local, memory, bytes, piece, gap, reply);
    impl::count_put(*m_counters, {memory, bytes, piece, gap});
    m_latency += CoreGroupPrices::put_nanoseconds;
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

  /// Begins to copy `bytes` from here to `core`. `reply` counts one here, and the reply that `core`
  /// has in the place of `remote_reply` counts one there.
  void rma_put(int core, void* remote, const void* local, std::size_t bytes, Reply& reply,
               Reply& remote_reply) {
    const impl::LocalMemory& there =
        check_rma("rma_put", core, remote, local, bytes, reply, remote_reply);
    begin_poisoned({"rma_put", there.same_place(static_cast<std::byte*>(remote), m_memory), local,
                    1, bytes, 0, 0, &reply, there.same_place(&remote_reply, m_memory)});
  }
  /// Begins to copy `bytes` from `core` to here; the replies count as those of rma_put() do.
  void rma_get(void* local, int core, const void* remote, std::size_t bytes, Reply& reply,
               Reply& remote_reply) {
    const impl::LocalMemory& there =
        check_rma("rma_get", core, remote, local, bytes, reply, remote_reply);
    begin_poisoned({"rma_get", local,
                    there.same_place(static_cast<const std::byte*>(remote), m_memory), 1, bytes, 0,
                    0, &reply, there.same_place(&remote_reply, m_memory)});
  }

  /// Copies `bytes` at `from` on core `root` to `to` on all 64 cores; on the others `from` is not
  /// looked at. All cores make the call, with the same bytes and root, and wait for each other.
  void broadcast(void* to, const void* from, std::size_t bytes, int root) {
    check_core("broadcast", root, CoreGrid::cores);
    broadcast("broadcast", impl::Scope::group, to, from, bytes, root);
  }
  /// The same within each row, from its core in column `root`.
  void broadcast_row(void* to, const void* from, std::size_t bytes, int root) {
    check_core("broadcast_row", root, CoreGrid::columns);
    broadcast("broadcast_row", impl::Scope::row, to, from, bytes, CoreGrid::columns * row() + root);
  }
  /// The same within each column, from its core in row `root`.
  void broadcast_column(void* to, const void* from, std::size_t bytes, int root) {
    check_core("broadcast_column", root, CoreGrid::rows);
    broadcast("broadcast_column", impl::Scope::column, to, from, bytes,
              CoreGrid::columns * root + column());
  }

  /// Waits until all 64 cores have come here.
  void synchronise() { meet({"synchronise", impl::Scope::group}); }
  /// Waits for the 8 cores of the row.
  void synchronise_row() { meet({"synchronise_row", impl::Scope::row}); }
  /// Waits for the 8 cores of the column.
  void synchronise_column() { meet({"synchronise_column", impl::Scope::column}); }

  // --- Accesses to main memory without a transfer. The emulation cannot see them: code that makes
  // --- them says so.

  /// `number` loads of main memory.
  void count_direct_loads(std::uint64_t number) noexcept {
    m_counters->direct_loads += number;
    m_latency += number * CoreGroupPrices::get_nanoseconds;
  }
  /// `number` stores to main memory.
  void count_direct_stores(std::uint64_t number) noexcept {
    m_counters->direct_stores += number;
    m_latency += number * CoreGroupPrices::put_nanoseconds;
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

  /// The memory of the other core.
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
      return m_memory.complaint(text(meeting.name, ": not all cores come"), stuck,
                                "let every core of it make the same calls in the same order");
    });
  }

  /// Other cores run while `wait` waits.
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
  std::uint64_t m_latency = 0;  ///< the sum over its requests, in nanoseconds
  int m_index;
};

}  // namespace heddle::inline v0::emulated
