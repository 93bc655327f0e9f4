// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of event_engine.hpp.

#include <heddle/core/linkage.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/impl/event_engine.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE Routes::Routes(const Schedule& schedule, const Machine& machine) {
  m_begin.reserve(2 * schedule.queues().size() + 1);
  for (const Queue& queue : schedule.queues()) {
    const Machine::Route route = machine.route(queue.from, queue.to, queue.lane);
    m_begin.push_back(m_ids.size());
    m_ids.insert(m_ids.end(), route.out.begin(), route.out.end());
    m_begin.push_back(m_ids.size());
    m_ids.insert(m_ids.end(), route.in.begin(), route.in.end());
  }
  m_begin.push_back(m_ids.size());
}

}  // namespace heddle::inline v0::impl
