// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// live_activations(): derives the peak number of live activations from the order of forwards and
/// backwards alone.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule {

/// Returns the peak of live activations of each rank. A forward keeps the activations of its
/// microbatch, and B or W releases them. `activations[s]` is what a forward of stage s keeps, in
/// any unit. If `activations` is empty, each forward keeps 1. Orders without a backward pass keep
/// none.
/// @throws contract_error if `activations` is not empty and has no number for a stage.
[[nodiscard]] std::vector<std::int64_t> live_activations(
    const Orders& orders, const std::vector<std::int64_t>& activations = {});

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/live_activations.ipp>
#endif
