// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// done_at_once: whether an execution space needs no fence. It is for code that runs so often that
/// the locks inside a fence would cost time.

#include <Kokkos_Core.hpp>

namespace heddle::inline v0 {

/// True if launches of `Exec` return when their work is complete. This holds for some host spaces.
template <class Exec>
inline constexpr bool done_at_once = false;
#if defined(KOKKOS_ENABLE_SERIAL)
/// True: launches of Kokkos::Serial return when their work is complete.
template <>
inline constexpr bool done_at_once<Kokkos::Serial> = true;
#endif
#if defined(KOKKOS_ENABLE_OPENMP)
/// True: launches of Kokkos::OpenMP return when their work is complete.
template <>
inline constexpr bool done_at_once<Kokkos::OpenMP> = true;
#endif
#if defined(KOKKOS_ENABLE_THREADS)
/// True: launches of Kokkos::Threads return when their work is complete.
template <>
inline constexpr bool done_at_once<Kokkos::Threads> = true;
#endif

namespace impl {

/// Returns when the work queued in `exec` is complete. `what` is the label of the fence, if one is
/// needed.
template <class Exec>
void wait_for_work(const Exec& exec, const char* what) {
  if constexpr (!done_at_once<Exec>) exec.fence(what);
}

}  // namespace impl

}  // namespace heddle::inline v0
