// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Checkpoints that are written while the next steps run.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/pipeline/checkpoint.hpp>

namespace heddle::inline v0 {

/// A writer of checkpoints that does not hold up the steps of a training. save() copies the state
/// to rank 0 and returns; a thread of rank 0 then writes the file that heddle::save() would write,
/// with the same bytes. At most one save is pending, and rank 0 needs memory for one more copy of
/// the whole state and for the bytes of the file until the write ends. If the job is killed before
/// the write ends, the previous checkpoint is the newest one.
///
/// A write that fails throws nothing. wait() returns false then, failure() is the reason, and
/// newest_path() stays the previous file, which is still whole. All ranks have the same answers.
///
///     heddle::CheckpointSaver saver;
///     for (int step = 0; step < steps; ++step) {
///       run.step(...);
///       saver.save(step % 2 == 0 ? "even.ckpt" : "odd.ckpt", model, place);
///       if (!saver.failure().empty()) std::cerr << saver.failure() << '\n';  // of the previous
///       save
///     }
///     const bool saved = saver.wait(place);
class CheckpointSaver {
 public:
  /// Constructs a saver without a pending save. `newest_path` is the file that the run resumed
  /// from, or empty.
  explicit CheckpointSaver(std::string newest_path = {});
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;
  /// Waits for the thread. A failure that wait() has not reported is lost.
  ~CheckpointSaver();

  /// Waits for the previous save, see wait(), copies the state of `model` with the fields of `own`,
  /// and starts to write it to the `path` of rank 0; those of other ranks are ignored. The state
  /// may change as soon as the call returns. All ranks of `place` must call it, between two steps.
  /// @throws contract_error as heddle::save(). If the model breaks the contract, the previous save
  ///         stays pending; if a field of `own` does, no save is pending.
  /// @throws communication_error as wait().
  template <HasState M, Place P>
  void save(const std::string& path, M& model, P& place, Checkpoint own = {},
            const ExecuteOptions& options = {}) {
    auto& transport = transport_of(place);
    save_arrays(path, impl::held_arrays(model, "heddle::CheckpointSaver::save", transport, options),
                std::move(own), transport, options);
  }

  /// Waits until the pending save ends, however long the file system takes. Returns true if the
  /// last save succeeded, or if there was none. All ranks of `place` must call it.
  /// @throws communication_error if a rank fails or does not answer for options.watchdog seconds.
  template <Place P>
  bool wait(P& place, const ExecuteOptions& options = {}) {
    return wait_together(transport_of(place), options);
  }

  /// Returns the file of the last save that succeeded, or the one of the constructor. A pending
  /// save does not count.
  [[nodiscard]] const std::string& newest_path() const noexcept { return m_newest; }
  /// Returns why the last save failed, with its file and the file that is kept, or an empty text if
  /// it succeeded. A pending save does not count.
  [[nodiscard]] const std::string& failure() const noexcept { return m_failure; }

 private:
  class Write;

  void save_arrays(const std::string& path, const std::vector<impl::HeldArray>& held,
                   Checkpoint own, const TransportRef& transport, const ExecuteOptions& options);
  bool wait_together(const TransportRef& transport, const ExecuteOptions& options);

  std::unique_ptr<Write> m_write;  ///< on rank 0
  bool m_pending = false;
  std::string m_path;         ///< the file of the pending save
  std::string m_not_started;  ///< on rank 0, why the pending save has no thread
  std::string m_newest;
  std::string m_failure;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/checkpoint_saver.ipp>
#endif
