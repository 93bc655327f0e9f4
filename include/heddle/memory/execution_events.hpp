// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ExecutionEvents: when the work of a Kokkos execution space instance is over, for StreamOrdered.

#include <memory>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/core/error.hpp>
#include <heddle/device/done_at_once.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/stream_ordered.hpp>

namespace heddle::inline v0::memory {

/// Events of `Exec`. Where the device has none that we know, a mark is over only when it is waited
/// for, by a fence of the instance: a StreamOrdered gives upstream nothing back before that has no
/// more, and where sizes do not come again, wait() now and then.
template <class Exec>
struct ExecutionEvents {
  static_assert(Kokkos::is_execution_space_v<Exec>);
  /// The instance.
  struct Mark {
    Exec exec;  ///< whose work it is
  };
  /// The end of what was launched so far.
  [[nodiscard]] static Mark record(const Exec& exec) { return {exec}; }
  /// Whether that is known to be over.
  [[nodiscard]] static bool done(const Mark&) { return false; }
  /// Until it is.
  static void wait(const Mark& mark) { mark.exec.fence("heddle::memory::event"); }
};

/// Of spaces whose launches return when the work is done.
template <class Exec>
requires done_at_once<Exec>
struct ExecutionEvents<Exec> {
  /// There is nothing to wait for.
  struct Mark {};
  /// The end of what was launched so far.
  [[nodiscard]] static Mark record(const Exec&) { return {}; }
  /// It is over.
  [[nodiscard]] static bool done(const Mark&) { return true; }
  /// It is over.
  static void wait(const Mark&) {}
};

#if defined(KOKKOS_ENABLE_CUDA)
/// CUDA's events, without times.
template <>
struct ExecutionEvents<Kokkos::Cuda> {
  /// An event of the device.
  using Mark = std::shared_ptr<std::remove_pointer_t<cudaEvent_t>>;
  /// The end of what was launched so far. @throws communication_error where CUDA makes none.
  [[nodiscard]] static Mark record(const Kokkos::Cuda& exec) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    Mark mark(event, [](cudaEvent_t made) { static_cast<void>(cudaEventDestroy(made)); });
    check(cudaEventRecord(event, exec.cuda_stream()));
    return mark;
  }
  /// Whether that is over. @throws communication_error where CUDA reports another error.
  [[nodiscard]] static bool done(const Mark& mark) {
    const cudaError_t status = cudaEventQuery(mark.get());
    if (status == cudaSuccess) return true;
    static_cast<void>(cudaGetLastError());  // not the error of whoever asks for one next
    if (status != cudaErrorNotReady) check(status);
    return false;
  }
  /// Until it is.
  static void wait(const Mark& mark) { check(cudaEventSynchronize(mark.get())); }

 private:
  static void check(cudaError_t status) {
    if (status != cudaSuccess)
      throw communication_error(
          {"heddle::memory::ExecutionEvents", "CUDA refuses an event", cudaGetErrorString(status)});
  }
};
#endif

#if defined(KOKKOS_ENABLE_HIP)
/// HIP's events, without times.
template <>
struct ExecutionEvents<Kokkos::HIP> {
  /// An event of the device.
  using Mark = std::shared_ptr<std::remove_pointer_t<hipEvent_t>>;
  /// The end of what was launched so far. @throws communication_error where HIP makes none.
  [[nodiscard]] static Mark record(const Kokkos::HIP& exec) {
    hipEvent_t event = nullptr;
    check(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    Mark mark(event, [](hipEvent_t made) { static_cast<void>(hipEventDestroy(made)); });
    check(hipEventRecord(event, exec.hip_stream()));
    return mark;
  }
  /// Whether that is over. @throws communication_error where HIP reports another error.
  [[nodiscard]] static bool done(const Mark& mark) {
    const hipError_t status = hipEventQuery(mark.get());
    if (status == hipSuccess) return true;
    static_cast<void>(hipGetLastError());  // not the error of whoever asks for one next
    if (status != hipErrorNotReady) check(status);
    return false;
  }
  /// Until it is.
  static void wait(const Mark& mark) { check(hipEventSynchronize(mark.get())); }

 private:
  static void check(hipError_t status) {
    if (status != hipSuccess)
      throw communication_error(
          {"heddle::memory::ExecutionEvents", "HIP refuses an event", hipGetErrorString(status)});
  }
};
#endif

/// StreamOrdered for instances of a Kokkos execution space.
template <class Exec, Resource Up>
using Ordered = StreamOrdered<Up, Exec, ExecutionEvents<Exec>>;

}  // namespace heddle::inline v0::memory
