// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CheckpointPair: two checkpoints that a run saves alternately, so that one of them is whole at
/// any time. Replanner::resume() uses it.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/impl/locked_file.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/resumed_run.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/pipeline/checkpoint.hpp>
#include <heddle/pipeline/state.hpp>

namespace heddle::inline v0 {

/// Two checkpoints of one run: a file, and a file with ".2" at the end of its name. save() writes
/// the one that is not the newest. If the program is killed meanwhile, or if the newest file is
/// damaged, the run continues from the other one. The tool `elastic` uses the same two files.
///
/// The files have one owner: rank 0 of the run that called resume() or save() first holds a lock on
/// the file `path`.lock until its pair is destroyed, and other runs get an error. To read the files
/// of another run, call restore().
class CheckpointPair {
 public:
  /// Constructs the pair `path` and `path`.2. Nothing is read.
  explicit CheckpointPair(const std::string& path) : m_paths{path, path + ".2"} {}

  /// Gives `model` the state of the newest file that is whole, see restore(), and returns its step.
  /// Returns 0, and changes nothing, if there is no file. All ranks must call it.
  /// @throws format_error on every rank if another run owns the files, if there are files but none
  ///         is whole, if the file has no step, and as restore(). The model is then as it was.
  template <HasState M, Place P, std::invocable<const Checkpoint&> Check = impl::AnyCheckpoint>
  std::int64_t resume(M& model, P& place, Check&& check = {}, const ExecuteOptions& options = {}) {
    constexpr const char* where = "heddle::CheckpointPair::resume";
    auto& transport = transport_of(place);
    own_files(transport, options, where);
    std::array<std::int64_t, 1> newest{none};
    std::string damage;
    if (transport.rank() == Rank{0}) newest[0] = find_newest(damage);
    // Rank 0 decides for all.
    m_newest = all_gather_values<std::int64_t>(transport, newest, options)[0][0];
    const auto told = all_gather_values<char>(transport, std::span<const char>(damage), options)[0];
    m_damage.assign(told.begin(), told.end());
    if (m_newest == none && m_damage.empty()) return 0;
    if (m_newest == none)
      throw format_error(
          {where, "no checkpoint is whole", m_damage, "remove the files to train from the start"});
    std::int64_t step = 0;
    (void)restore(
        newest_path(), model, place,
        [&](const Checkpoint& checkpoint) {
          check(checkpoint);
          step = checkpoint.get<std::int64_t>(step_field, 1)[0];
        },
        options);
    return step;
  }

  /// Saves the state of `model` after `step` steps, see heddle::save(), to the file that is not the
  /// newest. All ranks must call it.
  /// @throws format_error on every rank if another run owns the files, and the errors of
  ///         heddle::save(). Then the newest file is the one before.
  template <HasState M, Place P>
  void save(M& model, P& place, std::int64_t step, Checkpoint own = {},
            const ExecuteOptions& options = {}) {
    own_files(transport_of(place), options, "heddle::CheckpointPair::save");
    const std::int64_t next = m_newest == 0 ? 1 : 0;
    own.set(step_field, std::vector<std::int64_t>{step});
    heddle::save(m_paths[static_cast<std::size_t>(next)], model, place, std::move(own), options);
    m_newest = next;
  }

  /// Returns the name of the newest file that is whole, or an empty text if there is none.
  [[nodiscard]] std::string newest_path() const {
    return m_newest == none ? std::string() : m_paths[static_cast<std::size_t>(m_newest)];
  }
  /// Returns the errors of the damaged files that resume() found, or an empty text.
  [[nodiscard]] const std::string& damage() const noexcept { return m_damage; }

 private:
  static constexpr std::int64_t none = -1;
  static constexpr const char* step_field = "step";

  /// Makes this run the owner of the files, once. All ranks must call it.
  template <Transport T>
  void own_files(T& transport, const ExecuteOptions& options, const char* where) {
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

  /// Returns the number of the whole file of the latest step, and the errors of damaged files.
  [[nodiscard]] std::int64_t find_newest(std::string& damage) const {
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

  std::array<std::string, 2> m_paths;
  std::shared_ptr<impl::PathLock> m_lock;  ///< on rank 0; copies of the pair share it
  bool m_owns = false;
  std::int64_t m_newest = none;
  std::string m_damage;
};

/// Begins the checkpoints of a Replanner: resumes from the pair `path`, and returns how to save.
/// Replanner::resume() finds this function by its arguments.
template <HasState M, Place P>
[[nodiscard]] ResumedRun resume_run(const std::string& path, M& model, P& place,
                                    const ExecuteOptions& options) {
  const auto pair = std::make_shared<CheckpointPair>(path);
  ResumedRun run{.step = pair->resume(model, place, {}, options)};
  if (!pair->newest_path().empty())
    run.words = text("resumes at step ", run.step, " from '", pair->newest_path(), "'");
  if (!pair->damage().empty()) run.words += text("; skips a damaged file: ", pair->damage());
  run.save = [pair, &model, &place, options](std::int64_t step) {
    pair->save(model, place, step, {}, options);
  };
  return run;
}

}  // namespace heddle::inline v0
