// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// program: its own

// Views that outlive their resource are named where Views are listed, and keep it where it is
// shared.

#define HEDDLE_CHECK_VIEWS

#include <concepts>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/memory.hpp>

namespace test_outlived {

namespace hm = heddle::memory;
using Catch::Matchers::ContainsSubstring;

namespace {

using View = Kokkos::View<double*, Kokkos::HostSpace>;

/// What a process does whose Views may outlive their memory.
struct Act {
  const char* name;
  void (*act)();
};
constexpr Act acts[] = {
    {"two Views outlive a pool",
     [] {
       View u, copy;
       {
         hm::Pool pool;
         const auto died = pool.view<int*>("died before", 5);
         u = pool.view<double*>("u", 100);
         copy = u;
       }
     }},
    {"no View outlives a pool",
     [] {
       hm::Pool pool;
       const auto view = pool.view<int*>("v", 5);
     }},
    {"through an adaptor that lasts",
     [] {
       auto pool = std::make_unique<hm::Pool<hm::Pages>>();
       hm::Stats stats(*pool);
       const View late = hm::make_view<double*>(stats, "late", 10);
       pool.reset();
     }},
    {"through a Space",
     [] {
       auto pool = std::make_unique<hm::Pool<hm::Pages>>();
       const View late = Kokkos::View<double*, hm::Space<hm::Pool<hm::Pages>>>(
           Kokkos::view_alloc("late", hm::Space(*pool)), 10);
       pool.reset();
     }},
    {"of a segment",
     [] {
       View late;
       hm::Segment segment(10'000);
       late = hm::make_view<double*>(segment, "late", 10);
     }},
    {"of local memory",
     [] {
       View late;
       hm::Ldm ldm;
       late = hm::make_view<double*>(ldm, "late", 10);
     }},
    {"of an arena that is reset",
     [] {
       hm::Arena arena(hm::Pages{}, 10'000);
       const View late = hm::make_view<double*>(arena, "late", 10);
       arena.reset();
     }},
    {"of a mapped file",
     [] {
       const auto file = std::filesystem::temp_directory_path() /
                         ("heddle_outlived_" + std::to_string(::getppid()));
       View late;
       hm::Mapped mapped(file, 10'000);
       late = hm::make_view<double*>(mapped, "late", 10);
     }},
};

/// The variable that names the act of a child.
constexpr const char* chosen = "HEDDLE_TEST_OUTLIVED";

/// What a child prints, and how it ends.
struct Ended {
  bool aborted = false;
  std::string printed = {};
};

/// Runs an act in a process of its own. The child executes this program anew, because a device
/// cannot be used in a child of fork(), and Kokkos fences it when a View ends.
[[nodiscard]] Ended child(const std::string& name) {
  int ends[2] = {};
  if (::pipe(ends) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::dup2(ends[1], STDERR_FILENO);
    ::setenv(chosen, name.c_str(), 1);
    ::execl("/proc/self/exe", "outlived", "an act whose Views may outlive their memory", nullptr);
    ::_exit(1);
  }
  ::close(ends[1]);
  Ended ended;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    ended.printed.append(buffer, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  ended.aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  if (!ended.aborted) REQUIRE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  return ended;
}

/// A resource that says when it ends.
struct Telling : hm::Pages {
  std::shared_ptr<bool> ended = std::make_shared<bool>(false);
  ~Telling() { *ended = true; }
  explicit Telling(std::shared_ptr<bool> of) : ended(std::move(of)) {}
};

}  // namespace

TEST_CASE("an act whose Views may outlive their memory", "[.]") {
  const char* const name = std::getenv(chosen);
  if (name == nullptr) SKIP("for the children of the other cases");
  std::signal(SIGABRT, SIG_DFL);
  for (const Act& act : acts)
    if (name == std::string(act.name)) {
      act.act();
      std::_Exit(0);
    }
  FAIL("no act is called " << name);
}

TEST_CASE("a pool that ends before its Views names them") {
  const Ended ended = child("two Views outlive a pool");
  CHECK(ended.aborted);
  CHECK_THAT(
      ended.printed,
      ContainsSubstring(
          "heddle::memory::Pool: 1 View outlives its memory ('u' of 800 B); let the resource "
          "outlive its Views, or share it with them by memory::Shared"));
  CHECK_FALSE(child("no View outlives a pool").aborted);
}

TEST_CASE("so do other resources, whichever way their Views were made") {
  for (const Act& act : acts) {
    if (std::string(act.name).find("outlive") != std::string::npos) continue;
    INFO(act.name);
    const Ended ended = child(act.name);
    CHECK(ended.aborted);
    CHECK_THAT(ended.printed, ContainsSubstring("'late' of 80 B"));
  }
  std::filesystem::remove(std::filesystem::temp_directory_path() /
                          ("heddle_outlived_" + std::to_string(::getpid())));
}

TEST_CASE("of many Views that outlive a pool some are named, and all counted") {
  hm::Pool pool;
  hm::Pool other;
  std::vector<Kokkos::View<char*, Kokkos::HostSpace>> views;
  const auto of_other = other.view<char*>("other", 3);
  for (int v = 0; v < 11; ++v) views.push_back(pool.view<char*>("v" + std::to_string(v), 8));
  CHECK_THROWS_WITH(
      hm::impl::ListedView::expect_none_in(pool, "here"),
      "here: 11 Views outlive its memory ('v10' of 8 B, 'v9' of 8 B, 'v8' of 8 B, 'v7' of 8 B, "
      "'v6' "
      "of 8 B, 'v5' of 8 B, 'v4' of 8 B, 'v3' of 8 B, ...); let the resource outlive its Views, or "
      "share it with them by memory::Shared");
  std::thread([&] { views.clear(); }).join();
  CHECK_NOTHROW(hm::impl::ListedView::expect_none_in(pool, "here"));
}

TEST_CASE("a shared pool lasts as long as its Views") {
  const auto ended = std::make_shared<bool>(false);
  using Pool = hm::Pool<Telling>;
  Kokkos::View<int*, Kokkos::HostSpace> view, part;
  {
    const hm::Shared shared(std::make_shared<Pool>(Telling(ended)));
    *ended = false;  // a moved one has ended
    view = shared.view<int*>("kept", 97);
    static_assert(std::same_as<decltype(shared.view<int*>("kept", 97)),
                               Kokkos::View<int*, Kokkos::HostSpace>>);
    CHECK(shared.owns(view.data()));
    CHECK(shared->reserved() > 0);
    CHECK((*shared).owns(view.data()));
    const auto raw = shared.view<int*>(Kokkos::view_alloc("raw", Kokkos::WithoutInitializing), 5);
    CHECK(raw.label() == "raw");
  }
  CHECK_FALSE(*ended);
  part = Kokkos::subview(view, Kokkos::make_pair(3, 7));
  view = {};
  CHECK_FALSE(*ended);
  CHECK(part(2) == 0);
  part(2) = 5;
  std::thread([last = std::exchange(part, {})]() mutable { last = {}; }).join();
  CHECK(*ended);
}

TEST_CASE("a shared resource is any, and may be given to adaptors") {
  Kokkos::View<double*, Kokkos::HostSpace> view, other;
  {
    hm::SharedPool<> pool;
    view = pool.view<double*>("v", 10);
    other = hm::make_view<double*>(hm::Limit(pool, 1 << 20), "other", 10);  // refers to the handle
    other = hm::make_view<double*>(hm::Limit(hm::SharedPool<>(pool), 1 << 20), "other", 10);
    hm::resize(hm::SharedPool<>(pool), other, 20);
  }
  view(9) = other(19) + 1;
  CHECK(view(9) == 1);
  static_assert(std::same_as<hm::memory_space_of<hm::SharedPool<>>, Kokkos::HostSpace>);
  static_assert(hm::is_ipc_safe<hm::SharedPool<>> && hm::is_overcommitted<hm::SharedPool<>>);
  CHECK_THROWS_AS(hm::SharedPool<>(std::shared_ptr<hm::Pool<hm::Pages>>()), heddle::contract_error);
}

}  // namespace test_outlived
