// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// throw_together(): an error of one rank as an error of all ranks, for files that all ranks use.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/transport_ref.hpp>

namespace heddle::inline v0::impl {

/// Throws the error of this rank, or one that names the first rank with an error. `failed` is the
/// place for which other ranks wait. All ranks must call it.
inline void throw_together(const TransportRef& transport, const ExecuteOptions& options,
                           const std::exception_ptr& error, const char* where, const char* what,
                           const std::string& path) {
  const std::uint8_t mine = error != nullptr ? 1 : 0;
  const auto all = all_gather_values<std::uint8_t>(transport, std::span(&mine, 1), options);
  if (error) std::rethrow_exception(error);
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r][0] != 0)
      throw format_error({where, text("rank ", r, " cannot ", what), path,
                          "see the error of this rank; all ranks use the same file"});
}

}  // namespace heddle::inline v0::impl
