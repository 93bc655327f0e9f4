// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ParameterSharding: over which replicas weights and gradients of a model are divided that all of
/// them would otherwise keep whole. A value; ParameterShards acts by it.

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// Groups of replicas one after the other, each made of whole groups of the level before. How many
/// make a pair and a node, ShardGroup is told: as many as have the fastest links between them, and
/// as there are on a host, where ranks are numbered host by host.
enum class ShardLevel : std::uint8_t {
  rank,   ///< one replica alone: not divided
  pair,   ///< some of a node
  node,   ///< some of all
  world,  ///< all
};

/// Prints the level's name, for example `node`.
inline std::ostream& operator<<(std::ostream& out, ShardLevel level) {
  constexpr const char* names[] = {"rank", "pair", "node", "world"};
  return out << names[static_cast<int>(level)];
}

/// Among whom what is divided. What the optimiser keeps is always divided among all; gradients are
/// divided at least as far as weights. Weights travel to where they are computed with, before every
/// forward and every backward pass; gradients to where they are kept, after every backward pass,
/// and from there to the optimiser's shares once a step; then its results to where weights are
/// kept.
struct ParameterSharding {
  ShardLevel weights = ShardLevel::rank;    ///< where they are kept
  ShardLevel gradients = ShardLevel::rank;  ///< the level at which gradients are summed
  /// The level of a second copy of the weights for backward passes, which the forward pass writes.
  std::optional<ShardLevel> backward = {};
  std::optional<Codec> weight_codec = {};    ///< in which weights travel, but from a second copy
  std::optional<Codec> gradient_codec = {};  ///< in which gradients travel

  friend bool operator==(const ParameterSharding&, const ParameterSharding&) = default;
};

/// ZeRO stage 1, 2 or 3 (Rajbhandari et al., SC'20): the optimiser's share alone; with it the
/// gradients; with both the weights. Where a rank has one stage, its room (ShardRoom) takes what
/// stages 2 and 3 leave out: they save memory of ranks with several stages. @throws contract_error
/// for another stage.
[[nodiscard]] inline ParameterSharding zero_sharding(int stage) {
  expects(1 <= stage && stage <= 3, [&] {
    return ErrorInfo{"heddle::zero_sharding", "the ZeRO stage must be 1, 2 or 3", text(stage)};
  });
  using enum ShardLevel;
  return {.weights = stage == 3 ? world : rank, .gradients = stage >= 2 ? world : rank};
}

/// ZeRO++ (Wang et al., ICLR'24): ZeRO-3 with weights and gradients in the form of `codec`, and a
/// second copy of the weights in each node. Without a codec the same in full precision.
[[nodiscard]] inline ParameterSharding zeropp_sharding(std::optional<Codec> codec = Codec{
                                                           .type = Scalar::i8, .block = 64}) {
  using enum ShardLevel;
  return {.weights = world,
          .gradients = world,
          .backward = node,
          .weight_codec = codec,
          .gradient_codec = codec};
}

/// Weights in pairs, gradients in nodes, the optimiser over all: hardly anything crosses nodes
/// ("Scaling Large Language Model Training on Frontier with Low-Bandwidth Partitioning", 2025).
/// Without a codec the same in full precision.
[[nodiscard]] inline ParameterSharding three_level_sharding(std::optional<Codec> codec = Codec{
                                                                .type = Scalar::i8, .block = 64}) {
  using enum ShardLevel;
  return {.weights = pair, .gradients = node, .weight_codec = codec, .gradient_codec = codec};
}

/// The sharding that users name: zero1, zero2, zero3, zeropp or three-level.
/// @throws contract_error for another name, listing these.
[[nodiscard]] inline ParameterSharding find_sharding(std::string_view name) {
  if (name == "zero1") return zero_sharding(1);
  if (name == "zero2") return zero_sharding(2);
  if (name == "zero3") return zero_sharding(3);
  if (name == "zeropp") return zeropp_sharding();
  if (name == "three-level") return three_level_sharding();
  throw contract_error({"heddle::find_sharding",
                        text("no sharding '", name, "'"),
                        {},
                        "use zero1, zero2, zero3, zeropp or three-level"});
}

}  // namespace heddle::inline v0
