// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A search over small networks for images: its grid, the operations of a network, and a synthetic
/// loss that takes the place of training.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/plan/solver/tune.hpp>
#include <heddle/systems/aiperf/operation_count.hpp>
#include <heddle/systems/aiperf/tpe.hpp>

namespace heddle::test {

/// A grid of networks of two stages of convolutions and a dense layer, for 32 x 32 images.
struct NetworkSearch {
  std::uint64_t seed = 0;
  std::vector<plan::TuneAxis> axes{
      {"layers", 4, true}, {"channels", 8, true}, {"kernel", 3, true}, {"growth", 2, false}};

  /// Returns the operations of one image.
  [[nodiscard]] systems::OperationCount operations(const plan::TunePoint& point) const {
    const auto layers = static_cast<std::int64_t>(point[0]) + 2;
    std::int64_t channels = 8 * (static_cast<std::int64_t>(point[1]) + 4);
    const std::int64_t kernel = 2 * static_cast<std::int64_t>(point[2]) + 1;
    std::vector<systems::CountedLayer> network;
    std::int64_t inputs = 3;
    for (const std::int64_t side : {32, 16}) {
      for (std::int64_t l = 0; l < layers; ++l) {
        network.push_back(
            systems::ConvolutionLayer{inputs, channels, kernel, side, side, network.empty()});
        network.push_back(
            systems::ElementLayer{systems::ElementLayer::Kind::relu, channels * side * side});
        inputs = channels;
      }
      network.push_back(systems::ElementLayer{systems::ElementLayer::Kind::max_pool,
                                              channels * side * side / 4, 2});
      channels *= point[3] == 0 ? 1 : 2;
    }
    network.push_back(systems::DenseLayer{inputs * 64, 10});
    network.push_back(systems::ElementLayer{systems::ElementLayer::Kind::softmax, 10});
    return systems::operations(network);
  }

  /// Returns a loss with one optimum and some noise.
  [[nodiscard]] double loss(const plan::TunePoint& point) const {
    const Random random(seed, "loss");
    double sum = 1;
    std::uint64_t number = 0;
    for (std::size_t a = 0; a < point.size(); ++a) {
      const double best = static_cast<double>(random.below(a, axes[a].values));
      sum += (static_cast<double>(point[a]) - best) * (static_cast<double>(point[a]) - best);
      number = number * axes[a].values + point[a];
    }
    return sum + 0.1 * random.uniform(100 + number);
  }

  /// Returns the next proposal.
  [[nodiscard]] plan::TunePoint propose(std::uint64_t number,
                                        std::span<const plan::TuneTrial> history) const {
    return systems::propose_by_tpe(axes, history, number, {.seed = seed});
  }
};

}  // namespace heddle::test
