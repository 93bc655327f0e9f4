// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of gang_value.hpp.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/systems/pathways/impl/gang_value.hpp>

namespace heddle::inline v0::systems::impl {

HEDDLE_FULL_INLINE Layout with_sizes(const Layout& layout, std::vector<std::int64_t> sizes) {
  return Layout(layout.mesh(), std::move(sizes), layout.placements(), layout.ranks());
}

HEDDLE_FULL_INLINE Layout on_one_rank(const std::vector<std::int64_t>& sizes, Rank rank) {
  return Layout(MeshShape({{"client", 1}}), sizes, {Replicate{}}, {rank});
}

HEDDLE_FULL_INLINE void GangValue::allocate(const Communicator& comm) {
  if (!layout.rank_here(comm.rank())) return;
  hold(type->allocate(comm, layout));
}

HEDDLE_FULL_INLINE void GangValue::hold(std::shared_ptr<void> made) {
  tensor = std::move(made);
  data = type->data(tensor.get());
}

HEDDLE_FULL_INLINE bool GangEntry::runs_on(Rank rank) const {
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

HEDDLE_FULL_INLINE void GangEntry::find_ranks() {
  ranks = output.ranks();
  for (const Layout& input : inputs)
    ranks.insert(ranks.end(), input.ranks().begin(), input.ranks().end());
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
}

}  // namespace heddle::inline v0::systems::impl
