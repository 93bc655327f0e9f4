// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// combine(): performs a combine action. It adds buffers in the element type that the Schedule
/// states, or joins records.

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/cast.hpp>
#include <heddle/execute/task.hpp>

namespace heddle::inline v0 {

/// Calls `add(from, into, count)` with the memory of a combine task as elements of the type of its
/// buffers. `add` adds `from[i]` to `into[i]` for every i < count. `into` is the use that the task
/// updates.
/// @throws contract_error for bytes and for types of storage only, because they cannot be added,
///         and for records, because combine_records() joins them.
template <class Add>
requires std::invocable<Add&, const double*, double*, std::size_t>
void combine(const Task& task, Add&& add) {
  const BoundUse& from = task.uses()[impl::merged_use(task)];
  const BoundUse& into = task.uses()[1 - impl::merged_use(task)];
  expects(task.schedule()[into.buffer].record == 0, [&] {
    return ErrorInfo{text("heddle::combine, ", task.stage(), task.kind(), task.item()),
                     "records cannot be added number by number",
                     text("records of ", task.schedule()[into.buffer].record, " elements"),
                     "call combine_records() in the handler"};
  });
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

namespace impl {

/// Returns true for a combine task whose values are records: Buffer::record elements each.
[[nodiscard]] bool combines_records(const Task& task);

}  // namespace impl

/// Calls `join(from, into, length)` for every record of a combine task, in memory order. `join`
/// must replace the `length` elements at `into` by the join of `from` and `into`, and must be
/// associative. If `join` is not commutative, it must keep the order of the operands, which the
/// task states: `from` comes first if it is the second use of the task, see Rounds. T is the
/// element type.
/// @throws contract_error if the two buffers do not have records of the same length with elements
///         of type T, or if the ranges have different numbers of records.
template <class T, class Join>
requires std::invocable<Join&, const T*, T*, std::size_t>
void combine_records(const Task& task, Join&& join) {
  const BoundUse& from = task.uses()[impl::merged_use(task)];
  const BoundUse& into = task.uses()[1 - impl::merged_use(task)];
  const Buffer& source = task.schedule()[from.buffer];
  const Buffer& target = task.schedule()[into.buffer];
  const std::size_t length = target.record;
  const Bytes bytes = length * sizeof(T);
  const auto is_of = [](const Buffer& buffer) {
    return scalar_of<T> != Scalar::byte && buffer.type == scalar_of<T>;
  };
  expects(length != 0 && source.record == target.record && is_of(source) && is_of(target) &&
              from.bytes == into.bytes && into.bytes % bytes == 0,
          [&] {
            return ErrorInfo{
                text("heddle::combine_records, ", task.stage(), task.kind(), task.item()),
                "the two ranges do not hold records of the same type and size",
                text(from.bytes, " bytes in records of ", source.record, ' ', source.type, ", ",
                     into.bytes, " bytes in records of ", target.record, ' ', target.type,
                     "; expected elements of ", scalar_of<T>)};
          });
  const auto* next = reinterpret_cast<const T*>(from.data);
  auto* joined = reinterpret_cast<T*>(into.data);
  for (Bytes record = 0; record < into.bytes / bytes; ++record, next += length, joined += length)
    join(next, joined, length);
}

/// Performs a combine task by a plain loop, for handlers whose buffers are host memory. A message
/// in the form of a Codec is decoded and added in one pass.
void combine_on_host(const Task& task);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/combine.ipp>
#endif
