// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The other of two units that include everything: every inline function exists once.

#include <everything.hpp>

const void* address_in_unit_one();

int main() {
  const void* here = reinterpret_cast<const void*>(
      static_cast<std::string (*)(const heddle::ErrorInfo&)>(&heddle::to_string));
  return here == address_in_unit_one() ? 0 : 1;
}
