// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of combine.hpp.

#include <cstddef>

#include <heddle/core/encoded.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/cast.hpp>
#include <heddle/execute/combine.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE bool impl::combines_records(const Task& task) {
  return task.kind() == Kind::combine &&
         task.schedule()[task.uses()[1 - impl::merged_use(task)].buffer].record != 0;
}

HEDDLE_INLINE void combine_on_host(const Task& task) {
  if (impl::combines_encoded(task))
    return impl::combine_encoded(task, impl::AddNumber{}, impl::RunOnHost{});
  combine(task, []<class T>(const T* from, T* into, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) into[i] += from[i];
  });
}

}  // namespace heddle::inline v0
