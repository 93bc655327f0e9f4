// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Synthetic routes of tokens through experts with a planted affinity, and the best placement by
/// enumeration.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/systems/exflow/expert_placement.hpp>

namespace heddle::test {

/// Routes of which a step stays in its group with probability `affinity`, and otherwise goes to any
/// expert, and the groups.
struct PlantedRoutes {
  systems::ExpertTrace trace;
  systems::ExpertPlacement planted;
};

/// The groups are random in every layer and depend on `seed`. Traces with other `draws` have the
/// same groups and other tokens.
[[nodiscard]] inline PlantedRoutes planted_routes(std::size_t tokens, std::size_t layers,
                                                  std::size_t experts, int groups, double affinity,
                                                  std::uint64_t seed, std::uint64_t draws = 0) {
  PlantedRoutes made{{layers, experts, {}}, systems::contiguous_experts(layers, experts, groups)};
  const Random shuffle(seed, "groups");
  for (std::size_t l = 0; l < layers; ++l)
    for (std::size_t e = experts; e-- > 1;)
      std::swap(made.planted.ranks_of[l * experts + e],
                made.planted.ranks_of[l * experts + shuffle.below(l * experts + e, e + 1)]);
  const Random random(seed, "routes");
  std::uint64_t draw = draws << 32;
  const std::size_t each = experts / static_cast<std::size_t>(groups);
  for (std::size_t t = 0; t < tokens; ++t) {
    std::size_t expert = random.below(draw++, experts);
    made.trace.routes.push_back(static_cast<std::uint32_t>(expert));
    for (std::size_t l = 1; l < layers; ++l) {
      const Rank group = made.planted.rank(l - 1, expert);
      if (random.uniform(draw++) < affinity) {
        std::size_t nth = random.below(draw++, each);
        for (expert = 0; made.planted.rank(l, expert) != group || nth-- > 0;) ++expert;
      } else {
        expert = random.below(draw++, experts);
      }
      made.trace.routes.push_back(static_cast<std::uint32_t>(expert));
    }
  }
  return made;
}

/// The steps of `trace` that change the rank, token by token.
[[nodiscard]] inline std::uint64_t traced_changes(const systems::ExpertTrace& trace,
                                                  const systems::ExpertPlacement& placement) {
  std::uint64_t changes = 0;
  for (std::size_t t = 0; t < trace.tokens(); ++t)
    for (std::size_t l = 1; l < trace.layers; ++l)
      if (placement.rank(l - 1, trace.expert(t, l - 1)) != placement.rank(l, trace.expert(t, l)))
        ++changes;
  return changes;
}

/// The fewest changes of all placements with equally many experts on each rank, one after another.
[[nodiscard]] inline std::uint64_t fewest_changes(const systems::ExpertTrace& trace, int ranks) {
  systems::ExpertPlacement placement =
      systems::contiguous_experts(trace.layers, trace.experts, ranks);
  const systems::ExpertPlacement first = placement;
  std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
  const auto layer = [&](std::size_t l) {
    return placement.ranks_of.begin() + static_cast<std::ptrdiff_t>(l * trace.experts);
  };
  for (bool more = true; more;) {
    fewest = std::min(fewest, traced_changes(trace, placement));
    more = false;
    for (std::size_t l = 0; l < trace.layers && !more; ++l)
      more = std::next_permutation(layer(l), layer(l + 1));
  }
  return fewest;
}

}  // namespace heddle::test
