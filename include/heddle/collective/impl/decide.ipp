// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of decide.hpp.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/decide.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/collective/collective.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE schedule::Algorithm usual(schedule::Collective collective, Bytes bytes,
                                             int ranks, Rank root) {
  using enum schedule::Algorithm;
  constexpr Bytes few_bytes = 16 << 10;
  // A chain down which the whole goes uncut is slower than any tree, and than doubling.
  const bool rooted =
      collective == schedule::Collective::broadcast || collective == schedule::Collective::reduce;
  const schedule::Algorithm much = rooted                          ? binomial_tree
                                   : schedule::is_scan(collective) ? recursive_doubling
                                                                   : ring;
  for (const schedule::Algorithm each :
       {bytes <= few_bytes ? recursive_doubling : much, binomial_tree, ring, direct, bruck})
    if (schedule::applicable(collective, each, {.ranks = ranks, .root = root})) return each;
  return direct;
}

HEDDLE_FULL_INLINE void check_codec(const char* where, const CallOptions& options,
                                    std::size_t ranks, bool reads_only, bool keeps) {
  const std::optional<Codec>& codec = options.codec;
  const std::size_t domains = options.codec_domains.size();
  expects(domains == 0 || domains == ranks, [&] {
    return ErrorInfo{where, "CallOptions::codec_domains must be empty or have one number per rank",
                     text(domains, " domains, ", ranks, " ranks")};
  });
  if (!codec) return;
  expects(!codec->feedback || keeps, [&] {
    return ErrorInfo{
        where,
        "error feedback needs a prepared call, which keeps the rounding errors between calls",
        text("codec ", *codec), "call prepare_...(), or leave out Codec::feedback"};
  });
  expects(!codec->agree || !reads_only, [&] {
    return ErrorInfo{where,
                     "Codec::agree would change the input of this call, which may only be read",
                     text("codec ", *codec), "leave out Codec::agree"};
  });
}

HEDDLE_FULL_INLINE bool keeps_order(schedule::Algorithm algorithm,
                                    const std::vector<schedule::GroupLevel>& levels) {
  using enum schedule::Algorithm;
  const auto keeps = [](schedule::Algorithm each) { return each == star || each == binomial_tree; };
  return algorithm == hierarchical
             ? std::ranges::all_of(levels,
                                   [&](const schedule::GroupLevel& level) {
                                     return keeps(level.algorithm) &&
                                            std::ranges::is_sorted(level.groups);
                                   })
             : keeps(algorithm);
}

HEDDLE_FULL_INLINE void merge_in_order(PerformerKey& key) {
  using enum schedule::Collective;
  if (key.collective == reduce_scatter || (key.collective == reduce && key.root != Rank{}))
    key.collective = all_reduce;
  key.root = {};
}

}  // namespace heddle::inline v0::impl
