// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LibraryWork: a collective call of the MPI library, under way.

#include <memory>

#include <mpi.h>

#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Fetches all Views of a call for MPI, see CallView.
void fetch_views(Call& call);
/// Gives all Views of a call back from MPI, see CallView.
void give_views(Call& call);

/// A call of MPI's, under way.
class LibraryWork final : public Work {
 public:
  /// Begins `call`, which has kept its arguments, and which `owner` keeps alive if it is not null.
  explicit LibraryWork(Call& call, std::shared_ptr<Call> owner = nullptr);
  /// A pending call keeps its memory and its communicator, because MPI may still use them.
  ~LibraryWork() override;

  bool test() override;
  void wait() override;
  [[nodiscard]] Seconds watchdog() const noexcept override;
  void abandon() noexcept override {}  // MPI has no way to

 private:
  void complete();
  void end();

  Call& m_call;
  std::shared_ptr<Call> m_owner;
  MPI_Request m_request = MPI_REQUEST_NULL;
  bool m_over = false;
  unsigned m_in_vain = 0;  ///< tests that found the call incomplete
};

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/impl/library_work.ipp>
#endif
