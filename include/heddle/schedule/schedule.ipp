// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of schedule.hpp.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE Schedule::Schedule() : m_body(std::make_shared<const impl::ScheduleBody>()) {}

HEDDLE_INLINE Schedule::Schedule(const Schedule& other) = default;
HEDDLE_INLINE Schedule::Schedule(Schedule&& other) noexcept = default;
HEDDLE_INLINE Schedule& Schedule::operator=(const Schedule& other) = default;
HEDDLE_INLINE Schedule& Schedule::operator=(Schedule&& other) noexcept = default;
HEDDLE_INLINE Schedule::~Schedule() = default;

HEDDLE_INLINE Schedule::Schedule(impl::ScheduleBody body)
    : m_body(std::make_shared<const impl::ScheduleBody>(std::move(body))) {}

HEDDLE_INLINE std::span<const std::uint32_t> Schedule::domains() const noexcept {
  return m_body->domains;
}

HEDDLE_INLINE std::span<const Action> Schedule::actions() const noexcept { return m_body->actions; }

HEDDLE_INLINE std::span<const Buffer> Schedule::buffers() const noexcept { return m_body->buffers; }

HEDDLE_INLINE std::span<const Queue> Schedule::queues() const noexcept { return m_body->queues; }

HEDDLE_INLINE std::span<const std::string> Schedule::labels() const noexcept {
  return m_body->labels;
}

HEDDLE_INLINE std::span<const std::uint32_t> Schedule::after_begin() const noexcept {
  return m_body->after_begin;
}

HEDDLE_INLINE Schedule Schedule::with_sizes(impl::FunctionRef<void(Buffer&)> change) const {
  impl::ScheduleBody body = *m_body;
  for (Buffer& buffer : body.buffers) change(buffer);
  expect_sizes(body);
  return Schedule(std::move(body));
}

HEDDLE_INLINE void Schedule::expect_sizes(const impl::ScheduleBody& changed) const {
  constexpr const char* where = "heddle::Schedule::with_sizes";
  for (std::size_t b = 0; b < changed.buffers.size(); ++b) {
    const Buffer& old = m_body->buffers[b];
    const Buffer& buffer = changed.buffers[b];
    expects(buffer.rank == old.rank && buffer.parts == old.parts && buffer.label == old.label, [&] {
      return ErrorInfo{where, "a change of sizes keeps the rank, the parts and the label",
                       text("buffer ", b, " has rank ", old.rank, ", ", old.parts,
                            " parts and label ", old.label, "; got rank ", buffer.rank, ", ",
                            buffer.parts, " parts and label ", buffer.label),
                       "use Builder::like() to change them"};
    });
    impl::expect_sizes(buffer, m_body->labels[+buffer.label], where);
  }
}

}  // namespace heddle::inline v0
