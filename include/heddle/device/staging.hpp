// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// How data come to a core: `staging<Space>` copies between global memory and the level-0 scratch
/// of a team. For the patterns in kernel/, and for kernels that bring their own data:
///
///     staging<Exec> stage(team);
///     stage.get(tile, &u(first), count);  // tile: from team.team_scratch(0)
///     stage.wait();                       // now the team may read the tile

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

namespace heddle::inline v0 {

/// The kind of level-0 scratch of an execution space. It decides which data are worth a copy.
enum class Scratch {
  cached,  ///< a piece of cached memory (host cores): caches bring the data, no copy pays
  shared,  ///< the threads' shared memory (GPU): worth a copy if data are read more than once
  local,   ///< a core's own memory (Athread): whatever a core reads or writes should be copied
};

/// Rows of a matrix in global memory. In scratch they lie without gaps.
struct Rows {
  std::size_t count;    ///< rows
  std::size_t columns;  ///< elements of a row, adjacent
  std::size_t stride;   ///< elements from the start of a row to the start of the next, >= columns
};

/// A group of copies between global memory and scratch, made by a whole team: all of its threads
/// make the same calls. A copy may still be under way when `get` or `put` returns; until `wait`
/// neither side of it may be touched, and every copy must be waited for. Copies that are waited for
/// apart need an object each. Elements must be trivially copyable.
///
/// This is the form for hosts and GPUs: the threads of the team copy, `wait` is their barrier.
template <class Space>
class staging {
  static_assert(Kokkos::is_execution_space_v<Space>,
                "heddle::staging: the argument must be a Kokkos execution space");

 public:
  /// A thread's handle of its team.
  using Member = typename Kokkos::TeamPolicy<Space>::member_type;

  /// The kind of scratch, by which a pattern decides whether to copy.
  static constexpr Scratch scratch = std::is_same_v<typename Space::memory_space, Kokkos::HostSpace>
                                         ? Scratch::cached
                                         : Scratch::shared;

  /// For the copies of `team`, none of which is under way yet.
  KOKKOS_FUNCTION explicit staging(const Member& team) : m_team(team) {}
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;

  /// Brings `count` elements from global memory.
  template <class T>
  KOKKOS_FUNCTION void get(T* local, const T* global, std::size_t count) const {
    copy(local, global, count);
  }
  /// Brings rows; local[i * columns + j] is element j of row i.
  template <class T>
  KOKKOS_FUNCTION void get(T* local, const T* global, const Rows& rows) const {
    for (std::size_t i = 0; i < rows.count; ++i)
      copy(local + i * rows.columns, global + i * rows.stride, rows.columns);
  }

  /// Takes `count` elements to global memory.
  template <class T>
  KOKKOS_FUNCTION void put(T* global, const T* local, std::size_t count) const {
    copy(global, local, count);
  }
  /// Takes rows to global memory.
  template <class T>
  KOKKOS_FUNCTION void put(T* global, const T* local, const Rows& rows) const {
    for (std::size_t i = 0; i < rows.count; ++i)
      copy(global + i * rows.stride, local + i * rows.columns, rows.columns);
  }

  /// Returns when every copy of this object is complete and all threads of the team may see it.
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
