// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a combine does in host memory: adds one range into another, element by element.

#include <cstddef>
#include <cstdint>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/task.hpp>

namespace heddle::inline v0 {

/// Performs a combine task: its first use is added into its second. For handlers whose buffers are
/// host memory. @throws contract_error for buffers of type byte, which cannot be added.
inline void combine_on_host(const Task& task) {
  const BoundUse& from = task.uses()[0];
  const BoundUse& into = task.uses()[1];
  const auto add = [&]<class T>(T) {
    const T* const source = reinterpret_cast<const T*>(from.data);
    T* const target = reinterpret_cast<T*>(into.data);
    const std::size_t count = into.bytes / sizeof(T);
    for (std::size_t i = 0; i < count; ++i) target[i] += source[i];
  };
  const Scalar type = task.schedule()[into.buffer].type;
  switch (type) {
    case Scalar::f32: return add(float{});
    case Scalar::f64: return add(double{});
    case Scalar::i32: return add(std::int32_t{});
    case Scalar::i64: return add(std::int64_t{});
    case Scalar::byte: break;
  }
  throw contract_error({text("heddle::combine_on_host, ", task.stage(), task.kind(), task.item()),
                        "the buffer's elements cannot be added", text("type ", type)});
}

}  // namespace heddle::inline v0
