// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// done_at_once: which execution spaces need no fence. For what is called so often that the locks
/// of one are felt.

#include <Kokkos_Core.hpp>

namespace heddle::inline v0 {

/// Whether launches of `Exec` return when their work is done, as those of some host spaces do.
template <class Exec>
inline constexpr bool done_at_once = false;
#if defined(KOKKOS_ENABLE_SERIAL)
/// They do.
template <>
inline constexpr bool done_at_once<Kokkos::Serial> = true;
#endif
#if defined(KOKKOS_ENABLE_OPENMP)
/// They do.
template <>
inline constexpr bool done_at_once<Kokkos::OpenMP> = true;
#endif
#if defined(KOKKOS_ENABLE_THREADS)
/// They do.
template <>
inline constexpr bool done_at_once<Kokkos::Threads> = true;
#endif

/// Returns when what was launched in `exec` is done; `what` is the fence's label, where it takes
/// one.
template <class Exec>
void wait_for_work(const Exec& exec, const char* what) {
  if constexpr (!done_at_once<Exec>) exec.fence(what);
}

}  // namespace heddle::inline v0
