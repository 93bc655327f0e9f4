// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The check at the door: bad input becomes a contract_error that names the culprit.

#include <concepts>

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

}  // namespace heddle::inline v0
