// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of scheduled_work.hpp.

#include <heddle/collective/impl/decide.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/impl/scheduled_work.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE PerformerKey by_messages(PerformerKey key, int ranks) {
  if (!key.choice.shared) return key;
  key.costs = nullptr;
  key.usual = true;
  key.choice = {.algorithm = usual(key.collective, key.bytes, ranks, key.root)};
  return key;
}

}  // namespace heddle::inline v0::impl
