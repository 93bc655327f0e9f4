// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// check_sums(): checks that the times and bytes of a problem do not add up to infinity.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/device.hpp>
#include <heddle/machine/level.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/internal/sites.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/internal/is_time.hpp>

namespace heddle::inline v0::plan::impl {

/// Throws contract_error if the times or bytes of a step may add up to more than their types hold,
/// so that no planner meets an infinite price.
inline void check_sums(const PlanProblem& problem) {
  constexpr const char* where = "heddle::plan::PlanProblem";
  const Profile& profile = problem.profile();
  const Machine& machine = problem.machine();
  const auto batch = static_cast<double>(problem.options().batch);
  double weights = 0, bytes = static_cast<double>(profile.input);  // of a sample
  for (const ProfiledLayer& layer : profile.layers) {
    weights += static_cast<double>(layer.parameters);
    for (const Bytes each :
         {layer.output, layer.saved, layer.delta, layer.keys, layer.query_bytes()})
      bytes += static_cast<double>(each);
  }
  expects(weights + bytes * batch <= 0x1p62, [&] {
    return ErrorInfo{where, "the layers and samples add up to more than 2^62 bytes",
                     text(weights, " bytes of weights, ", batch, " samples of ", bytes, " bytes"),
                     "correct the bytes of the profile, or use a smaller batch"};
  });
  for (const std::vector<Rank>& kind : device_kinds(machine)) {
    const Device& device = machine.device(kind[0]);
    Seconds sum = 0;
    for (int l = 0; l < problem.layers(); ++l)
      for (const int tensor : problem.options().tensor_degrees) {
        const LayerTimes times = profile.times(l, device, tensor, batch);
        sum += 2 * times.forward + times.backward() + times.update;
        heddle::impl::expect_sum(
            where, sum * batch,
            [&] {
              return text("layer ", l, " ('", profile.layers[static_cast<std::size_t>(l)].name,
                          "'), ", batch, " samples on '", device.name, "' of speed ", device.speed);
            },
            "correct the times of the profile or the speed, or use a smaller batch");
      }
  }
  // Each level's link, each link between two ranks, and what they share.
  Seconds latency = 0;
  double slowest = std::numeric_limits<double>::infinity();
  const auto note = [&](const Link& link) {
    latency = std::max(latency, link.latency);
    slowest = std::min(slowest, link.bandwidth);
  };
  if (machine.links().empty())
    for (const Level& level : machine.levels()) note(level.link);
  for (const Link& link : machine.links()) note(link);
  for (const Shared& shared : machine.shared()) slowest = std::min(slowest, shared.bandwidth);
  const double messages = 16 * batch * machine.ranks() * problem.layers();
  heddle::impl::expect_sum(
      where, messages * (latency + (weights + bytes * batch) / slowest),
      [&] {
        return text("messages over links of ", slowest, " bytes per second and ", latency, " s");
      },
      "correct the latencies and bandwidths of the machine, or use a smaller batch");
}

}  // namespace heddle::inline v0::plan::impl
