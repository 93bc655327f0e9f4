// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// One of two units that include everything; the addresses must be the other's too.

#include <everything.hpp>

const void* address_in_unit_one() {
  return reinterpret_cast<const void*>(
      static_cast<std::string (*)(const heddle::ErrorInfo&)>(&heddle::to_string));
}
