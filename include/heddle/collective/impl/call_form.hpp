// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CallForm: what a collective call returns when it is performed at once, started, or prepared.

#include <concepts>

#include <heddle/collective/prepared.hpp>
#include <heddle/collective/request.hpp>

namespace heddle::inline v0::impl {

/// The result of a call in each form: `void` if the call waits, Request if it is only started, and
/// Prepared if it is performed later.
template <class Form>
concept CallForm =
    std::same_as<Form, void> || std::same_as<Form, Request> || std::same_as<Form, Prepared>;

}  // namespace heddle::inline v0::impl
