// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// measure_links(): measures the link between every pair of ranks in both directions. It helps to
/// choose collective algorithms on a network whose links differ.

#include <string>
#include <vector>

#include <heddle/comm/link_options.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

class DeviceMesh;

namespace impl {

/// Returns the partner of `rank` in a round of a tournament (circle method), in which every rank
/// meets every other rank once. A rank that pauses is its own partner. There are ranks - 1 rounds,
/// or `ranks` rounds if their number is odd.
[[nodiscard]] constexpr int opponent(int ranks, int rank, int round) noexcept {
  const int circle = ranks % 2 == 0 ? ranks - 1 : ranks;         // an even one's last stays outside
  if (rank == circle) return round * (circle + 1) / 2 % circle;  // where twice it is the round
  const int other = (round + circle - rank) % circle;
  return other == rank && ranks % 2 == 0 ? circle : other;
}

/// Checks the numbers of LinkOptions on behalf of the function `where`.
/// @throws contract_error if there is no burst, if a piece is shorter than 8 bytes or longer than
///         the largest burst, if that one exceeds 1 TiB, or if a time is below 0 or NaN.
void expect_valid(const LinkOptions& options, const char* where);

}  // namespace impl

/// Measures the links between all pairs of ranks, each direction separately, and returns them as a
/// network(), in which each rank has ports. A message of n bytes takes latency + n / bandwidth. The
/// link of a rank to itself costs nothing.
///
/// The latency is half a round trip of 8 bytes, so both directions have the same latency. A
/// difference between them cannot be measured at the two ends. The bandwidth is measured with
/// bursts of messages of LinkOptions::piece bytes, which MPI libraries send without first asking
/// the receiver. The time of a round trip is subtracted.
///
/// The measurement takes ranks - 1 rounds (one more if the number of ranks is odd). In a round
/// every rank has one partner, so pairs that are measured at the same time have no rank in common.
/// If they share cores or an uplink, the result shows the load that a collective of all ranks
/// causes.
///
/// The call is collective over the transport's ranks, and no other message may be in flight. The
/// result is the same on all ranks.
/// @throws contract_error if the options are invalid. The other ranks throw communication_error
///         then, and the transport cannot be used again.
/// @throws communication_error if a rank does not answer.
[[nodiscard]] Machine measure_links(const TransportRef& transport, const LinkOptions& options = {});

/// Measures the links over the transport of a mesh.
[[nodiscard]] Machine measure_links(DeviceMesh& mesh, const LinkOptions& options = {});

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/measure_links.ipp>
#endif
