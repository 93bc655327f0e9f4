// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a cast action does: elements of one buffer as elements of another's type.

#include <cstddef>
#include <cstdint>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/task.hpp>

namespace heddle::inline v0 {

/// Performs a cast task by a plain loop, as `static_cast` rounds. For handlers whose buffers are
/// host memory.
/// @throws contract_error for buffers of type byte, or of different numbers of elements.
inline void cast_on_host(const Task& task) {
  const BoundUse& from = task.uses()[0];
  const BoundUse& into = task.uses()[1];
  const Scalar source = task.schedule()[from.buffer].type;
  const Scalar target = task.schedule()[into.buffer].type;
  const auto fail = [&](const char* what) {
    return Complaint{text("heddle::cast_on_host, ", task.stage(), task.kind(), task.item()), what,
                     text(from.bytes, " bytes of ", source, ", ", into.bytes, " of ", target)};
  };
  expects(from.bytes / size_of(source) == into.bytes / size_of(target),
          [&] { return fail("the two buffers have different numbers of elements"); });
  const auto typed = [&](Scalar type, auto&& call) {
    switch (type) {
      case Scalar::f32: return call(float{});
      case Scalar::f64: return call(double{});
      case Scalar::i32: return call(std::int32_t{});
      case Scalar::i64: return call(std::int64_t{});
      default: break;
    }
    throw contract_error(fail("bytes have no values to cast"));
  };
  typed(source, [&]<class From>(From) {
    typed(target, [&]<class Into>(Into) {
      const auto* const in = reinterpret_cast<const From*>(from.data);
      auto* const out = reinterpret_cast<Into*>(into.data);
      for (std::size_t i = 0; i < into.bytes / sizeof(Into); ++i) out[i] = static_cast<Into>(in[i]);
    });
  });
}

}  // namespace heddle::inline v0
