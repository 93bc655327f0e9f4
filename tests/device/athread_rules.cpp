// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/device/athread.hpp>
#include <heddle/device/staging_athread.hpp>

namespace test_athread_rules {

using Catch::Matchers::ContainsSubstring;
using heddle::Athread, heddle::CoreGroupOptions;

namespace athread_test {

using Member = Kokkos::TeamPolicy<Athread>::member_type;

/// A functor that fits into 256 KB and not into 64.
struct LargeFunctor {
  Kokkos::View<int*, Athread> to;
  std::byte ballast[64 * 1024];
  void operator()(int i) const { to(static_cast<std::size_t>(i)) = i; }
};

/// Uses all of its scratch.
struct FillScratch {
  std::size_t bytes;
  Kokkos::View<int, Athread> done;
  void operator()(const Member& team) const {
    auto* const tile = static_cast<char*>(team.team_scratch(0).get_shmem(bytes));
    if (tile == nullptr) return;
    for (std::size_t i = 0; i < bytes; ++i) tile[i] = static_cast<char>(i);
    Kokkos::atomic_inc(&done());
  }
};

/// Breaks a rule on core 37 (row 4, column 5), which item 37 of 64 runs on.
struct LeaveTransfer {
  const double* from;
  void operator()(int i) const {
    if (i != 37) return;
    heddle::Core& core = *heddle::current_core();
    core.get(core.allocate<double>(8), from, 64, core.reply());
  }
};
struct Throw {
  void operator()(int i) const {
    if (i == 37) throw std::runtime_error("the boat sinks");
  }
};
struct LaunchInside {
  void operator()(int i) const {
    if (i == 37)
      Kokkos::parallel_for("heddle::test::inside", Kokkos::RangePolicy<Athread>(0, 1), Throw{});
  }
};
/// Ends while its staging object still has a copy under way; on core 37 by an error, if `throws`.
struct LeaveStaging {
  const double* from;
  bool throws;
  void operator()(const Member& team) const {
    auto* const tile = static_cast<double*>(team.team_scratch(0).get_shmem_aligned(64, 128));
    heddle::staging<Athread> stage(team);
    if (team.league_rank() != 37) return;
    stage.get(tile, from, 8);
    if (throws) throw std::runtime_error("the boat sinks");
  }
};
struct Nothing {
  template <class Argument>
  void operator()(const Argument&) const {}
};

template <class Functor>
[[nodiscard]] std::string refusal(const Athread& space, const Functor& functor, int items) {
  try {
    Kokkos::parallel_for("heddle::test::refused", Kokkos::RangePolicy<Athread>(space, 0, items),
                         functor);
  } catch (const heddle::contract_error& e) {
    return e.what();
  }
  return "not refused";
}

}  // namespace athread_test

using namespace athread_test;

TEST_CASE("a functor lies in the local memory of the cores, and must fit") {
  LargeFunctor functor{Kokkos::View<int*, Athread>("to", 131), {}};
  Kokkos::parallel_for("heddle::test::fits",
                       Kokkos::RangePolicy<Athread>(Athread(CoreGroupOptions{}), 0, 131), functor);
  for (int i = 0; i < 131; ++i) REQUIRE(functor.to(static_cast<std::size_t>(i)) == i);
  const Athread small(CoreGroupOptions{.local_memory = 64 * 1024});
  REQUIRE_THAT(refusal(small, functor, 131), ContainsSubstring("athread_test::LargeFunctor") &&
                                                 ContainsSubstring("local memory is exhausted"));
}

TEST_CASE("a scratch of 82192 bytes is refused by 64 KB of local memory and accepted by 256") {
  constexpr std::size_t bytes = 82192;
  const auto run = [&](std::size_t local_memory) {
    const Athread space(CoreGroupOptions{.local_memory = local_memory});
    const FillScratch fill{bytes, Kokkos::View<int, Athread>("done")};
    Kokkos::parallel_for("heddle::test::fill",
                         Kokkos::TeamPolicy<Athread>(space, 131, Kokkos::AUTO)
                             .set_scratch_size(0, Kokkos::PerTeam(bytes)),
                         fill);
    REQUIRE(space.core_group().last_launch().local_peak >= bytes);
    return fill.done();
  };
  REQUIRE(run(256 * 1024) == 131);
  REQUIRE_THROWS_WITH(
      run(64 * 1024),
      ContainsSubstring("heddle::Athread: the team scratch of level 0 is too large "
                        "in kernel test_athread_rules::athread_test::FillScratch") &&
          ContainsSubstring("asked for 82192 B, at most ") &&
          ContainsSubstring("use tiles that fit the policy's scratch_size_max()"));
}

TEST_CASE("the most scratch that a policy names can be had, and one byte more cannot") {
  for (const std::size_t local_memory : {64 * 1024, 256 * 1024}) {
    const Athread space(CoreGroupOptions{.local_memory = local_memory});
    Kokkos::TeamPolicy<Athread> policy(space, 65, Kokkos::AUTO);
    const auto most = static_cast<std::size_t>(policy.scratch_size_max(0));
    REQUIRE(most > local_memory / 4 * 3);
    const FillScratch fill{most, Kokkos::View<int, Athread>("done")};
    Kokkos::parallel_for("heddle::test::fill", policy.set_scratch_size(0, Kokkos::PerTeam(most)),
                         fill);
    REQUIRE(fill.done() == 65);
    policy.set_scratch_size(0, Kokkos::PerTeam(most + 1));
    REQUIRE_THROWS_AS(Kokkos::parallel_for("heddle::test::fill", policy, fill),
                      heddle::contract_error);
    policy.set_scratch_size(0, Kokkos::PerTeam(0));
    policy.set_scratch_size(1, Kokkos::PerTeam(policy.scratch_size_max(1) + 1));
    REQUIRE_THROWS_WITH(Kokkos::parallel_for("heddle::test::fill", policy, fill),
                        ContainsSubstring("the team scratch of level 1 is too large"));
  }
}

TEST_CASE("a local memory that the stack and a kernel fill has no scratch") {
  const Athread space(CoreGroupOptions{.local_memory = 9 * 1024});
  REQUIRE(Kokkos::TeamPolicy<Athread>(space, 1, Kokkos::AUTO).scratch_size_max(0) == 0);
}

TEST_CASE("a broken rule names the kernel's functor and the core, and the space goes on") {
  const Athread space(CoreGroupOptions{});
  const Kokkos::View<double*, Athread> from("from", 64);
  const auto on_core = ContainsSubstring("core 37 (row 4, column 5)");
  REQUIRE_THAT(refusal(space, LeaveTransfer{from.data()}, 64),
               on_core && ContainsSubstring("athread_test::LeaveTransfer") &&
                   ContainsSubstring("transfers that nobody waited for"));
  REQUIRE_THAT(refusal(space, Throw{}, 64), on_core && ContainsSubstring("athread_test::Throw") &&
                                                ContainsSubstring("the boat sinks"));
  REQUIRE_THAT(refusal(space, LaunchInside{}, 64),
               on_core && ContainsSubstring("athread_test::LaunchInside") &&
                   ContainsSubstring("a core cannot launch a kernel"));
  REQUIRE(refusal(space, Nothing{}, 64) == "not refused");
}

TEST_CASE("a copy of staging that nobody waits for breaks a rule, and hides no other error") {
  const Athread space(CoreGroupOptions{});
  const Kokkos::View<double*, Athread> from("from", 8);
  const auto run = [&](bool throws) {
    Kokkos::TeamPolicy<Athread> policy(space, 64, Kokkos::AUTO);
    Kokkos::parallel_for("heddle::test::staging", policy.set_scratch_size(0, Kokkos::PerTeam(64)),
                         LeaveStaging{from.data(), throws});
  };
  const auto on_core = ContainsSubstring("core 37 (row 4, column 5)");
  REQUIRE_THROWS_WITH(run(false), on_core && ContainsSubstring("transfers that nobody waited for"));
  REQUIRE_THROWS_WITH(run(true), on_core && ContainsSubstring("the boat sinks"));
}

TEST_CASE("teams of more than a thread are refused") {
  REQUIRE_THROWS_WITH(
      Kokkos::TeamPolicy<Athread>(3, 2),
      ContainsSubstring("heddle::Athread: a team can only have one thread (asked for 3 teams "
                        "of 2 threads); pass Kokkos::AUTO"));
  REQUIRE_THROWS_AS(Kokkos::TeamPolicy<Athread>(Athread(), 3, 64, 2), heddle::contract_error);
}

TEST_CASE("the environment sets the options of the default core group, or is refused") {
  const auto set = [](const char* name, const char* value) { ::setenv(name, value, 1); };
  set("HEDDLE_ATHREAD_LOCAL_KIB", "64");
  set("HEDDLE_ATHREAD_HOST_THREADS", "3");
  const CoreGroupOptions options = heddle::impl::options_from_environment();
  REQUIRE(options.local_memory == 64 * 1024);
  REQUIRE(options.host_threads == 3);
  for (const char* wrong : {"", "0", "-1", "64k", "many", "18014398509482048"}) {
    set("HEDDLE_ATHREAD_LOCAL_KIB", wrong);
    REQUIRE_THROWS_WITH(heddle::impl::options_from_environment(),
                        ContainsSubstring("the environment variable HEDDLE_ATHREAD_LOCAL_KIB is "
                                          "wrong") &&
                            ContainsSubstring("'" + std::string(wrong) + "'") &&
                            ContainsSubstring("set it to a positive number, or unset it"));
  }
  ::unsetenv("HEDDLE_ATHREAD_LOCAL_KIB");
  ::unsetenv("HEDDLE_ATHREAD_HOST_THREADS");
  REQUIRE(heddle::impl::options_from_environment().local_memory == CoreGroupOptions{}.local_memory);
}

#ifdef KOKKOS_ENABLE_ATOMICS_BYPASS
TEST_CASE("without atomic operations one thread plays all cores") {
  REQUIRE(Athread().core_group().options().host_threads == 1);
  REQUIRE_THROWS_WITH(Athread(CoreGroupOptions{.host_threads = 2}),
                      ContainsSubstring("this Kokkos is built without atomic operations") &&
                          ContainsSubstring("host_threads = 2"));
}
#endif

}  // namespace test_athread_rules
