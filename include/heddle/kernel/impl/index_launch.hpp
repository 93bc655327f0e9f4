// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// launch_indices(): a kernel over indices, whose launch on the host's threads is compiled once.

#include <cstdint>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/kernel/impl/host_exec.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel::impl {

/// Has the threads of `exec` call `range(begin, end)` for parts of the indices below `count`, one
/// part a thread, and waits for them.
void launch_ranges(const char* label, const HostExec& exec, std::int64_t count,
                   heddle::impl::FunctionRef<void(std::int64_t, std::int64_t)> range);

/// Queues calls of `kernel(index)` for the indices below `count` in `exec`.
template <ExecutionSpace Exec, class Kernel>
void launch_indices(const char* label, const Exec& exec, std::int64_t count, const Kernel& kernel) {
  if constexpr (std::is_same_v<Exec, HostExec>)
    launch_ranges(label, exec, count, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t index = begin; index < end; ++index) kernel(index);
    });
  else
    Kokkos::parallel_for(
        label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, count), kernel);
}

}  // namespace heddle::inline v0::kernel::impl

#if HEDDLE_DEFINES_KERNEL
#include <heddle/kernel/impl/index_launch.ipp>
#endif
