// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of stage_storage.hpp.

#include <string_view>
#include <utility>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/message_sizes.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE Role impl::role_of(std::string_view label) noexcept {
  static constexpr std::pair<std::string_view, Role> roles[] = {
      {role::input, Role::input},
      {role::output, Role::output},
      {role::saved, Role::saved},
      {role::parked, Role::parked},
      {role::exchanged, Role::exchanged},
      {role::output_grad, Role::output_grad},
      {role::input_grad, Role::input_grad},
      {role::delta, Role::delta},
      {role::weights, Role::weights},
      {role::gradients, Role::gradients},
      {role::narrow, Role::narrow},
      {role::residual, Role::residual},
      {role::slice_grads, Role::slice_grads},
  };
  for (const auto& [name, role] : roles)
    if (name == label) return role;
  return Role::other;
}

}  // namespace heddle::inline v0
