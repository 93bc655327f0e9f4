// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// cast(): performs a cast action. It converts the elements of one buffer to the type of another.
/// If one of them is a message at a cut, it has the form of a Codec.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/encoded.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/task.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns true if a Codec may encode elements of type `wide` as `type`.
[[nodiscard]] inline bool is_narrow(Scalar type, Scalar wide) {
  return type >= Scalar::f16 || (type == Scalar::f32 && wide == Scalar::f64);
}

/// Returns true if one of the two buffers of a task has elements of type double.
[[nodiscard]] bool has_doubles(const Task& task);

/// Returns the complaint `what` about the buffers of a task.
[[nodiscard]] ErrorInfo bad_cast(const Task& task, const char* what);

/// Calls `visit(encoded, offset)` for every encoded part of use `narrow` of a task. `offset` is the
/// offset of the wide elements in their use, in bytes. Parts without scales count as one part.
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
    piece(schedule::part_bytes(message, from.first, part),
          schedule::part_bytes(message, from.first + part, 1),
          schedule::part_bytes(elements, of.first, part),
          schedule::part_bytes(elements, of.first + part, 1));
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
      run(impl::Decode<Wide>{from, at<Wide>(uses[1], offset)});
    });
  for_encoded(task, 1, 0, [&](const Encoded& into, Bytes offset) {
    Wide* const elements = at<Wide>(uses[0], offset);
    Wide* const lost = uses.size() > 2 ? at<Wide>(uses[2], offset) : nullptr;
    Wide* const kept = uses[0].access == Access::update ? elements : nullptr;
    run(impl::Encode<Wide>{into, elements, lost, kept});
  });
}

}  // namespace impl

/// Performs a cast task that cast_at_cut() has made. It calls `run(body)` for each piece of the
/// task, in order. `run` must call `body(i)` for every i < body.message.calls(), in any order. The
/// cast is between elements of type Wide (float or double) and a narrower type: f32, f16, bf16,
/// f8e4m3, f8e5m2 or i8.
/// @throws contract_error for other types, or if the buffers have different numbers of elements.
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
/// Performs a cast task with Wide = double if one of the buffers has elements of type double, else
/// with float.
template <class Run>
void cast(const Task& task, Run&& run) {
  impl::has_doubles(task) ? cast<double>(task, run) : cast<float>(task, run);
}

namespace impl {

/// Returns the number of the use of a combine task that is merged into the other use: the one that
/// the task only reads.
[[nodiscard]] std::size_t merged_use(const Task& task);

/// Returns true for a combine task that reads a message as it was received, in the form of a Codec.
[[nodiscard]] bool combines_encoded(const Task& task);

/// Performs a combine task of which combines_encoded() is true, by `reduction.join(into, number)`
/// on elements of type Wide. It decodes and merges in one pass. The order of the two operands does
/// not matter, because the reduction is commutative. `run` is called as by cast().
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
    run(impl::CombineDecoded<Wide, Reduction>{from, impl::at<Wide>(task.uses()[sum], offset),
                                              reduction});
  });
}

/// Performs a combine task of which combines_encoded() is true, with Wide = double if one of the
/// buffers has elements of type double, else with float.
template <class Reduction, class Run>
void combine_encoded(const Task& task, const Reduction& reduction, Run&& run) {
  impl::has_doubles(task) ? combine_encoded<double>(task, reduction, run)
                          : combine_encoded<float>(task, reduction, run);
}

/// A `run` for cast() and combine_encoded() that is a plain loop.
struct RunOnHost {
  /// Makes all calls of `body`, one after another.
  template <class Body>
  void operator()(const Body& body) const {
    for (std::size_t call = 0; call < body.message.calls(); ++call) body(call);
  }
};

/// Returns the number `from` as an Into. A conversion to an integer rounds toward zero, as
/// `static_cast` does. A number beyond the range becomes the nearest end of the range, and NaN
/// becomes 0.
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
    constexpr std::int64_t least = Limits::min();
    constexpr std::int64_t most = Limits::max();
    const std::int64_t whole = from;
    return static_cast<Into>(whole < least ? least : most < whole ? most : whole);
  } else {
    return static_cast<Into>(from);
  }
}

}  // namespace impl

/// Performs a cast task by a plain loop, for handlers whose buffers are host memory. Messages of
/// cast_at_cut() have the form of their Codec. Numbers of 4 and 8 bytes are converted to each other
/// as by saturating_cast().
/// @throws contract_error for buffers of type byte, or of different numbers of elements.
void cast_on_host(const Task& task);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/cast.ipp>
#endif
