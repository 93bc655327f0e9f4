// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of use_roles.hpp.

#include <algorithm>
#include <cstddef>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/internal/use_roles.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE UseRoles::UseRoles(const Schedule& schedule) : m_schedule(&schedule) {
  for (const std::string& label : schedule.labels()) m_labels.push_back(role_of(label));
  if (std::ranges::find(m_labels, Role::output) == m_labels.end()) return;
  m_read_inputs.assign(schedule.buffers().size(), false);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    if (schedule[ActionId{i}].kind != Kind::forward) continue;
    for (const Use& use : schedule.uses(ActionId{i}))
      if (!use.writes()) m_read_inputs[+use.buffer] = true;
  }
}

HEDDLE_INLINE Role UseRoles::of(Kind kind, const Use& use) const {
  const Role role = of((*m_schedule)[use.buffer]);
  if (kind > Kind::backward || use.writes()) return role;
  if (role == Role::input_grad) return Role::output_grad;
  if (role == Role::output) return m_read_inputs[+use.buffer] ? Role::input : Role::exchanged;
  return role;
}

}  // namespace heddle::inline v0::impl
