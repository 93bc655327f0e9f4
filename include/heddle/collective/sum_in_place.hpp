// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Sums in place over the ranks of a communicator by the MPI library. A poll function can give up a
/// sum if another rank fails.

#include <concepts>
#include <cstddef>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/instance_in.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns MPI's datatype for elements that can be added. @throws contract_error for Scalar::byte.
MPI_Datatype summable(Scalar type);

/// sum_in_place() of a call whose ranks check it together at `level`. Calls `poll()` while it
/// waits.
void sum_in_place(void* data, std::size_t count, Scalar type, const Communicator& comm,
                  FunctionRef<void()> poll, ContractLevel level);

/// all_reduce() of a View that is summed so.
void sum_in_place(const Instance& by, const ViewRef& view, const Communicator& comm,
                  FunctionRef<void()> poll, ContractLevel level);

}  // namespace impl

/// Adds `count` elements of `type` at `data`, in host memory, over all ranks of `comm`, in place,
/// by MPI_Allreduce. The MPI library determines the order of the sum. The call blocks. All ranks
/// must call it with the same count and type.
///
/// @throws contract_error for Scalar::byte, communication_error if MPI reports an error.
void sum_in_place(void* data, std::size_t count, Scalar type, const Communicator& comm);

/// Sums in place like the function above, and calls `poll()` repeatedly while the sum is in flight.
/// If `poll()` throws, the sum is given up. A collective operation cannot be cancelled, so the sum
/// is computed in a separate buffer. In this case the buffer and the communicator are left to MPI:
/// they are never freed.
template <std::invocable Poll>
void sum_in_place(void* data, std::size_t count, Scalar type, const Communicator& comm,
                  Poll&& poll) {
  impl::sum_in_place(data, count, type, comm, poll, contract_level);
}

/// Sums `view` over all ranks of `comm`, element by element and in place. Afterwards every rank has
/// the sum. Waits for the work of `space` first, and returns when the sum has arrived. MPI adds on
/// the host, so a View in device memory is copied there and back. A View whose memory order is not
/// its index order is packed, see CallOptions. For `poll`, see sum_in_place().
/// @throws communication_error if MPI reports an error.
template <class ExecutionSpace, class View, std::invocable Poll>
requires Kokkos::is_execution_space_v<ExecutionSpace> && Kokkos::is_view_v<View>
void all_reduce(const ExecutionSpace& space, const View& view, Sum, const Communicator& comm,
                Poll&& poll) {
  using Element = typename View::non_const_value_type;
  static_assert(scalar_of<Element> != Scalar::byte,
                "heddle::all_reduce: the elements must be float, double, int32_t or int64_t");
  impl::sum_in_place(impl::instance<View>(space), view, comm, poll, contract_level);
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/sum_in_place.ipp>
#endif
