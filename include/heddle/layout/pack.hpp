// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// pack() and unpack(): copy the bytes of a StridedBlock to contiguous host memory and back.

#include <cstddef>
#include <type_traits>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0 {

namespace impl {

template <bool packs>
using StridedPointer = std::conditional_t<packs, const std::byte*, std::byte*>;
template <bool packs>
using PackedPointer = std::conditional_t<packs, std::byte*, const std::byte*>;

/// Returns whether to copy a block with non-temporal stores. It must be large (threshold measured
/// on a fifth-generation EPYC with 32 MiB of last-level cache, such that reading the copy
/// afterwards takes no longer than after ordinary stores), it must consist of aligned 16-byte
/// words, and the written pieces must be long, so that few lines are written partially.
template <bool packs>
[[nodiscard]] bool streams(const StridedBlock& block, const std::byte* strided,
                           const std::byte* packed);

/// Copies a block that begins at `strided`. `streamed` selects non-temporal stores.
template <bool packs>
void copy_block(const StridedBlock& block, StridedPointer<packs> strided,
                PackedPointer<packs> packed, bool streamed);

}  // namespace impl

/// Copies the bytes of `block`, whose offsets are relative to `base`, to `packed`, in order. It
/// writes block.bytes() bytes.
void pack(const StridedBlock& block, const std::byte* base, std::byte* packed);

/// Copies block.bytes() bytes from `packed` to the bytes of `block`, whose offsets are relative to
/// `base`, in order.
void unpack(const StridedBlock& block, const std::byte* packed, std::byte* base);

namespace impl {

/// Copies only the first `bytes` bytes as unpack() does: for a message that is shorter than the
/// block.
void unpack_first(Bytes bytes, const StridedBlock& block, const std::byte* packed, std::byte* base);

}  // namespace impl

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_LAYOUT
#include <heddle/layout/pack.ipp>
#endif
