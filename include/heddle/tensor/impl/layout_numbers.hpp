// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A Layout as numbers, so that a rank can tell another.

#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/layout/layout.hpp>

namespace heddle::inline v0::impl {

/// Encodes `layout` as numbers, each list after its length; layout_of() decodes them.
[[nodiscard]] std::vector<std::int64_t> numbers_of(const Layout& layout);
/// Returns the Layout that numbers_of() returned these for.
[[nodiscard]] Layout layout_of(std::span<const std::int64_t> numbers);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_TENSOR
#include <heddle/tensor/impl/layout_numbers.ipp>
#endif
