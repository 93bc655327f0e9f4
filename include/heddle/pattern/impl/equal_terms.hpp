// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The check that all ranks of a pattern give the same options.

#include <cstddef>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::impl {

/// Returns the shortest text that gives the number again.
[[nodiscard]] std::string exact_text(double number);

/// Compares the options of all ranks for the function `where`: texts of lines "name = value".
/// @throws contract_error that names the first rank whose options differ from those of rank 0, and
/// the option.
void check_equal_terms(const char* where, const std::vector<std::vector<std::byte>>& terms);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_PATTERN
#include <heddle/pattern/impl/equal_terms.ipp>
#endif
