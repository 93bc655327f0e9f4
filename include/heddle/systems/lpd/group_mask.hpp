// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GroupMask: the attention mask of a decoder that produces tokens in groups. Source of the rules:
/// Zhang and others, "Locality-aware parallel decoding for efficient autoregressive image
/// generation", 2025, and the authors' code.

#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/layout/index_set.hpp>

namespace heddle::inline v0::systems {

/// The attention mask with which one pass trains a decoder that produces groups of tokens. The
/// pass has two kinds of tokens, context first:
///
/// - context: a prompt, and then the tokens of all groups but the last. A context token sees the
///   prompt, the context of earlier groups and that of its own group.
/// - queries: a query for each token of every group. It asks for the value of this token. It sees
///   the prompt, the context of earlier groups and the other queries of its group.
///
/// Nothing sees a query of another group, so the decoder may produce group after group: a step
/// takes the context of the previous group and the queries of the next one, with the keys and
/// values of earlier context in a cache, and computes what the one pass computes.
class GroupMask {
 public:
  /// Constructs the mask of groups of these sizes, behind a prompt of `prompt` tokens.
  /// @throws contract_error if there is no group, if a size is below 1 or if `prompt` is negative.
  explicit GroupMask(std::span<const std::int64_t> sizes, std::int64_t prompt = 1);

  /// Returns the number of groups, which is the number of steps.
  [[nodiscard]] int groups() const noexcept { return static_cast<int>(m_ends.size()) - 1; }
  /// Returns the number of context tokens, the prompt included.
  [[nodiscard]] std::int64_t context() const noexcept { return m_ends[m_ends.size() - 2]; }
  /// Returns the number of all tokens of the pass.
  [[nodiscard]] std::int64_t tokens() const noexcept {
    return context() + m_ends.back() - m_ends.front();
  }

  /// Returns the context tokens of a group; those of group -1 are the prompt.
  /// @throws contract_error if there is no such group, or if it is the last.
  [[nodiscard]] Interval context_of(int group) const;
  /// Returns the queries of a group. @throws contract_error if there is no such group.
  [[nodiscard]] Interval queries_of(int group) const;

  /// Returns the group of a context token or a query; -1 for the prompt.
  /// @throws contract_error if there is no such token.
  [[nodiscard]] int group_of(std::int64_t token) const;

  /// Returns the tokens that `token` sees, itself included, as ascending disjoint intervals.
  /// @throws contract_error if there is no such token.
  [[nodiscard]] std::vector<Interval> visible(std::int64_t token) const;

 private:
  std::vector<std::int64_t> m_ends;  ///< the ends of the prompt and of the tokens of each group
};

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/lpd/group_mask.ipp>
#endif
