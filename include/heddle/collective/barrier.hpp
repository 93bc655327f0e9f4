// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// barrier(): no rank continues before all ranks have called it.

#include <cstddef>
#include <tuple>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/block_counts.hpp>
#include <heddle/collective/impl/call.hpp>
#include <heddle/collective/impl/call_base.hpp>
#include <heddle/collective/prepared.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/communicator.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The call that barrier() makes; see CallBase. It has no View.
struct BarrierCall : CallBase<Kokkos::DefaultHostExecutionSpace,
                              Kokkos::View<std::byte*, Kokkos::HostSpace>, NoReduction> {
  static constexpr const char* where = "heddle::collective::barrier";

  void check() const { expect_no_counts(where); }
  [[nodiscard]] CallSize size() const { return {schedule::Collective::barrier, 0}; }
  [[nodiscard]] PerformerKey key() const { return CallBase::key(size()); }
  [[nodiscard]] std::tuple<> views() const { return {}; }
  [[nodiscard]] CallMemory memory() const { return {}; }
  [[nodiscard]] bool knows() const { return true; }
  int library(MPI_Request* request) const {
    return request == nullptr ? MPI_Barrier(comm->get()) : MPI_Ibarrier(comm->get(), request);
  }
};

}  // namespace impl

/// Returns when all ranks of `comm` have called it. It does not wait for kernels, so fence before
/// the call if other ranks need their results.
/// @throws the errors of CallOptions.
inline void barrier(const Communicator& comm, const CallOptions& options = {}) {
  impl::perform([&](auto) { return impl::BarrierCall{{{}, {}, &comm, options}}; });
}

/// Starts a barrier(). The Request is complete when all ranks have started theirs.
/// @throws the errors of barrier().
[[nodiscard]] inline Request start_barrier(const Communicator& comm,
                                           const CallOptions& options = {}) {
  return impl::start(impl::BarrierCall{{{}, {}, &comm, options}});
}

/// Returns a barrier() that can be performed repeatedly.
/// @throws the errors of barrier().
[[nodiscard]] inline auto prepare_barrier(const Communicator& comm,
                                          const CallOptions& options = {}) {
  return Prepared(impl::BarrierCall{{{}, {}, &comm, options}});
}

}  // namespace heddle::inline v0
