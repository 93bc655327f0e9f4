// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of layout_numbers.hpp.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/layout/mesh_shape.hpp>
#include <heddle/layout/placement.hpp>
#include <heddle/layout/shard_order.hpp>
#include <heddle/tensor/impl/layout_numbers.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE std::vector<std::int64_t> numbers_of(const Layout& layout) {
  std::vector<std::int64_t> numbers;
  const auto add = [&](const auto& list) {
    numbers.push_back(static_cast<std::int64_t>(list.size()));
    numbers.insert(numbers.end(), list.begin(), list.end());
  };
  add(layout.sizes());
  std::vector<std::int64_t> ranks;
  for (const Rank rank : layout.ranks()) ranks.push_back(static_cast<std::int64_t>(+rank));
  add(ranks);
  for (std::size_t axis = 0; axis < layout.placements().size(); ++axis) {
    add(layout.mesh().axes()[axis].name);
    const Placement& placement = layout.placements()[axis];
    std::vector<std::int64_t> of_axis = {layout.mesh().axes()[axis].size,
                                         static_cast<std::int64_t>(placement.index())};
    if (const Shard* shard = std::get_if<Shard>(&placement)) {
      of_axis.insert(of_axis.end(), {shard->dim, shard->halo});
      const auto order = shard->order.numbers();
      of_axis.insert(of_axis.end(), order.begin(), order.end());
    } else if (const Partial* partial = std::get_if<Partial>(&placement)) {
      of_axis.push_back(static_cast<std::int64_t>(partial->merge));
    }
    add(of_axis);
  }
  return numbers;
}

HEDDLE_FULL_INLINE Layout layout_of(std::span<const std::int64_t> numbers) {
  const auto next = [&] {
    const auto list = numbers.subspan(1, static_cast<std::size_t>(numbers.front()));
    numbers = numbers.subspan(1 + list.size());
    return list;
  };
  const auto sizes = next();
  std::vector<Rank> ranks;
  for (const std::int64_t rank : next()) ranks.emplace_back(rank);
  std::vector<MeshShape::Axis> axes;
  std::vector<Placement> placements;
  while (!numbers.empty()) {
    std::string name;
    for (const std::int64_t letter : next()) name += static_cast<char>(letter);
    const auto of_axis = next();
    axes.push_back({std::move(name), static_cast<int>(of_axis[0])});
    switch (of_axis[1]) {
      case 0:
        placements.emplace_back(Shard{static_cast<int>(of_axis[2]),
                                      ShardOrder::of_numbers(of_axis.subspan(4)), of_axis[3]});
        break;
      case 1: placements.emplace_back(Replicate{}); break;
      default: placements.emplace_back(Partial{static_cast<Merge>(of_axis[2])});
    }
  }
  return {MeshShape(std::move(axes)),
          {sizes.begin(), sizes.end()},
          std::move(placements),
          std::move(ranks)};
}

}  // namespace heddle::inline v0::impl
