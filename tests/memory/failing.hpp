// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A resource that fails when it is told to, and knows whether what it gave came back as it was.

#include <cstddef>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/memory/resource.hpp>

namespace memory_test {

/// Blocks of the heap. A test names it, and looks at it when all that used it is gone.
class Failing {
 public:
  /// The `fail_at`th call of allocate() fails, from 1 on; none for 0.
  explicit Failing(int fail_at = 0) : m_fail_at(fail_at) {}
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return nullptr;
    const std::lock_guard lock(m_mutex);
    if (++m_calls == m_fail_at || bytes > m_most) {
      ++m_failures;
      throw heddle::out_of_memory({"memory_test::Failing", "as it was told"});
    }
    void* const block = ::operator new(bytes, std::align_val_t(alignment));
    m_blocks[block] = {bytes, alignment};
    return block;
  }
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    if (block == nullptr) return;
    const std::lock_guard lock(m_mutex);
    const auto found = m_blocks.find(block);
    if (found == m_blocks.end() || found->second != std::pair{bytes, alignment}) {
      ++m_wrong;
      return;
    }
    m_blocks.erase(found);
    ::operator delete(block, std::align_val_t(alignment));
  }
  [[nodiscard]] bool owns(const void* address) const {
    const std::lock_guard lock(m_mutex);
    const auto* const byte = static_cast<const std::byte*>(address);
    for (const auto& [block, size] : m_blocks)
      if (byte >= block && byte < static_cast<const std::byte*>(block) + size.first) return true;
    return false;
  }

  /// Calls of allocate() for more than nothing.
  [[nodiscard]] int calls() const { return m_calls; }
  [[nodiscard]] int failures() const { return m_failures; }
  /// How many blocks are out.
  [[nodiscard]] std::size_t blocks() const { return m_blocks.size(); }
  /// The size of the block that begins there, 0 where none does.
  [[nodiscard]] std::size_t bytes_of(const void* block) const {
    const auto found = m_blocks.find(const_cast<void*>(block));
    return found == m_blocks.end() ? 0 : found->second.first;
  }
  /// How many came back that were not out, or as others.
  [[nodiscard]] int wrong() const { return m_wrong; }

 private:
  static constexpr std::size_t m_most = std::size_t{1} << 32;

  int m_fail_at;
  int m_calls = 0;
  int m_failures = 0;
  int m_wrong = 0;
  std::map<void*, std::pair<std::size_t, std::size_t>> m_blocks;
  mutable std::mutex m_mutex;
};

/// Calls `use(failing)` once for each call of allocate() that it makes, which then fails, and
/// requires that all came back each time. Returns how often it was.
template <class Use>
int each_failure(Use use) {
  for (int fail_at = 1;; ++fail_at) {
    Failing failing(fail_at);
    bool thrown = false;
    try {
      use(failing);
    } catch (const heddle::out_of_memory&) {
      thrown = true;
    }
    CHECK(failing.blocks() == 0);
    CHECK(failing.wrong() == 0);
    if (failing.calls() < fail_at) {
      CHECK_FALSE(thrown);
      return fail_at - 1;
    }
  }
}

/// Takes and gives back blocks in a mixed order. What a failure leaves goes back.
template <heddle::memory::Resource R>
void use_some(R& resource) {
  struct Taken {
    void* begin;
    std::size_t bytes;
  };
  std::map<int, Taken> blocks;
  const auto give_back = [&](int number) {
    const Taken block = blocks.extract(number).mapped();
    resource.deallocate(block.begin, block.bytes, 16);
  };
  try {
    for (int i = 0; i < 12; ++i) {
      const std::size_t bytes = 100 + 7000 * static_cast<std::size_t>(i);
      blocks[i] = {};  // before, so that nothing between fails
      blocks[i] = {resource.allocate(bytes, 16), bytes};
      if (i % 3 == 2) give_back(i - 1);
    }
  } catch (const heddle::out_of_memory&) {
    while (!blocks.empty()) give_back(blocks.begin()->first);
    throw;
  }
  while (!blocks.empty()) give_back(blocks.rbegin()->first);
}

}  // namespace memory_test
