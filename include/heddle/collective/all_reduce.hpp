// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// all_reduce(): merges the Views of all ranks, and leaves the result on every rank.

#include <cstddef>
#include <tuple>
#include <utility>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/block_counts.hpp>
#include <heddle/collective/impl/call.hpp>
#include <heddle/collective/impl/call_base.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/views.hpp>
#include <heddle/collective/mpi_operation.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/prepared.hpp>
#include <heddle/collective/reduction.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/collective/transferable_view.hpp>
#include <heddle/comm/communicator.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The call that all_reduce() makes; see CallBase.
template <class Exec, class View, class R>
struct AllReduceCall : CallBase<Exec, View, R> {
  using Base = CallBase<Exec, View, R>;
  using typename Base::Element;
  static constexpr const char* where = "heddle::collective::all_reduce";
  CallView<View> data;

  void check() {
    data.prepare(where, ViewUse::updates, *this->comm, this->options);
    this->expect_no_counts(where);
  }
  [[nodiscard]] CallSize size() const { return {schedule::Collective::all_reduce, data.bytes()}; }
  [[nodiscard]] PerformerKey key() const { return Base::key(size()); }
  [[nodiscard]] auto views() { return std::tie(data); }
  [[nodiscard]] CallMemory memory() const { return {data.data(), nullptr}; }

  [[nodiscard]] bool knows() const {
    return mpi_operation<R, Element>() != MPI_OP_NULL && fits_int(data.size());
  }
  int library(MPI_Request* request) const {
    const auto count = static_cast<int>(data.size());
    const MPI_Datatype type = mpi_number<Element>();
    const MPI_Op operation = mpi_operation<R, Element>();
    const MPI_Comm all = this->comm->get();
    return request == nullptr
               ? MPI_Allreduce(MPI_IN_PLACE, data.library_data(), count, type, operation, all)
               : MPI_Iallreduce(MPI_IN_PLACE, data.library_data(), count, type, operation, all,
                                request);
  }
};

template <class Held, class Exec, class View, class R>
[[nodiscard]] auto all_reduce_call(Held, const Exec& exec, const View& view, const R& reduction,
                                   const Communicator& comm, const CallOptions& options) {
  return AllReduceCall<typename Held::template of<Exec>, typename Held::template of<View>, R>{
      {exec, reduction, &comm, options}, view};
}

}  // namespace impl

/// Merges `view` over all ranks of `comm`, element by element and in place. Afterwards every rank
/// has the same values. Elements with the same index are merged, whatever the layouts of the Views
/// are. See CallOptions for the order of elements and for the cost of other layouts.
///
/// The call waits for the work of `space` first, and returns when the result has arrived. Kernels
/// that merge run in `space`. All ranks must call it with Views of the same size.
/// @throws the errors of CallOptions.
template <class Exec, TransferableView View, Reduction<typename View::non_const_value_type> R>
void all_reduce(const Exec& space, const View& view, const R& reduction, const Communicator& comm,
                const CallOptions& options = {}) {
  impl::perform([&](auto held) {
    return impl::all_reduce_call(held, space, view, reduction, comm, options);
  });
}

/// Starts an all_reduce() and returns a Request for it. Waits for the work of `space` before it
/// starts. Kernels that merge run in `space` while the Request makes progress, so `space` should be
/// an instance that the caller's own kernels do not use.
/// @throws the errors of all_reduce().
template <class Exec, TransferableView View, Reduction<typename View::non_const_value_type> R>
[[nodiscard]] Request start_all_reduce(const Exec& space, const View& view, const R& reduction,
                                       const Communicator& comm, const CallOptions& options = {}) {
  return impl::start(impl::all_reduce_call(impl::Kept{}, space, view, reduction, comm, options));
}

/// Returns an all_reduce() of `view` that can be performed repeatedly.
/// @throws the errors of all_reduce().
template <class Exec, TransferableView View, Reduction<typename View::non_const_value_type> R>
[[nodiscard]] auto prepare_all_reduce(const Exec& space, const View& view, const R& reduction,
                                      const Communicator& comm, const CallOptions& options = {}) {
  return Prepared(impl::all_reduce_call(impl::Kept{}, space, view, reduction, comm, options));
}

}  // namespace heddle::inline v0
