// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Prepared: a collective call that is performed repeatedly.

#include <memory>

#include <heddle/collective/request.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

namespace impl {
class Call;
struct PerformerKey;
}  // namespace impl

/// A collective call bound to its Views, which it keeps alive. `all_reduce<Prepared>(...)` makes
/// it, as other collectives do, and operator() or start() performs it, any number of times. All
/// ranks of the communicator must perform it in the same order. The communicator must outlive it.
/// With error feedback, the rounding error of one performance is added in the next one.
class [[nodiscard]] Prepared {
 public:
  /// Constructed by the library.
  explicit Prepared(impl::Call&& call);

  /// Performs the call and waits for it.
  void operator()();
  /// Starts the call and returns a Request. Only one performance may be in flight at a time.
  [[nodiscard]] Request start();
  /// Returns true if the MPI library performs the call, instead of schedule().
  [[nodiscard]] bool by_library() const;
  /// Returns the Schedule that a call performs; start() sends messages. It is a collective call.
  /// @throws contract_error if the MPI library performs the call.
  [[nodiscard]] Schedule schedule() const;

 private:
  std::shared_ptr<impl::Call> m_call;
  std::shared_ptr<const impl::PerformerKey> m_key;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/prepared.ipp>
#endif
