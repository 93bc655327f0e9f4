// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// reduce(): merges the Views of all ranks on one rank.

#include <memory>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/perform_as.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/merging_in.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/reduction.hpp>
#include <heddle/collective/transferable_view.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The call that reduce() makes.
class ReduceCall final : public InPlaceCall {
 public:
  ReduceCall(const CallArguments& with, const ViewRef& view, Rank root);
  void check() override;
  int library(MPI_Request* request) override;
  [[nodiscard]] std::unique_ptr<Call> moved() override;
};

}  // namespace impl

/// Merges `view` over all ranks of `comm`, element by element and in place on rank `root`. Elements
/// with the same index are merged, whatever the layouts are; see CallOptions. Afterwards, `view` on
/// other ranks holds partial results or its old values.
///
/// The call waits for the work of `space` first, and returns when this rank's part is complete. All
/// ranks must call it with Views of the same size.
///
/// `reduce<Request>(...)` starts the call, and `reduce<Prepared>(...)` returns a call that can be
/// performed repeatedly; see all_reduce().
/// @throws contract_error if `root` is not a rank of `comm`. See CallOptions for all other errors.
template <impl::CallForm Form = void, class Exec, TransferableView View,
          Reduction<typename View::non_const_value_type> R>
Form reduce(const Exec& space, const View& view, const R& reduction, Rank root,
            const Communicator& comm, const CallOptions& options = {}) {
  return impl::perform_as<Form>(
      impl::ReduceCall({impl::instance<View>(space, reduction), comm, options}, view, root));
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/reduce.ipp>
#endif
