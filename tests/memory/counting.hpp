// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Memory resources for the tests of Views: they count their blocks, and fill new and old ones.

#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>

#include <Kokkos_Core.hpp>

#include <heddle/core/error.hpp>
#include <heddle/memory/resource.hpp>

namespace test_views {

namespace hm = heddle::memory;

/// What has been taken of a resource and is not back.
struct Books {
  std::atomic<int> blocks = 0;
  std::atomic<std::size_t> bytes = 0;
  std::atomic<int> taken = 0;
};

/// The heap, which counts, and refuses what `left` no longer allows. New blocks hold 0xff.
class Counting {
 public:
  explicit Counting(Books& books, int left = 1'000'000) : m_books(&books), m_left(left) {}

  void* allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return nullptr;
    if (m_left-- <= 0) throw heddle::out_of_memory({"test::Counting", "nothing is left"});
    void* const block = ::operator new(bytes, std::align_val_t(alignment));
    std::memset(block, 0xff, bytes);
    ++m_books->blocks;
    ++m_books->taken;
    m_books->bytes += bytes;
    return block;
  }
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block == nullptr) return;
    --m_books->blocks;
    m_books->bytes -= bytes;
    std::memset(block, 0xee, bytes);
    ::operator delete(block, std::align_val_t(alignment));
  }

 private:
  Books* m_books;
  int m_left;
};

/// Counting, in the order of instances: it notes their fences' absence by noting who asked.
class Ordered {
 public:
  using Exec = Kokkos::DefaultHostExecutionSpace;

  explicit Ordered(Books& books) : m_heap(books) {}

  void* allocate(std::size_t bytes, std::size_t alignment) {
    return m_heap.allocate(bytes, alignment);
  }
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    m_heap.deallocate(block, bytes, alignment);
  }
  void* allocate(const Exec&, std::size_t bytes, std::size_t alignment) {
    ++in_order;
    return m_heap.allocate(bytes, alignment);
  }
  void deallocate(const Exec&, void* block, std::size_t bytes, std::size_t alignment) noexcept {
    --in_order;
    m_heap.deallocate(block, bytes, alignment);
  }

  int in_order = 0;

 private:
  Counting m_heap;
};
static_assert(hm::StreamOrderedResource<Ordered, Ordered::Exec>);

}  // namespace test_views
