// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// fused_time(): what a fused pair takes, for both engines of simulate().

#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::impl {

/// What the fused pair (id, id + 1) takes.
template <Costs C>
[[nodiscard]] typename C::Time fused_time(const Schedule& schedule, const C& costs, ActionId id) {
  if constexpr (FusedCosts<C>)
    return costs.fused(schedule, id);
  else
    return costs.time(schedule, id) + costs.time(schedule, ActionId{+id + 1});
}

}  // namespace heddle::inline v0::impl
