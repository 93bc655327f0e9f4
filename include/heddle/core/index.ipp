// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of index.hpp.

#include <cstdint>
#include <ostream>
#include <string>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE void refuse_index(const std::string& number) {
  throw contract_error(
      {"heddle::Index", "index out of range", number, "valid range is [0, 4294967295]"});
}

HEDDLE_INLINE std::ostream& print_index(std::ostream& out, std::uint32_t value) {
  return out << value;
}

}  // namespace heddle::inline v0::impl
