// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Units and element types. Times are seconds unless a docstring says otherwise; where formulas
/// must hold exactly the time type is a template parameter, `Seconds` by default.

#include <cstdint>
#include <ostream>

namespace heddle::inline v0 {

using Seconds = double;       ///< a time or a duration
using Bytes = std::uint64_t;  ///< a size in memory or of a message

/// The element type of a buffer: what a reduction adds, and the unit in which a buffer is cut.
/// Those from f16 on are for storage and messages; nothing is computed in them.
enum class Scalar : std::uint8_t { byte, i32, i64, f32, f64, f16, bf16, f8e4m3, f8e5m2, i8 };

/// Size of one element.
[[nodiscard]] constexpr Bytes size_of(Scalar scalar) noexcept {
  constexpr Bytes sizes[] = {1, 4, 8, 4, 8, 2, 2, 1, 1, 1};
  return sizes[static_cast<int>(scalar)];
}

/// The Scalar of a C++ type; `Scalar::byte` for a type that is none of them. Those of the small
/// floats stand in small_float.hpp.
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

/// The element type's name, `f32`.
inline std::ostream& operator<<(std::ostream& out, Scalar scalar) {
  constexpr const char* names[] = {"byte", "i32",  "i64",    "f32",    "f64",
                                   "f16",  "bf16", "f8e4m3", "f8e5m2", "i8"};
  return out << names[static_cast<int>(scalar)];
}

}  // namespace heddle::inline v0
