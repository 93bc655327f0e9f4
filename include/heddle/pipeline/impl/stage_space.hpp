// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StageSpace: a Kokkos memory space and its execution space, without their types.

#include <cstddef>
#include <memory>
#include <string>

#include <Kokkos_Core.hpp>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/task.hpp>

namespace heddle::inline v0 {
class Communicator;
}

namespace heddle::inline v0::impl {

/// The operations of Stages in the memory of its stages. Kernels run in the default instance of the
/// execution space, and every function waits for them.
class StageSpace {
 public:
  virtual ~StageSpace() = default;

  /// Allocates memory without values.
  [[nodiscard]] virtual std::shared_ptr<std::byte> allocate(const char* label,
                                                            Bytes bytes) const = 0;
  /// Allocates memory for messages, from memory::message_memory().
  [[nodiscard]] virtual std::shared_ptr<std::byte> allocate_message(const char* label,
                                                                    Bytes bytes) const = 0;
  virtual void clear(std::byte* data, Bytes bytes) const = 0;
  virtual void copy(const std::byte* from, std::byte* into, Bytes bytes) const = 0;
  virtual void copy_to_host(const std::byte* from, std::byte* host, Bytes bytes) const = 0;
  virtual void copy_from_host(const std::byte* host, std::byte* into, Bytes bytes) const = 0;
  /// Adds elements of `type` to those at `sum`.
  virtual void add(Scalar type, const std::byte* from, std::byte* sum, Bytes bytes) const = 0;
  /// Performs a combine or a cast; see combine_in() and cast_in().
  virtual void combine(const Task& task) const = 0;
  virtual void cast(const Task& task) const = 0;
  /// Sums elements of `type` over the ranks of `comm`, and calls `poll` meanwhile.
  virtual void sum_over_ranks(Scalar type, std::byte* data, Bytes bytes, const Communicator& comm,
                              FunctionRef<void()> poll) const = 0;
};

/// Returns the operations of a memory space. Those of the host are compiled once.
template <class MemorySpace>
[[nodiscard]] const StageSpace& stage_space();

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/impl/stage_space.ipp>
#else
extern template const heddle::impl::StageSpace& heddle::impl::stage_space<Kokkos::HostSpace>();
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL)
#include <heddle/pipeline/impl/space_of_stages.hpp>
#endif
#endif
