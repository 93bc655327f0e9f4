// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of checkpoint_pair.hpp.

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/locked_file.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/pipeline/checkpoint_pair.hpp>
#include <heddle/pipeline/impl/throw_together.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE std::int64_t CheckpointPair::resume_arrays(
    const std::vector<impl::HeldArray>& held, const std::function<void(const Checkpoint&)>& check,
    const TransportRef& transport, const ExecuteOptions& options) {
  constexpr const char* where = "heddle::CheckpointPair::resume";
  own_files(transport, options, where);
  std::array<std::int64_t, 1> newest{none};
  std::string damage;
  if (transport.rank() == Rank{0}) newest[0] = find_newest(damage);
  // Rank 0 decides for all.
  m_newest = all_gather<std::int64_t>(transport, newest, options)[0][0];
  const auto told = all_gather<char>(transport, std::span<const char>(damage), options)[0];
  m_damage.assign(told.begin(), told.end());
  if (m_newest == none && m_damage.empty()) return 0;
  if (m_newest == none)
    throw format_error(
        {where, "no checkpoint is whole", m_damage, "remove the files to train from the start"});
  std::int64_t step = 0;
  (void)impl::restore_arrays(
      newest_path(), held,
      [&](const Checkpoint& checkpoint) {
        if (check) check(checkpoint);
        step = checkpoint.get<std::int64_t>(step_field, 1)[0];
      },
      transport, options);
  return step;
}

HEDDLE_FULL_INLINE void CheckpointPair::save_arrays(const std::vector<impl::HeldArray>& held,
                                                    std::int64_t step, Checkpoint own,
                                                    const TransportRef& transport,
                                                    const ExecuteOptions& options) {
  constexpr const char* where = "heddle::CheckpointPair::save";
  impl::throw_together(transport, options, where, [&] {
    expects(step >= 0, [&] {
      return ErrorInfo{where, "a step must be at least 0", text("step = ", step)};
    });
  });
  own_files(transport, options, where);
  const std::int64_t next = m_newest == 0 ? 1 : 0;
  own.set(step_field, std::vector<std::int64_t>{step});
  impl::save_arrays(m_paths[static_cast<std::size_t>(next)], held, std::move(own), transport,
                    options);
  m_newest = next;
}

HEDDLE_FULL_INLINE std::string CheckpointPair::newest_path() const {
  return m_newest == none ? std::string() : m_paths[static_cast<std::size_t>(m_newest)];
}

HEDDLE_FULL_INLINE void CheckpointPair::own_files(const TransportRef& transport,
                                                  const ExecuteOptions& options,
                                                  const char* where) {
  if (m_owns) return;
  std::exception_ptr error;
  std::shared_ptr<impl::PathLock> lock;  // goes if another rank throws
  if (transport.rank() == Rank{0}) {
    try {
      lock = std::make_shared<impl::PathLock>(where, text("'", m_paths[0], "'"), m_paths[0]);
    } catch (...) {
      error = std::current_exception();
    }
  }
  impl::throw_together(transport, options, error, where, "own the checkpoints", m_paths[0]);
  m_lock = std::move(lock);
  m_owns = true;
}

HEDDLE_FULL_INLINE std::int64_t CheckpointPair::find_newest(std::string& damage) const {
  std::int64_t newest = none, latest = none;
  for (std::size_t i = 0; i < m_paths.size(); ++i) {
    std::error_code error;
    if (!std::filesystem::exists(m_paths[i], error)) continue;
    try {
      const Checkpoint checkpoint = Checkpoint::load(m_paths[i]);
      const std::int64_t step =
          checkpoint.has(step_field) ? checkpoint.get<std::int64_t>(step_field, 1)[0] : 0;
      if (step <= latest) continue;
      latest = step;
      newest = static_cast<std::int64_t>(i);
    } catch (const format_error& complaint) {
      damage += (damage.empty() ? "" : "; ") + std::string(complaint.what());
    }
  }
  return newest;
}

}  // namespace heddle::inline v0
