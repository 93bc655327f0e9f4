// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The algorithms and Schedules of collectives among ranks that share memory, for collective calls
/// and for the choice of their algorithms.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// The least bytes for which shared memory is tried; below, messages are as fast.
inline constexpr Bytes least_shared_bytes = Bytes{32} << 10;

/// The most bytes of a block in a segment of a collective within one host. Such a block stays in a
/// cache from one action to the next.
inline constexpr Bytes shared_piece = Bytes{64} << 10;

namespace impl {

/// Returns true if all ranks share memory. `domains` has one number per rank.
[[nodiscard]] bool all_share(const std::vector<std::uint32_t>& domains);

/// Returns true if at least two ranks share memory. `domains` has one number per rank.
[[nodiscard]] bool any_share(const std::vector<std::uint32_t>& domains);

/// Returns the algorithm of a collective among ranks that are near each other: `direct` if it
/// performs the collective, else a tree from or to the root.
[[nodiscard]] schedule::Algorithm algorithm_inside(schedule::Collective collective);

/// Returns the algorithm of a collective among ranks that share memory by `domains`, and sets the
/// levels of `options`. In one domain it is algorithm_inside(). If levels_of() finds levels that
/// perform the collective, it is the hierarchical algorithm, with `outer` among the domains. Else
/// it is `outer` among all ranks.
/// @throws contract_error if `domains` does not have one number per rank.
[[nodiscard]] schedule::Algorithm shared_algorithm(schedule::Collective collective,
                                                   schedule::Algorithm outer,
                                                   schedule::CollectiveOptions& options,
                                                   const std::vector<std::uint32_t>& domains);

/// Returns the Schedule of a collective by shared_algorithm(), which still has messages. If all
/// ranks share memory and the collective works in place, it is done in segments.
/// Throws what schedule::collective() throws.
[[nodiscard]] Schedule collective_in_domains(schedule::Collective collective,
                                             schedule::Algorithm algorithm,
                                             const schedule::CollectiveOptions& options,
                                             const std::vector<std::uint32_t>& domains);

}  // namespace impl

/// The bytes that a rank copies out before it uses the same memory again, if it has so many. They
/// are more than a second-level cache holds, because writing a line takes three times as long while
/// the rank that has read it keeps it in its cache.
inline constexpr Bytes shared_outbox = Bytes{2} << 20;

namespace impl {

/// Returns `schedule` for ranks that share memory by `domains` and whose data lies anywhere. Data
/// that ranks read from each other is copied out first. If all parts have one size, the copies use
/// at most the slots that fit `shared_outbox`.
/// @throws contract_error if `domains` does not have one number per rank.
[[nodiscard]] Schedule share_copies(const Schedule& schedule,
                                    const std::vector<std::uint32_t>& domains);

}  // namespace impl

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/shared_collective.ipp>
#endif
