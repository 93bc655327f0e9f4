// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// libheddle_malloc.so: malloc() and its kin from a pool, for programs that are not compiled anew:
///     LD_PRELOAD=libheddle_malloc.so program
/// All blocks together have no more than the memory of the machine; programs ask for more than they
/// write, so that limits of control groups do not count.
/// Under a limit of addresses (RLIMIT_AS), free memory goes back to the system when it is more than
/// half of the limit. When a process has an eighth of it, blocks of 0.5 to 32 KiB come from finer
/// classes, and larger ones up to 256 KiB are whole KiB, because sizes of classes have up to an
/// eighth more.
/// HEDDLE_MALLOC_REPORT=1 prints at the end what the pool has taken from the system, and which
/// process says so.
/// HEDDLE_MALLOC_TRACE=FILE writes the calls of each program that is started, at most 2^28, to
/// FILE.<process>, of which `memory import` makes a trace; of one that a process becomes to
/// FILE.<process>.1 and so on, as where such a file is left of another run. A child of fork()
/// writes none before it becomes another program.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <heddle/memory/impl/block_pool.hpp>
#include <heddle/memory/pool_options.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/source/system_memory.hpp>

#include "../process_name.hpp"
#include "events.hpp"

namespace {

namespace memory = heddle::memory;
using Blocks = memory::impl::BlockPool<memory::Pages>;

constexpr std::size_t usual_alignment = alignof(std::max_align_t);

/// Returns RLIMIT_AS.
std::size_t address_limit() noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_AS, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

/// What is asked for while the pool is at work, as by an error that it makes, does not come from
/// it: blocks one behind the other, which do not come back. When they are used up, such an error is
/// a std::bad_alloc of the language, which needs none.
class Aside {
 public:
  void* allocate(std::size_t bytes) noexcept {
    const std::size_t whole = (bytes / usual_alignment + 1) * usual_alignment;
    if (whole > sizeof m_bytes) return nullptr;
    const std::size_t begin = m_used.fetch_add(whole, std::memory_order_relaxed);
    return begin <= sizeof m_bytes - whole ? m_bytes + begin : nullptr;
  }
  /// How many bytes there are from a block on; 0 of others.
  [[nodiscard]] std::size_t rest(const void* block) const noexcept {
    const auto past =
        reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(m_bytes);
    return past < sizeof m_bytes ? sizeof m_bytes - past : 0;
  }

 private:
  alignas(usual_alignment) std::byte m_bytes[64 << 10] = {};
  std::atomic<std::size_t> m_used{0};
};

constinit Aside aside;

constinit heddle_malloc::Events events;

/// The pool is made by the first call, which comes before constructors run, and never destroyed.
alignas(Blocks) constinit std::byte storage[sizeof(Blocks)] = {};
enum class State : int { none, making, made };
constinit std::atomic<State> state{State::none};
constinit pthread_key_t key{};
/// The bytes from which on addresses are scarce.
constinit std::size_t scarce = 0;

/// What a thread knows.
struct Thread {
  memory::impl::Cache* cache;
  bool busy;   ///< in the pool
  bool known;  ///< it has a cache, had one, or is not to have one
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Thread self{};

Blocks& made() noexcept { return *std::launder(reinterpret_cast<Blocks*>(storage)); }

void retire(void* cache) noexcept {
  self.cache = nullptr;
  self.busy = true;
  made().retire(static_cast<memory::impl::Cache*>(cache));
  self.busy = false;
}

/// The pool; a null pointer where this thread is in it already, or where there is no memory for it.
Blocks* pool() noexcept {
  if (self.busy) return nullptr;
  if (state.load(std::memory_order_acquire) == State::made) [[likely]]
    return &made();
  State expected = State::none;
  if (state.compare_exchange_strong(expected, State::making)) {
    self.busy = true;
    const memory::PoolOptions options;
    const std::size_t limit = address_limit();
    scarce = limit / 8;
    try {
      // Stacks of threads and other mappings have the rest of a limit.
      new (storage) Blocks(memory::Pages(memory::HugePages::yes, std::size_t{64} << 30),
                           {options.min_chunk, options.max_chunk_growth,
                            memory::system_memory().physical, limit / 2},
                           options.cached);
    } catch (const std::bad_alloc&) {
      self.busy = false;
      state.store(State::none, std::memory_order_release);
      return nullptr;
    }
    pthread_key_create(&key, retire);
    pthread_atfork([] { static_cast<void>(made().lock_by(memory::impl::Deadline::max())); },
                   [] { made().unlock(); },
                   [] {
                     made().unlock();
                     events.forget();
                   });
    events.open(limit / 8);
    self.busy = false;
    state.store(State::made, std::memory_order_release);
  } else {
    while (state.load(std::memory_order_acquire) == State::making) {
    }
    return pool();
  }
  return &made();
}

/// This thread's, which is in the pool meanwhile.
memory::impl::Cache* cache_of(Blocks& blocks) noexcept {
  if (!self.known) [[unlikely]] {
    self.known = true;
    try {
      self.cache = blocks.new_cache();
      pthread_setspecific(key, self.cache);
    } catch (const std::bad_alloc&) {
      self.cache = nullptr;
    }
  }
  return self.cache;
}

void* take(std::size_t bytes, std::size_t alignment) noexcept {
  Blocks* const blocks = pool();
  void* block = nullptr;
  if (blocks == nullptr) {
    if (alignment <= usual_alignment) block = aside.allocate(bytes);
    if (block == nullptr) errno = ENOMEM;
    return block;
  }
  self.busy = true;
  try {
    const bool exactly =
        bytes > memory::impl::SlabClasses::below_fine && scarce < RLIM_INFINITY / 8 &&
        blocks->reserved() > scarce &&
        (bytes > memory::impl::SizeClasses::largest_small || alignment <= usual_alignment);
    block = exactly
                ? blocks->allocate_exactly(cache_of(*blocks), bytes, alignment)
                : blocks->allocate(cache_of(*blocks), std::max<std::size_t>(bytes, 1), alignment);
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
  }
  self.busy = false;
  if (block != nullptr) events.taken(block, std::max<std::size_t>(bytes, 1), alignment);
  return block;
}

void give(void* block) noexcept {
  if (block == nullptr) return;
  if (aside.rest(block) > 0) return;
  Blocks* const blocks = pool();
  if (blocks == nullptr) return;  // what the pool itself has: it asks for nothing that it frees
  events.given(block);
  self.busy = true;
  blocks->deallocate(cache_of(*blocks), block);  // not ours: from before this library was loaded
  self.busy = false;
}

/// How many bytes a block of the pool has; 0 of others.
std::size_t size_of(const void* block) noexcept {
  return state.load(std::memory_order_acquire) == State::made ? made().size_of(block) : 0;
}

bool report_wanted() noexcept {
  const char* const wanted = std::getenv("HEDDLE_MALLOC_REPORT");
  return wanted != nullptr && std::strcmp(wanted, "1") == 0;
}

/// Where the report goes: a copy of standard error, because many programs close theirs before this
/// library's end. It has a high number, for programs that count on the next free one.
int report_file = -1;

[[gnu::constructor]] void begin() {
  if (report_wanted()) report_file = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 200);
}

[[gnu::destructor]] void end() {
  events.close();
  if (!report_wanted() || state != State::made) return;
  const heddle_tools::ProcessName process;
  char line[1024];
  const int length = std::snprintf(
      line, sizeof line, "heddle_malloc: %zu B reserved, %zu B idle, %.*s\n", made().reserved(),
      made().idle(), static_cast<int>(process.text().size()), process.text().data());
  const int file = report_file < 0 ? STDERR_FILENO : report_file;
  if (::write(file, line, static_cast<std::size_t>(length)) < 0) return;
}

}  // namespace

#define HEDDLE_EXPORT extern "C" [[gnu::visibility("default")]]

HEDDLE_EXPORT void* malloc(std::size_t bytes) { return take(bytes, usual_alignment); }

HEDDLE_EXPORT void free(void* block) {
  const int kept = errno;
  give(block);
  errno = kept;
}

HEDDLE_EXPORT void* calloc(std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const block = take(all, usual_alignment);
  if (block != nullptr) std::memset(block, 0, all);
  return block;
}

HEDDLE_EXPORT std::size_t malloc_usable_size(void* block) {
  return block == nullptr ? 0 : size_of(block);
}

/// Gives what is free back to the system, as long as the process has `keep` bytes, used ones
/// included; not what other threads have at hand. 1 if there was any.
HEDDLE_EXPORT int malloc_trim(std::size_t keep) {
  Blocks* const blocks = pool();
  if (blocks == nullptr) return 0;
  const std::size_t had = blocks->reserved();
  self.busy = true;
  blocks->trim(cache_of(*blocks), keep);
  self.busy = false;
  return blocks->reserved() < had ? 1 : 0;
}

HEDDLE_EXPORT void* realloc(void* block, std::size_t bytes) {
  if (block == nullptr) return take(bytes, usual_alignment);
  if (bytes == 0) {
    free(block);
    return nullptr;
  }
  const std::size_t beside = aside.rest(block), had = beside > 0 ? beside : size_of(block);
  if (had == 0) {  // from before this library was loaded: nobody knows how much is to be kept
    errno = ENOMEM;
    return nullptr;
  }
  if (beside == 0 && bytes <= had && bytes >= had / 2) return block;
  void* const other = take(bytes, usual_alignment);
  if (other == nullptr) return nullptr;
  std::memcpy(other, block, std::min(bytes, had));
  free(block);
  return other;
}

HEDDLE_EXPORT void* reallocarray(void* block, std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) {
    errno = ENOMEM;
    return nullptr;
  }
  return realloc(block, all);
}

HEDDLE_EXPORT int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int kept = errno;
  void* const taken = take(bytes, alignment);
  if (taken == nullptr) return ENOMEM;
  errno = kept;
  *block = taken;
  return 0;
}

/// As in the C library, the alignment is rounded up to a power of two.
HEDDLE_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
  if (alignment > SIZE_MAX / 2 + 1) {
    errno = EINVAL;
    return nullptr;
  }
  return take(bytes, std::bit_ceil(std::max(alignment, usual_alignment)));
}

HEDDLE_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return memalign(alignment, bytes);
}

HEDDLE_EXPORT void* valloc(std::size_t bytes) { return memalign(memory::Pages::page(), bytes); }

HEDDLE_EXPORT void* pvalloc(std::size_t bytes) {
  const std::size_t page = memory::Pages::page();
  if (bytes > SIZE_MAX - page) {
    errno = ENOMEM;
    return nullptr;
  }
  return memalign(page, (bytes + page - 1) / page * page);
}
