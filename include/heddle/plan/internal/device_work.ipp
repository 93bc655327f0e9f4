// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of device_work.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/internal/device_work.hpp>
#include <heddle/plan/internal/sites.hpp>
#include <heddle/plan/internal/stage_shape.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>

namespace heddle::inline v0::plan::impl {

HEDDLE_INLINE DeviceWork::DeviceWork(LayerTable& table) {
  const PlanProblem& problem = table.problem();
  const auto ranks = static_cast<std::size_t>(problem.machine().ranks());
  const auto layers = static_cast<std::size_t>(problem.layers());
  constexpr Seconds none = std::numeric_limits<Seconds>::infinity();
  std::vector<std::vector<Seconds>> least;  // by kind and layer
  std::vector<std::size_t> kind(ranks);
  const auto kinds = device_kinds(problem.machine());
  // The time of a sample is monotonic between measured numbers of samples, and beyond them.
  std::set<std::int64_t> numbers{1};
  for (const int m : problem.options().microbatches) numbers.insert(problem.options().batch / m);
  const std::int64_t most = *numbers.rbegin();
  for (const ProfiledLayer& layer : problem.profile().layers)
    for (const LayerMeasurement& m : layer.measured)
      if (m.samples <= most) numbers.insert(m.samples);
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    least.emplace_back(layers, none);
    for (const Rank rank : kinds[k]) kind[+rank] = k;
    for (const int degree : problem.options().tensor_degrees) {
      if (!table.has_degree(kinds[k][0], degree)) continue;
      for (const std::int64_t samples : numbers) {
        const LayerTimeSums& sums = table.sums(kinds[k][0], degree, samples);
        for (std::size_t l = 0; l < layers; ++l) {
          const LayerTimes one = sums.of({static_cast<int>(l), static_cast<int>(l) + 1});
          least[k][l] = std::min(
              least[k][l], (one.forward + one.backward()) * degree / static_cast<double>(samples));
        }
      }
    }
  }
  first.push_back(0);
  std::vector<double> of_kind(kinds.size(), 0);
  for (std::size_t l = 0; l < layers; ++l) {
    Seconds fastest = none;
    for (std::size_t k = 0; k < kinds.size(); ++k) fastest = std::min(fastest, least[k][l]);
    for (std::size_t k = 0; k < kinds.size(); ++k)
      of_kind[k] = std::max(of_kind[k], fastest < least[k][l] ? fastest / least[k][l] : 1);
    first.push_back(first.back() + fastest);
  }
  for (std::size_t r = 0; r < ranks; ++r) speed.push_back(of_kind[kind[r]]);
}

}  // namespace heddle::inline v0::plan::impl
