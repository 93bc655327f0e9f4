// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AllReduceCall: the Call of all_reduce().

#include <memory>

#include <mpi.h>

#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/view_ref.hpp>

namespace heddle::inline v0::impl {

/// The call that all_reduce() makes.
class AllReduceCall final : public InPlaceCall {
 public:
  AllReduceCall(const CallArguments& with, const ViewRef& view);
  void check() override;
  int library(MPI_Request* request) override;
  [[nodiscard]] std::unique_ptr<Call> moved() override;
};

}  // namespace heddle::inline v0::impl
