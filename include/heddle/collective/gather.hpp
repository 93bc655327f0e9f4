// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// gather(): concatenates the Views of all ranks on one rank.

#include <memory>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/perform_as.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance_in.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/internal/views.hpp>
#include <heddle/collective/transferable_view.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The call that gather() makes.
class GatherCall final : public BlocksCall {
 public:
  GatherCall(const CallArguments& with, const ViewRef& input, const ViewRef& output, Rank root);
  void check() override;
  int library(MPI_Request* request) override;
  [[nodiscard]] std::unique_ptr<Call> moved() override;
};

}  // namespace impl

/// Concatenates the `input` Views of all ranks of `comm` in `output` on rank `root`. Rank 0's
/// elements come first, along the first index. The blocks have equal sizes, or the sizes in
/// CallOptions::counts. See CallOptions for the order of elements and for the cost of other
/// layouts. On other ranks, `output` is not accessed and may be empty. If `input` is a part of
/// `output` on rank `root`, it is copied before the call.
///
/// The call waits for the work of `space` first, and returns when this rank's part is complete. All
/// ranks must call it.
///
/// `gather<Request>(...)` starts the call, and `gather<Prepared>(...)` returns a call that can be
/// performed repeatedly.
/// @throws contract_error if the size of a View does not fit, or if `root` is not a rank of `comm`.
///         See CallOptions for all other errors.
template <impl::CallForm Form = void, class Exec, TransferableView In, TransferableView Out>
Form gather(const Exec& space, const In& input, const Out& output, Rank root,
            const Communicator& comm, const CallOptions& options = {}) {
  impl::check_match<In, Out>();
  return impl::perform_as<Form>(
      impl::GatherCall({impl::instance<In>(space), comm, options}, input, output, root));
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/gather.ipp>
#endif
