// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of sum_in_place.hpp.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/sum_in_place.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/idle.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE MPI_Datatype impl::summable(Scalar type) {
  switch (type) {
    case Scalar::i32: return MPI_INT32_T;
    case Scalar::i64: return MPI_INT64_T;
    case Scalar::f32: return MPI_FLOAT;
    case Scalar::f64: return MPI_DOUBLE;
    default: break;
  }
  throw contract_error(
      {"heddle::sum_in_place", "the elements cannot be added", text("type ", type)});
}

namespace impl {

// Checks a sum of `count` elements of `type` over `comm`, and returns MPI's datatype.
inline MPI_Datatype checked_sum(std::size_t count, Scalar type, const Communicator& comm,
                                ContractLevel level) {
  constexpr const char* where = "heddle::sum_in_place";
  MPI_Datatype found = MPI_DATATYPE_NULL;
  check_together(
      comm, where, [&] { found = summable(type); },
      [&] {
        return impl::CollectiveCall{where, {{"count", text(count)}, {"type", text(type)}}};
      },
      level);
  return found;
}

// Calls `sum(first, count)` for pieces of at most 2^30 elements, because MPI's counts are int.
inline void in_pieces(std::size_t count, FunctionRef<void(std::size_t, int)> sum) {
  constexpr std::size_t most = std::size_t{1} << 30;
  for (std::size_t done = 0; done < count; done += most)
    sum(done, static_cast<int>(std::min(most, count - done)));
}

}  // namespace impl

HEDDLE_FULL_INLINE void sum_in_place(void* data, std::size_t count, Scalar type,
                                     const Communicator& comm) {
  const MPI_Datatype datatype = impl::checked_sum(count, type, comm, contract_level);
  impl::in_pieces(count, [&](std::size_t first, int length) {
    check(MPI_Allreduce(MPI_IN_PLACE, static_cast<std::byte*>(data) + first * size_of(type), length,
                        datatype, MPI_SUM, comm.get()),
          "heddle::sum_in_place");
  });
}

HEDDLE_FULL_INLINE void impl::sum_in_place(void* data, std::size_t count, Scalar type,
                                           const Communicator& comm, FunctionRef<void()> poll,
                                           ContractLevel level) {
  const MPI_Datatype datatype = checked_sum(count, type, comm, level);
  in_pieces(count, [&](std::size_t first, int length) {
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

HEDDLE_FULL_INLINE void impl::sum_in_place(const Instance& by, const ViewRef& view,
                                           const Communicator& comm, FunctionRef<void()> poll,
                                           ContractLevel level) {
  CallView data(view);
  data.prepare(ViewUse::updates, by);
  data.fetch(by, true);
  by.fence("heddle::collective::all_reduce");
  sum_in_place(data.library_data(), data.size(), view.type, comm, poll, level);
  data.give(by);
}

}  // namespace heddle::inline v0
