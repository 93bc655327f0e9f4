// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// save() and restore(): checkpoints of every model with named state (see HasState). What one
/// division of the ranks has saved loads on any other.

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/pipeline/impl/held_array.hpp>
#include <heddle/pipeline/state.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns, on rank 0, the checkpoint of the whole arrays with the fields of `own`; on other ranks
/// one without the arrays. `error` is what kept rank 0 from adding their fields. All ranks must
/// call it.
[[nodiscard]] Checkpoint gather_arrays(const std::vector<HeldArray>& held, Checkpoint own,
                                       const TransportRef& transport, const ExecuteOptions& options,
                                       std::exception_ptr& error);

void save_arrays(const std::string& path, const std::vector<HeldArray>& held, Checkpoint own,
                 const TransportRef& transport, const ExecuteOptions& options);

[[nodiscard]] Checkpoint restore_arrays(const std::string& path, const std::vector<HeldArray>& held,
                                        const std::function<void(const Checkpoint&)>& check,
                                        const TransportRef& transport,
                                        const ExecuteOptions& options);

}  // namespace impl

/// Saves the state of `model`, whole and in one file, with the fields of `own` beside it, such as
/// the step and what must be the same where training continues. Rank 0 gathers the state and writes
/// the file in one step (see write_file()): if the program is killed meanwhile, the old file stays.
/// Each element is sent once, by one of the ranks that hold it.
///
/// All ranks of `place` must call it, between two steps. Names of fields of `own` do not begin with
/// "state".
/// @throws contract_error on every rank if nobody holds an element of an array, or if a rank has
///         two arrays of one name in a layer, elements outside of an array or none in memory, or a
///         layer below 0.
/// @throws format_error on every rank if the file cannot be written.
template <HasState M, Place P>
void save(const std::string& path, M& model, P& place, Checkpoint own = {},
          const ExecuteOptions& options = {}) {
  auto& transport = transport_of(place);
  impl::save_arrays(path, impl::held_arrays(model, "heddle::save", transport, options),
                    std::move(own), transport, options);
}

/// Gives `model` the state that save() has written to `path`, and returns the whole checkpoint with
/// the other fields. All ranks of `place` must call it between two steps, and each reads the file.
/// The model may be divided in another way than the one that was saved.
///
/// `check(checkpoint)` may throw format_error to refuse a checkpoint, for example of another model.
/// @throws format_error on every rank if one of them cannot read the file (see Checkpoint::load()),
///         refuses it, if a field of the state is missing or has another type or size, or if ranks
///         have read different files. contract_error on every rank if a rank has two arrays of one
///         name in a layer, elements outside of an array or none in memory, or a layer below 0. The
///         model is then as it was.
template <HasState M, Place P>
Checkpoint restore(const std::string& path, M& model, P& place,
                   const std::function<void(const Checkpoint&)>& check = {},
                   const ExecuteOptions& options = {}) {
  auto& transport = transport_of(place);
  Checkpoint checkpoint =
      impl::restore_arrays(path, impl::held_arrays(model, "heddle::restore", transport, options),
                           check, transport, options);
  impl::state_written(model);
  return checkpoint;
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/checkpoint.ipp>
#endif
