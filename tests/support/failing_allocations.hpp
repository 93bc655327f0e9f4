// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Defines operator new and delete for a program of its own, so that a test can count the live
/// allocations, and let a chosen allocation of a thread fail.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>

namespace heddle::test {

/// The value of `left` at which no allocation fails.
inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
/// The allocations of all threads that have not been deallocated.
inline std::atomic<std::int64_t> live{0};
/// The allocations of this thread before the one that fails.
inline thread_local std::int64_t left = never;
/// Whether all later allocations of this thread fail, too.
inline thread_local bool for_good = false;

/// Throws if the next allocation of this thread is to fail.
inline void fail_if_told() {
  if (left == never || left-- > 0) return;
  if (!for_good) left = never;
  throw std::bad_alloc();
}

/// Counts a new block.
inline void* counted(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  ++live;
  return block;
}

/// Frees a block.
inline void release(void* block) noexcept {
  if (block != nullptr) --live;
  std::free(block);
}

}  // namespace heddle::test

// Not inline: g++ 12 would take `new` and free() for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  heddle::test::fail_if_told();
  return heddle::test::counted(std::malloc(bytes == 0 ? 1 : bytes));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  heddle::test::fail_if_told();
  const auto unit = static_cast<std::size_t>(alignment);
  return heddle::test::counted(std::aligned_alloc(unit, (bytes + unit) / unit * unit));
}
[[gnu::noinline]] void operator delete(void* block) noexcept { heddle::test::release(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept {
  heddle::test::release(block);
}
[[gnu::noinline]] void operator delete(void* block, std::align_val_t) noexcept {
  heddle::test::release(block);
}
[[gnu::noinline]] void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  heddle::test::release(block);
}
