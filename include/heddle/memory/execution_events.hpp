// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ExecutionEvents: tell StreamOrdered when the work of a Kokkos execution space instance is
/// complete.

#include <memory>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/core/error.hpp>
#include <heddle/device/done_at_once.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/stream_ordered.hpp>

namespace heddle::inline v0::memory {

/// Events of `Exec` for a device whose native events are not supported. A mark is known to be
/// complete only after wait(), which fences the instance. Hence a StreamOrdered returns nothing to
/// its upstream until the upstream has no memory left. If block sizes seldom repeat, call
/// StreamOrdered::wait() now and then.
template <class Exec>
struct ExecutionEvents {
  static_assert(Kokkos::is_execution_space_v<Exec>);
  /// The execution space instance.
  struct Mark {
    Exec exec;  ///< the instance that does the work
  };
  /// Marks the end of the work launched so far.
  [[nodiscard]] static Mark record(const Exec& exec) { return {exec}; }
  /// Returns whether the work is known to be complete. It never is before wait().
  [[nodiscard]] static bool done(const Mark&) { return false; }
  /// Waits until the work is complete.
  static void wait(const Mark& mark) { mark.exec.fence("heddle::memory::event"); }
};

/// Events of execution spaces whose launches return when the work is complete.
template <class Exec>
requires done_at_once<Exec>
struct ExecutionEvents<Exec> {
  /// An empty mark, because there is nothing to wait for.
  struct Mark {};
  /// Marks the end of the work launched so far.
  [[nodiscard]] static Mark record(const Exec&) { return {}; }
  /// Returns true, because the work is complete.
  [[nodiscard]] static bool done(const Mark&) { return true; }
  /// Returns at once, because the work is complete.
  static void wait(const Mark&) {}
};

#if defined(KOKKOS_ENABLE_CUDA)
/// CUDA events, without timing.
template <>
struct ExecutionEvents<Kokkos::Cuda> {
  /// A shared handle of a CUDA event.
  using Mark = std::shared_ptr<std::remove_pointer_t<cudaEvent_t>>;
  /// Marks the end of the work launched so far. @throws communication_error if CUDA reports an
  /// error.
  [[nodiscard]] static Mark record(const Kokkos::Cuda& exec) {
    check(cudaSetDevice(exec.cuda_device()));  // an event is of the thread's device
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    Mark mark(event, [](cudaEvent_t made) { static_cast<void>(cudaEventDestroy(made)); });
    check(cudaEventRecord(event, exec.cuda_stream()));
    return mark;
  }
  /// Returns whether the work is complete. @throws communication_error if CUDA reports an error.
  [[nodiscard]] static bool done(const Mark& mark) {
    const cudaError_t status = cudaEventQuery(mark.get());
    if (status == cudaSuccess) return true;
    static_cast<void>(cudaGetLastError());  // so that the next caller does not see this error
    if (status != cudaErrorNotReady) check(status);
    return false;
  }
  /// Waits until the work is complete.
  static void wait(const Mark& mark) { check(cudaEventSynchronize(mark.get())); }

 private:
  static void check(cudaError_t status) {
    if (status != cudaSuccess)
      throw communication_error(
          {"heddle::memory::ExecutionEvents", "a CUDA event failed", cudaGetErrorString(status)});
  }
};
#endif

#if defined(KOKKOS_ENABLE_HIP)
/// HIP events, without timing.
template <>
struct ExecutionEvents<Kokkos::HIP> {
  /// A shared handle of a HIP event.
  using Mark = std::shared_ptr<std::remove_pointer_t<hipEvent_t>>;
  /// Marks the end of the work launched so far. @throws communication_error if HIP reports an
  /// error.
  [[nodiscard]] static Mark record(const Kokkos::HIP& exec) {
    check(hipSetDevice(exec.hip_device()));  // an event is of the thread's device
    hipEvent_t event = nullptr;
    check(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    Mark mark(event, [](hipEvent_t made) { static_cast<void>(hipEventDestroy(made)); });
    check(hipEventRecord(event, exec.hip_stream()));
    return mark;
  }
  /// Returns whether the work is complete. @throws communication_error if HIP reports an error.
  [[nodiscard]] static bool done(const Mark& mark) {
    const hipError_t status = hipEventQuery(mark.get());
    if (status == hipSuccess) return true;
    static_cast<void>(hipGetLastError());  // so that the next caller does not see this error
    if (status != hipErrorNotReady) check(status);
    return false;
  }
  /// Waits until the work is complete.
  static void wait(const Mark& mark) { check(hipEventSynchronize(mark.get())); }

 private:
  static void check(hipError_t status) {
    if (status != hipSuccess)
      throw communication_error(
          {"heddle::memory::ExecutionEvents", "a HIP event failed", hipGetErrorString(status)});
  }
};
#endif

/// A StreamOrdered for instances of a Kokkos execution space.
template <class Exec, Resource Up>
using Ordered = StreamOrdered<Up, Exec, ExecutionEvents<Exec>>;

}  // namespace heddle::inline v0::memory
