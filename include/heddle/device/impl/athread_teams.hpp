// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AthreadTeams: the teams that a policy asks of Athread. TeamLoop: the loop over them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/athread_space.hpp>
#include <heddle/device/core_group.hpp>
#include <heddle/device/impl/athread_loops.hpp>
#include <heddle/device/impl/athread_shares.hpp>
#include <heddle/device/impl/athread_team_member.hpp>

namespace heddle::inline v0::impl {

/// The part of a team policy on Athread that returns no policy. A team has one thread; a demand for
/// more is refused. Its lanes, of which a policy may wish any number, are worked through one after
/// another.
class AthreadTeams {
 public:
  AthreadTeams(const Athread& space, int league_size, int team_size)
      : m_space(space), m_league_size(league_size) {
    expects(team_size <= 1, [&] {
      return ErrorInfo{"heddle::Athread", "a team can only have one thread",
                       text("asked for ", league_size, " teams of ", team_size, " threads"),
                       "pass Kokkos::AUTO, and use nested ranges: they adapt"};
    });
  }

  [[nodiscard]] const Athread& space() const { return m_space; }
  [[nodiscard]] int league_size() const { return m_league_size; }
  [[nodiscard]] int team_size() const { return 1; }
  template <class... Arguments>
  [[nodiscard]] int team_size_max(const Arguments&...) const {
    return 1;
  }
  template <class... Arguments>
  [[nodiscard]] int team_size_recommended(const Arguments&...) const {
    return 1;
  }
  [[nodiscard]] static int vector_length_max() { return 1024; }  // as on Kokkos's host spaces
  [[nodiscard]] int impl_vector_length() const { return 1; }
  [[nodiscard]] bool impl_auto_team_size() const { return false; }
  [[nodiscard]] bool impl_auto_vector_length() const { return false; }
  void impl_set_team_size(std::size_t) {}
  void impl_set_vector_length(std::size_t) {}

  [[nodiscard]] int chunk_size() const { return m_chunk_size; }

  /// Level 0: what the kernel's copy leaves of the local memory of this policy's core group, which
  /// is why this is no static function. Level 1: main memory, a block for every core.
  [[nodiscard]] int scratch_size_max(int level) const {
    constexpr std::size_t kernel = 2048, main_memory = 20 << 20;
    const std::size_t heap = m_space.core_group().options().heap();
    return static_cast<int>(level == 0 ? heap - std::min(heap, kernel) : main_memory);
  }
  [[nodiscard]] std::size_t scratch_size(int level, int = 1) const {
    const Scratch& scratch = m_scratch.at(static_cast<std::size_t>(level));
    return scratch.team + scratch.thread;
  }

 protected:
  struct Scratch {
    std::size_t team = 0, thread = 0;
  };
  [[nodiscard]] Scratch& scratch(int level) {
    return m_scratch.at(static_cast<std::size_t>(level));
  }

  Athread m_space;
  int m_league_size;
  int m_chunk_size = 1;
  std::array<Scratch, 2> m_scratch;
};

/// The loop of a kernel over teams. The kernel's scratch of level 0 is local memory, that of level
/// 1 main memory. `Tag` is the policy's work tag, or void.
template <class Tag, class Functor>
class TeamLoop {
 public:
  /// `functor_bytes` is the scratch of level 0 that the functor asks for beside the policy.
  TeamLoop(const Functor& functor, const AthreadTeams& policy, std::size_t functor_bytes)
      : m_functor(functor),
        m_teams(policy.league_size()),
        m_local_bytes(policy.scratch_size(0) + functor_bytes),
        m_main_bytes(policy.scratch_size(1)),
        m_main(m_main_bytes) {
    expect_room(0, m_local_bytes, policy);
    expect_room(1, m_main_bytes, policy);
  }

  [[nodiscard]] const Functor& functor() const { return m_functor; }
  [[nodiscard]] std::uint64_t items() const { return static_cast<std::uint64_t>(m_teams); }
  template <class... Arguments>
  void run(Core& core, CoreShare share, Arguments&&... arguments) const {
    void* const local = core.allocate(m_local_bytes, 128);
    void* const main = m_main.of(core.index());
    for (std::uint64_t team = share.first; team < share.last; ++team) {
      const AthreadTeamMember member({local, m_local_bytes, main, m_main_bytes},
                                     static_cast<int>(team), m_teams);
      call<Tag>(functor_of(m_functor), member, arguments...);
    }
  }

 private:
  static void expect_room(int level, std::size_t bytes, const AthreadTeams& policy) {
    const auto most = static_cast<std::size_t>(policy.scratch_size_max(level));
    expects(bytes <= most, [&] {
      return ErrorInfo{"heddle::Athread",
                       text("the team scratch of level ", level, " is too large in kernel ",
                            kernel_name<Functor>),
                       text("asked for ", bytes, " B, at most ", most, " B"),
                       "use tiles that fit the policy's scratch_size_max()"};
    });
  }

  Functor m_functor;
  int m_teams;
  std::size_t m_local_bytes, m_main_bytes;
  PerCore m_main;
};

}  // namespace heddle::inline v0::impl
