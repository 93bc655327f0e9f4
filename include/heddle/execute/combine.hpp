// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a combine action does: sums of buffers, in the element type that the Schedule states.

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/cast.hpp>
#include <heddle/execute/task.hpp>

namespace heddle::inline v0 {

/// Calls `add(from, into, count)` with the memory of a combine task as elements of its buffers'
/// type: `from[i]` is to be added to `into[i]`, i < count. `into` is the one of its two uses that
/// is updated.
/// @throws contract_error for bytes and for types of storage only, which cannot be added.
template <class Add>
requires std::invocable<Add&, const double*, double*, std::size_t>
void combine(const Task& task, Add&& add) {
  const BoundUse& from = task.uses()[merged_use(task)];
  const BoundUse& into = task.uses()[1 - merged_use(task)];
  const auto as = [&]<class T>(T) {
    add(reinterpret_cast<const T*>(from.data), reinterpret_cast<T*>(into.data),
        static_cast<std::size_t>(into.bytes / sizeof(T)));
  };
  const Scalar type = task.schedule()[into.buffer].type;
  switch (type) {
    case Scalar::f32: return as(float{});
    case Scalar::f64: return as(double{});
    case Scalar::i32: return as(std::int32_t{});
    case Scalar::i64: return as(std::int64_t{});
    default: break;
  }
  throw contract_error({text("heddle::combine, ", task.stage(), task.kind(), task.item()),
                        "the buffer's elements cannot be added", text("type ", type)});
}

/// Performs a combine task by a plain loop. For handlers whose buffers are host memory. A message
/// in the form of a Codec is decoded and added in one pass.
inline void combine_on_host(const Task& task) {
  if (combines_encoded(task)) return combine_encoded(task, AddNumber{}, RunOnHost{});
  combine(task, []<class T>(const T* from, T* into, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) into[i] += from[i];
  });
}

}  // namespace heddle::inline v0
