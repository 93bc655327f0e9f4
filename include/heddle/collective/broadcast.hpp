// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// broadcast(): copies the View of one rank to every rank.

#include <memory>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/perform_as.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance_in.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/transferable_view.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The call that broadcast() makes.
class BroadcastCall final : public InPlaceCall {
 public:
  BroadcastCall(const CallArguments& with, const ViewRef& view, Rank root);
  void check() override;
  [[nodiscard]] bool knows() const override;
  int library(MPI_Request* request) override;
  [[nodiscard]] std::unique_ptr<Call> moved() override;
};

}  // namespace impl

/// Copies `view` of rank `root` into `view` of all ranks of `comm`, index by index, whatever the
/// layouts are. See CallOptions for the order of elements and for the cost of other layouts.
///
/// The call waits for the work of `space` first, and returns when the elements have arrived. All
/// ranks must call it with Views of the same size.
///
/// `broadcast<Request>(...)` starts the call, and `broadcast<Prepared>(...)` returns a call that
/// can be performed repeatedly.
/// @throws contract_error if `root` is not a rank of `comm`. See CallOptions for all other errors.
template <impl::CallForm Form = void, class Exec, TransferableView View>
Form broadcast(const Exec& space, const View& view, Rank root, const Communicator& comm,
               const CallOptions& options = {}) {
  return impl::perform_as<Form>(
      impl::BroadcastCall({impl::instance<View>(space), comm, options}, view, root));
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/broadcast.ipp>
#endif
