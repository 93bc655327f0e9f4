// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// StreamOrdered with instances that are asynchronous as a device's are: their work is done when the
// test says so, and a block that somebody else has before is found out.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/memory/label.hpp>
#include <heddle/memory/limit.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/stats.hpp>
#include <heddle/memory/stream_ordered.hpp>

#include "failing.hpp"

namespace test_stream_ordered {

namespace memory = heddle::memory;

/// An instance whose work waits until it is told to go on.
class Fake {
 public:
  struct Queue {
    std::deque<std::function<void()>> work;
    std::size_t launched = 0, over = 0;
    int waits = 0, marks = 0;
    void step() {
      work.front()();
      work.pop_front();
      ++over;
    }
  };
  void launch(std::function<void()> work) const {
    m_queue->work.push_back(std::move(work));
    ++m_queue->launched;
  }
  [[nodiscard]] Queue& queue() const { return *m_queue; }
  friend bool operator==(const Fake&, const Fake&) = default;

 private:
  std::shared_ptr<Queue> m_queue = std::make_shared<Queue>();
};
struct FakeEvents {
  struct Mark {
    Fake exec;
    std::size_t launched;
  };
  static Mark record(const Fake& exec) {
    ++exec.queue().marks;
    return {exec, exec.queue().launched};
  }
  static bool done(const Mark& mark) { return mark.exec.queue().over >= mark.launched; }
  static void wait(const Mark& mark) {
    ++mark.exec.queue().waits;
    while (!done(mark)) mark.exec.queue().step();
  }
};

// Statistics and limits of what is live in the order of work lie above it.
using Plain = memory::StreamOrdered<memory::Pages, Fake, FakeEvents>;
static_assert(memory::StreamOrderedResource<memory::Ref<Plain>, Fake>);
static_assert(
    memory::StreamOrderedResource<memory::Limit<memory::Stats<memory::Ref<Plain>>>, Fake>);
static_assert(!memory::StreamOrderedResource<memory::Limit<memory::Pages>, Fake>);

using Little = memory::Limit<memory::Ref<memory_test::Failing>>;
template <class Upstream>
using Ordered = memory::StreamOrdered<memory::Ref<Upstream>, Fake, FakeEvents>;
static_assert(memory::StreamOrderedResource<Ordered<memory::Pool<memory::Pages>>, Fake>);

TEST_CASE("the instance that gave a block back has it at once, another one when the work is over") {
  memory::Pool pool;
  Ordered<memory::Pool<memory::Pages>> ordered(pool);
  const Fake a, b;
  void* const block = ordered.allocate(a, 1000, 64);
  a.launch([] {});
  ordered.deallocate(a, block, 1000, 64);
  CHECK(ordered.allocate(a, 1000, 64) == block);
  CHECK(a.queue().marks == 0);  // nobody else has asked
  ordered.deallocate(a, block, 1000, 64);
  void* const other = ordered.allocate(b, 1000, 64);
  CHECK(other != block);
  a.queue().step();
  // The work is over, and the block with the pool.
  void* const third = ordered.allocate(b, 1000, 64);
  CHECK(third == block);
  CHECK(a.queue().waits == 0);
  CHECK(b.queue().waits == 0);
  ordered.deallocate(b, other, 1000, 64);
  ordered.deallocate(b, third, 1000, 64);
}

TEST_CASE("where upstream has no more the host waits, and only then") {
  memory_test::Failing heap;
  {
    Little upstream(heap, 2000);
    Ordered<Little> ordered(upstream);
    const Fake a, b;
    void* const block = ordered.allocate(a, 1500, 8);
    a.launch([] {});
    ordered.deallocate(a, block, 1500, 8);
    CHECK(a.queue().waits == 0);
    void* const other = ordered.allocate(b, 1200, 8);  // does not fit beside
    CHECK(a.queue().waits == 1);
    CHECK(a.queue().over == 1);
    CHECK_THROWS_AS((void)ordered.allocate(a, 1900, 8), heddle::out_of_memory);
    b.launch([] {});
    ordered.deallocate(b, other, 1200, 8);
    // Of its own blocks none is large enough: it waits for itself.
    void* const third = ordered.allocate(b, 1900, 8);
    CHECK(b.queue().over == 1);
    ordered.deallocate(b, third, 1900, 8);
  }
  CHECK(heap.blocks() == 0);
  CHECK(heap.wrong() == 0);
}

TEST_CASE("nothing is nothing, and blocks without work go to upstream at once") {
  memory::Pool pool;
  Ordered<memory::Pool<memory::Pages>> ordered(pool);
  const Fake a;
  CHECK(ordered.allocate(a, 0, 64) == nullptr);
  ordered.deallocate(a, nullptr, 0, 64);
  void* const block = ordered.allocate(100, 64);
  CHECK(ordered.owns(block));
  ordered.deallocate(block, 100, 64);
  CHECK(pool.allocate(100, 64) == block);
  pool.deallocate(block, 100, 64);
}

TEST_CASE("no block is used by work of two instances at once, whatever the order") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    memory_test::Failing heap;
    {
      Little upstream(heap, 6000);
      Ordered<Little> ordered(upstream);
      std::mt19937 random(seed);
      const std::vector<Fake> instances(3);
      struct Use {
        Fake exec;
        std::byte* block;
        std::size_t bytes;
      };
      std::vector<Use> uses;
      std::map<const std::byte*, std::size_t> owners;  // by the number of whoever wrote last
      std::size_t number = 0, wrong = 0;
      for (int step = 0; step < 2000; ++step) {
        const Fake& exec = instances[random() % instances.size()];
        if (const std::uint32_t what = random() % 3; what == 0) {
          const std::size_t bytes = 100 * (1 + random() % 8);
          try {
            auto* const block = static_cast<std::byte*>(ordered.allocate(exec, bytes, 8));
            const std::size_t mine = ++number;
            // Work that writes the block, and work behind it that finds what was written.
            exec.launch([&owners, block, mine] { owners[block] = mine; });
            exec.launch([&owners, &wrong, block, mine] { wrong += owners[block] != mine; });
            uses.push_back({exec, block, bytes});
          } catch (const heddle::out_of_memory&) {
          }
        } else if (what == 1 && !uses.empty()) {
          std::swap(uses[random() % uses.size()], uses.back());
          ordered.deallocate(uses.back().exec, uses.back().block, uses.back().bytes, 8);
          uses.pop_back();
        } else if (!exec.queue().work.empty()) {
          exec.queue().step();
        }
      }
      for (const Use& use : uses) ordered.deallocate(use.exec, use.block, use.bytes, 8);
      ordered.wait();
      for (const Fake& exec : instances)
        while (!exec.queue().work.empty()) exec.queue().step();
      CHECK(wrong == 0);
      CHECK(number > 100);
    }
    CHECK(heap.blocks() == 0);
    CHECK(heap.wrong() == 0);
  }
}

TEST_CASE("sizes that never come again do not pile up") {
  memory::Pool pool;
  Ordered<memory::Pool<memory::Pages>> ordered(pool);
  const Fake a;
  for (std::size_t i = 1; i <= 1000; ++i) {
    void* const block = ordered.allocate(a, 1000 * i, 64);
    a.launch([] {});
    ordered.deallocate(a, block, 1000 * i, 64);
    while (a.queue().over < a.queue().launched) a.queue().step();
  }
  CHECK(pool.reserved() < std::size_t{8} << 20);  // of 500 MB in all, 1 MB at once
}

TEST_CASE("a limit and statistics above it know what is live, whatever waits beneath") {
  memory_test::Failing heap;
  {
    Ordered<memory_test::Failing> ordered(heap);
    memory::Stats stats(ordered);
    memory::Limit limit(stats, 1500);
    const Fake exec;
    void* const first = limit.allocate(exec, 1000, 8);
    exec.launch([] {});
    CHECK_THROWS_AS((void)limit.allocate(exec, 501, 8), heddle::out_of_memory);
    limit.deallocate(exec, first, 1000, 8);
    CHECK(stats.usage().bytes == 0);
    CHECK(heap.blocks() == 1);
    const memory::Label label("next");
    void* const next = limit.allocate(exec, 1000, 8);
    CHECK(next == first);
    CHECK(limit.used() == 1000);
    CHECK(stats.usage("next").peak == 1000);
    limit.deallocate(exec, next, 1000, 8);
    CHECK(stats.usage().total_blocks == 2);
    CHECK(heap.calls() == 1);
  }
  CHECK(heap.blocks() == 0);
}

}  // namespace test_stream_ordered
