// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// reduce(): merges the Views of all ranks on one rank.

#include <cstddef>
#include <tuple>

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
#include <heddle/core/index.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The call that reduce() makes; see CallBase.
template <class Exec, class View, class R>
struct ReduceCall : CallBase<Exec, View, R> {
  using Base = CallBase<Exec, View, R>;
  using typename Base::Element;
  static constexpr const char* where = "heddle::collective::reduce";
  CallView<View> data;
  Rank root;

  void check() {
    this->expect_no_counts(where);
    this->expect_root(where, root);
    data.prepare(where, at_root() ? ViewUse::updates : ViewUse::reads, *this->comm, this->options);
  }
  [[nodiscard]] CallSize size() const { return {schedule::Collective::reduce, data.bytes()}; }
  [[nodiscard]] PerformerKey key() const { return Base::key(size(), root); }
  [[nodiscard]] auto views() { return std::tie(data); }
  [[nodiscard]] CallMemory memory() const { return {data.data(), nullptr}; }

  [[nodiscard]] bool knows() const {
    return mpi_operation<R, Element>() != MPI_OP_NULL && fits_int(data.size());
  }
  int library(MPI_Request* request) const {
    const auto count = static_cast<int>(data.size());
    const auto to = static_cast<int>(root.value);
    const MPI_Datatype type = mpi_number<Element>();
    const MPI_Op operation = mpi_operation<R, Element>();
    const MPI_Comm all = this->comm->get();
    void* const out = data.library_data();
    const void* const in = at_root() ? MPI_IN_PLACE : out;
    return request == nullptr ? MPI_Reduce(in, out, count, type, operation, to, all)
                              : MPI_Ireduce(in, out, count, type, operation, to, all, request);
  }

 private:
  [[nodiscard]] bool at_root() const { return +root == this->rank(); }
};

template <class Held, class Exec, class View, class R>
[[nodiscard]] auto reduce_call(Held, const Exec& exec, const View& view, const R& reduction,
                               Rank root, const Communicator& comm, const CallOptions& options) {
  return ReduceCall<typename Held::template of<Exec>, typename Held::template of<View>, R>{
      {exec, reduction, &comm, options}, view, root};
}

}  // namespace impl

/// Merges `view` over all ranks of `comm`, element by element and in place on rank `root`. Elements
/// with the same index are merged, whatever the layouts are; see CallOptions. Afterwards, `view` on
/// other ranks holds partial results or its old values.
///
/// The call waits for the work of `space` first, and returns when this rank's part is complete. All
/// ranks must call it with Views of the same size.
/// @throws contract_error if `root` is not a rank of `comm`. See CallOptions for all other errors.
template <class Exec, TransferableView View, Reduction<typename View::non_const_value_type> R>
void reduce(const Exec& space, const View& view, const R& reduction, Rank root,
            const Communicator& comm, const CallOptions& options = {}) {
  impl::perform([&](auto held) {
    return impl::reduce_call(held, space, view, reduction, root, comm, options);
  });
}

/// Starts a reduce() and returns a Request for it; see start_all_reduce(). Waits for the work of
/// `space` before it starts.
/// @throws the errors of reduce().
template <class Exec, TransferableView View, Reduction<typename View::non_const_value_type> R>
[[nodiscard]] Request start_reduce(const Exec& space, const View& view, const R& reduction,
                                   Rank root, const Communicator& comm,
                                   const CallOptions& options = {}) {
  return impl::start(impl::reduce_call(impl::Kept{}, space, view, reduction, root, comm, options));
}

/// Returns a reduce() that can be performed repeatedly.
/// @throws the errors of reduce().
template <class Exec, TransferableView View, Reduction<typename View::non_const_value_type> R>
[[nodiscard]] auto prepare_reduce(const Exec& space, const View& view, const R& reduction,
                                  Rank root, const Communicator& comm,
                                  const CallOptions& options = {}) {
  return Prepared(impl::reduce_call(impl::Kept{}, space, view, reduction, root, comm, options));
}

}  // namespace heddle::inline v0
