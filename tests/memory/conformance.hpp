// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What every Resource of host memory keeps to, whatever it is made of.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/memory/resource.hpp>

namespace memory_test {

/// A block as it was asked for, and the number that all of its bytes hold.
struct Block {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  std::size_t alignment = 1;
  std::byte mark{};
};

/// Takes a block and fills it with `mark`. The alignment must hold; not a Catch2 check, for
/// threads.
template <heddle::memory::Resource R>
Block take(R& resource, std::size_t bytes, std::size_t alignment, std::byte mark) {
  auto* const begin = static_cast<std::byte*>(resource.allocate(bytes, alignment));
  if ((begin == nullptr) != (bytes == 0)) throw std::string("null for some bytes, or not for none");
  if (reinterpret_cast<std::uintptr_t>(begin) % alignment != 0) throw std::string("not aligned");
  std::fill_n(begin, bytes, mark);
  return {begin, bytes, alignment, mark};
}

/// Gives it back, all of it still as it was written.
template <heddle::memory::Resource R>
void give_back(R& resource, const Block& block) {
  for (std::size_t i = 0; i < block.bytes; ++i)
    if (block.begin[i] != block.mark) throw std::string("a block was written by others");
  resource.deallocate(block.begin, block.bytes, block.alignment);
}

/// `steps` random takes and returns of up to `most` bytes, with at most `live` blocks at once.
template <heddle::memory::Resource R>
void random_blocks(R& resource, std::uint32_t seed, int steps, std::size_t most, std::size_t live) {
  std::mt19937 random(seed);
  std::vector<Block> blocks;
  for (int step = 0; step < steps; ++step) {
    if (blocks.size() < live && random() % 5 < 3) {
      // Sizes of all magnitudes, powers of two and their neighbours among them.
      std::size_t bytes = std::size_t{1} << (random() % 26);
      bytes = std::min(most, random() % 2 == 0 ? bytes + random() % 3 - 1 : 1 + random() % bytes);
      blocks.push_back(take(resource, bytes, std::size_t{1} << (random() % 9),
                            static_cast<std::byte>(random())));
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      give_back(resource, blocks.back());
      blocks.pop_back();
    }
  }
  for (const Block& block : blocks) give_back(resource, block);
}

/// The battery. `most`: bytes of the largest block that must be had. All blocks come back.
template <heddle::memory::Resource R>
void conforms(R& resource, std::size_t most = std::size_t{8} << 20, bool threads = true) {
  // Nothing.
  CHECK(resource.allocate(0, 1) == nullptr);
  resource.deallocate(nullptr, 0, 1);
  resource.deallocate(nullptr, 100, 8);
  REQUIRE_NOTHROW(give_back(resource, take(resource, 100, 8, std::byte{6})));
  // Sizes around powers of two, alignments up to a page, held together.
  std::vector<Block> blocks;
  for (std::size_t size = 1; size <= std::min<std::size_t>(most, 1 << 17); size *= 2)
    for (const std::size_t bytes : {size - 1, size, size + 1})
      if (bytes <= most)
        REQUIRE_NOTHROW(blocks.push_back(take(resource, bytes, std::min<std::size_t>(4096, size),
                                              static_cast<std::byte>(blocks.size()))));
  for (const Block& block : blocks) REQUIRE_NOTHROW(give_back(resource, block));
  // The largest.
  REQUIRE_NOTHROW(give_back(resource, take(resource, most, 64, std::byte{7})));
  // More than there is: an error, and nothing is lost.
  for (const std::size_t bytes :
       {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() - 5000,
        std::numeric_limits<std::size_t>::max() / 2}) {
    CHECK_THROWS_AS((void)resource.allocate(bytes, 64), heddle::out_of_memory);
    CHECK_THROWS_AS((void)resource.allocate(bytes, 64), std::bad_alloc);
  }
  REQUIRE_NOTHROW(give_back(resource, take(resource, most, 64, std::byte{8})));
  // In any order.
  REQUIRE_NOTHROW(random_blocks(resource, 1, 3000, std::max<std::size_t>(1, most / 8), 8));
  if (!threads) return;
  std::vector<std::string> errors(3);
  std::vector<std::thread> workers;
  for (std::size_t t = 0; t < errors.size(); ++t)
    workers.emplace_back([&, t] {
      try {
        random_blocks(resource, 2 + static_cast<std::uint32_t>(t), 3000,
                      std::max<std::size_t>(1, most / 32), 8);
      } catch (const std::string& error) {
        errors[t] = error;
      } catch (const std::exception& error) {
        errors[t] = error.what();
      }
    });
  for (std::thread& worker : workers) worker.join();
  for (const std::string& error : errors) CHECK(error.empty());
}

}  // namespace memory_test
