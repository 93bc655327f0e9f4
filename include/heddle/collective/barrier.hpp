// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// barrier(): no rank continues before all ranks have called it.

#include <cstddef>
#include <memory>
#include <span>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/perform_as.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/instance_in.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The call that barrier() makes. It has no View.
class BarrierCall final : public Call {
 public:
  explicit BarrierCall(const CallArguments& with);
  void check() override;
  [[nodiscard]] std::span<CallView> views() override;
  [[nodiscard]] Bytes bytes() const override;
  [[nodiscard]] PerformerKey key() const override;
  [[nodiscard]] CallMemory memory() const override;
  [[nodiscard]] bool knows() const override;
  int library(MPI_Request* request) override;
  [[nodiscard]] std::unique_ptr<Call> moved() override;
};

/// The View whose memory space such a call has.
using NoView = Kokkos::View<std::byte*, Kokkos::HostSpace>;

}  // namespace impl

/// Returns when all ranks of `comm` have called it. It does not wait for kernels, so fence before
/// the call if other ranks need their results.
///
/// `barrier<Request>(...)` starts the call. The Request is complete when all ranks have started
/// theirs. `barrier<Prepared>(...)` returns a call that can be performed repeatedly.
/// Throws the errors of CallOptions.
template <impl::CallForm Form = void>
Form barrier(const Communicator& comm, const CallOptions& options = {}) {
  return impl::perform_as<Form>(impl::BarrierCall(
      {impl::instance<impl::NoView>(Kokkos::DefaultHostExecutionSpace{}), comm, options}));
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/barrier.ipp>
#endif
