// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Joiner: the handler of a Schedule whose combines merge elements by a reduction.

#include <heddle/collective/impl/join_to.hpp>
#include <heddle/collective/internal/merging_in.hpp>
#include <heddle/collective/reduction.hpp>
#include <heddle/execute/task.hpp>

namespace heddle::inline v0::impl {

/// Performs the actions of a Schedule on elements of T in `MemorySpace`, see Instance::perform().
template <class Exec, class MemorySpace, class T, Reduction<T> R>
class Joiner {
 public:
  /// Refers to `exec`.
  Joiner(const Exec& exec, const R& reduction)
      : m_by(exec, reduction), m_loops(m_by.one_thread()) {}

  void operator()(const Task& task) const { m_by.perform(task, m_loops); }

 private:
  MergingIn<Exec, MemorySpace, T, R> m_by;
  bool m_loops;
};

}  // namespace heddle::inline v0::impl
