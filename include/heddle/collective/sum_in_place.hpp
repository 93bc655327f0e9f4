// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Sums in place over the ranks of a communicator by the MPI library. A poll function can give up a
/// sum if another rank fails.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/idle.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns MPI's datatype for elements that can be added. @throws contract_error for Scalar::byte.
MPI_Datatype summable(Scalar type);

/// Checks a sum of `count` elements of `type` over `comm`, and returns MPI's datatype.
[[nodiscard]] inline MPI_Datatype checked_sum(std::size_t count, Scalar type,
                                              const Communicator& comm) {
  constexpr const char* where = "heddle::sum_in_place";
  MPI_Datatype found = MPI_DATATYPE_NULL;
  check_together(
      comm, where, [&] { found = summable(type); },
      [&] {
        return CollectiveCall{where, {{"count", text(count)}, {"type", text(type)}}};
      });
  return found;
}

/// Calls `sum(first, count)` for pieces of at most 2^30 elements, because MPI's counts are int.
template <class SumPiece>
void in_pieces(std::size_t count, SumPiece&& sum) {
  constexpr std::size_t most = std::size_t{1} << 30;
  for (std::size_t done = 0; done < count; done += most)
    sum(done, static_cast<int>(std::min(most, count - done)));
}

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
  const MPI_Datatype datatype = impl::checked_sum(count, type, comm);
  impl::in_pieces(count, [&](std::size_t first, int length) {
    std::byte* const begin = static_cast<std::byte*>(data) + first * size_of(type);
    std::vector<std::byte> copy(begin, begin + static_cast<Bytes>(length) * size_of(type));
    MPI_Request request = MPI_REQUEST_NULL;
    check(
        MPI_Iallreduce(MPI_IN_PLACE, copy.data(), length, datatype, MPI_SUM, comm.get(), &request),
        "heddle::sum_in_place");
    try {
      Waiting waiting(Idle::yield);
      for (int done = 0;;) {
        check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "heddle::sum_in_place");
        if (done != 0) break;
        waiting();
        poll();
      }
    } catch (...) {
      comm.leave_to_mpi(std::move(copy));
      throw;
    }
    std::copy(copy.begin(), copy.end(), begin);
  });
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
  impl::CallView<const View&> data(view);
  data.prepare(impl::ViewUse::updates);
  data.fetch(space, true);
  space.fence("heddle::collective::all_reduce");
  sum_in_place(data.library_data(), data.size(), scalar_of<Element>, comm,
               std::forward<Poll>(poll));
  data.give(space);
}

}  // namespace heddle::inline v0

#if HEDDLE_FULL_HEADER_ONLY
#include <heddle/collective/sum_in_place.ipp>
#endif
