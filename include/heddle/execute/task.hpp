// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Task: one action with its memory bound, as a handler sees it; and Handler, a callable for tasks.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// The memory of one Use.
struct BoundUse {
  std::byte* data = nullptr;     ///< where the first of its parts begins
  Bytes bytes = 0;               ///< the size of all its parts
  BufferId buffer = {};          ///< the buffer that has these parts
  Access access = Access::read;  ///< how the action touches them
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
    const BoundUse* use = find(label);
    expects(use != nullptr && use->bytes % sizeof(T) == 0, [&] {
      return ErrorInfo{text("heddle::Task ", stage(), kind(), item()),
                       use ? text("'", label, "' does not hold whole elements")
                           : text("the action uses no buffer '", label, "'"),
                       use ? text(use->bytes, " bytes, elements of ", sizeof(T)) : std::string{}};
    });
    return {reinterpret_cast<T*>(use->data), static_cast<std::size_t>(use->bytes / sizeof(T))};
  }

 private:
  [[nodiscard]] const BoundUse* find(std::string_view label) const {
    for (const BoundUse& use : m_uses)
      if ((*m_schedule)[(*m_schedule)[use.buffer].label] == label) return &use;
    return nullptr;
  }

  const Schedule* m_schedule;
  ActionId m_id;
  std::span<const BoundUse> m_uses;
};

/// A reference to any callable that takes a Task. It does not own the callable. With it the
/// executor is compiled once for all models.
class Handler {
 public:
  /// Refers to `callable`, which must outlive it.
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Handler> &&
           std::is_object_v<std::remove_reference_t<F>> && std::invocable<F&, const Task&>)
      Handler(F&& callable)
  noexcept  // NOLINT(google-explicit-constructor): it is a reference
      : m_object(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        m_call([](void* object, const Task& task) {
          (*static_cast<std::remove_reference_t<F>*>(object))(task);
        }) {}

  /// Calls a plain function.
  Handler(void (*function)(const Task&)) noexcept  // NOLINT(google-explicit-constructor)
      : m_object(reinterpret_cast<void*>(function)), m_call([](void* object, const Task& task) {
          reinterpret_cast<void (*)(const Task&)>(object)(task);
        }) {}

  /// Performs one action.
  void operator()(const Task& task) const { m_call(m_object, task); }

 private:
  void* m_object;
  void (*m_call)(void*, const Task&);
};

}  // namespace heddle::inline v0
