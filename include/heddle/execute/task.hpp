// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Task: one action with its memory bound, as a handler sees it; and Handler, a callable for tasks.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0 {

/// The memory of one Use.
struct BoundUse {
  std::byte* data = nullptr;     ///< where the first of its parts begins
  Bytes bytes = 0;               ///< the size of all its parts
  BufferId buffer = {};          ///< the buffer that has these parts
  Access access = Access::read;  ///< how the action touches them
  Role role = Role::other;       ///< their purpose for the action; slice() sets it
};

/// One action of this rank. It is valid during the call that receives it. The first of a fused pair
/// is valid until the call with the second returns; by then both must be complete.
class Task {
 public:
  /// Constructs a task, which refers to the schedule and the uses. The executor calls it.
  Task(const Schedule& schedule, ActionId id, std::span<const BoundUse> uses) noexcept
      : m_schedule(&schedule), m_id(id), m_uses(uses) {}

  /// Returns the action's place in the list.
  [[nodiscard]] ActionId id() const noexcept { return m_id; }
  /// Returns the list that the action is from.
  [[nodiscard]] const Schedule& schedule() const noexcept { return *m_schedule; }
  /// Returns the entry of the list.
  [[nodiscard]] const Action& action() const { return (*m_schedule)[m_id]; }
  /// Returns the kind of the action.
  [[nodiscard]] Kind kind() const { return action().kind; }
  /// Returns the stage of the action.
  [[nodiscard]] Stage stage() const { return action().stage; }
  /// Returns the microbatch of the action.
  [[nodiscard]] Item item() const { return action().item; }

  /// Returns the uses of the action that lie on this rank, in the order of Schedule::uses.
  [[nodiscard]] std::span<const BoundUse> uses() const noexcept { return m_uses; }

  /// Returns true if the action uses a buffer of role `label`.
  [[nodiscard]] bool has(std::string_view label) const { return find(label) != nullptr; }

  /// Returns the first use of a buffer of role `label` as elements of T, for example
  /// `task.get<const float>("input")`.
  /// @throws contract_error if there is none, or if its bytes are not whole elements.
  template <class T>
  [[nodiscard]] std::span<T> get(std::string_view label) const {
    const BoundUse& use = elements(label, sizeof(T));
    return {reinterpret_cast<T*>(use.data), static_cast<std::size_t>(use.bytes / sizeof(T))};
  }

 private:
  [[nodiscard]] const BoundUse* find(std::string_view label) const;
  /// Returns the use of role `label`, which holds whole elements of `size` bytes.
  [[nodiscard]] const BoundUse& elements(std::string_view label, std::size_t size) const;

  const Schedule* m_schedule;
  ActionId m_id;
  std::span<const BoundUse> m_uses;
};

/// A reference to any callable that takes a Task. It does not own the callable. With it the
/// executor is compiled once for all models.
using Handler = impl::FunctionRef<void(const Task&)>;

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/task.ipp>
#endif
