// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Units, the clock and element types. Times are in seconds unless a docstring says otherwise. If
/// formulas must hold exactly, the type of times is a template parameter, which is `Seconds` by
/// default.

#include <cstdint>
#include <iosfwd>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

using Seconds = double;       ///< a time or a duration
using Bytes = std::uint64_t;  ///< a size in memory or of a message

/// Returns the seconds of std::chrono::steady_clock. Its zero is arbitrary, but all processes of a
/// host have the same one.
[[nodiscard]] Seconds steady_seconds() noexcept;

/// The element type of a buffer. Reductions add elements, and buffers are cut between elements.
/// The types from f16 on are for storage and messages; nothing is computed in them.
enum class Scalar : std::uint8_t { byte, i32, i64, f32, f64, f16, bf16, f8e4m3, f8e5m2, i8 };

namespace impl {

/// Returns whether `scalar` is one of the types above, which an integer from elsewhere may not be.
[[nodiscard]] constexpr bool is_known(Scalar scalar) noexcept { return scalar <= Scalar::i8; }

}  // namespace impl

/// Returns the size of one element in bytes.
[[nodiscard]] constexpr Bytes size_of(Scalar scalar) noexcept {
  constexpr Bytes sizes[] = {1, 4, 8, 4, 8, 2, 2, 1, 1, 1};
  return sizes[static_cast<int>(scalar)];
}

/// The Scalar of a C++ type, or `Scalar::byte` if there is none for it. small_float.hpp defines it
/// for small floats.
template <class T>
inline constexpr Scalar scalar_of = Scalar::byte;
template <>
inline constexpr Scalar scalar_of<std::int32_t> = Scalar::i32;
template <>
inline constexpr Scalar scalar_of<std::int64_t> = Scalar::i64;
template <>
inline constexpr Scalar scalar_of<std::int8_t> = Scalar::i8;
template <>
inline constexpr Scalar scalar_of<float> = Scalar::f32;  ///< IEEE single
template <>
inline constexpr Scalar scalar_of<double> = Scalar::f64;  ///< IEEE double

/// Prints the name of the element type, such as `f32`.
std::ostream& operator<<(std::ostream& out, Scalar scalar);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_CORE
#include <heddle/core/units.ipp>
#endif
