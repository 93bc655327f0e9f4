// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Codec: how messages over slow links are made smaller. Says the form of what travels; encoded.hpp
/// makes it.

#include <cstdint>
#include <ostream>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// The form in which elements cross a cut: `{Scalar::bf16}`, or with a scale for every 64 of them
/// `{.type = Scalar::i8, .block = 64}`.
///
/// Scales are powers of two, one byte for each block of a part, as E8M0 of the Open Compute
/// Project's Microscaling specification (revision 1.0): 2^(byte - 127), 255 is NaN. A block's scale
/// is the least one from 2^-126 up with which its largest magnitude fits the type, so nothing
/// saturates. Error of an element x in a block whose largest magnitude is m, for m > 2^-110:
///
/// - i8: at most half a scale, m / 127;
/// - f8e4m3: at most max(|x| / 16, m / 2^17.8), f8e5m2: at most max(|x| / 8, m / 2^31.8).
///
/// A block that holds an infinity or a NaN arrives as NaNs. Encoding what was decoded gives the
/// same numbers: a value can cross any number of cuts and is rounded once.
///
/// Without blocks an element is cast on its own and its range is the type's: see SmallFloat; i8 is
/// rounded to nearest even and saturates at +-127, NaN becomes 0.
struct Codec {
  Scalar type = Scalar::f16;  ///< what elements become
  std::uint32_t block = 0;    ///< elements that share a scale; 0: no scales. For one-byte types
  /// What a message lost by rounding is kept and added to the next one from the same place, in the
  /// next step: error feedback, for sums over many steps (Seide et al., Interspeech 2014).
  bool feedback = false;
  /// The sender keeps what the receiver gets, not what it had: both ends hold the same numbers
  /// afterwards, as replicas must that have summed their gradients. See cast_at_cut().
  bool agree = false;

  friend constexpr bool operator==(const Codec&, const Codec&) = default;
};

/// Bytes of `elements` elements of `type`, with a byte before them for every `block` of them.
[[nodiscard]] constexpr Bytes encoded_bytes(Scalar type, std::uint32_t block,
                                            Bytes elements) noexcept {
  return elements * size_of(type) + (block == 0 ? 0 : (elements + block - 1) / block);
}

/// As it is written: `i8/64`, and what it keeps.
inline std::ostream& operator<<(std::ostream& out, const Codec& codec) {
  out << codec.type;
  if (codec.block != 0) out << '/' << codec.block;
  return out << (codec.feedback ? " with feedback" : "") << (codec.agree ? " in agreement" : "");
}

/// Refuses a codec of bytes, or with blocks of elements larger than one byte.
inline void check(const Codec& codec) {
  expects(codec.type != Scalar::byte, [] {
    return Complaint{"heddle::Codec", "bytes have no values to encode", {}, "name a number type"};
  });
  expects(codec.block == 0 || codec.type == Scalar::i8 || codec.type == Scalar::f8e4m3 ||
              codec.type == Scalar::f8e5m2,
          [&] {
            return Complaint{"heddle::Codec", "only types of one byte have scales",
                             text("type ", codec.type, ", blocks of ", codec.block),
                             "use i8, f8e4m3 or f8e5m2, or no blocks"};
          });
}

}  // namespace heddle::inline v0
