// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Encode, Decode and CombineDecoded: the loops of a Codec. An object stands for a range of
/// elements and is called once for each block. Handlers run them on the host or as kernels.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <heddle/core/function.hpp>
#include <heddle/core/impl/bit_cast.hpp>
#include <heddle/core/small_float.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// Encoded elements: the scales, then the values. It refers to memory with the alignment of the
/// values' type.
struct Encoded {
  std::byte* data = nullptr;    ///< the scales, or the values if there are no scales
  Scalar type = Scalar::byte;   ///< the type of the values
  std::uint32_t block = 0;      ///< values that share a scale; 0: no scales
  std::size_t count = 0;        ///< number of values
  std::size_t together = 4096;  ///< values that one call treats, if there are no scales

  /// Returns the number of calls of an Encode, Decode or CombineDecoded object that cover all
  /// values.
  [[nodiscard]] HEDDLE_FUNCTION std::size_t calls() const { return (count + step() - 1) / step(); }
  /// Returns the number of values of a call.
  [[nodiscard]] HEDDLE_FUNCTION std::size_t step() const { return block == 0 ? together : block; }
  /// Returns the index of the first value of call number `call`.
  [[nodiscard]] HEDDLE_FUNCTION std::size_t begin(std::size_t call) const { return call * step(); }
  /// Returns one more than the index of the last value of call number `call`.
  [[nodiscard]] HEDDLE_FUNCTION std::size_t end(std::size_t call) const {
    return count - begin(call) < step() ? count : begin(call) + step();
  }
  /// Returns the values, as elements of type T.
  template <class T>
  [[nodiscard]] HEDDLE_FUNCTION T* values() const {
    return reinterpret_cast<T*>(data + (block == 0 ? 0 : calls()));
  }
};

namespace impl {

/// Returns the scale that a byte encodes.
HEDDLE_FUNCTION inline float scale_of(std::byte byte) {
  const auto exponent = static_cast<std::uint32_t>(byte);
  return impl::bit_cast<float>(exponent << 23 | (exponent == 255 ? 1u << 22 : 0));
}

/// Returns the largest number of a type, for the choice of scales.
HEDDLE_FUNCTION constexpr float largest(Scalar type) {
  return type == Scalar::i8 ? 127.0F : type == Scalar::f8e4m3 ? 448.0F : 57344.0F;
}

/// Returns the byte of the least scale with which the magnitude `most` fits `type`, or 255 if
/// `most` is not finite. `most` is given as the bits of a float.
HEDDLE_FUNCTION inline std::byte scale_for(std::int32_t most, Scalar type) {
  constexpr std::int32_t infinite = 0x7f800000, mantissa = 0x007fffff;
  if (most >= infinite) return std::byte{255};
  // The bits of floats have the order of the numbers, so the exponent of a quotient, rounded up, is
  // a difference.
  const std::int32_t exponent =
      ((most + mantissa - impl::bit_cast<std::int32_t>(largest(type))) >> 23) + 127;
  return static_cast<std::byte>(exponent < 1 ? 1 : exponent);
}

/// Returns the nearest value of the narrow type.
template <class Narrow, class Wide>
HEDDLE_FUNCTION Narrow narrowed(Wide number) {
  if constexpr (std::same_as<Narrow, std::int8_t>) {
    const Wide low = number > Wide(-127) ? number : Wide(-127);
    const Wide within = low < Wide(127) ? low : Wide(127);
    const Wide safe = number == number ? within : Wide(0);
    // Numbers of this size have no fractions, so the addition rounds to even.
    constexpr Wide coarse = sizeof(Wide) == 4 ? Wide(12582912.0) : Wide(6755399441055744.0);
    return static_cast<std::int8_t>(static_cast<int>((safe + coarse) - coarse));
  } else {
    return static_cast<Narrow>(number);
  }
}

/// Calls `visit(i, number)` for the decoded numbers of a call.
template <class Wide, class Narrow, class Visit>
HEDDLE_FUNCTION void decode(const Encoded& from, std::size_t call, const Visit& visit) {
  const Narrow* const values = from.values<const Narrow>();
  const Wide scale = from.block == 0 ? Wide(1) : static_cast<Wide>(scale_of(from.data[call]));
  const std::size_t end = from.end(call);
  for (std::size_t i = from.begin(call); i < end; ++i)
    visit(i, static_cast<Wide>(values[i]) * scale);
}
/// Calls `visit(i, number)` for the decoded numbers of a call, with the type that `from` states.
template <class Wide, class Visit>
HEDDLE_FUNCTION void decode(const Encoded& from, std::size_t call, const Visit& visit) {
  switch (from.type) {
    case Scalar::f16: return decode<Wide, f16>(from, call, visit);
    case Scalar::bf16: return decode<Wide, bf16>(from, call, visit);
    case Scalar::f8e4m3: return decode<Wide, f8e4m3>(from, call, visit);
    case Scalar::f8e5m2: return decode<Wide, f8e5m2>(from, call, visit);
    case Scalar::i8: return decode<Wide, std::int8_t>(from, call, visit);
    default: return decode<Wide, float>(from, call, visit);
  }
}

template <class Wide>
struct Store {
  Wide* into;
  HEDDLE_FUNCTION void operator()(std::size_t i, Wide number) const { into[i] = number; }
};
template <class Wide, class Reduction>
struct Join {
  Wide* into;
  Reduction reduction;
  HEDDLE_FUNCTION void operator()(std::size_t i, Wide number) const {
    reduction.join(into[i], number);
  }
};
/// Subtracts decoded numbers and keeps the rest. If a rest is not finite it becomes 0, because it
/// would otherwise stay for ever.
template <class Wide>
struct Remain {
  Wide* lost;
  HEDDLE_FUNCTION void operator()(std::size_t i, Wide number) const {
    const Wide rest = lost[i] - number;
    lost[i] = rest - rest == Wide(0) ? rest : Wide(0);
  }
};

/// Encodes a message from the elements `from` and the earlier rounding errors `lost`.
template <std::floating_point Wide>
struct Encode {
  static constexpr const char* label = "heddle::collective::encode";  ///< the name of the kernel

  Encoded message;       ///< the message to write
  const Wide* from;      ///< the elements
  Wide* lost = nullptr;  ///< earlier rounding errors, replaced by those of this message; or null
  Wide* kept = nullptr;  ///< receives the rounded values that the receiver gets; or null

  /// Encodes one block, or `together` values if there are no scales.
  HEDDLE_FUNCTION void operator()(std::size_t call) const {
    const std::size_t begin = message.begin(call), end = message.end(call);
    const Wide* source = from;
    if (lost != nullptr) {
      for (std::size_t i = begin; i < end; ++i) lost[i] += from[i];
      source = lost;
    }
    switch (message.type) {
      case Scalar::f16: write<f16>(source, call); break;
      case Scalar::bf16: write<bf16>(source, call); break;
      case Scalar::f8e4m3: write<f8e4m3>(source, call); break;
      case Scalar::f8e5m2: write<f8e5m2>(source, call); break;
      case Scalar::i8: write<std::int8_t>(source, call); break;
      default: write<float>(source, call); break;
    }
    if (kept != nullptr) decode<Wide>(message, call, Store<Wide>{kept});
    if (lost != nullptr) decode<Wide>(message, call, Remain<Wide>{lost});
  }

 private:
  template <class Narrow>
  HEDDLE_FUNCTION void write(const Wide* source, std::size_t call) const {
    Narrow* const values = message.values<Narrow>();
    const std::size_t begin = message.begin(call), end = message.end(call);
    Wide inverse = 1;
    if (message.block != 0) {
      std::int32_t most = 0;
      for (std::size_t i = begin; i < end; ++i) {
        const auto bits = bit_cast<std::int32_t>(static_cast<float>(source[i]));
        const std::int32_t magnitude = bits & 0x7fffffff;
        most = magnitude > most ? magnitude : most;
      }
      const std::byte scale = scale_for(most, message.type);
      message.data[call] = scale;
      if (scale == std::byte{255}) {
        for (std::size_t i = begin; i < end; ++i) values[i] = narrowed<Narrow>(Wide(0));
        return;
      }
      inverse = static_cast<Wide>(scale_of(static_cast<std::byte>(254 - static_cast<int>(scale))));
    }
    for (std::size_t i = begin; i < end; ++i) values[i] = narrowed<Narrow>(source[i] * inverse);
  }
};

/// Decodes a message into elements.
template <std::floating_point Wide>
struct Decode {
  static constexpr const char* label = "heddle::collective::decode";  ///< the name of the kernel

  Encoded message;  ///< the received message
  Wide* into;       ///< the elements

  /// Decodes one block, or `together` values if there are no scales.
  HEDDLE_FUNCTION void operator()(std::size_t call) const {
    decode<Wide>(message, call, Store<Wide>{into});
  }
};

/// Merges a message into elements, in one pass over both.
template <std::floating_point Wide, class Reduction>
struct CombineDecoded {
  static constexpr const char* label =
      "heddle::collective::combine_decoded";  ///< the name of the kernel

  Encoded message;      ///< the received message
  Wide* into;           ///< the merged elements
  Reduction reduction;  ///< merges a number into an element by `join(into, number)`

  /// Decodes and merges one block, or `together` values if there are no scales.
  HEDDLE_FUNCTION void operator()(std::size_t call) const {
    decode<Wide>(message, call, Join<Wide, Reduction>{into, reduction});
  }
};

/// The reduction of CombineDecoded that adds.
struct AddNumber {
  /// Adds `number` to `into`.
  template <class Wide>
  HEDDLE_FUNCTION void join(Wide& into, Wide number) const {
    into += number;
  }
};

}  // namespace impl
}  // namespace heddle::inline v0
