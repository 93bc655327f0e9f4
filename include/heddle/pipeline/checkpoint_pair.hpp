// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CheckpointPair: two checkpoints that a run saves alternately, so that one of them is whole at
/// any time.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/resumed_run.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/pipeline/checkpoint.hpp>
#include <heddle/pipeline/impl/held_array.hpp>
#include <heddle/pipeline/state.hpp>

namespace heddle::inline v0 {

namespace impl {
class PathLock;
}

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
  template <HasState M, Place P>
  std::int64_t resume(M& model, P& place, const std::function<void(const Checkpoint&)>& check = {},
                      const ExecuteOptions& options = {}) {
    auto& transport = transport_of(place);
    const std::int64_t step = resume_arrays(
        impl::held_arrays(model, "heddle::restore", transport, options), check, transport, options);
    if (m_newest != none) impl::state_written(model);
    return step;
  }

  /// Saves the state of `model` after `step` steps, see heddle::save(), to the file that is not the
  /// newest. All ranks must call it.
  /// @throws contract_error on every rank if the `step` of a rank is negative; format_error on
  ///         every rank if another run owns the files; and the errors of heddle::save(). Then the
  ///         newest file is the one before.
  template <HasState M, Place P>
  void save(M& model, P& place, std::int64_t step, Checkpoint own = {},
            const ExecuteOptions& options = {}) {
    auto& transport = transport_of(place);
    save_arrays(impl::held_arrays(model, "heddle::save", transport, options), step, std::move(own),
                transport, options);
  }

  /// Returns the name of the newest file that is whole, or an empty text if there is none.
  [[nodiscard]] std::string newest_path() const;
  /// Returns the errors of the damaged files that resume() found, or an empty text.
  [[nodiscard]] const std::string& damage() const noexcept { return m_damage; }

 private:
  static constexpr std::int64_t none = -1;
  static constexpr const char* step_field = "step";

  std::int64_t resume_arrays(const std::vector<impl::HeldArray>& held,
                             const std::function<void(const Checkpoint&)>& check,
                             const TransportRef& transport, const ExecuteOptions& options);
  void save_arrays(const std::vector<impl::HeldArray>& held, std::int64_t step, Checkpoint own,
                   const TransportRef& transport, const ExecuteOptions& options);

  /// Makes this run the owner of the files, once. All ranks must call it.
  void own_files(const TransportRef& transport, const ExecuteOptions& options, const char* where);
  /// Returns the number of the whole file of the latest step, and the errors of damaged files.
  [[nodiscard]] std::int64_t find_newest(std::string& damage) const;

  std::array<std::string, 2> m_paths;
  std::shared_ptr<impl::PathLock> m_lock;  ///< on rank 0; copies of the pair share it
  bool m_owns = false;
  std::int64_t m_newest = none;
  std::string m_damage;
};

/// Begins the checkpoints of an AdaptiveRunner: gives `model` the state of the newest checkpoint of
/// the pair `path`, and returns how to go on, for AdaptiveRunner::resume(). The result refers to
/// `model` and `place`. All ranks must call it, after the AdaptiveRunner is constructed. If one of
/// the files is damaged, the other one is used, and ResumedRun::words says so.
/// Throws the errors of CheckpointPair::resume().
template <HasState M, Place P>
[[nodiscard]] ResumedRun resume_run(const std::string& path, M& model, P& place,
                                    const ExecuteOptions& options = {}) {
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

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/checkpoint_pair.ipp>
#endif
