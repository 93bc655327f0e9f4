// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3 4
// timeout: 240
// threads: yes
// space: its own

/// @file
/// Calls that a thread of their own furthers, beside those that the caller furthers: ranks wait for
/// them in different orders, more are under way than there are lines, and what becomes of errors.

#include <cstddef>
#include <exception>
#include <functional>
#include <stdexcept>
#include <system_error>
#include <vector>

#if defined(__GLIBC__)
#include <pthread.h>
#endif

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/collective/all_reduce.hpp>

#include "support/complaint.hpp"
#include "support/world.hpp"

namespace test_progress_threads {

namespace {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::schedule::Algorithm;
using hd::test::message_of;
using hd::test::world_rank;

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<double*, Kokkos::HostSpace>;

// Where a rank waits for what another cannot do, a test is to fail and not to hang.
const hd::CallOptions by_caller{.algorithm = Algorithm::ring, .wait = {.watchdog = 30}};
const hd::CallOptions by_thread{
    .algorithm = Algorithm::ring, .progress_thread = true, .wait = {.watchdog = 30}};

View filled(std::size_t count, double scale = 1) {
  const View view("view", count);
  for (std::size_t i = 0; i < count; ++i)
    view(i) = scale * static_cast<double>((world_rank() + 1) * (static_cast<int>(i) + 1));
  return view;
}

bool is_sum(const View& view, double scale = 1) {
  const double ranks = hd::test::world_size() * (hd::test::world_size() + 1) / 2;
  for (std::size_t i = 0; i < view.size(); ++i)
    if (view(i) != scale * ranks * static_cast<double>(i + 1)) return false;
  return true;
}

/// A sum that rank 0 cannot make.
struct FailingSum {
  void join(double& into, const double& from) const {
    if (world_rank() == 0) throw std::runtime_error("no more");
    into += from;
  }
  void init(double& value) const { value = 0; }
};

}  // namespace

TEST_CASE("who waits for a thread's call furthers the others, for which other ranks wait first") {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  REQUIRE(level == MPI_THREAD_MULTIPLE);
  const hd::Communicator comm(MPI_COMM_WORLD);
  for (const bool blocks : {false, true}) {
    // More rounds than lines of threads, each of which is made while a request is under way.
    for (int round = 0; round < 7; ++round) {
      const View first = filled(1009), second = filled(503, 2);
      hd::Request request = hd::all_reduce<hd::Request>(Exec{}, first, hd::Sum{}, comm, by_caller);
      if (world_rank() != 0) request.wait();
      if (blocks)
        hd::all_reduce(Exec{}, second, hd::Sum{}, comm, by_thread);
      else
        hd::all_reduce<hd::Request>(Exec{}, second, hd::Sum{}, comm, by_thread).wait();
      request.wait();
      CHECK(is_sum(first));
      CHECK(is_sum(second, 2));
    }
  }
}

TEST_CASE("more calls of threads than there are lines, waited for in any order") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  for (int round = 0; round < 5; ++round) {
    const View first = filled(11);
    hd::Request request = hd::all_reduce<hd::Request>(Exec{}, first, hd::Sum{}, comm, by_caller);
    if (world_rank() != 0) request.wait();
    std::vector<View> views;
    std::vector<hd::Request> requests;
    for (std::size_t k = 0; k < 5; ++k) {
      views.push_back(filled(100 * k + 1, static_cast<double>(k + 1)));
      requests.push_back(hd::all_reduce<hd::Request>(Exec{}, views[k], hd::Sum{}, comm, by_thread));
    }
    const auto self = static_cast<std::size_t>(world_rank());
    for (std::size_t k = 0; k < 5; ++k) requests[(k * 3 + self) % 5].wait();
    request.wait();
    CHECK(is_sum(first));
    for (std::size_t k = 0; k < 5; ++k) CHECK(is_sum(views[k], static_cast<double>(k + 1)));
  }
}

TEST_CASE("what a thread's merge throws, wait() throws, and the other ranks hear of it") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto call = [&] {
    hd::all_reduce<hd::Request>(Exec{}, filled(17), FailingSum{}, comm, by_thread).wait();
  };
  if (world_rank() == 0)
    CHECK_THAT(message_of<std::runtime_error>(call), ContainsSubstring("no more"));
  else
    CHECK_THAT(message_of<hd::communication_error>(call),
               ContainsSubstring("rank 0 failed at") && ContainsSubstring("no more"));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("what a thread's merge throws, its wait() throws, also where a later call has met it") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto fails = [](auto&& call) {
    try {
      call();
    } catch (const std::exception&) {
      return true;
    }
    return false;
  };
  hd::Request first =
      hd::all_reduce<hd::Request>(Exec{}, filled(17), FailingSum{}, comm, by_thread);
  std::vector<hd::Request> others;  // of the other lines; the fourth comes to the first's
  for (int k = 0; k < 3; ++k)
    others.push_back(hd::all_reduce<hd::Request>(Exec{}, filled(3), hd::Sum{}, comm, by_thread));
  CHECK(fails([&] {
    others.push_back(hd::all_reduce<hd::Request>(Exec{}, filled(3), hd::Sum{}, comm, by_thread));
  }));
  CHECK(fails([&] { first.wait(); }));
  for (hd::Request& other : others) other.wait();
  MPI_Barrier(MPI_COMM_WORLD);
}

#if defined(__GLIBC__)
TEST_CASE("a thread that cannot start ends the call, and the other ranks hear of it") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  pthread_attr_t before, too_large;
  REQUIRE(pthread_getattr_default_np(&before) == 0);
  REQUIRE(pthread_attr_init(&too_large) == 0);
  REQUIRE(pthread_attr_setstacksize(&too_large, std::size_t{1} << 47) == 0);
  const View view = filled(17);
  const auto call = [&] {
    hd::all_reduce<hd::Request>(Exec{}, view, hd::Sum{}, comm, by_thread).wait();
  };
  if (world_rank() == 0) {
    REQUIRE(pthread_setattr_default_np(&too_large) == 0);
    CHECK_THROWS_AS(call(), std::system_error);
    REQUIRE(pthread_setattr_default_np(&before) == 0);
    CHECK(view.use_count() == 1);
  } else {
    CHECK_THAT(message_of<hd::communication_error>(call),
               ContainsSubstring("rank 0 failed at heddle::collective::all_reduce") &&
                   ContainsSubstring("its progress thread cannot start"));
  }
  pthread_attr_destroy(&too_large);
  pthread_attr_destroy(&before);
  MPI_Barrier(MPI_COMM_WORLD);
}
#endif

}  // namespace test_progress_threads
