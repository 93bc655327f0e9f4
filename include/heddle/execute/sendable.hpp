// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Sendable: the types whose values can travel in a message of bytes, such as the items of a farm
/// over ranks.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0 {

/// The bytes of a message.
using MessageBytes = std::vector<std::byte>;

namespace impl {

/// True for values that refer to memory of their own process.
template <class V>
inline constexpr bool refers = std::is_pointer_v<V> || std::is_member_pointer_v<V>;
template <class C, class Traits>
inline constexpr bool refers<std::basic_string_view<C, Traits>> = true;
template <class E, std::size_t n>
inline constexpr bool refers<std::span<E, n>> = true;

template <class V>
inline constexpr bool is_sendable = std::is_trivially_copyable_v<V> && !refers<V>;
template <>
inline constexpr bool is_sendable<std::string> = true;
template <class E>
inline constexpr bool is_sendable<std::vector<E>> = is_sendable<E>;

/// True if equal values have equal bytes in a message, apart from the numbers 0 and NaN.
template <class V>
inline constexpr bool is_without_padding =
    std::has_unique_object_representations_v<V> || std::is_floating_point_v<V>;
template <>
inline constexpr bool is_without_padding<std::string> = true;
template <class E>
inline constexpr bool is_without_padding<std::vector<E>> = is_without_padding<E>;

/// Appends raw bytes to a message.
inline void put_raw(MessageBytes& message, const void* data, std::size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(data);
  message.insert(message.end(), begin, begin + bytes);
}

/// Empties a message. Its memory is kept for the next one, unless it is large.
inline void make_empty(MessageBytes& message) {
  constexpr std::size_t most = 4096;
  message.clear();
  if (message.capacity() > most) message = {};
}

/// Takes `bytes` raw bytes from the front of a message.
inline std::span<const std::byte> take_raw(std::span<const std::byte>& message, std::size_t bytes) {
  expects(bytes <= message.size(), [&] {
    return ErrorInfo{"heddle::unpack", "the message ends too early",
                     text(bytes, " bytes expected, ", message.size(), " are left"),
                     "pack and unpack the same types"};
  });
  const std::span<const std::byte> taken = message.first(bytes);
  message = message.subspan(bytes);
  return taken;
}

/// Says how values of one type are written and read.
template <class V>
struct Packed {
  static void put(MessageBytes& message, const V& value) { put_raw(message, &value, sizeof(V)); }
  static V take(std::span<const std::byte>& message) {
    std::array<std::byte, sizeof(V)> raw;
    std::memcpy(raw.data(), take_raw(message, sizeof(V)).data(), sizeof(V));
    return std::bit_cast<V>(raw);
  }
};

template <>
struct Packed<std::string> {
  static void put(MessageBytes& message, const std::string& value) {
    Packed<std::uint64_t>::put(message, value.size());
    put_raw(message, value.data(), value.size());
  }
  static std::string take(std::span<const std::byte>& message) {
    const auto size = static_cast<std::size_t>(Packed<std::uint64_t>::take(message));
    const std::span<const std::byte> raw = take_raw(message, size);
    return std::string(reinterpret_cast<const char*>(raw.data()), raw.size());
  }
};

template <class E>
struct Packed<std::vector<E>> {
  static void put(MessageBytes& message, const std::vector<E>& value) {
    Packed<std::uint64_t>::put(message, value.size());
    for (const E& element : value) Packed<E>::put(message, element);
  }
  static std::vector<E> take(std::span<const std::byte>& message) {
    const std::uint64_t size = Packed<std::uint64_t>::take(message);
    std::vector<E> value;
    for (std::uint64_t i = 0; i < size; ++i) value.push_back(Packed<E>::take(message));
    return value;
  }
};

}  // namespace impl

/// A type whose values can travel in messages: a trivially copyable type that does not refer to
/// memory (no pointer, std::string_view or std::span), std::string, or a std::vector of such types.
template <class V>
concept Sendable = impl::is_sendable<V>;

/// Appends `value` to a message.
template <Sendable V>
void pack(MessageBytes& message, const V& value) {
  impl::Packed<V>::put(message, value);
}

/// Takes a value of type `V` from the front of `message`, which then begins behind it.
/// @throws contract_error if the message ends too early.
template <Sendable V>
[[nodiscard]] V unpack(std::span<const std::byte>& message) {
  return impl::Packed<V>::take(message);
}

}  // namespace heddle::inline v0
