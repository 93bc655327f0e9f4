// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LinkOptions: how links between ranks are measured.

#include <string>
#include <vector>

#include <heddle/core/units.hpp>
#include <heddle/execute/execute_options.hpp>

namespace heddle::inline v0 {

/// The options of measure_links().
struct LinkOptions {
  Seconds budget = 0.1;        ///< time for the round trips of a pair, 5 to 100 of them
  Bytes piece = 16 * 1024;     ///< size of the messages in a burst, which measures the bandwidth
  Bytes largest = 4ull << 20;  ///< size of the largest burst, at most 1 TiB
  int bursts = 3;              ///< bursts of each size
  ExecuteOptions wait = {};    ///< how a rank waits for a message
  std::string name = "rank";   ///< the name of the devices
  /// The names of the devices by rank, if they differ: LayerProfile::device_of_rank.
  std::vector<std::string> names = {};
};

}  // namespace heddle::inline v0
