// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// DeviceWork: the least time that the layers of a problem take on its devices.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::plan::impl {

class LayerTable;

/// The fewest device-seconds of a sample, over all tensor degrees and numbers of samples. No stage
/// takes less than the work of its layers and samples over the speed of its ranks.
struct DeviceWork {
  std::vector<Seconds> first;  ///< by number of layers: the work of the first ones, fastest device
  std::vector<double> speed;   ///< by rank: an upper bound, relative to the fastest device

  explicit DeviceWork(LayerTable& table);
};

}  // namespace heddle::inline v0::plan::impl

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/internal/device_work.ipp>
#endif
