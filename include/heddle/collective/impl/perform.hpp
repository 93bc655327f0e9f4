// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// How a collective call is checked, and made by the MPI library or by a Schedule.

#include <memory>

#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {
namespace impl {

class Call;

/// How the arguments of a call are checked.
struct CheckOptions {
  bool is_checked = false;    ///< its own arguments are
  bool blocking = true;       ///< the call returns when it is complete
  bool keeps_errors = false;  ///< from one performance to the next, for error feedback
};

/// Returns the key of a call that has exchanged what it must. Throws if an argument is invalid on
/// this rank, and at the contract level "communication" if the calls of the ranks differ.
[[nodiscard]] PerformerKey completed(Call& call, const CheckOptions& options);

/// Returns the key of a call whose arguments are not checked yet.
[[nodiscard]] PerformerKey checked(Call& call, const CheckOptions& options);

/// Has MPI make a call that was checked, in a function of its that blocks.
void perform_by_library(Call& call);

/// Makes a call that was checked, and waits for it.
void perform(Call& call, const PerformerKey& key);

/// Begins a call that was checked.
[[nodiscard]] Request begin(std::shared_ptr<Call> call, const PerformerKey& key);

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/impl/perform.ipp>
#endif
