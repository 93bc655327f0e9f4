// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// all_reduce(): merges the Views of all ranks, and leaves the result on every rank.

#include <concepts>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/call_form.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/merging_in.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/prepared.hpp>
#include <heddle/collective/reduction.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/collective/transferable_view.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Performs, starts or prepares the call of all_reduce() for a described View; `by` merges.
void all_reduce(const Instance& by, const ViewRef& view, const Communicator& comm,
                const CallOptions& options, ContractLevel level = contract_level);
[[nodiscard]] Request start_all_reduce(const Instance& by, const ViewRef& view,
                                       const Communicator& comm, const CallOptions& options,
                                       ContractLevel level = contract_level);
[[nodiscard]] Prepared prepare_all_reduce(const Instance& by, const ViewRef& view,
                                          const Communicator& comm, const CallOptions& options,
                                          ContractLevel level = contract_level);

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
  const impl::Instance& by = impl::instance<View>(space, reduction);
  if constexpr (std::same_as<Form, Request>)
    return impl::start_all_reduce(by, view, comm, options);
  else if constexpr (std::same_as<Form, Prepared>)
    return impl::prepare_all_reduce(by, view, comm, options);
  else
    impl::all_reduce(by, view, comm, options);
}

/// Returns the merge of the numbers `value` of all ranks of `comm`, the same on every rank:
/// `const double most = all_reduce(mine, Max{}, comm)`. All ranks must call it.
/// Throws the errors of CallOptions.
template <class T, Reduction<T> R>
requires std::is_arithmetic_v<T>
[[nodiscard]] T all_reduce(T value, const R& reduction, const Communicator& comm,
                           const CallOptions& options = {}) {
  const Kokkos::DefaultHostExecutionSpace space;
  impl::all_reduce(
      impl::MergingIn<Kokkos::DefaultHostExecutionSpace, Kokkos::HostSpace, T, R>(space, reduction),
      impl::ViewRef(&value, sizeof(T), scalar_of<T>), comm, options);
  return value;
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/all_reduce.ipp>
#endif
