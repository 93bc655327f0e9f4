// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PlanBytes: the memory of many plans of a problem.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/internal/stage_memory.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan::impl {

/// Computes the bytes of plans as plan_memory() does. It makes the orders of a schedule once for
/// each number of stages and microbatches.
class PlanBytes {
 public:
  /// The problem outlives the object.
  explicit PlanBytes(const PlanProblem& problem) : m_problem(&problem) {}

  /// Returns plan_memory() of a plan. @throws contract_error as simulated_step().
  [[nodiscard]] std::vector<Bytes> memory(const Plan& plan);
  /// Returns memory_shortage() of a plan. @throws contract_error as simulated_step().
  [[nodiscard]] std::optional<MemoryShortage> shortage(const Plan& plan);
  /// Returns what the stages of a plan keep. @throws contract_error as simulated_step().
  [[nodiscard]] const KeptByStage& kept_of(const Plan& plan);

 private:
  const PlanProblem* m_problem;
  /// By schedule, number of stages and number of microbatches.
  std::map<std::tuple<std::string, std::size_t, int>, KeptByStage> m_kept;
};

}  // namespace heddle::inline v0::plan::impl

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/internal/plan_bytes.ipp>
#endif
