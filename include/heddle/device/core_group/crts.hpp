// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// crts::CoreGroup and crts::Core: the core group on the machine itself, written with the public
/// names of its athread and CRTS headers. **It has never run on the machine.** The tests compile
/// and run it with replacements of those headers that call the emulation. The code is limited to
/// C++17, because no compiler for the cores is known to support more. It expects a compiler that
/// accepts both sides of a program in one source (`-mhybrid-coding`).
///
/// Only the size of the local memory is checked here, so run a kernel in the emulation first.

// Without the machine's headers there is nothing to declare.
#if defined(HEDDLE_CORE_GROUP_CRTS)

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>

extern "C" {
#include <athread.h>
#include <crts.h>
#include <slave.h>
}

#include <heddle/device/core_group/options.hpp>

/// The attribute of functions that run on the cores, for a compiler that compiles both sides.
#if defined(__sw_host__) || defined(__sw_slave__)
#define HEDDLE_CRTS_SLAVE [[gnu::slave]]
#else
#define HEDDLE_CRTS_SLAVE
#endif

namespace heddle {
inline namespace v0 {
namespace crts {

/// Counts completed transfers. It must be in local memory; Core::reply() returns one.
struct Reply {
  volatile athread_rply_t count;
};

/// The core on which a kernel runs. See emulated::Core for the meaning of the calls.
class Core {
 public:
  /// Constructs the core with a `heap` of `bytes` bytes of local memory, of which `used` bytes are
  /// in use.
  Core(void* heap, std::size_t bytes, std::size_t used)
      : m_heap(static_cast<char*>(heap)), m_bytes(bytes), m_used(used) {}
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  [[nodiscard]] int index() const { return _PEN; }
  [[nodiscard]] int row() const { return _ROW; }
  [[nodiscard]] int column() const { return _COL; }

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = 32) {
    const std::uintptr_t heap = reinterpret_cast<std::uintptr_t>(m_heap);
    const std::size_t start = ((heap + m_used + alignment - 1) & ~(alignment - 1)) - heap;
    if (start > m_bytes || bytes > m_bytes - start) __builtin_trap();  // a core has no exceptions
    m_used = start + bytes;
    return m_heap + start;
  }
  template <class T>
  [[nodiscard]] T* allocate(std::size_t count) {
    return static_cast<T*>(allocate(count * sizeof(T), alignof(T) > 32 ? alignof(T) : 32));
  }
  [[nodiscard]] std::size_t local_free() const { return m_bytes - m_used; }
  [[nodiscard]] std::size_t mark() const { return m_used; }
  void release(std::size_t mark) { m_used = mark; }
  [[nodiscard]] Reply& reply() { return *new (allocate(sizeof(Reply), alignof(Reply))) Reply{0}; }

  void get(void* local, const void* memory, std::size_t bytes, Reply& reply) {
    athread_dma_iget(local, unconst(memory), length(bytes), &reply.count);
  }
  void put(void* memory, const void* local, std::size_t bytes, Reply& reply) {
    athread_dma_iput(memory, unconst(local), length(bytes), &reply.count);
  }
  void get_strided(void* local, const void* memory, std::size_t bytes, std::size_t piece,
                   std::size_t gap, Reply& reply) {
    athread_dma_iget_stride(local, unconst(memory), length(bytes), length(piece), length(gap),
                            &reply.count);
  }
  void put_strided(void* memory, const void* local, std::size_t bytes, std::size_t piece,
                   std::size_t gap, Reply& reply) {
    athread_dma_iput_stride(memory, unconst(local), length(bytes), length(piece), length(gap),
                            &reply.count);
  }
  void wait(Reply& reply, std::uint32_t value) {
    athread_dma_wait_value(&reply.count, static_cast<int>(value));
  }

  void rma_put(int core, void* remote, const void* local, std::size_t bytes, Reply& reply,
               Reply& remote_reply) {
    athread_rma_iput(unconst(local), &reply.count, length(bytes), core, remote,
                     &remote_reply.count);
  }
  void rma_get(void* local, int core, const void* remote, std::size_t bytes, Reply& reply,
               Reply& remote_reply) {
    athread_rma_iget(local, &reply.count, length(bytes), core, unconst(remote),
                     &remote_reply.count);
  }
  void broadcast(void* to, const void* from, std::size_t bytes, int root) {
    athread_rma_bcast_coll(to, unconst(from), length(bytes), root);
  }
  void broadcast_row(void* to, const void* from, std::size_t bytes, int root) {
    athread_rma_row_bcast_coll(to, unconst(from), length(bytes), root);
  }
  void broadcast_column(void* to, const void* from, std::size_t bytes, int root) {
    athread_rma_col_bcast_coll(to, unconst(from), length(bytes), root);
  }

  void synchronise() { athread_ssync_array(); }
  void synchronise_row() { athread_ssync_row(); }
  void synchronise_column() { athread_ssync_col(); }

  /// Does nothing, because the machine has no counters.
  void count_direct_loads(std::uint64_t) {}
  void count_direct_stores(std::uint64_t) {}

 private:
  /// Removes const and converts sizes to int, because the machine's headers know neither const nor
  /// larger sizes.
  static void* unconst(const void* data) { return const_cast<void*>(data); }
  static int length(std::size_t bytes) { return static_cast<int>(bytes); }

  char* m_heap;
  std::size_t m_bytes;
  std::size_t m_used;
};

namespace impl {

/// The data that the host passes to the cores. The cores read it once, directly from main memory.
struct Job {
  const void* kernel;
  std::size_t heap;
};

/// The copy of a kernel that the cores read, padded because transfers are multiples of 4 bytes.
template <class Kernel>
struct Image {
  static constexpr std::size_t bytes = (sizeof(Kernel) + 3) / 4 * 4;
  alignas(128) unsigned char data[bytes];
};

template <class Kernel>
HEDDLE_CRTS_SLAVE void entry(void* argument) {
  const Job job = *static_cast<const Job*>(argument);
  void* const heap = ldm_malloc(static_cast<int>(job.heap));
  if (heap == nullptr) __builtin_trap();
  athread_dma_get(heap, const_cast<void*>(job.kernel), static_cast<int>(Image<Kernel>::bytes));
  Core core(heap, job.heap, Image<Kernel>::bytes);
  (*static_cast<const Kernel*>(heap))(core);
  ldm_free(heap, static_cast<int>(job.heap));
}

}  // namespace impl

/// The core group of this process. Only one object may exist at a time.
class CoreGroup {
 public:
  explicit CoreGroup(CoreGroupOptions options = {}) : m_options(options) { athread_init(); }
  CoreGroup(const CoreGroup&) = delete;
  CoreGroup& operator=(const CoreGroup&) = delete;
  ~CoreGroup() { athread_halt(); }

  [[nodiscard]] const CoreGroupOptions& options() const { return m_options; }

  /// Runs `kernel(core)` on all 64 cores and returns when all are done. Each core uses a bitwise
  /// copy in its local memory. Every launch is cooperative.
  template <class Kernel>
  void launch(std::string_view, const Kernel& kernel, Cooperative = Cooperative::no) {
    static_assert(std::is_invocable_v<const Kernel&, Core&>,
                  "a kernel of a core group is called as kernel(Core&), and is const then");
    static_assert(!std::is_polymorphic_v<Kernel>,
                  "a kernel is copied bitwise to other processors, where its virtual functions "
                  "would be missing");
    impl::Image<Kernel> image{};
    std::memcpy(image.data, &kernel, sizeof(Kernel));
    impl::Job job{image.data, m_options.heap()};
    __real_athread_spawn(reinterpret_cast<void*>(&impl::entry<Kernel>), &job, 1);
    athread_join();
  }

 private:
  CoreGroupOptions m_options;
};

}  // namespace crts
}  // namespace v0
}  // namespace heddle

#undef HEDDLE_CRTS_SLAVE

#endif
