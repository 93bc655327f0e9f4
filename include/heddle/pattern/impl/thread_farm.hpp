// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The farm on threads, compiled once for all items and results.

#include <heddle/core/linkage.hpp>
#include <heddle/pattern/farm_options.hpp>
#include <heddle/pattern/farm_outcome.hpp>
#include <heddle/pattern/impl/farm_part.hpp>

namespace heddle::inline v0::impl {

/// Runs a farm on options.workers threads. Throws as farm() does.
pattern::FarmReport thread_farm(const pattern::FarmOptions& options, FarmPart& part);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_PATTERN
#include <heddle/pattern/impl/thread_farm.ipp>
#endif
