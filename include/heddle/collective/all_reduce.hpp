// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Sums over the ranks of a communicator: by the MPI library, or by a Schedule of our own.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/combine.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/schedule/generator/ring_all_reduce.hpp>

namespace heddle::inline v0 {

/// The reduction `a + b`.
struct Sum {};

namespace impl {

/// MPI's type for elements that can be added. @throws contract_error for Scalar::byte.
inline MPI_Datatype summable(Scalar type) {
  switch (type) {
    case Scalar::i32: return MPI_INT32_T;
    case Scalar::i64: return MPI_INT64_T;
    case Scalar::f32: return MPI_FLOAT;
    case Scalar::f64: return MPI_DOUBLE;
    case Scalar::byte: break;
  }
  throw contract_error(
      {"heddle::sum_in_place", "the elements cannot be added", text("type ", type)});
}

/// Calls `sum(first, count)` for pieces of at most 2^30 elements: MPI counts are int.
template <class SumPiece>
void in_pieces(std::size_t count, SumPiece&& sum) {
  constexpr std::size_t most = std::size_t{1} << 30;
  for (std::size_t done = 0; done < count; done += most)
    sum(done, static_cast<int>(std::min(most, count - done)));
}

}  // namespace impl

/// Adds `count` elements of `type` at `data` over all ranks of `comm`, in place, by MPI_Allreduce.
/// The order of the sum is the library's. Blocking; all ranks must call it with equal arguments.
///
/// @throws contract_error for Scalar::byte; communication_error where MPI reports one.
inline void sum_in_place(void* data, std::size_t count, Scalar type, const Communicator& comm) {
  const MPI_Datatype datatype = impl::summable(type);
  impl::in_pieces(count, [&](std::size_t first, int length) {
    check(MPI_Allreduce(MPI_IN_PLACE, static_cast<std::byte*>(data) + first * size_of(type), length,
                        datatype, MPI_SUM, comm.get()),
          "heddle::sum_in_place");
  });
}

/// The same where a rank may fail instead of coming: `poll()` is called while the sum is under way,
/// and throws to give it up. The sum is made in memory of its own, which then is left to MPI, for a
/// collective operation cannot be cancelled.
template <std::invocable Poll>
void sum_in_place(void* data, std::size_t count, Scalar type, const Communicator& comm,
                  Poll&& poll) {
  const MPI_Datatype datatype = impl::summable(type);
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
      static_cast<void>(new std::vector<std::byte>(std::move(copy)));
      throw;
    }
    std::copy(copy.begin(), copy.end(), begin);
  });
}

/// Sums `view` over all ranks of `comm`, element by element, in place: every rank ends with the
/// sum. Waits for the work of `space` first, and returns when the sum is there.
/// @throws contract_error for a view that is not contiguous; communication_error where MPI reports
///         one.
template <class ExecutionSpace, class View>
requires Kokkos::is_execution_space_v<ExecutionSpace> && Kokkos::is_view_v<View>
void all_reduce(const ExecutionSpace& space, const View& view, Sum, const Communicator& comm) {
  static_assert(
      Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename View::memory_space>::accessible,
      "heddle::all_reduce: the view must be host memory; copy it to a host mirror first");
  static_assert(scalar_of<typename View::non_const_value_type> != Scalar::byte,
                "heddle::all_reduce: the elements must be float, double, int32_t or int64_t");
  expects(view.span_is_contiguous(), [&] {
    return Complaint{"heddle::all_reduce", "the view is not contiguous", view.label(),
                     "copy it into a contiguous one"};
  });
  space.fence("heddle::collective::all_reduce");
  sum_in_place(view.data(), view.size(), scalar_of<typename View::non_const_value_type>, comm);
}

/// The same sum as a persistent object that runs an expanded Schedule, a ring all-reduce, on memory
/// that it is given once. The order of the sum is RingAllReduce's, equal on all ranks and in all
/// runs.
template <class T>
requires(scalar_of<T> != Scalar::byte) class ScheduledSum {
 public:
  /// `data` are `count` elements of host memory that outlive the object. All ranks of `comm` must
  /// construct it, with the same count and chunks.
  ScheduledSum(T* data, std::size_t count, const Communicator& comm, int chunks = 1,
               ExecuteOptions options = {})
      : m_transport(comm.get()),
        m_schedule(schedule::ring_all_reduce({.ranks = comm.size(),
                                              .bytes = count * sizeof(T),
                                              .type = scalar_of<T>,
                                              .chunks = chunks})),
        m_scratch(count),
        m_executor(slice(m_schedule, m_transport.rank(),
                         [&](BufferId, const Buffer& buffer) {
                           T* const begin = buffer.transient ? m_scratch.data() : data;
                           return reinterpret_cast<std::byte*>(begin);
                         }),
                   m_transport, std::move(options)) {}

  /// Performs the sum. Blocking; all ranks must call it.
  void operator()() {
    m_executor.step(combine_on_host);
    m_executor.drain();
  }

  /// The ring all-reduce that it performs.
  [[nodiscard]] const Schedule& schedule() const noexcept { return m_schedule; }

 private:
  MpiTransport m_transport;
  Schedule m_schedule;
  std::vector<T> m_scratch;
  Executor<MpiTransport> m_executor;
};

}  // namespace heddle::inline v0
