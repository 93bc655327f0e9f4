// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// measure_machine(): measures the latency and bandwidth of a Machine by round trips of messages,
/// for predictions on the machine on which the program runs.

#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

class DeviceMesh;

/// How long measure_machine() measures, and how it waits.
struct MeasureOptions {
  // The rounds and pairs are numbers from 1 to 1,000,000.
  int short_rounds = 200;     ///< round trips of 8 bytes per pair, for the latency
  int long_rounds = 20;       ///< round trips of 1 MiB and of 4 MiB per pair, for the bandwidth
  int pairs = 8;              ///< maximum number of pairs of neighbours, measured one after another
  std::string name = "rank";  ///< the name of the devices
  ExecuteOptions wait = {};   ///< how the two ranks of a pair wait; other ranks sleep
};

/// Measures the latency and bandwidth between neighbouring ranks. Returns a uniform Machine with
/// the medians over the pairs. A message of n bytes takes latency + n / bandwidth. The latency is
/// half a round trip of 8 bytes. The bandwidth is the slope between 1 MiB and 4 MiB, so that it
/// contains no fixed cost.
///
/// The call is collective over the transport's ranks, and no other message may be in flight. The
/// result is the same on all ranks. With one rank, links cost nothing. The result is only
/// meaningful if each rank has a core of its own.
/// @throws contract_error if the options are invalid. The other ranks throw communication_error
///         then, and the transport cannot be used again.
/// @throws communication_error if a rank does not answer.
[[nodiscard]] Machine measure_machine(const TransportRef& transport,
                                      const MeasureOptions& options = {});

/// Measures the Machine over the transport of a mesh.
[[nodiscard]] Machine measure_machine(DeviceMesh& mesh, const MeasureOptions& options = {});

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/measure.ipp>
#endif
