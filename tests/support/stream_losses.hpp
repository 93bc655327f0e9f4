// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Synthetic losses of models with parallel streams.

#include <cstdint>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/systems/parscale/stream_law.hpp>

namespace heddle::test {

/// The losses of `law` for 6 sizes and 1, 2, 4 and 8 streams, with a relative normal error.
[[nodiscard]] inline std::vector<systems::StreamLoss> stream_losses(const systems::StreamLaw& law,
                                                                    double noise,
                                                                    std::uint64_t seed) {
  const Random random(seed, "noise");
  std::vector<systems::StreamLoss> losses;
  for (const double parameters : {0.5e9, 0.7e9, 1.1e9, 1.6e9, 2.8e9, 4.4e9})
    for (const int streams : {1, 2, 4, 8})
      losses.push_back(
          {parameters, streams,
           law.loss(parameters, streams) * (1 + noise * random.normal(losses.size()))});
  return losses;
}

}  // namespace heddle::test
