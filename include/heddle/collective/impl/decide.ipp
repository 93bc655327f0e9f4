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
#include <heddle/collective/impl/shared_performer.hpp>
#include <heddle/collective/impl/shared_views.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/cost_table.hpp>
#include <heddle/plan/shared_collective.hpp>
#include <heddle/schedule/collective/collective.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE schedule::Algorithm usual(schedule::Collective collective, Bytes bytes,
                                             int ranks, Rank root) {
  using enum schedule::Algorithm;
  constexpr Bytes few_bytes = 16 << 10;
  // A chain down which the whole goes uncut is slower than any tree, and than doubling.
  const bool rooted =
      collective == schedule::Collective::broadcast || collective == schedule::Collective::reduce;
  const schedule::Algorithm much = rooted                                ? binomial_tree
                                   : schedule::impl::is_scan(collective) ? recursive_doubling
                                                                         : ring;
  for (const schedule::Algorithm each :
       {bytes <= few_bytes ? recursive_doubling : much, binomial_tree, ring, direct, bruck})
    if (schedule::why_not(collective, each, {.ranks = ranks, .root = root}).empty()) return each;
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
        text("codec ", *codec),
        "prepare the call, as in all_reduce<Prepared>(...), or leave out Codec::feedback"};
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

HEDDLE_FULL_INLINE bool may_share(const Call& call, Bytes bytes) {
  const CallOptions& options = call.options();
  return call.by().on_host() && options.shared_memory && !options.progress_thread &&
         !options.codec && bytes >= least_shared_bytes && call.comm().size() > 1;
}

// Returns true if the data of a call that blocks lies in a SharedView. The same on all ranks, which
// give the same part of it.
inline bool in_shared_view(const Call& call, const CallSize& size) {
  if (!schedule::impl::works_in_place(size.collective) || !may_share(call, size.bytes))
    return false;
  const SharedViews* const views = call.comm().attached<SharedPlace>().views();
  return views != nullptr && views->hold(call.memory()[0]);
}

HEDDLE_FULL_INLINE PlaceInView place_in_view(const Call& call) {
  return call.comm().attached<SharedPlace>().views()->place(call.memory()[0]);
}

// Returns true if MPI can make a call as its options want it.
inline bool library_can(const Call& call) {
  return !call.options().progress_thread && !call.options().codec && call.knows();
}

HEDDLE_FULL_INLINE bool polled(const Call& call) {
  return call.options().watch_library || call.comm().attached<CallLines>().requested();
}

HEDDLE_FULL_INLINE bool library_at_once(const Call& call) {
  const CallOptions& options = call.options();
  if (options.algorithm || !options.codec_domains.empty() || !library_can(call) || polled(call))
    return false;
  const CallSize size = call.size();
  if (in_shared_view(call, size)) return false;
  if (options.costs == nullptr) return true;
  return options.costs->machine().ranks() == call.comm().size() &&
         call.comm()
             .attached<CallLines>()
             .choose(options.costs, size, true, may_share(call, size.bytes))
             .library;
}

// Chooses for a call that names no algorithm and may merge in any order.
inline void choose(const Call& call, PerformerKey& key, bool blocking) {
  const CallOptions& options = call.options();
  if (key.in_place) {
    key.choice = {.piece = shared_piece, .shared = true};
    return;
  }
  const bool library = library_can(call);
  if (options.costs != nullptr) {
    key.choice = call.comm().attached<CallLines>().choose(options.costs, call.size(), library,
                                                          blocking && may_share(call, key.bytes));
    if (!key.choice.library) key.costs = options.costs;
    // Costs put actions in order: with copies among them it might not be that of other ranks.
    key.apart = false;
    if (!key.choice.library || library) return;
  }
  key.choice.library = library;
  if (library) return;
  key.usual = true;
  key.choice.algorithm = usual(key.collective, key.bytes, call.comm().size(), key.root);
}

HEDDLE_FULL_INLINE void decide(const Call& call, PerformerKey& key, bool blocking) {
  const CallOptions& options = call.options();
  const bool in_order = !call.by().commutes() && !schedule::impl::is_scan(key.collective);
  if (in_order) merge_in_order(key);
  key.codec = options.codec;
  if (key.codec) key.codec_domains = options.codec_domains;
  key.in_place = blocking && in_shared_view(call, {key.collective, key.bytes});
  if (options.algorithm) {
    if (in_order && !keeps_order(*options.algorithm, options.levels))
      throw infeasible(
          {call.where(),
           "the reduction is not commutative, and the algorithm does not keep its order",
           text(*options.algorithm),
           "choose star, binomial_tree or levels of these, or no algorithm"});
    key.choice.algorithm = *options.algorithm;
    key.chunks = options.chunks;
    if (*options.algorithm == schedule::Algorithm::hierarchical) key.choice.levels = options.levels;
    return;
  }
  expects(options.costs == nullptr || options.costs->machine().ranks() == call.comm().size(), [&] {
    return ErrorInfo{call.where(), "the cost table was measured for another number of ranks",
                     text("the table has ", options.costs->machine().ranks(),
                          " ranks, the communicator ", call.comm().size())};
  });
  if (in_order)
    key.choice.algorithm = schedule::Algorithm::binomial_tree;
  else
    choose(call, key, blocking);
}

}  // namespace heddle::inline v0::impl
