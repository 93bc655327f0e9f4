// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Joiner: what the actions of a collective's Schedule do with elements, on the host or where a
/// kernel does it.

#include <concepts>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/collective/cast.hpp>
#include <heddle/collective/impl/copy_past_caches.hpp>
#include <heddle/collective/reduction.hpp>
#include <heddle/execute/cast.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/kernel/impl/walk.hpp>

namespace heddle::inline v0 {
namespace impl {

/// out[i] = right[i] merged into left[i]. `out` is one of the two, which do not overlap, as the
/// Schedule has it. One code for both: of two NaNs it decides which comes out.
template <class R, class T>
struct JoinTo {
  R reduction;
  const T* left;
  const T* right;
  T* out;
  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    T value = left[i];
    reduction.join(value, right[i]);
    out[i] = value;
  }
};

/// Copies bytes within a memory space, and waits for it. What is queued in `exec` and writes them
/// must be over.
template <class MemorySpace, class Exec>
void copy_in(const Exec& exec, const std::byte* from, std::byte* into, std::size_t bytes) {
  if (bytes == 0) return;
  if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible) {
    std::memcpy(into, from, bytes);
  } else {
    using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
    Kokkos::deep_copy(exec, Kokkos::View<std::byte*, MemorySpace, Unmanaged>(into, bytes),
                      Kokkos::View<const std::byte*, MemorySpace, Unmanaged>(from, bytes));
    exec.fence("heddle::collective::copy");
  }
}

/// The reduction of collectives that only move elements.
struct NoReduction {
  template <class T>
  KOKKOS_FUNCTION void join(T&, const T&) const {}
  template <class T>
  KOKKOS_FUNCTION void init(T&) const {}
};

/// The handler of a collective's Schedule on elements of T in `MemorySpace`: combines merge what
/// the first use has behind what the second has, to the one that is updated, moves on one rank
/// copy, casts encode and decode. Kernels run in the instance that it is given, and are waited for;
/// where the host reaches the memory, few elements, or all where the space has one thread, are a
/// plain loop.
template <class Exec, class MemorySpace, class T, Reduction<T> R>
class Joiner {
  static constexpr bool on_host =
      Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible;
  /// Below it a loop is over before other threads have come.
  static constexpr std::size_t few = std::size_t{1} << 15;

 public:
  /// Refers to `exec`. `loops_only`: a thread that is not the caller's performs it, beside kernels
  /// of the caller.
  Joiner(const Exec& exec, const R& reduction, bool loops_only = false)
      : m_exec(exec), m_reduction(reduction), m_loops(loops_only || exec.concurrency() <= 1) {}

  void operator()(const Task& task) const {
    const BoundUse& from = task.uses()[0];
    const BoundUse& into = task.uses()[1];
    if (into.bytes == 0) return;
    if (task.kind() == Kind::move) {
      if (on_host && copies_out_much(task))
        return copy_past_caches(from.data, into.data, into.bytes);
      return copy_in<MemorySpace>(m_exec, from.data, into.data, into.bytes);
    }
    // Messages in the form of a Codec, see cast_at_cut().
    if constexpr (std::same_as<T, float> || std::same_as<T, double>) {
      if (task.kind() == Kind::cast)
        return coded(into.bytes, [&](const auto& run) { cast<T>(task, run); });
      if (combines_encoded(task))
        return coded(into.bytes,
                     [&](const auto& run) { combine_encoded<T>(task, m_reduction, run); });
    }
    const BoundUse& out = task.uses()[1 - merged_use(task)];
    join({m_reduction, reinterpret_cast<const T*>(into.data), reinterpret_cast<const T*>(from.data),
          reinterpret_cast<T*>(out.data)},
         into.bytes / sizeof(T));
  }

 private:
  /// Returns true if a task copies to memory for other ranks, so much in all that it is worth while
  /// to go past the caches: see copy_past_caches().
  [[nodiscard]] static bool copies_out_much(const Task& task) {
    constexpr Bytes much = Bytes{1} << 17;
    const Buffer& into = task.schedule()[task.uses()[1].buffer];
    return into.transient && into.bytes >= much && !task.schedule().domains().empty();
  }

  template <class Perform>
  void coded(Bytes bytes, const Perform& perform) const {
    if constexpr (on_host)
      if (m_loops || bytes / sizeof(T) < few) return perform(RunOnHost{});
    perform(RunAsKernel<Exec>{m_exec});
    m_exec.fence("heddle::collective::combine");
  }

  void join(const JoinTo<R, T>& each, std::size_t count) const {
    if constexpr (on_host) {
      if (m_loops || count < few) {
        HEDDLE_INDEPENDENT
        for (std::size_t i = 0; i < count; ++i) each(i);
        return;
      }
    }
    Kokkos::parallel_for(
        "heddle::collective::combine",
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(m_exec, 0, count), each);
    m_exec.fence("heddle::collective::combine");
  }

  const Exec& m_exec;
  R m_reduction;
  bool m_loops;
};

}  // namespace impl
}  // namespace heddle::inline v0
