// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// three_tiers(): the memories between which an SN40L and its competitors switch experts.
/// switching_time() and measured_switch(): a switch, simulated and executed.

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/tier/cache.hpp>
#include <heddle/tier/cache_event.hpp>
#include <heddle/tier/objects.hpp>
#include <heddle/tier/store.hpp>

namespace heddle::test {

/// Returns a rank with three slower tiers: its own memory, and those behind two hosts.
inline Machine three_tiers() {
  const Device device{.name = "socket",
                      .memories = {{.name = "HBM", .capacity = 64'000'000'000},
                                   {.name = "DDR", .link = {0, 1000e9}},
                                   {.name = "host of an H100", .link = {0, 64e9}},
                                   {.name = "host of an A100", .link = {0, 32e9}}}};
  return Machine::uniform(1, device, {});
}

/// Returns the simulated time of the loads and write-backs of `events`.
inline Seconds switching_time(std::span<const tier::Object> objects,
                              std::span<const tier::CacheEvent> events, Tier slower) {
  const Schedule list = tier::recorded_schedule("experts", objects, events, slower);
  return simulate(list, {}, three_tiers()).makespan();
}

/// Returns the seconds of one switch between two experts of the store `file` behind the link of the
/// tier `slower`: the shortest of `times`, because a busy machine can only delay it. All tiers are
/// slower by one factor than three_tiers(), so that 200 kB take 20 ms in the fastest one.
inline Seconds measured_switch(const std::string& file, Tier slower, int times) {
  const double bandwidth = three_tiers().device(0).memories[+slower].link.bandwidth * 10e6 / 1000e9;
  tier::Store store({.file = file, .shape = {0, bandwidth}});
  tier::Cache cache(store, {.capacity = store.object(0).bytes});
  Seconds shortest = 1e9;
  for (int t = 0; t < times; ++t) {
    const auto begin = std::chrono::steady_clock::now();
    static_cast<void>(cache.get(t % 2 == 0 ? tier::ObjectId{0} : tier::ObjectId{1}));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    shortest = std::min(shortest, took.count());
  }
  return shortest;
}

}  // namespace heddle::test
