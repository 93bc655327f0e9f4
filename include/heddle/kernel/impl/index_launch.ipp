// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of index_launch.hpp.

#include <algorithm>
#include <cstdint>

#include <Kokkos_Core.hpp>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/kernel/impl/index_launch.hpp>

namespace heddle::inline v0::kernel::impl {

/// A part of launch_ranges().
struct IndexRanges {
  heddle::impl::FunctionRef<void(std::int64_t, std::int64_t)> range;
  std::int64_t count, parts;

  void operator()(std::int64_t part) const {
    const std::int64_t share = count / parts, longer = count % parts;
    const std::int64_t begin = part * share + std::min(part, longer);
    range(begin, begin + share + (part < longer ? 1 : 0));
  }
};

HEDDLE_FULL_INLINE void launch_ranges(
    const char* label, const HostExec& exec, std::int64_t count,
    heddle::impl::FunctionRef<void(std::int64_t, std::int64_t)> range) {
  const std::int64_t parts = std::min<std::int64_t>(exec.concurrency(), count);
  Kokkos::parallel_for(
      label, Kokkos::RangePolicy<HostExec, Kokkos::IndexType<std::int64_t>>(exec, 0, parts),
      IndexRanges{range, count, parts});
#if defined(KOKKOS_ENABLE_HPX)
  exec.fence(label);  // the other spaces of the host return when they are done
#endif
}

}  // namespace heddle::inline v0::kernel::impl
