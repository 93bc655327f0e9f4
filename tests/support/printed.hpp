// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Printed: what a test prints to the standard output, as a text.

#include <iostream>
#include <sstream>
#include <streambuf>

namespace heddle::test {

/// The standard output goes into a text for as long as this object lives.
struct Printed {
  std::ostringstream text;
  std::streambuf* before = std::cout.rdbuf(text.rdbuf());
  Printed() = default;
  ~Printed() { std::cout.rdbuf(before); }
  Printed(const Printed&) = delete;
  Printed& operator=(const Printed&) = delete;
};

}  // namespace heddle::test
