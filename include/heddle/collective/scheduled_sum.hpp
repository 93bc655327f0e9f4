// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ScheduledSum: a sum over ranks by a Schedule of our own, for whoever wants one order of adding.

#include <cstddef>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/collective/combine.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/device_transport.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/schedule/generator/ring_all_reduce.hpp>

namespace heddle::inline v0 {

/// How a ScheduledSum is made.
struct SumOptions {
  int chunks = 1;                           ///< messages that each rank's share travels in, >= 1
  DevicePath path = DevicePath::automatic;  ///< of messages, where the View's memory is a device's
  ExecuteOptions execute = {};              ///< of the Executor that performs it
};

/// The sum of a View over ranks, element by element and in place, as a persistent object that runs
/// an expanded Schedule, a ring all-reduce. The order of the sum is RingAllReduce's, equal on all
/// ranks and in all runs. The View may lie in any memory space, where it is added, too.
template <class View>
requires Kokkos::is_view_v<View> &&
    (scalar_of<typename View::non_const_value_type> != Scalar::byte) class ScheduledSum {
  using Element = typename View::non_const_value_type;
  using MemorySpace = typename View::memory_space;

 public:
  /// Keeps `view` alive. All ranks of `comm` must construct it, with views of one size and the same
  /// chunks.
  /// @throws contract_error for a view that is not contiguous, or no chunks.
  ScheduledSum(const View& view, const Communicator& comm, SumOptions options = {})
      : m_view(checked(view)),
        m_scratch(Kokkos::view_alloc(Kokkos::WithoutInitializing, "heddle::collective::scratch"),
                  view.size()),
        m_schedule(schedule::ring_all_reduce({.ranks = comm.size(),
                                              .bytes = view.size() * sizeof(Element),
                                              .type = scalar_of<Element>,
                                              .chunks = options.chunks})),
        m_transport(comm.get()),
        m_carrier(m_transport, options.path),
        m_executor(slice(m_schedule, m_transport.rank(),
                         [&](BufferId, const Buffer& buffer) {
                           Element* const begin =
                               buffer.transient ? m_scratch.data() : m_view.data();
                           return reinterpret_cast<std::byte*>(begin);
                         }),
                   m_carrier, std::move(options.execute)) {}

  /// Performs the sum. What writes the View must be over. Blocking; all ranks must call it.
  void operator()() {
    m_executor.step(&combine_in<MemorySpace>);
    m_executor.drain();
  }

  /// The ring all-reduce that it performs.
  [[nodiscard]] const Schedule& schedule() const noexcept { return m_schedule; }

 private:
  static const View& checked(const View& view) {
    expects(view.span_is_contiguous(), [&] {
      return Complaint{"heddle::ScheduledSum", "the view is not contiguous", view.label(),
                       "copy it into a contiguous one"};
    });
    return view;
  }

  View m_view;
  Kokkos::View<Element*, MemorySpace> m_scratch;
  Schedule m_schedule;
  MpiTransport m_transport;
  DeviceTransport<MpiTransport, MemorySpace> m_carrier;
  Executor<DeviceTransport<MpiTransport, MemorySpace>> m_executor;
};

}  // namespace heddle::inline v0
