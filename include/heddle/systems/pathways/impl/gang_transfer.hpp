// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GangTransfer: one rank's part in the change of a value's layout.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/collective/internal/lane_shift.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/systems/pathways/impl/gang_plan.hpp>
#include <heddle/systems/pathways/impl/gang_value.hpp>

namespace heddle::inline v0::systems::impl {

/// One rank's part of a change of layout. The walker begins it at its place in the list. A rank
/// that sends nothing may begin it before, which posts the receives.
class GangTransfer {
 public:
  GangTransfer(std::shared_ptr<const GangPlan> plan, std::shared_ptr<GangValue> source,
               std::shared_ptr<GangValue> target, MpiTransport& transport, std::size_t lane)
      : m_plan(std::move(plan)),
        m_source(std::move(source)),
        m_target(std::move(target)),
        m_carrier(transport) {
    if (!m_plan->takes_part[+transport.rank()]) return;  // most ranks of a point-to-point change
    m_carrier.shift(lane);
    m_executor.emplace(sliced(transport.rank()), m_carrier, ExecuteOptions{.watchdog = 0});
    const Program& program = m_executor->program();
    m_early = !m_plan->sends(transport.rank());
    bool waits = false;
    for (std::size_t i = 0; i < program.size(); ++i) {
      waits = waits || !program.waits_of(i).empty();
      m_posts_at_once = m_posts_at_once && !(waits && program.steps[i].moves());
      m_receives = m_receives || program.steps[i].does == Program::Step::Does::receive;
    }
  }

  /// Returns true if this rank has anything to do.
  [[nodiscard]] bool takes_part() const noexcept { return m_executor.has_value(); }
  /// Returns true if the receives may be posted before the value exists.
  [[nodiscard]] bool early() const noexcept { return m_early; }
  /// Returns true if the transfer has begun and has no more messages to post.
  [[nodiscard]] bool posted() const noexcept { return m_done || (m_begun && m_posts_at_once); }
  /// Returns true if it has begun.
  [[nodiscard]] bool begun() const noexcept { return m_begun; }
  /// Returns true if this rank waits for nobody's elements.
  [[nodiscard]] bool only_sends() const noexcept { return !m_receives; }
  [[nodiscard]] const GangPlan& plan() const noexcept { return *m_plan; }
  [[nodiscard]] const std::shared_ptr<const GangPlan>& shared_plan() const { return m_plan; }
  [[nodiscard]] const std::shared_ptr<GangValue>& source() const noexcept { return m_source; }
  [[nodiscard]] const std::shared_ptr<GangValue>& target() const noexcept { return m_target; }

  /// Performs what needs no wait. Returns true once all is done.
  bool advance() {
    if (!m_executor || m_done) return true;
    if (!std::exchange(m_begun, true)) {
      const std::string& error = m_source->error;
      const std::size_t length = std::min<std::size_t>(error.size(), gang_status_bytes - 1);
      std::memcpy(m_status.data(), error.data(), length);
      m_executor->begin();
    }
    const auto handler = [this](const Task& task) {
      m_plan->type->perform(m_plan->exchange, m_plan->merge, task);
    };
    m_done = m_executor->advance(handler);
    return m_done;
  }

  /// Returns the ranks that have not completed a message to or from this rank, in order.
  [[nodiscard]] std::vector<Rank> open_peers() const {
    return m_begun && !m_done ? m_executor->open_peers() : std::vector<Rank>{};
  }

  /// Gives the errors of the ranks that sent elements to the target. Call it when all is done.
  void settle() {
    if (m_target->error.empty()) m_target->error = m_source->error;
    for (const auto& told : m_told)
      if (m_target->error.empty()) m_target->error = told->data();
  }

  /// Ends the transfer after an error.
  void abort(const std::string& doing, const char* reason) noexcept {
    if (m_begun && !m_done) m_executor->abort(doing, reason);
  }

 private:
  using StatusText = std::array<char, gang_status_bytes>;

  [[nodiscard]] Program sliced(Rank rank) {
    const Schedule& schedule = m_plan->schedule;
    return slice(schedule, rank, [&](BufferId id, const Buffer& buffer) -> std::byte* {
      if (buffer.rank != rank) return nullptr;
      const std::string& role = schedule[buffer.label];
      (void)id;
      if (role == "from") return m_source->data;
      if (role == "to") return m_target->data;
      if (role == "status") return reinterpret_cast<std::byte*>(m_status.data());
      if (role == "told") {
        m_told.push_back(std::make_unique<StatusText>());
        return reinterpret_cast<std::byte*>(m_told.back()->data());
      }
      return m_scratch.emplace_back(buffer.bytes).data();
    });
  }

  std::shared_ptr<const GangPlan> m_plan;
  std::shared_ptr<GangValue> m_source, m_target;
  StatusText m_status = {};
  std::vector<std::unique_ptr<StatusText>> m_told;
  std::vector<std::vector<std::byte>> m_scratch;
  heddle::impl::LaneShift<MpiTransport> m_carrier;
  /// Refers to the members above. Empty on a rank that does not take part.
  std::optional<Executor<heddle::impl::LaneShift<MpiTransport>>> m_executor;
  bool m_early = false;
  bool m_posts_at_once = true;
  bool m_receives = false;
  bool m_begun = false;
  bool m_done = false;
};

}  // namespace heddle::inline v0::systems::impl
