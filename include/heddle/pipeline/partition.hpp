// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Dividing the layers of a model into stages.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/layout/layer_range.hpp>

namespace heddle::inline v0 {

/// The layers of every stage: `counts[s]` of them on stage s, or, without counts, as equal as can
/// be, the first stages one more where the division has a remainder.
///
/// @throws infeasible if there are more stages than layers.
/// @throws contract_error if the sum of the counts is not the number of layers, or if a count is
///         below 1.
[[nodiscard]] std::vector<LayerRange> partition_layers(int layers, int stages,
                                                       std::vector<int> counts = {});

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/partition.ipp>
#endif
