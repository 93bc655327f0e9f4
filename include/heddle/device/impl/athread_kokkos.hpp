// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What Kokkos wants specialised for an execution space out of its tree. Kokkos promises no
/// stability here: every name of Kokkos::Impl that the library uses stands in this header, which
/// compiles against Kokkos 5.0 and 5.2. Include <heddle/device/athread.hpp> instead.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
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

#include <heddle/device/athread_space.hpp>
#include <heddle/device/core_group.hpp>
#include <heddle/device/impl/athread_loops.hpp>
#include <heddle/device/impl/athread_patterns.hpp>
#include <heddle/device/impl/athread_shares.hpp>
#include <heddle/device/impl/athread_team_member.hpp>
#include <heddle/device/impl/athread_teams.hpp>

// --- The loops of the cores

namespace heddle::inline v0 {
struct Counted;  // counted.hpp
namespace impl {

template <class Element>
struct CountedAccessor;

}  // namespace impl
}  // namespace heddle::inline v0

namespace heddle::inline v0::impl {

template <class Functor, class Reducer>
inline constexpr std::string_view
    kernel_name<Kokkos::Impl::CombinedFunctorReducer<Functor, Reducer>> = kernel_name<Functor>;

template <class Functor, class Reducer>
struct KernelFunctor<Kokkos::Impl::CombinedFunctorReducer<Functor, Reducer>> {
  [[nodiscard]] static const Functor& of(
      const Kokkos::Impl::CombinedFunctorReducer<Functor, Reducer>& both) {
    return both.get_functor();
  }
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

/// The items are teams. A functor may ask for scratch of level 0 beside the policy.
template <class... Properties, class Functor, class Update>
class Loop<Kokkos::TeamPolicy<Properties...>, Functor, Update>
    : public TeamLoop<typename Kokkos::Impl::TeamPolicyInternal<Athread, Properties...>::work_tag,
                      Functor> {
  using Policy = Kokkos::Impl::TeamPolicyInternal<Athread, Properties...>;

 public:
  Loop(const Functor& functor, const Policy& policy)
      : Loop::TeamLoop(functor, policy, shared_memory_of(functor_of(functor))) {}

 private:
  template <class F>
  [[nodiscard]] static std::size_t shared_memory_of(const F& functor) {
    return Kokkos::Impl::FunctorTeamShmemSize<F>::value(functor, 1);
  }
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

template <class... Properties>
class TeamPolicyInternal<heddle::Athread, Properties...> : public PolicyTraits<Properties...>,
                                                           public heddle::impl::AthreadTeams {
 public:
  using execution_policy = TeamPolicyInternal;
  using traits = PolicyTraits<Properties...>;
  using execution_space = heddle::Athread;
  using member_type = heddle::impl::AthreadTeamMember;

  template <class VectorLength = int>
  TeamPolicyInternal(const execution_space& space, int league_size, int team_size,
                     VectorLength = {})
      : AthreadTeams(space, league_size, team_size) {}
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
      : AthreadTeams(other) {}
#if KOKKOS_VERSION >= 50000
  TeamPolicyInternal(PolicyUpdate, const TeamPolicyInternal& other, execution_space space)
      : TeamPolicyInternal(other) {
    m_space = space;
  }
#endif

  TeamPolicyInternal& set_chunk_size(int size) {
    m_chunk_size = size;
    return *this;
  }
  TeamPolicyInternal& set_scratch_size(int level, const PerTeamValue& team) {
    scratch(level).team = team.value;
    return *this;
  }
  TeamPolicyInternal& set_scratch_size(int level, const PerThreadValue& thread) {
    scratch(level).thread = thread.value;
    return *this;
  }
  TeamPolicyInternal& set_scratch_size(int level, const PerTeamValue& team,
                                       const PerThreadValue& thread) {
    return set_scratch_size(level, team).set_scratch_size(level, thread);
  }
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
    -> Kokkos::Impl::ViewCustomArguments<std::size_t, impl::CountedAccessor<Element>>;

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
