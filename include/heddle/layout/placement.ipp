// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of placement.hpp.

#include <array>
#include <cstddef>
#include <ostream>
#include <variant>

#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/layout/placement.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, Merge merge) {
  constexpr std::array names = {"sum", "product", "min", "max"};
  return out << impl::enumerator_name(names, merge);
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const Shard& shard) {
  out << "Shard(" << shard.dim;
  if (shard.order != ShardOrder() || shard.halo != 0) out << ", " << shard.order;
  if (shard.halo != 0) out << ", halo " << shard.halo;
  return out << ')';
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, Replicate) { return out << "Replicate"; }

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, Partial partial) {
  return out << "Partial(" << partial.merge << ')';
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const Placement& placement) {
  std::visit([&](const auto& one) { out << one; }, placement);
  return out;
}

}  // namespace heddle::inline v0
