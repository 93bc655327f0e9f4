// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ScanCall: what inclusive_scan() and exclusive_scan() make.

#include <memory>

#include <mpi.h>

#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The call that inclusive_scan() or exclusive_scan() makes.
class ScanCall final : public InPlaceCall {
 public:
  ScanCall(schedule::Collective scan, const CallArguments& with, const ViewRef& view);
  void check() override;
  void ended() override;
  int library(MPI_Request* request) override;
  [[nodiscard]] std::unique_ptr<Call> moved() override;

 private:
  /// Returns true if the result is the identity.
  [[nodiscard]] bool nothing_before() const;
};

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/impl/scan_call.ipp>
#endif
