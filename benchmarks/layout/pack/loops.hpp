// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Strided copies as one writes them by hand: word by word, and block by block with memcpy.

#include <cstddef>

namespace bench {

/// `count` blocks of `length` bytes, each `stride` bytes after the one before it.
struct Blocks {
  std::size_t count;
  std::size_t length;
  std::size_t stride;
};

void pack_words(const Blocks& blocks, const double* from, double* to);
void unpack_words(const Blocks& blocks, const double* from, double* to);
/// For blocks of one word.
void pack_single_words(const Blocks& blocks, const double* from, double* to);
void unpack_single_words(const Blocks& blocks, const double* from, double* to);
void pack_blocks(const Blocks& blocks, const double* from, double* to);
void unpack_blocks(const Blocks& blocks, const double* from, double* to);

}  // namespace bench
