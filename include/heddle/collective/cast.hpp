// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// cast_in(): performs cast actions as kernels, for handlers whose buffers are in a Kokkos memory
/// space.

#include <cstddef>

#include <Kokkos_Core.hpp>

#include <heddle/execute/cast.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0 {
namespace impl {

template <class Body>
struct CodecKernel {
  Body body;
  KOKKOS_FUNCTION void operator()(std::size_t call) const { body(call); }
};

/// A launcher for cast() and combine_encoded(): it runs their body as a kernel in an instance of an
/// execution space that can access the buffers. A call of the body handles one block of the codec.
/// Without blocks it handles one element, or a few thousand elements on host cores. The launcher
/// queues the kernels and does not wait for them.
template <kernel::ExecutionSpace Exec>
struct RunAsKernel {
  Exec exec = {};  ///< where kernels are queued

  /// Launches all calls of `body`.
  template <class Body>
  void operator()(Body body) const {
    if (!kernel::runs_on_host<Exec>) body.message.together = 1;
    Kokkos::parallel_for(
        Body::label,
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, body.message.calls()),
        CodecKernel<Body>{body});
  }
};

}  // namespace impl

/// Performs a cast task of cast_at_cut() whose buffers are in `MemorySpace`. The kernels run in the
/// default instance of that space's execution space, and the function waits for them.
/// @throws contract_error in the cases of cast().
template <class MemorySpace>
void cast_in(const Task& task) {
  static_assert(Kokkos::is_memory_space_v<MemorySpace>,
                "heddle::cast_in: name a Kokkos memory space");
  const impl::RunAsKernel<typename MemorySpace::execution_space> run;
  cast(task, run);
  run.exec.fence("heddle::collective::cast");
}

}  // namespace heddle::inline v0
