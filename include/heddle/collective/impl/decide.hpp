// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// By whom a collective call is made, and how, where that is not said.

#include <cstddef>
#include <vector>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/impl/shared_views.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/collective/collective.hpp>

namespace heddle::inline v0 {
namespace impl {

class Call;

/// Returns our default algorithm if the caller names none: few rounds for few bytes.
[[nodiscard]] schedule::Algorithm usual(schedule::Collective collective, Bytes bytes, int ranks,
                                        Rank root);

/// Checks the codec of a call's options. `Codec::feedback` needs a prepared call (`keeps`), which
/// holds the rounding errors until it is started again. `Codec::agree` writes the rounded values
/// back, so the call must not have an input that it `reads_only`. `codec_domains` must be empty or
/// have one number for each of the `ranks`. @throws contract_error otherwise, which names `where`.
void check_codec(const char* where, const CallOptions& options, std::size_t ranks, bool reads_only,
                 bool keeps);

/// Returns true if ranks of one host may read each other's memory in a call that blocks. The same
/// on all ranks, which have the same key.
[[nodiscard]] bool may_share(const Call& call, Bytes bytes);

/// Returns the SharedView, and the place in it, that holds the data of a call that blocks.
[[nodiscard]] PlaceInView place_in_view(const Call& call);

/// Returns true if an algorithm merges the ranks in their order, with root 0. Groups of ranks, or
/// of groups below, that do not follow one another do not: their numbers are not sorted.
[[nodiscard]] bool keeps_order(schedule::Algorithm algorithm,
                               const std::vector<schedule::GroupLevel>& levels);

/// Makes the key of a call whose merge does not commute that of one by way of rank 0. Where another
/// rank wants the result, or a part of it, all ranks get it.
void merge_in_order(PerformerKey& key);

/// Returns true if MPI's calls are polled, so that they end by the watchdog and requests are
/// furthered meanwhile: on all ranks, for MPI does not match calls that block with others.
[[nodiscard]] bool polled(const Call& call);

/// Returns true if a checked call that blocks is MPI's, as decide() would find, without a key. For
/// the contract level "local".
[[nodiscard]] bool library_at_once(const Call& call);

/// Completes the key of a call: by whom it is made, and how, `blocking` or not.
void decide(const Call& call, PerformerKey& key, bool blocking);

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/impl/decide.ipp>
#endif
