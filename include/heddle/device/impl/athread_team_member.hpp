// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a team kernel on Athread sees of its team.

#include <Kokkos_Core.hpp>

#include <heddle/device/athread_space.hpp>

namespace heddle::inline v0::impl {

/// The handle of a team of one thread.
class AthreadTeamMember {
 public:
  using execution_space = Athread;
  using scratch_memory_space = Athread::scratch_memory_space;
  using thread_team_member = AthreadTeamMember;
  using host_thread_team_member = AthreadTeamMember;  // for Kokkos's nested loops of host threads
  using team_handle = AthreadTeamMember;

  AthreadTeamMember(scratch_memory_space scratch, int league_rank, int league_size)
      : m_scratch(scratch), m_league_rank(league_rank), m_league_size(league_size) {}

  KOKKOS_FUNCTION int team_rank() const { return 0; }
  KOKKOS_FUNCTION int team_size() const { return 1; }
  KOKKOS_FUNCTION int league_rank() const { return m_league_rank; }
  KOKKOS_FUNCTION int league_size() const { return m_league_size; }

  KOKKOS_FUNCTION const scratch_memory_space& team_shmem() const { return team_scratch(0); }
  KOKKOS_FUNCTION const scratch_memory_space& team_scratch(int level) const {
    return m_scratch.set_team_thread_mode(level, 1, 0);
  }
  KOKKOS_FUNCTION const scratch_memory_space& thread_scratch(int level) const {
    return team_scratch(level);
  }

  KOKKOS_FUNCTION void team_barrier() const {}
  template <class T>
  KOKKOS_FUNCTION void team_broadcast(T&, int) const {}
  template <class Closure, class T>
  KOKKOS_FUNCTION void team_broadcast(const Closure& closure, T& value, int) const {
    closure(value);
  }
  template <class Reducer>
  requires Kokkos::is_reducer_v<Reducer> KOKKOS_FUNCTION void team_reduce(const Reducer&) const {}
  template <class Reducer>
  requires Kokkos::is_reducer_v<Reducer> KOKKOS_FUNCTION void team_reduce(
      const Reducer& reducer, const typename Reducer::value_type& value) const {
    reducer.reference() = value;
  }
  template <class Reducer, class Value>
  KOKKOS_FUNCTION void impl_team_reduce(const Reducer&, Value&) const {}
  /// The sum over the lower threads, of which there are none, from `global` on if it is given.
  template <class T>
  KOKKOS_FUNCTION T team_scan(const T& value, T* global = nullptr) const {
    return global == nullptr ? T{} : Kokkos::atomic_fetch_add(global, value);
  }

 private:
  scratch_memory_space m_scratch;
  int m_league_rank, m_league_size;
};

}  // namespace heddle::inline v0::impl
