// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of scan_call.hpp.

#include <memory>
#include <utility>

#include <mpi.h>

#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/scan_call.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE ScanCall::ScanCall(schedule::Collective scan, const CallArguments& with,
                                      const ViewRef& view)
    : InPlaceCall(scan == schedule::Collective::inclusive_scan
                      ? "heddle::collective::inclusive_scan"
                      : "heddle::collective::exclusive_scan",
                  scan, with, view) {}

HEDDLE_FULL_INLINE void ScanCall::check() {
  expect_no_counts();
  prepare(nothing_before() ? ViewUse::reads : ViewUse::updates);
}

HEDDLE_FULL_INLINE void ScanCall::ended() {
  if (nothing_before()) m_data.clear(by());
}

HEDDLE_FULL_INLINE int ScanCall::library(MPI_Request* request) {
  const auto count = static_cast<int>(m_data.size());
  const auto [type, operation] = by().by_mpi();
  const MPI_Comm all = comm().get();
  void* const at = m_data.library_data();
  if (collective() == schedule::Collective::inclusive_scan)
    return request == nullptr ? MPI_Scan(MPI_IN_PLACE, at, count, type, operation, all)
                              : MPI_Iscan(MPI_IN_PLACE, at, count, type, operation, all, request);
  return request == nullptr ? MPI_Exscan(MPI_IN_PLACE, at, count, type, operation, all)
                            : MPI_Iexscan(MPI_IN_PLACE, at, count, type, operation, all, request);
}

HEDDLE_FULL_INLINE bool ScanCall::nothing_before() const {
  return collective() == schedule::Collective::exclusive_scan && rank() == 0;
}

HEDDLE_FULL_INLINE std::unique_ptr<Call> ScanCall::moved() {
  return std::make_unique<ScanCall>(std::move(*this));
}

}  // namespace heddle::inline v0::impl
