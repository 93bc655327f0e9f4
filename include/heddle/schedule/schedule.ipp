// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of schedule.hpp.

#include <memory>
#include <utility>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE Schedule::Schedule() : m_body(std::make_shared<const impl::ScheduleBody>()) {}

HEDDLE_INLINE Schedule::Schedule(impl::ScheduleBody body)
    : m_body(std::make_shared<const impl::ScheduleBody>(std::move(body))) {}

}  // namespace heddle::inline v0
