// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// perform_as(): a collective call in one of its three forms.

#include <concepts>
#include <utility>

#include <heddle/collective/impl/call_form.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/prepared.hpp>
#include <heddle/collective/request.hpp>

namespace heddle::inline v0::impl {

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

}  // namespace heddle::inline v0::impl
