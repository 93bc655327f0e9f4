// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of partition.hpp.

#include <cstddef>
#include <string>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/pipeline/partition.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE std::vector<LayerRange> partition_layers(int layers, int stages,
                                                            std::vector<int> counts) {
  constexpr const char* where = "heddle::partition_layers";
  expects(layers >= 1 && stages >= 1, [&] {
    return ErrorInfo{where, "a model needs at least one layer and one stage",
                     text("layers = ", layers, ", stages = ", stages)};
  });
  if (stages > layers)
    throw infeasible({where, "there are more stages than layers",
                      text("stages = ", stages, ", layers = ", layers),
                      text("use at most ", layers, " stages")});
  if (counts.empty())
    for (int s = 0; s < stages; ++s) counts.push_back(impl::even_count(layers, stages, s));
  std::vector<LayerRange> ranges;
  int first = 0;
  bool divides = counts.size() == static_cast<std::size_t>(stages);
  for (const int count : counts) {
    divides = divides && count >= 1 && count <= layers - first;
    if (!divides) break;
    ranges.push_back({first, first + count});
    first += count;
  }
  expects(divides && first == layers, [&] {
    std::string given;
    for (const int count : counts) given += text(given.empty() ? "" : ", ", count);
    return ErrorInfo{where, "the layers per stage do not divide the model",
                     text(given, " for ", layers, " layers on ", stages, " stages"),
                     "give one number of at least 1 per stage; their sum is the layers"};
  });
  return ranges;
}

}  // namespace heddle::inline v0
