// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What Kokkos wants specialised for an execution space out of its tree. Kokkos promises no
/// stability here: every name of Kokkos::Impl that the library uses stands in this header, which
/// compiles against Kokkos 5.0 and 5.2. Include <heddle/device/athread.hpp> instead.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <Kokkos_Core.hpp>

// Not part of Kokkos_Core.hpp, and guarded against inclusion by users.
#ifndef KOKKOS_IMPL_PUBLIC_INCLUDE
#define KOKKOS_IMPL_PUBLIC_INCLUDE
#define HEDDLE_IMPL_NOT_PUBLIC
#endif
#include <impl/Kokkos_ExecSpaceManager.hpp>
#ifdef HEDDLE_IMPL_NOT_PUBLIC
#undef HEDDLE_IMPL_NOT_PUBLIC
#undef KOKKOS_IMPL_PUBLIC_INCLUDE
#endif

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/athread_space.hpp>
#include <heddle/device/core_group.hpp>
#include <heddle/device/impl/athread_patterns.hpp>
#include <heddle/device/impl/athread_shares.hpp>
#include <heddle/device/impl/athread_team_member.hpp>

// --- The loops of the cores

namespace heddle::inline v0 {
struct Counted;  // counted.hpp
template <class Element>
struct CountedAccessor;
}  // namespace heddle::inline v0

namespace heddle::inline v0::impl {

template <class Functor, class Reducer>
inline constexpr std::string_view
    kernel_name<Kokkos::Impl::CombinedFunctorReducer<Functor, Reducer>> = kernel_name<Functor>;

/// By std::invoke, because a functor may take the index as a narrower type than the policy's: the
/// compiler does not warn of what the standard library converts.
template <class Tag, class Functor, class... Arguments>
void call(const Functor& functor, Arguments&&... arguments) {
  if constexpr (std::is_void_v<Tag>)
    std::invoke(functor, arguments...);
  else
    std::invoke(functor, Tag{}, arguments...);
}

/// The functor of a parallel_for, or of a reduction, which holds its reducer too.
template <class Functor>
[[nodiscard]] const Functor& functor_of(const Functor& functor) {
  return functor;
}
template <class Functor, class Reducer>
[[nodiscard]] const Functor& functor_of(
    const Kokkos::Impl::CombinedFunctorReducer<Functor, Reducer>& both) {
  return both.get_functor();
}

/// The loop of a kernel: `items()` are shared out, and a core runs its share with the arguments
/// that the pattern adds to the functor's: none, the sum of a reduction, the sum and phase of a
/// scan. `Update` is the sum's type, void in a parallel_for.
template <class Policy, class Functor, class Update>
class Loop;

template <class... Properties, class Functor, class Update>
class Loop<Kokkos::RangePolicy<Properties...>, Functor, Update> {
  using Policy = Kokkos::RangePolicy<Properties...>;
  using Index = typename Policy::member_type;

 public:
  Loop(const Functor& functor, const Policy& policy)
      : m_functor(functor), m_begin(policy.begin()), m_end(policy.end()) {}

  [[nodiscard]] const Functor& functor() const { return m_functor; }
  [[nodiscard]] std::uint64_t items() const {  // a difference in Index may be too large for it
    return m_begin < m_end ? static_cast<std::uint64_t>(m_end) - static_cast<std::uint64_t>(m_begin)
                           : 0;
  }
  template <class... Arguments>
  void run(Core&, CoreShare share, Arguments&&... arguments) const {
    const Index last = at(share.last);
    for (Index i = at(share.first); i < last; ++i)
      call<typename Policy::work_tag>(functor_of(m_functor), i, arguments...);
  }

 private:
  [[nodiscard]] Index at(std::uint64_t item) const {
    return static_cast<Index>(static_cast<std::uint64_t>(m_begin) + item);
  }

  Functor m_functor;
  Index m_begin, m_end;
};

/// The items are tiles, in the order of Kokkos.
template <class... Properties, class Functor, class Update>
class Loop<Kokkos::MDRangePolicy<Properties...>, Functor, Update> {
  using Policy = Kokkos::MDRangePolicy<Properties...>;
  using Tile = Kokkos::Impl::HostIterateTile<Policy, Functor, typename Policy::work_tag, Update>;

 public:
  Loop(const Functor& functor, const Policy& policy) : m_tile(policy, functor) {}

  [[nodiscard]] const Functor& functor() const { return m_tile.m_func; }
  [[nodiscard]] std::uint64_t items() const {  // Kokkos counts in the policy's index type
    std::uint64_t tiles = 1;
    for (std::size_t axis = 0; axis < std::size_t{Policy::rank}; ++axis)
      tiles *= static_cast<std::uint64_t>(std::max<std::int64_t>(m_tile.m_rp.m_tile_end[axis], 0));
    return tiles;
  }
  template <class... Arguments>
  void run(Core&, CoreShare share, Arguments&&... arguments) const {
    for (std::uint64_t tile = share.first; tile < share.last; ++tile)
      m_tile(static_cast<std::int64_t>(tile), arguments...);
  }

 private:
  Tile m_tile;
};

/// The items are teams. The kernel's scratch of level 0 is local memory, that of level 1 main
/// memory.
template <class... Properties, class Functor, class Update>
class Loop<Kokkos::TeamPolicy<Properties...>, Functor, Update> {
  using Policy = Kokkos::Impl::TeamPolicyInternal<Athread, Properties...>;

 public:
  Loop(const Functor& functor, const Policy& policy)
      : m_functor(functor),
        m_teams(policy.league_size()),
        m_local_bytes(policy.scratch_size(0) + shared_memory_of(functor_of(functor))),
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
      call<typename Policy::work_tag>(functor_of(m_functor), member, arguments...);
    }
  }

 private:
  template <class F>
  [[nodiscard]] static std::size_t shared_memory_of(const F& functor) {
    return Kokkos::Impl::FunctorTeamShmemSize<F>::value(functor, 1);
  }
  static void expect_room(int level, std::size_t bytes, const Policy& policy) {
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

// --- The patterns

namespace Kokkos::Impl {

template <class Functor, class Policy>
class ParallelFor<Functor, Policy, heddle::Athread> {
 public:
  ParallelFor(const Functor& functor, const Policy& policy)
      : m_space(policy.space()), m_loop(functor, policy) {}

  void execute() const {
    if (m_loop.items() == 0) return;
    m_space.impl_launch(heddle::impl::kernel_name<Functor>, heddle::impl::ForKernel<Loop>{m_loop});
  }

  /// Returns the most items in a tile that Kokkos's tuning of an MDRangePolicy tries, as on host
  /// cores.
  static int max_tile_size_product(const Policy&, const Functor&) { return 1024; }

 private:
  using Loop = heddle::impl::Loop<Policy, Functor, void>;
  heddle::Athread m_space;
  Loop m_loop;
};

template <class FunctorAndReducer, class Policy>
class ParallelReduce<FunctorAndReducer, Policy, heddle::Athread> {
  using Reducer = typename FunctorAndReducer::reducer_type;
  using Loop = heddle::impl::Loop<Policy, FunctorAndReducer, typename Reducer::reference_type>;

 public:
  template <class View>
  ParallelReduce(const FunctorAndReducer& functor, const Policy& policy, const View& result)
      : m_space(policy.space()), m_loop(functor, policy), m_result(result.data()) {
    static_assert(SpaceAccessibility<HostSpace, typename View::memory_space>::accessible,
                  "the result of a reduction on heddle::Athread is a View that the host can reach");
  }

  void execute() const { heddle::impl::reduce(m_space, m_loop, m_result); }

  static int max_tile_size_product(const Policy&, const typename FunctorAndReducer::functor_type&) {
    return 1024;
  }

 private:
  heddle::Athread m_space;
  Loop m_loop;
  typename Reducer::pointer_type m_result;
};

/// The common part of the two classes of a scan.
template <class Functor, class Policy, class Value>
class AthreadScan {
  using Analysis = FunctorAnalysis<FunctorPatternInterface::SCAN, Policy, Functor, Value>;
  using FunctorAndReducer = CombinedFunctorReducer<Functor, typename Analysis::Reducer>;
  using Loop = heddle::impl::Loop<Policy, FunctorAndReducer, typename Analysis::reference_type>;

 public:
  AthreadScan(const Functor& functor, const Policy& policy)
      : m_space(policy.space()),
        m_loop(FunctorAndReducer(functor, typename Analysis::Reducer(functor)), policy) {}

  /// The total, in memory that the result owns.
  [[nodiscard]] auto run() const { return heddle::impl::scan(m_space, m_loop); }

 private:
  heddle::Athread m_space;
  Loop m_loop;
};

template <class Functor, class... Properties>
class ParallelScan<Functor, RangePolicy<Properties...>, heddle::Athread> {
  using Policy = RangePolicy<Properties...>;

 public:
  ParallelScan(const Functor& functor, const Policy& policy) : m_scan(functor, policy) {}
  void execute() const { static_cast<void>(m_scan.run()); }

 private:
  AthreadScan<Functor, Policy, void> m_scan;
};

template <class Functor, class... Properties, class Value>
class ParallelScanWithTotal<Functor, RangePolicy<Properties...>, Value, heddle::Athread> {
  using Policy = RangePolicy<Properties...>;

 public:
  template <class View>
  ParallelScanWithTotal(const Functor& functor, const Policy& policy, const View& total)
      : m_scan(functor, policy), m_total(total.data()) {}
  void execute() const { *m_total = *m_scan.run().of(0); }

 private:
  AthreadScan<Functor, Policy, Value> m_scan;
  Value* m_total;
};

/// A team has one thread; a demand for more is refused. Its lanes, of which a policy may wish any
/// number, are worked through one after another.
template <class... Properties>
class TeamPolicyInternal<heddle::Athread, Properties...> : public PolicyTraits<Properties...> {
 public:
  using execution_policy = TeamPolicyInternal;
  using traits = PolicyTraits<Properties...>;
  using execution_space = heddle::Athread;
  using member_type = heddle::impl::AthreadTeamMember;

  template <class VectorLength = int>
  TeamPolicyInternal(const execution_space& space, int league_size, int team_size,
                     VectorLength = {})
      : m_space(space), m_league_size(league_size) {
    heddle::expects(team_size <= 1, [&] {
      return heddle::ErrorInfo{
          "heddle::Athread", "a team can only have one thread",
          heddle::text("asked for ", league_size, " teams of ", team_size, " threads"),
          "pass Kokkos::AUTO, and use nested ranges: they adapt"};
    });
  }
  template <class VectorLength = int>
  TeamPolicyInternal(const execution_space& space, int league_size, AUTO_t, VectorLength = {})
      : TeamPolicyInternal(space, league_size, 1) {}
  template <class TeamSize, class VectorLength>
  TeamPolicyInternal(int league_size, TeamSize team_size, VectorLength vector_length)
      : TeamPolicyInternal(execution_space(), league_size, team_size, vector_length) {}
  template <class TeamSize>
  TeamPolicyInternal(int league_size, TeamSize team_size)
      : TeamPolicyInternal(execution_space(), league_size, team_size) {}
  template <class... Others>
  explicit(false) TeamPolicyInternal(const TeamPolicyInternal<heddle::Athread, Others...>& other)
      : m_space(other.m_space),
        m_league_size(other.m_league_size),
        m_chunk_size(other.m_chunk_size),
        m_scratch(other.m_scratch) {}
#if KOKKOS_VERSION >= 50000
  TeamPolicyInternal(PolicyUpdate, const TeamPolicyInternal& other, execution_space space)
      : TeamPolicyInternal(other) {
    m_space = space;
  }
#endif

  [[nodiscard]] const execution_space& space() const { return m_space; }
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
  TeamPolicyInternal& set_chunk_size(int size) {
    m_chunk_size = size;
    return *this;
  }

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
  TeamPolicyInternal& set_scratch_size(int level, const PerTeamValue& team) {
    m_scratch.at(static_cast<std::size_t>(level)).team = team.value;
    return *this;
  }
  TeamPolicyInternal& set_scratch_size(int level, const PerThreadValue& thread) {
    m_scratch.at(static_cast<std::size_t>(level)).thread = thread.value;
    return *this;
  }
  TeamPolicyInternal& set_scratch_size(int level, const PerTeamValue& team,
                                       const PerThreadValue& thread) {
    return set_scratch_size(level, team).set_scratch_size(level, thread);
  }

 private:
  template <class Space, class... Others>
  friend class TeamPolicyInternal;

  struct Scratch {
    std::size_t team = 0, thread = 0;
  };

  execution_space m_space;
  int m_league_size;
  int m_chunk_size = 1;
  std::array<Scratch, 2> m_scratch;
};

template <class Rank, TeamMDRangeThreadAndVector ThreadAndVector>
struct ThreadAndVectorNestLevel<Rank, heddle::Athread, ThreadAndVector>
    : HostBasedNestLevel<Rank, ThreadAndVector> {};

// --- Memory

template <>
struct MemorySpaceAccess<HostSpace, heddle::Athread::scratch_memory_space> {
  static constexpr bool assignable = false, accessible = true, deepcopy = false;
};

template <>
struct MemorySpaceAccess<HostSpace, heddle::Counted> {
  static constexpr bool assignable = false, accessible = true, deepcopy = false;
};

template <>
struct ZeroMemset<heddle::Athread> {
  ZeroMemset(const heddle::Athread&, void* to, std::size_t bytes) { std::memset(to, 0, bytes); }
};

template <>
struct DeepCopy<HostSpace, HostSpace, heddle::Athread, void> {
  DeepCopy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  DeepCopy(const heddle::Athread&, void* to, const void* from, std::size_t bytes)
      : DeepCopy(to, from, bytes) {}
};

}  // namespace Kokkos::Impl

// --- What some parts of Kokkos ask for

namespace Kokkos::Tools::Experimental {

template <>
struct DeviceTypeTraits<heddle::Athread> {
  static constexpr DeviceType id = DeviceType::Unknown;  // the list of types is closed
  static int device_id(const heddle::Athread& space) {
    return static_cast<int>(space.impl_instance_id());
  }
};

}  // namespace Kokkos::Tools::Experimental

namespace Kokkos::Experimental {

// Of Kokkos_ScatterView.hpp, which is not included for their sake.
struct ScatterNonDuplicated;
struct ScatterDuplicated;
struct ScatterNonAtomic;
struct ScatterAtomic;

}  // namespace Kokkos::Experimental

namespace Kokkos::Impl::Experimental {

template <class Space>
struct DefaultDuplication;
template <class Space, class Duplication>
struct DefaultContribution;

template <>
struct DefaultDuplication<heddle::Athread> {
  using type = Kokkos::Experimental::ScatterNonDuplicated;
};
template <>
struct DefaultContribution<heddle::Athread, Kokkos::Experimental::ScatterNonDuplicated> {
  using type = Kokkos::Experimental::ScatterAtomic;
};
template <>
struct DefaultContribution<heddle::Athread, Kokkos::Experimental::ScatterDuplicated> {
  using type = Kokkos::Experimental::ScatterNonAtomic;
};

}  // namespace Kokkos::Impl::Experimental

namespace Kokkos::Experimental::Impl {

/// Core groups of their own, with the options of the one that is divided: the machine has several
/// and they are equal, so the weights have nothing to divide.
template <class Weight>
[[nodiscard]] std::vector<heddle::Athread> core_groups_like(const heddle::Athread& base,
                                                            const std::vector<Weight>& weights) {
  std::vector<heddle::Athread> groups;
  groups.reserve(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) groups.emplace_back(base.core_group().options());
  return groups;
}
// An overload would be declared too late for Kokkos to find it; specialisations are found.
#define HEDDLE_PARTITION_BY(Weight)                                                              \
  template <>                                                                                    \
  inline std::vector<heddle::Athread> impl_partition_space(const heddle::Athread& base,          \
                                                           const std::vector<Weight>& weights) { \
    return core_groups_like(base, weights);                                                      \
  }
HEDDLE_PARTITION_BY(int)
HEDDLE_PARTITION_BY(unsigned)
HEDDLE_PARTITION_BY(long)
HEDDLE_PARTITION_BY(unsigned long)
HEDDLE_PARTITION_BY(float)
HEDDLE_PARTITION_BY(double)
#undef HEDDLE_PARTITION_BY

}  // namespace Kokkos::Experimental::Impl

// --- The space itself

namespace heddle::inline v0 {

/// Found by Kokkos for Views in the space Counted, see counted.hpp.
template <class Element, class Layout, class Space, class Traits>
auto customize_view_arguments(
    Kokkos::Impl::ViewArguments<Element, Layout, Kokkos::Device<Space, Counted>, Traits>)
    -> Kokkos::Impl::ViewCustomArguments<std::size_t, CountedAccessor<Element>>;

inline void Athread::fence(const std::string& name) const {
  if (!Kokkos::Tools::profileLibraryLoaded()) return;
  Kokkos::Tools::Experimental::Impl::profile_fence_event<Athread>(
      name, Kokkos::Tools::Experimental::Impl::DirectFenceIDHandle{impl_instance_id()}, [] {});
}

inline void Athread::impl_static_fence(const std::string& name) {
  if (!Kokkos::Tools::profileLibraryLoaded()) return;
  Kokkos::Tools::Experimental::Impl::profile_fence_event<Athread>(
      name, Kokkos::Tools::Experimental::SpecialSynchronizationCases::GlobalDeviceSynchronization,
      [] {});
}

namespace impl {

/// Makes Kokkos::initialize and finalize know the space.
[[maybe_unused]] inline const int athread_is_registered =
    Kokkos::Impl::initialize_space_factory<Athread>("150_Athread");

}  // namespace impl
}  // namespace heddle::inline v0
