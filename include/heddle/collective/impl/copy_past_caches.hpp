// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// copy_past_caches(): a copy for another core, in whose caches the place may still be.

#include <cstddef>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::impl {

/// Copies bytes by stores that do not read the lines which they overwrite, where the processor has
/// such: to fetch them from a core of another die takes ten times as long. They are in memory, for
/// every core to see, when it returns.
void copy_past_caches(const std::byte* from, std::byte* into, Bytes bytes);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/impl/copy_past_caches.ipp>
#endif
