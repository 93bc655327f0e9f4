// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of throw_together.hpp.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>

#include <heddle/core/error.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/pipeline/impl/throw_together.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE void throw_together(const TransportRef& transport, const ExecuteOptions& options,
                                       const char* where, FunctionRef<void()> check) {
  std::exception_ptr error;
  std::string report;
  constexpr char refused = 'r';  // precedes the text of an error in the arguments
  try {
    check();
  } catch (const contract_error& wrong) {
    error = std::current_exception();
    report = text(refused, wrong.what());
  } catch (const std::exception& failure) {
    error = std::current_exception();
    report = text(" ", failure.what());
  } catch (...) {
    error = std::current_exception();
    report = " unknown exception";
  }
  const auto all = all_gather<char>(transport, report, options);
  if (error) std::rethrow_exception(error);
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].empty()) continue;
    const std::string reason =
        text("rank ", r, " reports: ", std::string_view(all[r].data() + 1, all[r].size() - 1));
    if (all[r].front() == refused)
      throw contract_error(
          {where, "a rank does not make the call", reason, "correct the arguments of that rank"});
    throw communication_error({where, "a rank cannot make the call", reason});
  }
}

HEDDLE_FULL_INLINE void throw_together(const TransportRef& transport, const ExecuteOptions& options,
                                       const std::exception_ptr& error, const char* where,
                                       const char* what, const std::string& path) {
  const std::uint8_t mine = error != nullptr ? 1 : 0;
  const auto all = all_gather<std::uint8_t>(transport, std::span(&mine, 1), options);
  if (error) std::rethrow_exception(error);
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r][0] != 0)
      throw format_error({where, text("rank ", r, " cannot ", what), path,
                          "see the error of this rank; all ranks use the same file"});
}

}  // namespace heddle::inline v0::impl
