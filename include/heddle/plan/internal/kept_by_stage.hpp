// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// kept_by_stage(): what the stages of a schedule keep, for any number of microbatches.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/plan/internal/stage_memory.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/simulate/internal/repeated_orders.hpp>

namespace heddle::inline v0::plan::impl {

/// Stages times microbatches up to which all entries of the orders are listed to price a plan. For
/// more of them, steady periods are skipped.
inline constexpr std::int64_t most_listed = 1 << 20;
/// Stages times microbatches up to which they are listed if there is no steady period.
inline constexpr std::int64_t most_listed_without_period = 1 << 22;

/// Returns stages times microbatches.
[[nodiscard]] inline std::int64_t passes(std::size_t stages, int microbatches) {
  return static_cast<std::int64_t>(stages) * microbatches;
}

/// Returns what each rank keeps, which has one stage.
[[nodiscard]] KeptByStage kept_by_orders(const Orders& orders);
/// Returns the same numbers for orders in which entries that repeat are written once.
[[nodiscard]] KeptByStage kept_by_orders(const heddle::impl::RepeatedOrders& orders);

/// Returns what the stages of a schedule keep, as line_orders() has its orders. Adds the
/// forward passes that are listed to find it to `*listed`, if given, and one for each number of
/// microbatches that is tried to find a period.
/// @throws contract_error as line_orders().
/// @throws infeasible if the schedule has no orders of so many microbatches, or if these are very
///         many and do not repeat.
[[nodiscard]] KeptByStage kept_by_schedule(const std::string& schedule, std::size_t stages,
                                           int microbatches, const char* where,
                                           std::uint64_t* listed = nullptr);

/// Returns what the stages of the schedule called `name` keep, or nothing if it does not have one
/// stage on each of `stages` ranks for so many microbatches. Adds to `*listed` as
/// kept_by_schedule().
[[nodiscard]] std::optional<KeptByStage> kept_by_stage(const std::string& name, int stages,
                                                       int microbatches,
                                                       std::uint64_t* listed = nullptr);

}  // namespace heddle::inline v0::plan::impl

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/internal/kept_by_stage.ipp>
#endif
