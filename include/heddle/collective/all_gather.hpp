// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// all_gather(): concatenates the Views of all ranks on every rank.

#include <cstddef>
#include <memory>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/perform_as.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/instance_in.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/internal/views.hpp>
#include <heddle/collective/transferable_view.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The call that all_gather() makes.
class AllGatherCall final : public BlocksCall {
 public:
  AllGatherCall(const CallArguments& with, const ViewRef& input, const ViewRef& output);
  [[nodiscard]] PerformerKey key() const override;
  [[nodiscard]] CallMemory memory() const override;
  [[nodiscard]] CallMemory apart() const override;
  void before() override;
  void check() override;
  int library(MPI_Request* request) override;
  [[nodiscard]] std::unique_ptr<Call> moved() override;

 private:
  [[nodiscard]] std::byte* own() const;
  [[nodiscard]] bool in_place() const;
};

}  // namespace impl

/// Concatenates the `input` Views of all ranks of `comm` in `output`, on every rank. Rank 0's
/// elements come first, along the first index. See CallOptions for the order of elements and for
/// the cost of other layouts.
///
/// The sizes of the inputs are CallOptions::counts. Without counts, the output is divided evenly.
/// `input` may be this rank's block of `output`, which saves a copy. If the MPI library may make
/// the call (see CallOptions::algorithm), it must be so on all ranks or on none, because MPI
/// requires it. If `input` is another part of `output`, it is copied before the call.
///
/// The call waits for the work of `space` first, and returns when all elements have arrived. All
/// ranks must call it with outputs of the same size.
///
/// `all_gather<Request>(...)` starts the call, and `all_gather<Prepared>(...)` returns a call that
/// can be performed repeatedly.
/// @throws contract_error if the size of a View does not fit. See CallOptions for all other errors.
template <impl::CallForm Form = void, class Exec, TransferableView In, TransferableView Out>
Form all_gather(const Exec& space, const In& input, const Out& output, const Communicator& comm,
                const CallOptions& options = {}) {
  impl::check_match<In, Out>();
  return impl::perform_as<Form>(
      impl::AllGatherCall({impl::instance<In>(space), comm, options}, input, output));
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/all_gather.ipp>
#endif
