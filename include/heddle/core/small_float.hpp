// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Floating-point types of one and two bytes, for storage and messages: f16, bf16, f8e4m3, f8e5m2.
/// They have no arithmetic; convert to float to compute.

#include <concepts>
#include <cstdint>
#include <type_traits>

#include <heddle/core/function.hpp>
#include <heddle/core/impl/bit_cast.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// How a small float represents numbers beyond its range.
enum class Beyond : std::uint8_t {
  infinity,  ///< as infinities, like IEEE 754
  largest,   ///< as the largest number of their sign, because the type has no infinity
};

/// A floating-point number of a sign, `ExponentBits` and `MantissaBits`, as in IEEE 754: with a
/// biased exponent, a hidden one and gradual underflow. In a type without infinities only the
/// pattern of all ones is a NaN, as in the E4M3 of the Open Compute Project's OFP8 specification
/// (revision 1.0), which calls such conversions saturating.
///
/// Conversions from float and double round once, to nearest, ties to even. Conversions to float and
/// double are exact. A NaN stays a NaN of the same sign. Conversions are constant expressions
/// without branches, so that loops over them vectorise. Kernels may call them on every device.
template <int ExponentBits, int MantissaBits, Beyond beyond>
class SmallFloat {
 public:
  /// The type of the bit pattern: sign, exponent, mantissa.
  using Pattern =
      std::conditional_t<(ExponentBits + MantissaBits < 8), std::uint8_t, std::uint16_t>;

  /// Leaves the value undefined, as for a float.
  SmallFloat() = default;
  /// Rounds `number` to the nearest value.
  template <std::floating_point Float>
  HEDDLE_FUNCTION constexpr explicit SmallFloat(Float number) noexcept
      : m_pattern(nearest(number)) {}
  /// Returns the number with this bit pattern.
  [[nodiscard]] HEDDLE_FUNCTION static constexpr SmallFloat of_pattern(Pattern pattern) noexcept {
    SmallFloat result;
    result.m_pattern = pattern;
    return result;
  }

  /// Returns the bit pattern.
  [[nodiscard]] HEDDLE_FUNCTION constexpr Pattern pattern() const noexcept { return m_pattern; }
  /// Returns the same number in a wider type.
  template <std::floating_point Float>
  [[nodiscard]] HEDDLE_FUNCTION constexpr explicit operator Float() const noexcept {
    using W = Wide<float>;
    constexpr std::uint32_t rebias = W::bias - bias;
    const std::uint32_t magnitude = m_pattern & (sign - 1u);
    const std::uint32_t wide = magnitude << (W::digits - MantissaBits);
    if constexpr (rebias == 0)
      return static_cast<Float>(
          impl::bit_cast<float>(std::uint32_t{m_pattern} << (W::digits - MantissaBits)));
    // The subtraction finds the leading one of a subnormal number.
    constexpr std::uint32_t hidden = (rebias + 1) << W::digits;
    const auto tiny = impl::bit_cast<std::uint32_t>(impl::bit_cast<float>(wide + hidden) -
                                                    impl::bit_cast<float>(hidden));
    std::uint32_t result =
        select(magnitude < (1u << MantissaBits), tiny, wide + (rebias << W::digits));
    if constexpr (beyond == Beyond::infinity)
      result = select(magnitude >= infinite, wide | W::infinite, result);
    else
      result = select(magnitude == sign - 1, W::infinite | (W::infinite >> 1), result);
    const std::uint32_t minus = (m_pattern & sign) << (31 - ExponentBits - MantissaBits);
    return static_cast<Float>(impl::bit_cast<float>(result | minus));
  }

  /// Returns the largest finite number.
  [[nodiscard]] HEDDLE_FUNCTION static constexpr SmallFloat max() noexcept {
    return of_pattern(static_cast<Pattern>(beyond == Beyond::infinity ? infinite - 1 : sign - 2));
  }

 private:
  static constexpr std::uint32_t bias = (1u << (ExponentBits - 1)) - 1;
  static constexpr std::uint32_t sign = 1u << (ExponentBits + MantissaBits);
  static constexpr std::uint32_t infinite = ((1u << ExponentBits) - 1) << MantissaBits;

  /// Returns yes or no by `condition`, without a branch on every compiler.
  template <class Word>
  HEDDLE_FUNCTION static constexpr Word select(bool condition, Word yes, Word no) noexcept {
    return no ^ ((no ^ yes) & (Word{0} - Word{condition}));
  }

  /// The wide format of a conversion.
  template <class Float>
  struct Wide {
    static_assert(sizeof(Float) == 4 || sizeof(Float) == 8,
                  "heddle::SmallFloat: convert to float or double first");
    using Word = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;
    static constexpr int digits = sizeof(Float) == 4 ? 23 : 52;
    static constexpr Word bias = sizeof(Float) == 4 ? 127 : 1023;
    static constexpr Word infinite = (2 * bias + 1) << digits;
  };

  template <class Float>
  HEDDLE_FUNCTION static constexpr Pattern nearest(Float number) noexcept {
    using W = Wide<Float>;
    using Word = typename W::Word;
    constexpr int shift = W::digits - MantissaBits;
    constexpr Word one = 1;
    constexpr Word nan =
        beyond == Beyond::infinity ? infinite | 1u << (MantissaBits - 1) : sign - 1;
    const auto bits = impl::bit_cast<Word>(number);
    const Word magnitude = bits & ~(one << (8 * sizeof(Word) - 1));
    const Word minus = (bits >> (8 * sizeof(Word) - 1)) * sign;
    // If both formats have the same exponents, subnormal numbers and numbers beyond the range are
    // cut like all others, and the sign keeps its place.
    if constexpr (W::bias == bias) {
      const Word cut = (bits + ((one << (shift - 1)) - 1) + ((bits >> shift) & 1)) >> shift;
      return static_cast<Pattern>(select(magnitude > W::infinite, nan | minus, cut));
    }
    // A carry out of the mantissa is the next exponent, as it should be.
    const Word rounded = magnitude + ((one << (shift - 1)) - 1) + ((magnitude >> shift) & 1);
    const Word normal = (rounded >> shift) - ((W::bias - bias) << MantissaBits);
    // A number below the least normal number is added to a number whose last bit is the least
    // subnormal; the addition rounds it.
    constexpr Word least = (W::bias + 1 - bias) << W::digits;
    constexpr Word coarse = least + (Word{static_cast<Word>(shift)} << W::digits);
    const Word small = select(magnitude < least, magnitude, Word{0});
    const Word tiny =
        impl::bit_cast<Word>(impl::bit_cast<Float>(small) + impl::bit_cast<Float>(coarse)) - coarse;
    Word result = select(magnitude < least, tiny, normal);
    if constexpr (beyond == Beyond::infinity) {
      result = select(result < infinite, result, Word{infinite});
    } else {
      result = select(result < sign - 2, result, Word{sign - 2});
    }
    result = select(magnitude > W::infinite, nan, result);
    return static_cast<Pattern>(result | minus);
  }

  Pattern m_pattern;
};

using f16 = SmallFloat<5, 10, Beyond::infinity>;    ///< IEEE half: 11 bits, up to 65504
using bf16 = SmallFloat<8, 7, Beyond::infinity>;    ///< the upper half of a float: 8 bits
using f8e4m3 = SmallFloat<4, 3, Beyond::largest>;   ///< OFP8's E4M3: 4 bits, up to 448
using f8e5m2 = SmallFloat<5, 2, Beyond::infinity>;  ///< OFP8's E5M2: 3 bits, up to 57344

template <>
inline constexpr Scalar scalar_of<f16> = Scalar::f16;  ///< IEEE half
template <>
inline constexpr Scalar scalar_of<bf16> = Scalar::bf16;  ///< bfloat16
template <>
inline constexpr Scalar scalar_of<f8e4m3> = Scalar::f8e4m3;  ///< OFP8
template <>
inline constexpr Scalar scalar_of<f8e5m2> = Scalar::f8e5m2;  ///< OFP8

}  // namespace heddle::inline v0
