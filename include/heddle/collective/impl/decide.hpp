// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// By whom a collective call is made, and how, where that is not said.

#include <cstddef>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/impl/shared_performer.hpp>
#include <heddle/collective/reduction.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/shared_collective.hpp>
#include <heddle/schedule/collective/collective.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Returns our default algorithm if the caller names none: few rounds for few bytes.
[[nodiscard]] schedule::Algorithm usual(schedule::Collective collective, Bytes bytes, int ranks,
                                        Rank root);

/// Refuses a codec that keeps what the call does not, or changes what it only reads, and domains
/// that are not of all `ranks`.
void check_codec(const char* where, const CallOptions& options, std::size_t ranks, bool reads_only,
                 bool keeps);

/// Returns true if ranks of one host may read each other's memory in a call that blocks. The same
/// on all ranks, which have the same key.
template <class Call>
[[nodiscard]] bool may_share(const Call& call, Bytes bytes) {
  return Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Call::MemorySpace>::accessible &&
         call.options.shared_memory && !call.options.progress_thread && !call.options.codec &&
         bytes >= least_shared_bytes && call.comm->size() > 1;
}

/// Returns true if the data of a call that blocks lies in a SharedView. The same on all ranks,
/// which give the same part of it.
template <class Call>
[[nodiscard]] bool in_shared_view(const Call& call, const CallSize& size) {
  if (!schedule::works_in_place(size.collective) || !may_share(call, size.bytes)) return false;
  const SharedViews* const views = call.comm->template attached<SharedPlace>().views();
  return views != nullptr && views->hold(call.memory()[0]);
}

/// Returns the SharedView, and the place in it, that holds the data of such a call.
template <class Call>
[[nodiscard]] PlaceInView place_in_view(const Call& call) {
  return call.comm->template attached<SharedPlace>().views()->place(call.memory()[0]);
}

/// Returns true if an algorithm merges the ranks in their order, with root 0. Groups of ranks, or
/// of groups below, that do not follow one another do not: their numbers are not sorted.
[[nodiscard]] bool keeps_order(schedule::Algorithm algorithm,
                               const std::vector<schedule::GroupLevel>& levels);

/// Makes the key of a call whose merge does not commute that of one by way of rank 0. Where another
/// rank wants the result, or a part of it, all ranks get it.
void merge_in_order(PerformerKey& key);

/// Returns true if MPI can make a call as its options want it.
template <class Call>
[[nodiscard]] bool library_can(const Call& call) {
  return !call.options.progress_thread && !call.options.codec && call.knows();
}

/// Returns true if MPI's calls are polled, so that they end by the watchdog and requests are
/// furthered meanwhile: on all ranks, for MPI does not match calls that block with others.
template <class Call>
[[nodiscard]] bool polled(const Call& call) {
  return call.options.watch_library || call.comm->template attached<CallLines>().requested();
}

/// Returns true if a checked call that blocks is MPI's, as decide() would find, without a key. For
/// the contract level "local".
template <class Call>
[[nodiscard]] bool library_at_once(const Call& call) {
  const CallOptions& options = call.options;
  if (options.algorithm || !options.codec_domains.empty() || !library_can(call) || polled(call))
    return false;
  const CallSize size = call.size();
  if (in_shared_view(call, size)) return false;
  if (options.costs == nullptr) return true;
  return options.costs->machine().ranks() == call.comm->size() &&
         call.comm->template attached<CallLines>()
             .choose(*options.costs, size, true, may_share(call, size.bytes))
             .library;
}

/// Chooses for a call that names no algorithm and may merge in any order.
template <class Call>
void choose(const Call& call, PerformerKey& key, bool blocking) {
  const CallOptions& options = call.options;
  if (key.in_place) {
    key.choice = {.piece = shared_piece, .shared = true};
    return;
  }
  const bool library = library_can(call);
  if (options.costs != nullptr) {
    key.choice = call.comm->template attached<CallLines>().choose(
        *options.costs, call.size(), library, blocking && may_share(call, key.bytes));
    if (!key.choice.library) key.costs = options.costs;
    // Costs put actions in order: with copies among them it might not be that of other ranks.
    key.apart = false;
    if (!key.choice.library || library) return;
  }
  key.choice.library = library;
  if (library) return;
  key.usual = true;
  key.choice.algorithm = usual(key.collective, key.bytes, call.comm->size(), key.root);
}

/// Completes the key of a call: by whom it is made, and how, `blocking` or not.
template <class Call>
void decide(const Call& call, PerformerKey& key, bool blocking) {
  const CallOptions& options = call.options;
  const bool in_order = !commutes<decltype(Call::reduction)> && !schedule::is_scan(key.collective);
  if (in_order) merge_in_order(key);
  key.codec = options.codec;
  if (key.codec) key.codec_domains = options.codec_domains;
  key.in_place = blocking && in_shared_view(call, {key.collective, key.bytes});
  if (options.algorithm) {
    if (in_order && !keeps_order(*options.algorithm, options.levels))
      throw infeasible(
          {Call::where,
           "the reduction is not commutative, and the algorithm does not keep its order",
           text(*options.algorithm),
           "choose star, binomial_tree or levels of these, or no algorithm"});
    key.choice.algorithm = *options.algorithm;
    key.chunks = options.chunks;
    if (*options.algorithm == schedule::Algorithm::hierarchical) key.choice.levels = options.levels;
    return;
  }
  expects(options.costs == nullptr || options.costs->machine().ranks() == call.comm->size(), [&] {
    return ErrorInfo{Call::where, "the cost table was measured for another number of ranks",
                     text("the table has ", options.costs->machine().ranks(),
                          " ranks, the communicator ", call.comm->size())};
  });
  if (in_order)
    key.choice.algorithm = schedule::Algorithm::binomial_tree;
  else
    choose(call, key, blocking);
}

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_FULL_HEADER_ONLY
#include <heddle/collective/impl/decide.ipp>
#endif
