// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// UseRoles: the roles of the uses of a schedule, for slice() and for models of stages.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::impl {

/// Finds the role of each use of a schedule, which it refers to. Labels are compared once, in the
/// constructor. The role of a use does not depend on its position among the uses of its action.
class UseRoles {
 public:
  /// Finds the roles of the labels, and the outputs that are inputs of other stages.
  explicit UseRoles(const Schedule& schedule);

  /// Returns the role of a buffer, by its label.
  [[nodiscard]] Role of(const Buffer& buffer) const { return m_labels[+buffer.label]; }

  /// Returns the role of a use of an action of `kind`. It is the role of the buffer, unless stages
  /// on one rank share the buffer: an output that a stage reads is an input of this stage if a
  /// forward action reads it, too. Otherwise it is exchanged. An input_grad that a stage reads is
  /// its output_grad.
  [[nodiscard]] Role of(Kind kind, const Use& use) const;

 private:
  const Schedule* m_schedule;
  std::vector<Role> m_labels;       ///< by label
  std::vector<bool> m_read_inputs;  ///< by buffer: a forward action reads it; may be empty
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/internal/use_roles.ipp>
#endif
