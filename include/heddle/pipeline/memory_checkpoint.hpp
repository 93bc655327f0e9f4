// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// MemoryCheckpoint: a checkpoint in the memory of the ranks, from which those that are left go on
/// when a rank dies.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/pipeline/impl/held_array.hpp>
#include <heddle/pipeline/state.hpp>

namespace heddle::inline v0 {

/// A checkpoint of a model in host memory. Each rank keeps its own state, and a copy of the state
/// of each of the `copies` ranks before it (rank 0 comes after the last one). So no state is lost
/// if up to `copies` ranks die between two saves, whichever they are. If more ranks die, the state
/// is complete as long as each group of `copies` + 1 consecutive ranks has a survivor.
///
/// A rank that holds the same elements as the rank before it, as replicas do, gets no copy of them.
/// The last two saves are kept, because a rank may die while the ranks save. So a rank keeps the
/// state of 2 (`copies` + 1) ranks. During a save it has the state of 5 `copies` + 4 ranks: the
/// last save and the new one, its own state on the host, the new values, and the messages to and
/// from other ranks.
///
/// A save waits for messages between all pairs of ranks: each rank takes part in four calls of
/// all_gather(), and then sends its state to `copies` ranks. Each save plans these messages anew.
///
/// There is one object per rank, which lasts longer than the work of survive(); see there for an
/// example. ResumedRun::save may call save() for an AdaptiveRunner.
class MemoryCheckpoint {
 public:
  /// Constructs a checkpoint without state. @throws contract_error if `copies` is negative.
  explicit MemoryCheckpoint(int copies = 1);
  MemoryCheckpoint(const MemoryCheckpoint&) = delete;
  MemoryCheckpoint& operator=(const MemoryCheckpoint&) = delete;
  ~MemoryCheckpoint();

  /// Keeps the state of `model` after `step` steps. All ranks of `place` must call it, between two
  /// steps. A `step` must be above that of the save before. After restore() it must be above the
  /// step that restore() has returned, if it has returned one.
  /// @throws contract_error on every rank if `step` is negative, is not above the last one, or
  ///         differs between the ranks, and as heddle::save().
  /// @throws communication_error if another rank fails or dies. This save or the one before is then
  ///         the newest one that all ranks have.
  template <HasState M, Place P>
  void save(M& model, P& place, std::int64_t step, const ExecuteOptions& options = {}) {
    constexpr const char* where = "heddle::MemoryCheckpoint::save";
    auto& transport = transport_of(place);
    abort_on_error(
        transport, where,
        [&] {
          save_arrays(impl::held_arrays(model, where, transport, options), step, Saves::next,
                      transport, options);
        },
        ContractErrors::of_every_rank);
  }

  /// Gives `model` the state of the newest save that all ranks of `place` have, and returns its
  /// step. Then saves this state on the ranks of `place`, so that another rank may die. If there is
  /// no such save, returns nothing, leaves the model as it is, and drops the saves that only some
  /// ranks have. All ranks must call it, between two steps.
  /// @throws communication_error on every rank if the ranks that died had state that no other rank
  ///         keeps. The error names the array. Also if another rank fails or dies.
  /// @throws contract_error as heddle::restore().
  template <HasState M, Place P>
  std::optional<std::int64_t> restore(M& model, P& place, const ExecuteOptions& options = {}) {
    constexpr const char* where = "heddle::MemoryCheckpoint::restore";
    auto& transport = transport_of(place);
    std::optional<std::int64_t> step;
    abort_on_error(
        transport, where,
        [&] {
          const std::vector<impl::HeldArray> held =
              impl::held_arrays(model, where, transport, options);
          step = restore_arrays(held, transport, options);
          if (!step) return;
          abort_on_error(transport, where, [&] { impl::state_written(model); });
          save_arrays(held, *step, Saves::again, transport, options);
        },
        ContractErrors::of_every_rank);
    return step;
  }

  /// Returns the bytes of state that this rank keeps.
  [[nodiscard]] Bytes bytes() const noexcept;

 private:
  struct Save;
  /// The step of a save: a later one, or that of the last save, now on other ranks.
  enum class Saves : bool { next, again };

  void save_arrays(const std::vector<impl::HeldArray>& held, std::int64_t step, Saves saves,
                   const TransportRef& transport, const ExecuteOptions& options);
  [[nodiscard]] std::optional<std::int64_t> restore_arrays(const std::vector<impl::HeldArray>& held,
                                                           const TransportRef& transport,
                                                           const ExecuteOptions& options);

  int m_copies;
  std::unique_ptr<Save> m_newest, m_previous;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/memory_checkpoint.ipp>
#endif
