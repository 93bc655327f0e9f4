// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// How a collective goes among ranks of which some share memory. For collective calls, and for what
/// chooses how they are made.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// Fewer bytes than these are as fast in messages.
inline constexpr Bytes least_shared_bytes = Bytes{32} << 10;

/// Most bytes of a block in a segment of a collective within one host: in a cache from one action
/// to the next.
inline constexpr Bytes shared_piece = Bytes{64} << 10;

/// Whether all ranks share memory; `domains` has one number per rank.
[[nodiscard]] bool all_share(const std::vector<std::uint32_t>& domains);

/// Whether any do.
[[nodiscard]] bool any_share(const std::vector<std::uint32_t>& domains);

/// By which algorithm a collective goes among ranks that are near each other: straight from each to
/// each, from and to a root along a tree.
[[nodiscard]] schedule::Algorithm algorithm_inside(schedule::Collective collective);

/// By which algorithm a collective goes among ranks that share memory as `domains` say, `outer`
/// being that among the domains, and over which levels, which it leaves in `options`: in one domain
/// as algorithm_inside() says; in levels, where levels_of() finds them and they perform it; else by
/// `outer` among all.
[[nodiscard]] schedule::Algorithm shared_algorithm(schedule::Collective collective,
                                                   schedule::Algorithm outer,
                                                   schedule::CollectiveOptions& options,
                                                   const std::vector<std::uint32_t>& domains);

/// A collective that goes by such an algorithm, by messages still. Within one domain it is done in
/// segments, where it is one in place.
/// @throws what schedule::collective() throws.
[[nodiscard]] Schedule collective_in_domains(schedule::Collective collective,
                                             schedule::Algorithm algorithm,
                                             const schedule::CollectiveOptions& options,
                                             const std::vector<std::uint32_t>& domains);

/// What a rank copies out before it uses the same memory again, unless it has less: more than a
/// second cache holds. As long as the rank that has read a line keeps it there, to write the line
/// again takes three times as long.
inline constexpr Bytes shared_outbox = Bytes{2} << 20;

/// `schedule`, whose data lies anywhere, for ranks that share memory as `domains` say: what they
/// read of each other is copied out, to no more slots than `shared_outbox` has where the parts are
/// of one size, and it needs no more.
/// @throws contract_error where `domains` have not one number per rank.
[[nodiscard]] Schedule share_copies(const Schedule& schedule,
                                    const std::vector<std::uint32_t>& domains);

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/plan/shared_collective.ipp>
#endif
