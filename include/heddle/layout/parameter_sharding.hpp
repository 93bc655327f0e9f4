// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ParameterSharding: the groups of replicas over which the weights and gradients of a model are
/// divided. Without it, every replica keeps all of them. It is a plain value; ParameterShards
/// implements it.

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// Nested groups of replicas. The groups of a level consist of whole groups of the level before.
/// ShardGroup gets the sizes of a pair and of a node. A pair should have as many ranks as have the
/// fastest links to each other, and a node as many as a host has. Ranks must be numbered host by
/// host.
enum class ShardLevel : std::uint8_t {
  rank,   ///< a single replica: not divided
  pair,   ///< some replicas of a node
  node,   ///< some of all replicas
  world,  ///< all replicas
};

/// Prints the level's name, for example `node`.
inline std::ostream& operator<<(std::ostream& out, ShardLevel level) {
  constexpr const char* names[] = {"rank", "pair", "node", "world"};
  return out << impl::enumerator_name(names, level);
}

/// The levels at which the weights and gradients are divided. The data of the optimiser are always
/// divided among all replicas. Gradients are divided at least as finely as weights.
///
/// Weights are gathered before every forward and every backward pass. Gradients are summed to their
/// shares after every backward pass. Once a step, the gradients are summed to the shares of the
/// optimiser, and the new weights are sent back to the shares of the weights.
struct ParameterSharding {
  ShardLevel weights = ShardLevel::rank;    ///< the level at which weights are stored
  ShardLevel gradients = ShardLevel::rank;  ///< the level at which gradients are summed
  /// The level of a second copy of the weights for backward passes, which the forward pass writes.
  std::optional<ShardLevel> backward = {};
  /// The format in which weights are sent, except from a second copy.
  std::optional<Codec> weight_codec = {};
  std::optional<Codec> gradient_codec = {};  ///< the format of sent gradients

  /// Returns the sharding of ZeRO stage 1, 2 or 3 (Rajbhandari et al., SC'20). Stage 1 divides the
  /// data of the optimiser, stage 2 also the gradients, and stage 3 also the weights. If a rank has
  /// only one pipeline stage, ZeRO stages 2 and 3 save no memory, because its ShardRoom holds the
  /// complete weights and gradients anyway. They save memory on ranks with several pipeline stages.
  /// @throws contract_error if `stage` is not 1, 2 or 3.
  [[nodiscard]] static ParameterSharding zero(int stage) {
    expects(1 <= stage && stage <= 3, [&] {
      return ErrorInfo{"heddle::ParameterSharding::zero", "the ZeRO stage must be 1, 2 or 3",
                       text(stage)};
    });
    using enum ShardLevel;
    return {.weights = stage == 3 ? world : rank, .gradients = stage >= 2 ? world : rank};
  }

  /// Returns the sharding of ZeRO++ (Wang et al., ICLR'24): ZeRO-3 with a second copy of the
  /// weights in each node. Weights and gradients are sent in the format `codec`, or in full
  /// precision without a codec.
  [[nodiscard]] static ParameterSharding zeropp(std::optional<Codec> codec = Codec{
                                                    .type = Scalar::i8, .block = 64}) {
    using enum ShardLevel;
    return {.weights = world,
            .gradients = world,
            .backward = node,
            .weight_codec = codec,
            .gradient_codec = codec};
  }

  /// Returns the three-level sharding: weights in pairs, gradients in nodes, and the optimiser over
  /// all replicas. Very little traffic crosses nodes ("Scaling Large Language Model Training on
  /// Frontier with Low-Bandwidth Partitioning", 2025). Without a codec, messages have full
  /// precision.
  [[nodiscard]] static ParameterSharding three_level(std::optional<Codec> codec = Codec{
                                                         .type = Scalar::i8, .block = 64}) {
    using enum ShardLevel;
    return {.weights = pair, .gradients = node, .weight_codec = codec, .gradient_codec = codec};
  }

  /// Returns the sharding with the given name: zero1, zero2, zero3, zeropp or three-level.
  /// @throws contract_error that lists the names if there is no such sharding.
  [[nodiscard]] static ParameterSharding find(std::string_view name) {
    if (name == "zero1") return zero(1);
    if (name == "zero2") return zero(2);
    if (name == "zero3") return zero(3);
    if (name == "zeropp") return zeropp();
    if (name == "three-level") return three_level();
    throw contract_error({"heddle::ParameterSharding::find",
                          text("no sharding '", name, "'"),
                          {},
                          "use zero1, zero2, zero3, zeropp or three-level"});
  }

  friend bool operator==(const ParameterSharding&, const ParameterSharding&) = default;
};

}  // namespace heddle::inline v0
