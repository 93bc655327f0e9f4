// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// serving_layer(): a layer of a model of 70e9 parameters that 8 A100 serve, by the roofline of
/// NanoFlow. The tests of nano-batches and the report of systems use it.

#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/systems/nanoflow/nano_batches.hpp>

namespace heddle::test {

/// The queues of serving_layer().
inline constexpr std::uint32_t compute = 0, memory = 1, network = 2;

/// Returns KQV, attention, O, all-reduce and FFN for a batch of 2048 tokens, on a device of 10
/// units. Peak values: 312 Tflop/s, 80 GB, 2 TB/s and a network of 300 GB/s a GPU and direction.
/// - A matrix product of p parameters takes 2 batch p / compute, and each piece loads 2 p bytes.
/// - Attention reads the K,V cache of a layer: all memory but the weights, divided by 80 layers.
/// - The network carries 4 GPUs batch width 2 bytes in a layer.
/// The interference has the published points: 0.85 with a share of 0.8 for matrix products, 0.8
/// with 0.4 for attention. None is published for the network, which gets those of attention.
[[nodiscard]] inline systems::NanoLayer serving_layer() {
  constexpr double gpus = 8, flops = gpus * 312e12, bandwidth = gpus * 2e12, links = gpus * 300e9;
  constexpr double width = 8192, kv_width = 1024, hidden = 28672, layers = 80, batch = 2048;
  constexpr double kv_cache = (gpus * 80e9 - 2 * 70e9) / layers;
  const auto product = [&](const char* name, double parameters, std::vector<std::uint32_t> inputs) {
    return systems::NanoOperation{name, compute, std::move(inputs), 2 * batch * parameters / flops,
                                  2 * parameters / bandwidth};
  };
  systems::NanoLayer layer{.name = "serving layer", .samples = 2048, .units = 10};
  layer.operations = {product("KQV", width * (width + 2 * kv_width), {}),
                      {"attention", memory, {0}, kv_cache / bandwidth},
                      product("O", width * width, {1}),
                      {"all-reduce", network, {2}, 4 * gpus * batch * width * 2 / links},
                      product("FFN", 3 * width * hidden, {3})};
  layer.performance = {systems::performance_between(10, {{0.8, 0.85}}),
                       systems::performance_between(10, {{0.4, 0.8}}),
                       systems::performance_between(10, {{0.4, 0.8}})};
  return layer;
}

}  // namespace heddle::test
