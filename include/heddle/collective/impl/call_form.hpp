// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The three forms of a collective call: performed at once, started, or prepared.

#include <concepts>
#include <utility>

#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/prepared.hpp>
#include <heddle/collective/request.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The result of a call in each form: `void` if the call waits, Request if it is only started, and
/// Prepared if it is performed later.
template <class Form>
concept CallForm =
    std::same_as<Form, void> || std::same_as<Form, Request> || std::same_as<Form, Prepared>;

/// Makes `call` in this form.
template <CallForm Form>
Form perform_as(Call&& call) {
  if constexpr (std::same_as<Form, Request>)
    return call.start();
  else if constexpr (std::same_as<Form, Prepared>)
    return Prepared(std::move(call));
  else
    call.perform();
}

}  // namespace impl
}  // namespace heddle::inline v0
