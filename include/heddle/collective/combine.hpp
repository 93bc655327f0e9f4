// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// combine_in(): performs combine actions as a kernel, for handlers whose buffers are in a Kokkos
/// memory space.

#include <cstddef>

#include <Kokkos_Core.hpp>

#include <heddle/collective/cast.hpp>
#include <heddle/collective/impl/join_to.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/execute/combine.hpp>
#include <heddle/execute/task.hpp>

namespace heddle::inline v0 {
/// Performs a combine task whose buffers are in `MemorySpace`. The kernel runs in the default
/// instance of that space's execution space, and the function waits for it. If a codec encodes the
/// message, it is decoded and added in one pass.
/// @throws contract_error if a buffer has elements of type byte, because these cannot be added.
template <class MemorySpace>
void combine_in(const Task& task) {
  static_assert(Kokkos::is_memory_space_v<MemorySpace>,
                "heddle::combine_in: name a Kokkos memory space");
  using Exec = typename MemorySpace::execution_space;
  const Exec exec{};
  if (impl::combines_encoded(task)) {
    impl::combine_encoded(task, impl::AddNumber{}, impl::RunAsKernel<Exec>{exec});
    return exec.fence("heddle::collective::combine");
  }
  combine(task, [&exec]<class T>(const T* from, T* into, std::size_t count) {
    Kokkos::parallel_for("heddle::collective::combine",
                         Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, count),
                         impl::JoinTo<Sum, T>{{}, into, from, into});
  });
  exec.fence("heddle::collective::combine");
}

}  // namespace heddle::inline v0
