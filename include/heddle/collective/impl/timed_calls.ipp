// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of timed_calls.hpp.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/collective/impl/timed_calls.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE double nine_tenths(std::vector<double> sample) {
  const auto last = sample.begin() + static_cast<std::ptrdiff_t>((9 * sample.size() + 9) / 10 - 1);
  std::nth_element(sample.begin(), last, sample.end());
  return *last;
}

HEDDLE_FULL_INLINE std::vector<Seconds> time_in_turns(
    const std::vector<std::function<void()>>& calls, Seconds budget, const Communicator& comm) {
  constexpr const char* where = "heddle::measure_collectives";
  // One that is no faster is the faster one in all of so many rounds once in 128 times.
  constexpr std::size_t least_rounds = 7;
  constexpr Seconds sample = 1e-3;  // long against what ranks leave a barrier one after another
  std::vector<std::vector<Seconds>> times(calls.size());
  std::vector<Seconds> least(calls.size(), sample);
  Seconds spent = 0;
  const auto few = [&] { return times.front().size() < least_rounds; };
  for (std::size_t round = 0; few() || (round <= 50 && spent < budget); ++round) {
    // In the first round connections are made, and memory is touched.
    if (round == 1 && spent < budget)
      for (std::vector<Seconds>& each : times) each.clear();
    for (std::size_t turn = 0; turn < calls.size(); ++turn) {
      const std::size_t c = (turn + round) % calls.size();
      const int repeats = static_cast<int>(std::clamp(sample / least[c], 1.0, 1000.0));
      check(MPI_Barrier(comm.get()), where);
      const Seconds begin = steady_seconds();
      for (int i = 0; i < repeats; ++i) calls[c]();
      // A clock's tick at least: a call over one rank may take none.
      Seconds time = std::max((steady_seconds() - begin) / repeats, 1e-9);
      check(MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, comm.get()), where);
      times[c].push_back(time);
      least[c] = std::min(least[c], time);
      spent += repeats * time;
    }
  }
  std::vector<Seconds> found;
  for (const std::vector<Seconds>& each : times) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < each.size(); ++i) ratios.push_back(each[i] / times.front()[i]);
    found.push_back(nine_tenths(std::move(ratios)));
  }
  std::vector<Seconds>& first = times.front();
  const auto middle = first.begin() + static_cast<std::ptrdiff_t>(first.size() / 2);
  std::nth_element(first.begin(), middle, first.end());
  for (Seconds& ratio : found) ratio *= *middle;
  return found;
}

}  // namespace heddle::inline v0::impl
