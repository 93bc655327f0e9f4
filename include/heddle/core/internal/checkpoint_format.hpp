// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The heads of a checkpoint and of its fields as bytes. Checkpoint and tier::Store share them; the
/// format is described in checkpoint.hpp.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <heddle/core/checksum.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::impl {

static_assert(std::endian::native == std::endian::little,
              "heddle::Checkpoint: numbers are written in the byte order of memory");

inline constexpr std::string_view checkpoint_magic = "HEDDLEcp";
inline constexpr std::uint32_t checkpoint_version = 1;
/// Bytes of the head of the file, with its checksum.
inline constexpr std::size_t checkpoint_head_bytes = 28;
/// Bytes of the head of a field, without its name and its checksum.
inline constexpr std::size_t field_head_bytes = 20;

/// Returns the checksum of `bytes`.
[[nodiscard]] inline std::uint32_t checkpoint_sum(std::string_view bytes) {
  return crc32c(std::as_bytes(std::span(bytes)));
}

template <class Number>
void append_bytes(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

/// Returns the head of a file of `bytes` bytes with `fields` fields.
[[nodiscard]] inline std::string checkpoint_head(std::uint32_t fields, std::uint64_t bytes) {
  std::string out(checkpoint_magic);
  append_bytes(out, checkpoint_version);
  append_bytes(out, fields);
  append_bytes(out, bytes);
  append_bytes(out, checkpoint_sum(out));
  return out;
}

/// Returns the head of a field with its name. `sum` is the checksum of its elements.
[[nodiscard]] inline std::string field_head(std::string_view name, Scalar type,
                                            std::uint64_t elements, std::uint32_t sum) {
  std::string out;
  append_bytes(out, static_cast<std::uint32_t>(name.size()));
  append_bytes(out, static_cast<std::uint32_t>(type));
  append_bytes(out, elements);
  append_bytes(out, sum);
  out += name;
  append_bytes(out, checkpoint_sum(out));
  return out;
}

}  // namespace heddle::inline v0::impl
