// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// place_experts(): chooses the rank of every expert of a mixture-of-experts model, so that tokens
/// that follow traced routes rarely change their rank.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::systems {

/// The traced routes of tokens: which expert each token visits in each layer.
struct ExpertTrace {
  std::size_t layers = 0;   ///< number of layers
  std::size_t experts = 0;  ///< number of experts of a layer
  /// The experts of token 0 in layers 0, 1, ..., then those of token 1, and so on.
  std::vector<std::uint32_t> routes = {};

  /// Returns the number of tokens.
  [[nodiscard]] std::size_t tokens() const { return layers == 0 ? 0 : routes.size() / layers; }
  /// Returns the expert that `token` visits in `layer`.
  [[nodiscard]] std::uint32_t expert(std::size_t token, std::size_t layer) const {
    return routes[token * layers + layer];
  }
};

/// The affinity of experts in adjacent layers: how many traced tokens go from expert i of layer l
/// to expert k of layer l + 1.
class ExpertAffinity {
 public:
  /// Counts the steps of the tokens of `trace`.
  /// @throws contract_error if there is no layer or no expert, if the last route is incomplete, or
  ///         if a route names an expert that does not exist.
  explicit ExpertAffinity(const ExpertTrace& trace);

  /// Returns the number of layers.
  [[nodiscard]] std::size_t layers() const noexcept { return m_layers; }
  /// Returns the number of experts of a layer.
  [[nodiscard]] std::size_t experts() const noexcept { return m_experts; }
  /// Returns the number of tokens that go from expert `from` of `layer` to expert `to` of the next
  /// layer.
  [[nodiscard]] std::uint64_t at(std::size_t layer, std::size_t from, std::size_t to) const {
    return m_counts[(layer * m_experts + from) * m_experts + to];
  }
  /// Returns the number of steps between layers of all tokens.
  [[nodiscard]] std::uint64_t steps() const noexcept { return m_steps; }

 private:
  std::size_t m_layers;
  std::size_t m_experts;
  std::uint64_t m_steps = 0;
  std::vector<std::uint64_t> m_counts;
};

/// The rank of every expert. In the placements of contiguous_experts() and place_experts() every
/// rank has the same number of experts of each layer.
struct ExpertPlacement {
  int ranks = 1;            ///< number of ranks
  std::size_t layers = 0;   ///< number of layers
  std::size_t experts = 0;  ///< number of experts of a layer
  /// The ranks of the experts of layer 0, then those of layer 1, and so on. The first rank is 0.
  std::vector<std::uint32_t> ranks_of = {};

  /// Checks the number of entries and the rank of every expert.
  /// @throws contract_error if there is no rank, if `ranks_of` does not have one entry for each
  ///         expert, or if an entry is not below `ranks`. The error names the entry.
  void expect_valid(const char* where) const;
  /// Returns the rank of an expert.
  [[nodiscard]] Rank rank(std::size_t layer, std::size_t expert) const {
    return Rank{ranks_of[layer * experts + expert]};
  }
  /// Returns the same placement with nodes in the place of ranks: rank r is on node r / `node`.
  /// @throws contract_error if the placement is invalid, or if the ranks do not fill whole nodes.
  [[nodiscard]] ExpertPlacement of_nodes(int node) const;
};

/// Returns the placement without affinity: rank r has experts r E/P to (r + 1) E/P - 1 of every
/// layer.
/// @throws contract_error if there is no rank or layer, or if the ranks do not divide the experts.
[[nodiscard]] ExpertPlacement contiguous_experts(std::size_t layers, std::size_t experts,
                                                 int ranks);

/// Returns the number of steps between layers in which traced tokens change their rank. This is the
/// objective of ExFlow's integer program: the sum of A[l][i][k] over all i and k on other ranks.
/// @throws contract_error if the placement is invalid, or if it has other layers or experts.
[[nodiscard]] std::uint64_t rank_changes(const ExpertAffinity& affinity,
                                         const ExpertPlacement& placement);

/// The options of place_experts().
struct ExpertPlacementOptions {
  /// The sizes of the levels, outermost first: {4, 8} is 4 nodes of 8 ranks. Experts are divided
  /// over nodes first, so that few tokens leave their node, and then within each node.
  std::vector<int> levels = {1};
  /// The largest number of divisions of a layer's experts with which a level is solved exactly.
  std::size_t exact = 3000;
  int restarts = 8;        ///< the number of starts of the local search of other levels
  std::uint64_t seed = 0;  ///< the seed of the starts
};

/// Returns a placement with few rank changes. The experts of a layer interact only with those of
/// the adjacent layers. So a level with few divisions of a layer's experts is solved exactly, by
/// the shortest path through the divisions of all layers. A larger level is solved by local search:
/// from each start, pairs of experts of a layer are swapped while this saves rank changes. A start
/// takes a random division of the first layer and gives each later expert the rank from which most
/// of its tokens come. With several levels, each level is optimal for the level above it, which
/// need not be an optimum of all levels together.
///
/// ExFlow (Yao et al., IPDPS 2024) solves the same integer program by a solver.
/// @throws contract_error if a level is below 1, if the ranks do not divide the experts, or if
///         `restarts` is below 1.
[[nodiscard]] ExpertPlacement place_experts(const ExpertAffinity& affinity,
                                            const ExpertPlacementOptions& options);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/exflow/expert_placement.ipp>
#endif
