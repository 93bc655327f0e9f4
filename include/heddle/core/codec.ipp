// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of codec.hpp.

#include <ostream>

#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const Codec& codec) {
  out << codec.type;
  if (codec.block != 0) out << '/' << codec.block;
  return out << (codec.feedback ? " with feedback" : "") << (codec.agree ? " in agreement" : "");
}

HEDDLE_INLINE void check(const Codec& codec) {
  expects(impl::is_known(codec.type), [&] {
    return ErrorInfo{"heddle::Codec", "there is no such element type", text("type: ", codec.type)};
  });
  expects(codec.type != Scalar::byte, [] {
    return ErrorInfo{"heddle::Codec",
                     "elements of Scalar::byte have no numeric value to encode",
                     {},
                     "set Codec::type to a number type, such as Scalar::bf16"};
  });
  expects(codec.block == 0 || codec.type == Scalar::i8 || codec.type == Scalar::f8e4m3 ||
              codec.type == Scalar::f8e5m2,
          [&] {
            return ErrorInfo{"heddle::Codec",
                             "only one-byte types can have a scale per block of elements",
                             text("type ", codec.type, ", blocks of ", codec.block),
                             "use i8, f8e4m3 or f8e5m2, or set Codec::block to 0"};
          });
}

}  // namespace heddle::inline v0
