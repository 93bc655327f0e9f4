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
#include <heddle/schedule/generator/ring_all_reduce.hpp>

namespace heddle::inline v0 {

/// The reduction `a + b`.
struct Sum {};

/// Adds `count` elements of `type` at `data` over all ranks of `comm`, in place, by MPI_Allreduce.
/// The order of the sum is the library's. Blocking; all ranks must call it with equal arguments.
///
/// @throws contract_error for Scalar::byte; communication_error where MPI reports one.
inline void sum_in_place(void* data, std::size_t count, Scalar type, const Communicator& comm) {
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
  switch (type) {
    case Scalar::i32: datatype = MPI_INT32_T; break;
    case Scalar::i64: datatype = MPI_INT64_T; break;
    case Scalar::f32: datatype = MPI_FLOAT; break;
    case Scalar::f64: datatype = MPI_DOUBLE; break;
    case Scalar::byte: break;
  }
  expects(datatype != MPI_DATATYPE_NULL, [&] {
    return Complaint{"heddle::sum_in_place", "the elements cannot be added", text("type ", type)};
  });
  // MPI counts are int.
  constexpr std::size_t most = std::size_t{1} << 30;
  for (std::size_t done = 0; done < count; done += most) {
    const auto now = static_cast<int>(std::min(most, count - done));
    check(MPI_Allreduce(MPI_IN_PLACE, static_cast<std::byte*>(data) + done * size_of(type), now,
                        datatype, MPI_SUM, comm.get()),
          "heddle::sum_in_place");
  }
}

/// Sums `view` over all ranks of `comm`, element by element, in place: every rank ends with the sum.
/// Waits for the work of `space` first, and returns when the sum is there.
template <class ExecutionSpace, class View>
  requires Kokkos::is_execution_space_v<ExecutionSpace> && Kokkos::is_view_v<View>
void all_reduce(const ExecutionSpace& space, const View& view, Sum, const Communicator& comm) {
  static_assert(Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename View::memory_space>::accessible,
                "heddle::all_reduce: the view must be host memory; copy it to a host mirror first");
  expects(view.span_is_contiguous(), [&] {
    return Complaint{"heddle::all_reduce", "the view is not contiguous", view.label(),
                     "copy it into a contiguous one"};
  });
  space.fence("heddle::collective::all_reduce");
  sum_in_place(view.data(), view.size(), scalar_of<typename View::non_const_value_type>, comm);
}

/// The same sum as a persistent object that runs an expanded Schedule, a ring all-reduce, on memory
/// that it is given once. The order of the sum is RingAllReduce's, equal on all ranks and in all runs.
template <class T>
  requires(scalar_of<T> != Scalar::byte)
class ScheduledSum {
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

  [[nodiscard]] const Schedule& schedule() const noexcept { return m_schedule; }

 private:
  MpiTransport m_transport;
  Schedule m_schedule;
  std::vector<T> m_scratch;
  Executor<MpiTransport> m_executor;
};

}  // namespace heddle::inline v0
