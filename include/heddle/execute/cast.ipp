// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of cast.hpp.

#include <cstddef>
#include <cstdint>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/cast.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE bool impl::has_doubles(const Task& task) {
  return task.schedule()[task.uses()[0].buffer].type == Scalar::f64 ||
         task.schedule()[task.uses()[1].buffer].type == Scalar::f64;
}

HEDDLE_INLINE ErrorInfo impl::bad_cast(const Task& task, const char* what) {
  const BoundUse& from = task.uses()[0];
  const BoundUse& into = task.uses()[1];
  return {text("heddle::cast, ", task.stage(), task.kind(), task.item()), what,
          text(from.bytes, " bytes of ", task.schedule()[from.buffer].type, ", ", into.bytes,
               " of ", task.schedule()[into.buffer].type)};
}

namespace impl {

HEDDLE_INLINE std::size_t merged_use(const Task& task) {
  return task.uses()[0].access == Access::read ? 0 : 1;
}

HEDDLE_INLINE bool combines_encoded(const Task& task) {
  const Buffer& from = task.schedule()[task.uses()[0].buffer];
  return task.kind() == Kind::combine && from.type != task.schedule()[task.uses()[1].buffer].type;
}

}  // namespace impl

HEDDLE_INLINE void cast_on_host(const Task& task) {
  const BoundUse& from = task.uses()[0];
  const BoundUse& into = task.uses()[1];
  const Scalar source = task.schedule()[from.buffer].type;
  const Scalar target = task.schedule()[into.buffer].type;
  const auto is_plain = [](Scalar type) { return type != Scalar::byte && type < Scalar::f16; };
  expects(source != Scalar::byte && target != Scalar::byte,
          [&] { return impl::bad_cast(task, "bytes have no values to cast"); });
  const bool plain = is_plain(source) && is_plain(target) && task.uses().size() == 2 &&
                     from.access == Access::read;
  if (!plain) return cast(task, impl::RunOnHost{});
  expects(from.bytes / size_of(source) == into.bytes / size_of(target), [&] {
    return impl::bad_cast(task, "the two buffers have different numbers of elements");
  });
  const auto typed = [&](Scalar type, auto&& call) {
    switch (type) {
      case Scalar::f32: return call(float{});
      case Scalar::f64: return call(double{});
      case Scalar::i32: return call(std::int32_t{});
      default: return call(std::int64_t{});
    }
  };
  typed(source, [&]<class From>(From) {
    typed(target, [&]<class Into>(Into) {
      const auto* const in = reinterpret_cast<const From*>(from.data);
      auto* const out = reinterpret_cast<Into*>(into.data);
      for (std::size_t i = 0; i < into.bytes / sizeof(Into); ++i)
        out[i] = impl::saturating_cast<Into>(in[i]);
    });
  });
}

}  // namespace heddle::inline v0
