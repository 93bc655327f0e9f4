// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// `staging<Space>`: copies data between global memory and the level-0 scratch of a team. The
/// patterns in kernel/ use it, and so can kernels that move their own data:
///
///     staging<Exec> stage(team);
///     stage.get(tile, &u(first), count);  // tile: from team.team_scratch(0)
///     stage.wait();                       // now the team may read the tile

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

namespace heddle::inline v0 {

/// The kind of level-0 scratch of an execution space. It determines which data should be copied.
enum class Scratch {
  cached,  ///< part of cached memory (host cores): a copy gains nothing
  shared,  ///< the threads' shared memory (GPU): a copy gains if data are read repeatedly
  local,   ///< a core's own memory (Athread): all data that a core accesses should be copied
};

/// The shape of rows of a matrix in global memory. In scratch the rows have no gaps.
struct Rows {
  std::size_t count;    ///< rows
  std::size_t columns;  ///< elements of a row, adjacent
  std::size_t stride;   ///< elements from the start of a row to the start of the next, >= columns
};

/// Copies between global memory and scratch, made by a whole team: all of its threads make the same
/// calls. A copy may still be in flight when `get` or `put` returns. Until `wait`, neither side of
/// it may be accessed, and `wait` must be called after every copy. Copies that are waited for
/// separately need separate objects. Elements must be trivially copyable.
///
/// This is the version for hosts and GPUs: the threads of the team copy, and `wait` is their
/// barrier.
template <class Space>
class staging {
  static_assert(Kokkos::is_execution_space_v<Space>,
                "heddle::staging: the argument must be a Kokkos execution space");

 public:
  /// The team handle of a thread.
  using Member = typename Kokkos::TeamPolicy<Space>::member_type;

  /// The kind of scratch. A pattern uses it to decide whether to copy.
  static constexpr Scratch scratch = std::is_same_v<typename Space::memory_space, Kokkos::HostSpace>
                                         ? Scratch::cached
                                         : Scratch::shared;

  /// Constructs the object for copies of `team`.
  KOKKOS_FUNCTION explicit staging(const Member& team) : m_team(team) {}
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;

  /// Copies `count` elements from global memory to scratch.
  template <class T>
  KOKKOS_FUNCTION void get(T* local, const T* global, std::size_t count) const {
    copy(local, global, count);
  }
  /// Copies rows to scratch: local[i * columns + j] is element j of row i.
  template <class T>
  KOKKOS_FUNCTION void get(T* local, const T* global, const Rows& rows) const {
    for (std::size_t i = 0; i < rows.count; ++i)
      copy(local + i * rows.columns, global + i * rows.stride, rows.columns);
  }

  /// Copies `count` elements to global memory.
  template <class T>
  KOKKOS_FUNCTION void put(T* global, const T* local, std::size_t count) const {
    copy(global, local, count);
  }
  /// Copies rows to global memory.
  template <class T>
  KOKKOS_FUNCTION void put(T* global, const T* local, const Rows& rows) const {
    for (std::size_t i = 0; i < rows.count; ++i)
      copy(global + i * rows.stride, local + i * rows.columns, rows.columns);
  }

  /// Returns when every copy of this object is complete and visible to all threads of the team.
  KOKKOS_FUNCTION void wait() const { m_team.team_barrier(); }

 private:
  template <class T>
  KOKKOS_FUNCTION void copy(T* to, const T* from, std::size_t count) const {
    static_assert(std::is_trivially_copyable_v<T>,
                  "heddle::staging: only trivially copyable elements can be staged");
    Kokkos::parallel_for(Kokkos::TeamVectorRange(m_team, count),
                         [=](std::size_t i) { to[i] = from[i]; });
  }

  const Member& m_team;
};

}  // namespace heddle::inline v0
