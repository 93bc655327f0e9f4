// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Codec: how elements are compressed in messages over slow links. It describes the format, and
/// encoded.hpp encodes and decodes it.

#include <cstdint>
#include <iosfwd>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// The format in which elements cross a cut: `{Scalar::bf16}`, or, with one scale for every 64
/// elements, `{.type = Scalar::i8, .block = 64}`.
///
/// Scales are powers of two, one byte for each block of a part, as E8M0 of the Open Compute
/// Project's Microscaling specification (revision 1.0): 2^(byte - 127), and 255 is NaN. The scale
/// of a block is the least one from 2^-126 up with which the block's largest magnitude fits the
/// type, so nothing saturates. If the largest magnitude m of a block is above 2^-110, the error of
/// an element x of the block is:
///
/// - i8: at most half a scale, m / 127;
/// - f8e4m3: at most max(|x| / 16, m / 2^17.8), f8e5m2: at most max(|x| / 8, m / 2^31.8).
///
/// If a block holds an infinity or a NaN, all of its elements arrive as NaN. Encoding is
/// idempotent: decoded numbers are encoded without a further error, so a value can cross any number
/// of cuts and is rounded once.
///
/// Without blocks, each element is cast on its own and has the range of the type; see SmallFloat.
/// Elements of i8 are rounded to nearest even and saturate at +-127, and NaN becomes 0.
struct Codec {
  Scalar type = Scalar::f16;  ///< the element type in messages
  std::uint32_t block = 0;    ///< elements that share a scale (one-byte types only); 0: no scales
  /// Enables error feedback: the sender keeps the rounding error of a message and adds it to the
  /// message from the same place in the next step (Seide et al., Interspeech 2014). This helps sums
  /// over many steps.
  bool feedback = false;
  /// If true, the sender replaces its values by the rounded values that the receiver gets, so both
  /// hold the same numbers. Replicas need this when they sum their gradients. See cast_at_cut().
  bool agree = false;

  friend constexpr bool operator==(const Codec&, const Codec&) = default;
};

namespace impl {

/// Returns the bytes of `elements` elements of `type` and of the scales in front of them, which
/// have one byte for every `block` elements.
[[nodiscard]] constexpr Bytes encoded_bytes(Scalar type, std::uint32_t block,
                                            Bytes elements) noexcept {
  return elements * size_of(type) + (block == 0 ? 0 : (elements + block - 1) / block);
}

}  // namespace impl

/// Prints the type, the block and the options, such as `i8/64 with feedback`.
std::ostream& operator<<(std::ostream& out, const Codec& codec);

/// Checks a codec. @throws contract_error if its type is Scalar::byte, or if it has blocks and its
///         type is larger than one byte.
void check(const Codec& codec);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_CORE
#include <heddle/core/codec.ipp>
#endif
