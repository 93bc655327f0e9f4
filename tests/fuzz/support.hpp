// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the targets of the fuzzer share. A target gives any bytes to a reader. The reader must
/// accept them, with the properties that the target checks, or throw its error.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <heddle/core/error.hpp>

/// The function that the fuzzer, or replay.cpp, calls. Every target defines it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace fuzz {

/// Ends the program with a sentence if `holds` is false. The fuzzer then keeps the input.
inline void check(bool holds, const char* sentence) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: wrong: %s\n", sentence);
  std::abort();
}

/// Returns true if `read()` returns, or false if it throws `Rejection`. Any other exception ends
/// the program, and so does a message that would control the terminal.
template <class Rejection = heddle::format_error, class Read>
bool accepts(Read&& read) {
  try {
    read();
    return true;
  } catch (const Rejection& error) {
    const std::string_view what = error.what();
    check(!what.empty(), "the message of an error is empty");
    for (const char c : what)
      check(c == '\n' || (c & 0x7f) != c || (c >= ' ' && c != 0x7f),
            "the message of an error has a control character");
    return false;
  }
}

/// Returns the input as text.
inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace fuzz
