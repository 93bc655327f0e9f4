// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// expects(): checks the arguments of a call and throws a contract_error that names the wrong one.

#include <concepts>
#include <cstdint>

#include <heddle/core/error.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Throws the complaint. It is not inlined, so that a check adds little code to its caller.
template <class Complain>
[[noreturn, gnu::noinline, gnu::cold]] void violated(Complain& complain) {
  throw contract_error(complain());
}

}  // namespace impl

/// Throws contract_error with the ErrorInfo that `complain()` returns if `ok` is false.
/// The ErrorInfo is built only if the check fails, so a passed check costs one branch.
template <std::invocable Complain>
constexpr void expects(bool ok, Complain&& complain) {
  if (!ok) [[unlikely]]
    impl::violated(complain);
}

/// How much a call that several ranks make together checks its arguments.
enum class ContractLevel : std::uint8_t {
  local,          ///< checks what one rank knows
  communication,  ///< also checks that all ranks make the same call; every call then sends messages
};

/// The default level: `communication` if the macro HEDDLE_CHECK_COMMUNICATION is defined, else
/// `local`. Define the macro in all sources of a program or in none.
#if defined(HEDDLE_CHECK_COMMUNICATION)
inline constexpr ContractLevel contract_level = ContractLevel::communication;
#else
inline constexpr ContractLevel contract_level = ContractLevel::local;
#endif

}  // namespace heddle::inline v0
