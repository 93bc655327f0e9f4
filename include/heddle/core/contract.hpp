// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The check at the door: bad input becomes a contract_error that names the culprit.

#include <concepts>
#include <cstdint>

#include <heddle/core/error.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Out of line and out of the way: what a failed check says is not worth the compiler's effort.
template <class Complain>
[[noreturn, gnu::noinline, gnu::cold]] void violated(Complain& complain) {
  throw contract_error(complain());
}

}  // namespace impl

/// Throws contract_error with the complaint that `complain()` returns, unless `ok`.
/// The complaint is built only when it is needed, so a passed check costs one branch.
template <std::invocable Complain>
constexpr void expects(bool ok, Complain&& complain) {
  if (!ok) [[unlikely]]
    impl::violated(complain);
}

/// How much a call of several ranks checks of what it was given.
enum class ContractLevel : std::uint8_t {
  local,          ///< what a rank sees by itself
  communication,  ///< also that all ranks make the same call, which costs messages every time
};

/// The level of calls that are given none: `local`, or `communication` where the macro
/// HEDDLE_CHECK_COMMUNICATION is defined, as it then must be in all sources of a program.
#if defined(HEDDLE_CHECK_COMMUNICATION)
inline constexpr ContractLevel contract_level = ContractLevel::communication;
#else
inline constexpr ContractLevel contract_level = ContractLevel::local;
#endif

}  // namespace heddle::inline v0
