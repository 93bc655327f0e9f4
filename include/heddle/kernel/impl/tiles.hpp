// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Tiles of elements in level-0 scratch: how many fit, and how they come and go. For the kernels of
/// map and reduce on spaces whose cores have a local memory.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/staging.hpp>
#include <heddle/kernel/impl/sources.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel::impl {

/// Sunway-style memory moves in pieces of 128 bytes: tiles start at multiples of it.
inline constexpr std::size_t dma_line = 128;

/// Bytes of level-0 scratch that a team of `exec` can have beside a `Kernel`. Its copy lies in the
/// same local memory; what a space leaves for that holds small ones only.
template <class Kernel, ExecutionSpace Exec>
[[nodiscard]] std::size_t scratch_bytes(const Exec& exec) {
  constexpr std::size_t small = 1024;
  const auto most =
      static_cast<std::size_t>(Kokkos::TeamPolicy<Exec>(exec, 1, 1).scratch_size_max(0));
  if constexpr (staging<Exec>::scratch == Scratch::local && sizeof(Kernel) > small)
    return most - std::min(most, sizeof(Kernel));
  else
    return most;
}

/// The number of level-0 scratch memories that teams of `exec` can fill at the same time: the
/// multiprocessors of a GPU, whose concurrency() counts threads, else the cores.
template <ExecutionSpace Exec>
[[nodiscard]] std::size_t scratch_count(const Exec& exec) {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<Exec, Kokkos::Cuda>)
    return static_cast<std::size_t>(exec.cuda_device_prop().multiProcessorCount);
#endif
#if defined(KOKKOS_ENABLE_HIP)
  if constexpr (std::is_same_v<Exec, Kokkos::HIP>)
    return static_cast<std::size_t>(exec.hip_device_prop().multiProcessorCount);
#endif
  return static_cast<std::size_t>(exec.concurrency());
}

/// Elements of a tile of a `Kernel` when each takes `bytes_per_element` in up to `buffers` buffers:
/// `wanted` ones, or as many as fit. A multiple of 128, so that tiles start aligned.
template <class Kernel, ExecutionSpace Exec>
[[nodiscard]] std::size_t tile_elements(const char* where, const Exec& exec,
                                        std::size_t bytes_per_element, std::size_t buffers,
                                        std::size_t wanted) {
  const std::size_t scratch = scratch_bytes<Kernel>(exec), spare = buffers * dma_line;
  const std::size_t fit = scratch > spare ? (scratch - spare) / bytes_per_element : 0;
  expects(fit >= dma_line, [&] {
    return ErrorInfo{where, "a tile of 128 elements does not fit into level-0 scratch",
                     text("it takes ", dma_line * bytes_per_element + spare, " bytes of ", scratch),
                     "use smaller elements or fewer Views"};
  });
  return std::clamp<std::size_t>((wanted + dma_line - 1) / dma_line * dma_line, dma_line,
                                 fit / dma_line * dma_line);
}

/// The policy for `count` teams of one thread each.
template <ExecutionSpace Exec>
[[nodiscard]] Kokkos::TeamPolicy<Exec> teams_of_one(const char* where, const Exec& exec,
                                                    std::size_t count) {
  expects(count <= static_cast<std::size_t>(std::numeric_limits<int>::max()), [&] {
    return ErrorInfo{where, "the call needs more tiles than a league can have teams",
                     text(count, " tiles"), "split the call, or use Views with longer rows"};
  });
  return Kokkos::TeamPolicy<Exec>(exec, static_cast<int>(count), 1);
}

/// A buffer of a tile in the scratch of `team`.
template <class T, class Member>
KOKKOS_FUNCTION T* tile_buffer(const Member& team, std::size_t elements) {
  return static_cast<T*>(team.team_scratch(0).get_shmem_aligned(elements * sizeof(T), dma_line));
}

/// Begins to bring `count` elements that lie `step` apart.
template <ExecutionSpace Exec, class T>
KOKKOS_FUNCTION void fetch(staging<Exec>& stage, T* local, const T* global, std::size_t count,
                           std::ptrdiff_t step) {
  if (step == 1)
    stage.get(local, global, count);
  else
    stage.get(local, global, Rows{count, 1, static_cast<std::size_t>(step)});
}

/// Begins to take `count` elements to where they lie `step` apart.
template <ExecutionSpace Exec, class T>
KOKKOS_FUNCTION void store(staging<Exec>& stage, T* global, const T* local, std::size_t count,
                           std::ptrdiff_t step) {
  if (step == 1)
    stage.put(global, local, count);
  else
    stage.put(global, local, Rows{count, 1, static_cast<std::size_t>(step)});
}

/// Brings a tile of every one of the Sources `global` into the buffers of the Sources `local`, and
/// waits until all are there.
template <std::size_t First, ExecutionSpace Exec, class Local, class Global, std::size_t Views>
KOKKOS_FUNCTION void fetch_all(staging<Exec>& stage, const Local& local, const Global& global,
                               std::size_t count, const std::ptrdiff_t (&step)[Views]) {
  local.zip(global, [&](std::size_t place, auto* to, const auto* from) {
    fetch(stage, to, from, count, step[First + place]);
  });
  stage.wait();
}

}  // namespace heddle::inline v0::kernel::impl
