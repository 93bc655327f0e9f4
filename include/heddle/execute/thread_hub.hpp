// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ThreadHub: the memory in which the ranks of a ThreadTransport meet.

#include <memory>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

class ThreadTransport;

namespace impl {

/// Does the work of heddle::run_threads().
void run_threads(int ranks, FunctionRef<void(ThreadTransport&)> body);

}  // namespace impl

/// The state that the ranks of one process share.
class ThreadHub {
 public:
  /// Constructs the hub of `ranks` ranks. @throws contract_error if there are none.
  explicit ThreadHub(int ranks);
  ThreadHub(const ThreadHub&) = delete;
  ThreadHub& operator=(const ThreadHub&) = delete;
  ~ThreadHub();

  /// Returns the number of ranks.
  [[nodiscard]] int size() const noexcept { return m_ranks; }

 private:
  friend class ThreadTransport;
  friend void impl::run_threads(int ranks, impl::FunctionRef<void(ThreadTransport&)> body);
  struct Meeting;
  struct State;

  int m_ranks;
  std::unique_ptr<State> m_state;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/thread_hub.ipp>
#endif
