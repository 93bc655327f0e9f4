// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GangDesk: what the clients of a rank and its serving thread hand to each other.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/systems/pathways/impl/gang_frame.hpp>
#include <heddle/systems/pathways/impl/gang_value.hpp>

namespace heddle::inline v0::systems::impl {

/// The place at which clients leave their programs and values, and wait for results. All functions
/// may be called from any thread.
class GangDesk {
 public:
  /// Leaves frames of a client, in order.
  void submit(const std::deque<GangFrame>& frames) {
    const std::lock_guard lock(m_mutex);
    m_outbox.insert(m_outbox.end(), frames.begin(), frames.end());
  }
  /// Returns the oldest frame that the serving thread has not taken yet.
  [[nodiscard]] std::optional<GangFrame> take() {
    const std::lock_guard lock(m_mutex);
    if (m_outbox.empty()) return std::nullopt;
    const GangFrame frame = m_outbox.front();
    m_outbox.pop_front();
    return frame;
  }

  /// Leaves the elements of an input.
  void put(std::uint64_t id, std::shared_ptr<void> tensor) {
    const std::lock_guard lock(m_mutex);
    m_puts.emplace(id, std::move(tensor));
  }
  /// Removes the elements of an input.
  [[nodiscard]] std::shared_ptr<void> collect(std::uint64_t id) {
    const std::lock_guard lock(m_mutex);
    const auto found = m_puts.extract(id);
    return found.empty() ? nullptr : std::move(found.mapped());
  }

  /// Gives a client the value that it waits for.
  void answer(std::uint64_t id, std::shared_ptr<GangValue> value) {
    {
      const std::lock_guard lock(m_mutex);
      m_answers.emplace(id, std::move(value));
    }
    m_changed.notify_all();
  }
  /// Waits for the answer of get `id`.
  /// @throws communication_error if the island fails or stops.
  [[nodiscard]] std::shared_ptr<GangValue> await(std::uint64_t id) {
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [&] { return m_failed || m_answers.contains(id); });
    const auto found = m_answers.extract(id);
    if (found.empty()) throw communication_error({"heddle::systems::IslandClient::get", m_failure});
    return std::move(found.mapped());
  }

  /// Ends all waits with an error.
  void fail(std::string why) {
    {
      const std::lock_guard lock(m_mutex);
      if (std::exchange(m_failed, true)) return;
      m_failure = std::move(why);
      m_outbox.clear();
    }
    m_changed.notify_all();
  }
  /// Throws the failure if there is one.
  void expect_open(const char* where) const {
    const std::lock_guard lock(m_mutex);
    if (m_failed) throw communication_error({where, m_failure});
  }

 private:
  mutable std::mutex m_mutex;
  std::condition_variable m_changed;
  std::deque<GangFrame> m_outbox;
  std::map<std::uint64_t, std::shared_ptr<void>> m_puts;
  std::map<std::uint64_t, std::shared_ptr<GangValue>> m_answers;
  bool m_failed = false;
  std::string m_failure;
};

}  // namespace heddle::inline v0::systems::impl
