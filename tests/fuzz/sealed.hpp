// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// sealed(): mends the checksums of a damaged checkpoint, so that the fuzzer gets past them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <heddle/core/internal/checkpoint_format.hpp>

namespace fuzz {

/// Returns `content` with the checksums of its head, of its fields and of their elements as a
/// reader expects them, and with its number of bytes. Wrong lengths, types and names stay.
inline std::string sealed(std::string_view content) {
  namespace format = heddle::impl;
  std::string out(content);
  const auto number = [&]<class Number>(std::size_t at, Number) {
    Number value = 0;
    std::memcpy(&value, out.data() + at, sizeof value);
    return value;
  };
  const auto seal = [&](std::size_t at, std::size_t begin, std::size_t end) {
    const std::uint32_t sum =
        format::checkpoint_sum(std::string_view(out).substr(begin, end - begin));
    std::memcpy(out.data() + at, &sum, sizeof sum);
  };
  if (out.size() < format::checkpoint_head_bytes) return out;
  const std::uint64_t bytes = out.size();
  std::memcpy(out.data() + 16, &bytes, sizeof bytes);
  seal(format::checkpoint_head_bytes - 4, 0, format::checkpoint_head_bytes - 4);
  std::size_t at = format::checkpoint_head_bytes;
  while (out.size() - at >= format::field_head_bytes + 4) {
    const std::size_t name = number(at, std::uint32_t{});
    const std::size_t left = out.size() - at - format::field_head_bytes - 4;
    if (name > left) break;
    const auto type = number(at + 4, std::uint32_t{});
    const std::size_t size =
        type > static_cast<std::uint32_t>(heddle::Scalar::i8)
            ? 1
            : static_cast<std::size_t>(heddle::size_of(static_cast<heddle::Scalar>(type)));
    const std::uint64_t count =
        std::min<std::uint64_t>(number(at + 8, std::uint64_t{}), (left - name) / size);
    const std::size_t end = at + format::field_head_bytes + name;
    const std::size_t elements = static_cast<std::size_t>(count) * size;
    seal(at + 16, end + 4, end + 4 + elements);
    seal(end, at, end);
    at = end + 4 + elements;
  }
  return out;
}

}  // namespace fuzz
