// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of gather_trail.hpp.

#include <cstddef>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/gather_trail.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE Trail gather_trail(const TransportRef& transport, const Trail& mine, Seconds offset,
                                 const ExecuteOptions& options) {
  std::vector<Trail::Event> shifted(mine.events().begin(), mine.events().end());
  for (Trail::Event& event : shifted) {
    event.start += offset;
    event.end += offset;
  }
  const std::vector<int> workers{mine.workers()};
  const auto everyone = all_gather<int>(transport, workers, options);
  const auto events = all_gather<Trail::Event>(transport, shifted, options);
  Trail all;
  std::size_t before = 0;
  for (std::size_t r = 0; r < events.size(); ++r) {
    for (Trail::Event event : events[r]) {
      event.worker = Worker{before + +event.worker};
      all.add(event);
    }
    before += static_cast<std::size_t>(everyone[r].front());
  }
  all.expect_workers(static_cast<int>(before));
  return all;
}

}  // namespace heddle::inline v0::impl
