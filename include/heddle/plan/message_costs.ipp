// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of message_costs.hpp.

#include <utility>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/message_costs.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0 {

static_assert(Costs<plan::MessageCosts>);

namespace plan {

HEDDLE_INLINE MessageCosts::MessageCosts(Machine machine, Bytes eager, Seconds per_byte)
    : m_machine(std::move(machine)), m_eager(eager), m_per_byte(per_byte) {
  heddle::impl::expect_time("heddle::plan::MessageCosts", "per_byte", per_byte);
}

}  // namespace plan

}  // namespace heddle::inline v0
