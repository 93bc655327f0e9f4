// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LayerPlace: what a LayerStage must know of its model and of the samples.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::inline v0 {

/// The position of a LayerStage in its model, and the number of samples that it gets.
struct LayerPlace {
  std::size_t rows = 1;  ///< samples of a microbatch, or of the largest one
  /// Microbatches of a usual step on this replica. A step has as many as its data: a Runner whose
  /// schedule has more or fewer of them takes the data of so many.
  int microbatches = 1;
  bool takes_data = false;     ///< holds the model's first layer
  bool computes_loss = false;  ///< holds the model's last layer
  /// The samples of each microbatch, such as those of schedule::microbatch_sizes(). Empty: all have
  /// `rows`. The schedule must have them as StageShares::microbatches. A step may have the first
  /// ones of them only.
  std::vector<std::int64_t> sizes = {};
};

}  // namespace heddle::inline v0
