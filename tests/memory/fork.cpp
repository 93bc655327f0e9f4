// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Children of fork() use every resource that locks, whatever other threads did at that moment.

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/memory.hpp>

#include "support/cases.hpp"
#include "support/child.hpp"

namespace test_fork {

namespace hm = heddle::memory;
using heddle::test::works_in_child;
using Host = Kokkos::DefaultHostExecutionSpace;

namespace {

/// Forks of a case with busy threads.
const auto forks = heddle::test::cases(100, 1000);

/// Whether children may call malloc() while other threads of their parent did: not with sanitizers,
/// some of which do not keep their own locks during fork().
constexpr bool children_have_malloc =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    false;
#else
    true;
#endif

/// Whether a block of so many bytes can be had, written and given back.
template <hm::Resource R>
[[nodiscard]] bool serves(R& resource, std::size_t bytes, std::size_t alignment = 64) {
  auto* const block = static_cast<char*>(resource.allocate(bytes, alignment));
  block[0] = block[bytes - 1] = 'x';
  const bool right = block[0] == 'x';
  resource.deallocate(block, bytes, alignment);
  return right;
}

/// Threads that call `use(number)` again and again as long as it lasts.
class Busy {
 public:
  template <class Use>
  Busy(int threads, Use use) {
    for (int t = 0; t < threads; ++t)
      m_threads.emplace_back([this, use] {
        for (std::size_t number = 0; !m_end; ++number) {
          use(number);
          ++m_uses;
        }
      });
    while (m_uses < 10) std::this_thread::yield();
  }
  ~Busy() {
    m_end = true;
    for (std::thread& thread : m_threads) thread.join();
  }

 private:
  std::atomic<bool> m_end = false;
  std::atomic<std::size_t> m_uses = 0;
  std::vector<std::thread> m_threads;
};

/// A memory space without locks. The spaces of Kokkos fence when they deallocate, and a child of
/// fork() may find the mutexes of the fence locked; see FromSpace.
struct Plain {
  using memory_space = Plain;
  using execution_space = Host;
  using device_type = Kokkos::Device<Host, Plain>;
  using size_type = std::size_t;
  static constexpr const char* name() { return "Plain"; }
  static void* allocate(const char*, std::size_t bytes) {
    return ::operator new(bytes, std::align_val_t{64});
  }
  static void deallocate(const char*, void* block, std::size_t) noexcept {
    ::operator delete(block, std::align_val_t{64});
  }
};

/// Every resource that locks, some on top of others.
struct All {
  explicit All(const std::filesystem::path& file) : mapped(file, std::size_t{1} << 20) {}

  hm::Pool<hm::Pages> pool;
  hm::Pool<hm::Ref<hm::Pool<hm::Pages>>> second{pool, {.min_chunk = 1 << 16, .cached = 1 << 12}};
  hm::FromSpace<Plain> space;
  hm::Pool<hm::Ref<hm::FromSpace<Plain>>> heap{space};
  hm::Stats<hm::Ref<hm::Pool<hm::Pages>>> stats{pool};
  hm::Tracking<hm::Ref<hm::Stats<hm::Ref<hm::Pool<hm::Pages>>>>> tracking{stats};
  hm::Recorder<hm::Ref<hm::Pool<hm::Pages>>> recorder{pool};
  hm::Ordered<Host, hm::Ref<hm::Pool<hm::Pages>>> ordered{pool};
  hm::IpcSafe<hm::Pages> ipc_safe{hm::Pages{}};
  hm::Limit<hm::Ref<hm::Pool<hm::Pages>>> limit{pool, std::size_t{1} << 30};
  hm::Segment<hm::Pages> segment{std::size_t{64} << 10};
  hm::Fallback<hm::Ref<hm::Segment<hm::Pages>>, hm::Ref<hm::Pool<hm::Pages>>> fallback{segment,
                                                                                       pool};
  hm::AnyResource any{pool};
  hm::Ldm ldm;
  hm::Mapped mapped;

  [[nodiscard]] bool serve(std::size_t number) {
    const std::size_t bytes = std::array<std::size_t, 4>{24, 3000, 40'000, 400'000}[number % 4];
    const Host exec;
    void* const in_order = ordered.allocate(exec, bytes, 64);
    ordered.deallocate(exec, in_order, bytes, 64);
    const hm::Label label("some");
    return serves(pool, bytes) && serves(second, bytes) && serves(heap, bytes) &&
           serves(space, bytes, 256) && serves(stats, bytes) && serves(tracking, bytes) &&
           serves(ipc_safe, bytes) && serves(limit, bytes) && serves(fallback, bytes) &&
           serves(any, bytes) && serves(ldm, 1000) &&
           serves(hm::message_memory<Kokkos::HostSpace>(), bytes);
  }
};

}  // namespace

TEST_CASE("a child allocates from a pool while two threads of its parent do") {
  hm::Pool pool;
  const Busy busy(2, [&](std::size_t n) { static_cast<void>(serves(pool, 1000 + n % 500'000)); });
  for (std::uint64_t fork = 0; fork < forks; ++fork)
    REQUIRE(works_in_child([&] { return serves(pool, 400 << 10) && serves(pool, 100); }));
}

TEST_CASE("a child uses all resources that lock, which other threads use") {
  if (!children_have_malloc) SKIP("the sanitizer's malloc() does not survive fork()");
  const auto file =
      std::filesystem::temp_directory_path() / ("heddle_fork_" + std::to_string(::getpid()));
  {
    All all(file);
    const Busy busy(2, [&](std::size_t number) {
      static_cast<void>(all.serve(number));
      if (number % 64 == 0) static_cast<void>(serves(all.recorder, 100));
      static_cast<void>(serves(all.mapped, 1000));
    });
    for (std::uint64_t fork = 0; fork < forks; ++fork)
      REQUIRE(works_in_child([&] {
        for (std::size_t number = 0; number < 8; ++number)
          if (!all.serve(number)) return false;
        return serves(all.recorder, 100);
      }));
    // In a child of a child, and in a thread of one.
    CHECK(works_in_child([&] { return works_in_child([&] { return all.serve(3); }); }));
    CHECK(works_in_child([&] {
      bool served = false;
      std::thread([&] { served = all.serve(3); }).join();
      return served;
    }));
  }
  std::filesystem::remove(file);
}

TEST_CASE("a child ends what threads of its parent use, and makes others") {
  if (!children_have_malloc) SKIP("the sanitizer's malloc() does not survive fork()");
  auto pool = std::make_unique<hm::Pool<hm::Pages>>();
  const Busy busy(2, [&](std::size_t number) {
    static_cast<void>(serves(*pool, 1000 + number % 500'000));
    hm::Pool<hm::Pages> other;
    std::thread([&] { static_cast<void>(serves(other, 100)); }).join();  // it ends with a cache
  });
  for (int fork = 0; fork < 50; ++fork)
    REQUIRE(works_in_child([&] {
      pool.reset();
      hm::Pool<hm::Pages> other;
      hm::Stats stats(other);
      return serves(stats, 1000);
    }));
}

/// An upstream that makes a resource for its first block, newer than who calls it, and ends it
/// after the last one.
struct Late {
  struct Made {
    std::optional<hm::IpcSafe<hm::Pages>> resource;
    int blocks = 0;
  };
  std::shared_ptr<Made> made = std::make_shared<Made>();

  void* allocate(std::size_t bytes, std::size_t alignment) {
    if (made->blocks++ == 0) made->resource.emplace(hm::Pages{});
    return made->resource->allocate(bytes, alignment);
  }
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    made->resource->deallocate(block, bytes, alignment);
    if (--made->blocks == 0) made->resource.reset();
  }
};

TEST_CASE("an upstream that is newer than its pool delays a fork, and stops none") {
  if (!children_have_malloc) SKIP("the sanitizer's malloc() does not survive fork()");
  hm::Pool<Late> pool(Late{}, {.min_chunk = 1 << 10, .cached = 0});
  const Busy busy(2, [&](std::size_t) {
    static_cast<void>(serves(pool, 300 << 10));
    pool.trim();
  });
  for (int fork = 0; fork < 20; ++fork) REQUIRE(works_in_child([&] { return serves(pool, 100); }));
}

TEST_CASE("a child does not allocate from the file of its parent") {
  const auto file =
      std::filesystem::temp_directory_path() / ("heddle_forked_" + std::to_string(::getpid()));
  hm::Mapped mapped(file, 10'000);
  CHECK(works_in_child([&] {
    try {
      static_cast<void>(mapped.allocate(100, 8));
    } catch (const heddle::contract_error& error) {
      return std::string(error.what()) ==
             "heddle::memory::Mapped: the file was mapped by the parent of this process (both "
             "would allocate the same bytes of it); map another file after fork()";
    }
    return false;
  }));
  CHECK(serves(mapped, 100));
  std::filesystem::remove(file);
}

}  // namespace test_fork
