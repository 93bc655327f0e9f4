// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// all_reduce(): merges the Views of all ranks, and leaves the result on every rank.

#include <memory>
#include <type_traits>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/call_form.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/merging_in.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/reduction.hpp>
#include <heddle/collective/transferable_view.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The call that all_reduce() makes.
class AllReduceCall final : public InPlaceCall {
 public:
  AllReduceCall(const CallArguments& with, const ViewRef& view);
  void check() override;
  int library(MPI_Request* request) override;
  [[nodiscard]] std::unique_ptr<Call> moved() override;
};

}  // namespace impl

/// Merges `view` over all ranks of `comm`, element by element and in place. Afterwards every rank
/// has the same values. Elements with the same index are merged, whatever the layouts of the Views
/// are. See CallOptions for the order of elements and for the cost of other layouts.
///
/// The call waits for the work of `space` first, and returns when the result has arrived. Kernels
/// that merge run in `space`. All ranks must call it with Views of the same size.
///
/// `all_reduce<Request>(...)` starts the call, and `all_reduce<Prepared>(...)` returns a call that
/// can be performed repeatedly. While a Request makes progress, kernels that merge run in `space`,
/// so `space` should be an instance that the caller's own kernels do not use.
/// Throws the errors of CallOptions.
template <impl::CallForm Form = void, class Exec, TransferableView View,
          Reduction<typename View::non_const_value_type> R>
Form all_reduce(const Exec& space, const View& view, const R& reduction, const Communicator& comm,
                const CallOptions& options = {}) {
  return impl::perform_as<Form>(
      impl::AllReduceCall({impl::instance<View>(space, reduction), comm, options}, view));
}

/// Returns the merge of the numbers `value` of all ranks of `comm`, the same on every rank:
/// `const double most = all_reduce(mine, Max{}, comm)`. All ranks must call it.
/// Throws the errors of CallOptions.
template <class T, Reduction<T> R>
requires std::is_arithmetic_v<T>
[[nodiscard]] T all_reduce(T value, const R& reduction, const Communicator& comm,
                           const CallOptions& options = {}) {
  const Kokkos::View<T*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> view(&value, 1);
  all_reduce(Kokkos::DefaultHostExecutionSpace{}, view, reduction, comm, options);
  return value;
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/all_reduce.ipp>
#endif
