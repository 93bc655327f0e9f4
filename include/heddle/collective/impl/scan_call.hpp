// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ScanCall: what inclusive_scan() and exclusive_scan() make.

#include <cstddef>
#include <tuple>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/block_counts.hpp>
#include <heddle/collective/impl/call_base.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/mpi_operation.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/reduction.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/kernel/map.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0 {
namespace impl {

template <class T>
struct AlwaysThis {
  T value;
  KOKKOS_FUNCTION T operator()() const { return value; }
};

/// See CallBase. `scan` is one of the two.
template <schedule::Collective scan, class Exec, class View, class R>
struct ScanCall : CallBase<Exec, View, R> {
  static_assert(schedule::is_scan(scan));
  using Base = CallBase<Exec, View, R>;
  using typename Base::Element;
  static constexpr bool inclusive = scan == schedule::Collective::inclusive_scan;
  static constexpr const char* where =
      inclusive ? "heddle::collective::inclusive_scan" : "heddle::collective::exclusive_scan";
  CallView<View> data;

  void check() {
    this->expect_no_counts(where);
    data.prepare(where, nothing_before() ? ViewUse::reads : ViewUse::updates, *this->comm,
                 this->options);
  }
  [[nodiscard]] auto views() { return std::tie(data); }
  [[nodiscard]] CallSize size() const { return {scan, data.bytes()}; }
  [[nodiscard]] PerformerKey key() const { return Base::key(size()); }
  [[nodiscard]] CallMemory memory() const { return {data.data(), nullptr}; }
  void ended() const {
    if (!nothing_before()) return;
    kernel::map(this->exec, AlwaysThis<Element>{identity<Element>(this->reduction)}, data.view());
    this->exec.fence("heddle::collective::exclusive_scan");
  }

  [[nodiscard]] bool knows() const {
    return mpi_operation<R, Element>() != MPI_OP_NULL && fits_int(data.size());
  }
  int library(MPI_Request* request) {
    const auto count = static_cast<int>(data.size());
    const MPI_Datatype type = mpi_number<Element>();
    const MPI_Op operation = mpi_operation<R, Element>();
    const MPI_Comm all = this->comm->get();
    void* const at = data.library_data();
    if constexpr (inclusive)
      return request == nullptr ? MPI_Scan(MPI_IN_PLACE, at, count, type, operation, all)
                                : MPI_Iscan(MPI_IN_PLACE, at, count, type, operation, all, request);
    else
      return request == nullptr
                 ? MPI_Exscan(MPI_IN_PLACE, at, count, type, operation, all)
                 : MPI_Iexscan(MPI_IN_PLACE, at, count, type, operation, all, request);
  }

 private:
  /// Returns true if the result is the identity.
  [[nodiscard]] bool nothing_before() const { return !inclusive && this->rank() == 0; }
};

template <schedule::Collective scan, class Held, class Exec, class View, class R>
[[nodiscard]] auto scan_call(Held, const Exec& exec, const View& view, const R& reduction,
                             const Communicator& comm, const CallOptions& options) {
  return ScanCall<scan, typename Held::template of<Exec>, typename Held::template of<View>, R>{
      {exec, reduction, &comm, options}, view};
}

}  // namespace impl
}  // namespace heddle::inline v0
