// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Kokkos::Experimental::UniqueToken on Athread. A kernel for several spaces that is compiled for a
/// device, too, calls its functions, so they are there, and return 0.

#include <atomic>
#include <cstddef>

#include <Kokkos_Core.hpp>

#include <heddle/device/athread_space.hpp>
#include <heddle/device/core_group.hpp>

namespace Kokkos::Experimental {

/// Numbers that no two running cores have at a time: that of the core, unless fewer are wanted than
/// there are cores.
template <>
class UniqueToken<heddle::Athread, UniqueTokenScope::Global> {
 public:
  using execution_space = heddle::Athread;
  using size_type = int;

  explicit UniqueToken(const execution_space& = execution_space()) {}
  [[nodiscard]] KOKKOS_FUNCTION int size() const {
    KOKKOS_IF_ON_HOST((return execution_space::impl_max_hardware_threads();))
    KOKKOS_IF_ON_DEVICE((return 0;))
  }
  [[nodiscard]] KOKKOS_FUNCTION int acquire() const {
    KOKKOS_IF_ON_HOST((return execution_space::impl_hardware_thread_id();))
    KOKKOS_IF_ON_DEVICE((return 0;))
  }
  KOKKOS_FUNCTION void release(int) const {}
};

template <>
class UniqueToken<heddle::Athread, UniqueTokenScope::Instance> {
 public:
  using execution_space = heddle::Athread;
  using size_type = int;

  explicit UniqueToken(const execution_space& = execution_space())
      : UniqueToken(heddle::CoreGrid::cores) {}
  explicit UniqueToken(int size, const execution_space& = execution_space())
      : m_taken("heddle::device::UniqueToken::taken", static_cast<std::size_t>(size)) {}

  [[nodiscard]] KOKKOS_FUNCTION int size() const { return static_cast<int>(m_taken.size()); }
  /// The number of the core if it is one and free, else the next that is.
  [[nodiscard]] KOKKOS_FUNCTION int acquire() const {
    KOKKOS_IF_ON_HOST((return first_free();))
    KOKKOS_IF_ON_DEVICE((return 0;))
  }
  KOKKOS_FUNCTION void release([[maybe_unused]] int i) const {
    KOKKOS_IF_ON_HOST((taken(i).store(0, std::memory_order_release);))
  }

 private:
  [[nodiscard]] int first_free() const {
    for (int i = execution_space::impl_hardware_thread_id() % heddle::CoreGrid::cores;; ++i)
      if (taken(i % size()).exchange(1, std::memory_order_acquire) == 0) return i % size();
  }
  [[nodiscard]] std::atomic_ref<int> taken(int i) const {
    return std::atomic_ref(m_taken(static_cast<std::size_t>(i)));
  }
  View<int*, HostSpace> m_taken;
};

}  // namespace Kokkos::Experimental
