// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a cast action does: elements of one buffer as elements of another's type, in the form of a
/// Codec where one of them is a message at a cut.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/encoded.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/task.hpp>

namespace heddle::inline v0 {

namespace impl {

/// What a Codec may make of a wide type.
[[nodiscard]] inline bool is_narrow(Scalar type, Scalar wide) {
  return type >= Scalar::f16 || (type == Scalar::f32 && wide == Scalar::f64);
}

[[nodiscard]] inline bool has_doubles(const Task& task) {
  return task.schedule()[task.uses()[0].buffer].type == Scalar::f64 ||
         task.schedule()[task.uses()[1].buffer].type == Scalar::f64;
}

[[nodiscard]] inline Complaint bad_cast(const Task& task, const char* what) {
  const BoundUse& from = task.uses()[0];
  const BoundUse& into = task.uses()[1];
  return {text("heddle::cast, ", task.stage(), task.kind(), task.item()), what,
          text(from.bytes, " bytes of ", task.schedule()[from.buffer].type, ", ", into.bytes,
               " of ", task.schedule()[into.buffer].type)};
}

/// Calls `visit(encoded, offset)` for the encoded part or parts of use `narrow` of a task, where
/// `offset` is that of the wide elements in their use, in bytes. Parts without scales are one.
template <class Visit>
void for_encoded(const Task& task, std::size_t narrow, std::size_t wide, Visit&& visit) {
  const Schedule& schedule = task.schedule();
  const BoundUse& small = task.uses()[narrow];
  const BoundUse& large = task.uses()[wide];
  const Buffer& message = schedule[small.buffer];
  const Buffer& elements = schedule[large.buffer];
  const auto piece = [&](Bytes at, Bytes bytes, Bytes offset, Bytes wide_bytes) {
    const Bytes count = wide_bytes / size_of(elements.type);
    expects(encoded_bytes(message.type, message.block, count) == bytes,
            [&] { return bad_cast(task, "the two buffers have different numbers of elements"); });
    if (count > 0)
      visit(Encoded{.data = small.data + at,
                    .type = message.type,
                    .block = message.block,
                    .count = static_cast<std::size_t>(count)},
            offset);
  };
  if (message.block == 0) return piece(0, small.bytes, 0, large.bytes);
  const auto uses = schedule.uses(task.id());
  const Use& from = uses[narrow];
  const Use& of = uses[wide];
  expects(from.count == of.count,
          [&] { return bad_cast(task, "the two ranges have different numbers of parts"); });
  for (std::uint32_t part = 0; part < from.count; ++part)
    piece(part_bytes(message, from.first, part), part_bytes(message, from.first + part, 1),
          part_bytes(elements, of.first, part), part_bytes(elements, of.first + part, 1));
}

template <class Wide>
[[nodiscard]] Wide* at(const BoundUse& use, Bytes offset) {
  return reinterpret_cast<Wide*>(use.data + offset);
}

template <class Wide, class Run>
void encode_or_decode(const Task& task, bool encodes, Run& run) {
  const auto uses = task.uses();
  if (!encodes)
    return for_encoded(task, 0, 1, [&](const Encoded& from, Bytes offset) {
      run(Decode<Wide>{from, at<Wide>(uses[1], offset)});
    });
  for_encoded(task, 1, 0, [&](const Encoded& into, Bytes offset) {
    Wide* const elements = at<Wide>(uses[0], offset);
    Wide* const lost = uses.size() > 2 ? at<Wide>(uses[2], offset) : nullptr;
    Wide* const kept = uses[0].access == Access::update ? elements : nullptr;
    run(Encode<Wide>{into, elements, lost, kept});
  });
}

}  // namespace impl

/// Performs a cast task that cast_at_cut() has made: calls `run(body)` for each piece of it, in
/// order, where `body(i)` for every i < body.message.calls() is its work, in any order. Between
/// elements of type Wide, float or double, and one of the narrower f32, f16, bf16, f8e4m3, f8e5m2
/// and i8.
/// @throws contract_error for other types, or buffers of different numbers of elements.
template <std::floating_point Wide, class Run>
void cast(const Task& task, Run&& run) {
  const Scalar source = task.schedule()[task.uses()[0].buffer].type;
  const Scalar target = task.schedule()[task.uses()[1].buffer].type;
  const bool encodes = source == scalar_of<Wide> && impl::is_narrow(target, source);
  const bool decodes = target == scalar_of<Wide> && impl::is_narrow(source, target);
  expects(encodes || decodes,
          [&] { return impl::bad_cast(task, "no codec converts between these types"); });
  impl::encode_or_decode<Wide>(task, encodes, run);
}
/// Likewise, with double where one of the buffers has it, else with float.
template <class Run>
void cast(const Task& task, Run&& run) {
  impl::has_doubles(task) ? cast<double>(task, run) : cast<float>(task, run);
}

/// Which of the two uses of a combine task is merged into the other: the one that it only reads.
[[nodiscard]] inline std::size_t merged_use(const Task& task) {
  return task.uses()[0].access == Access::read ? 0 : 1;
}

/// True for a combine task that reads a message as it was received, in the form of a Codec.
[[nodiscard]] inline bool combines_encoded(const Task& task) {
  const Buffer& from = task.schedule()[task.uses()[0].buffer];
  return task.kind() == Kind::combine && from.type != task.schedule()[task.uses()[1].buffer].type;
}

/// Performs such a task by `reduction.join(into, number)` on elements of type Wide, decoding and
/// merging in one pass, in either order, for numbers commute; `run` is that of cast().
/// @throws contract_error as cast() does.
template <std::floating_point Wide, class Reduction, class Run>
void combine_encoded(const Task& task, const Reduction& reduction, Run&& run) {
  const std::size_t message = merged_use(task);
  const std::size_t sum = 1 - message;
  const Scalar source = task.schedule()[task.uses()[message].buffer].type;
  const Scalar target = task.schedule()[task.uses()[sum].buffer].type;
  expects(target == scalar_of<Wide> && impl::is_narrow(source, target),
          [&] { return impl::bad_cast(task, "no codec converts between these types"); });
  impl::for_encoded(task, message, sum, [&](const Encoded& from, Bytes offset) {
    run(CombineDecoded<Wide, Reduction>{from, impl::at<Wide>(task.uses()[sum], offset), reduction});
  });
}
/// Likewise, with double where one of the buffers has it, else with float.
template <class Reduction, class Run>
void combine_encoded(const Task& task, const Reduction& reduction, Run&& run) {
  impl::has_doubles(task) ? combine_encoded<double>(task, reduction, run)
                          : combine_encoded<float>(task, reduction, run);
}

/// A `run` for cast() and combine_encoded(): a plain loop.
struct RunOnHost {
  /// All calls of `body`, one after another.
  template <class Body>
  void operator()(const Body& body) const {
    for (std::size_t call = 0; call < body.message.calls(); ++call) body(call);
  }
};

/// The number `from` as an Into. To integers it rounds toward zero, as `static_cast` does; numbers
/// beyond the range become the end of it that is nearer, NaN becomes 0.
template <class Into, class From>
[[nodiscard]] constexpr Into saturating_cast(From from) noexcept {
  if constexpr (std::integral<Into> && std::floating_point<From>) {
    // The power of two above the largest Into is a float; the largest Into need not be.
    constexpr From above = static_cast<From>(std::numeric_limits<Into>::max() / 2 + 1) * 2;
    if (!(from == from)) return 0;
    if (from >= above) return std::numeric_limits<Into>::max();
    if (from < -above) return std::numeric_limits<Into>::min();
    return static_cast<Into>(from);
  } else if constexpr (std::integral<Into>) {
    using Limits = std::numeric_limits<Into>;
    return static_cast<Into>(
        std::clamp<std::int64_t>(from, std::int64_t{Limits::min()}, std::int64_t{Limits::max()}));
  } else {
    return static_cast<Into>(from);
  }
}

/// Performs a cast task by a plain loop. For handlers whose buffers are host memory. Messages of
/// cast_at_cut() have the form of their Codec; numbers of 4 and 8 bytes are cast to each other as
/// saturating_cast() does.
/// @throws contract_error for buffers of type byte, or of different numbers of elements.
inline void cast_on_host(const Task& task) {
  const BoundUse& from = task.uses()[0];
  const BoundUse& into = task.uses()[1];
  const Scalar source = task.schedule()[from.buffer].type;
  const Scalar target = task.schedule()[into.buffer].type;
  const auto is_plain = [](Scalar type) { return type != Scalar::byte && type < Scalar::f16; };
  expects(source != Scalar::byte && target != Scalar::byte,
          [&] { return impl::bad_cast(task, "bytes have no values to cast"); });
  const bool plain = is_plain(source) && is_plain(target) && task.uses().size() == 2 &&
                     from.access == Access::read;
  if (!plain) return cast(task, RunOnHost{});
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
        out[i] = saturating_cast<Into>(in[i]);
    });
  });
}

}  // namespace heddle::inline v0
