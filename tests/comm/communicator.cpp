// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Communicator, check and the Environment of a program that brings MPI and Kokkos itself.

#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/measure_paths.hpp>
#include <heddle/comm/shared_transport.hpp>
#include <heddle/comm/strided_exchange.hpp>
#include <heddle/core/text.hpp>

#include "support/one_rank_differs.hpp"
#include "support/world.hpp"

namespace test_communicator {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using heddle::test::said;
using heddle::test::world_rank;
using heddle::test::world_size;

TEST_CASE("a communicator is a duplicate with the same ranks") {
  const heddle::Communicator comm(MPI_COMM_WORLD);
  CHECK(comm.rank() == heddle::Rank{world_rank()});
  CHECK(comm.size() == world_size());
  int relation = MPI_IDENT;
  MPI_Comm_compare(MPI_COMM_WORLD, comm.get(), &relation);
  CHECK(relation == MPI_CONGRUENT);
  CHECK(heddle::text(comm) == heddle::text("rank ", world_rank(), " of ", world_size()));
}

TEST_CASE("a communicator moves, and what it leaves is empty") {
  heddle::Communicator first(MPI_COMM_WORLD);
  const MPI_Comm handle = first.get();
  heddle::Communicator second(std::move(first));
  CHECK(first.get() == MPI_COMM_NULL);  // NOLINT(bugprone-use-after-move): that is what is tested
  CHECK(first.size() == 0);
  CHECK(second.get() == handle);
  heddle::Communicator third(MPI_COMM_SELF);
  third = std::move(second);
  CHECK(third.get() == handle);
  CHECK(third.size() == world_size());
}

TEST_CASE("a released communicator belongs to the caller") {
  MPI_Comm handle = MPI_COMM_NULL;
  {
    heddle::Communicator comm(MPI_COMM_WORLD);
    handle = comm.release();
    CHECK(comm.get() == MPI_COMM_NULL);
  }
  int size = 0;
  CHECK(MPI_Comm_size(handle, &size) == MPI_SUCCESS);
  CHECK(size == world_size());
  MPI_Comm_free(&handle);
}

TEST_CASE("a communicator with an operation left to MPI is not freed") {
  MPI_Comm handle = MPI_COMM_NULL;
  {
    heddle::Communicator left(MPI_COMM_WORLD);
    handle = left.get();
    left.leave_to_mpi(std::vector<int>{1, 2, 3});
    heddle::Communicator moved(std::move(left));
    heddle::Communicator swapped(MPI_COMM_WORLD);
    swapped = std::move(moved);  // `moved` has a communicator that is freed
  }
  int size = 0;
  CHECK(MPI_Comm_size(handle, &size) == MPI_SUCCESS);
  CHECK(size == world_size());
  MPI_Comm_free(&handle);
}

TEST_CASE("split orders by key and separates by color") {
  const heddle::Communicator all(MPI_COMM_WORLD);
  const heddle::Communicator reversed = all.split(7, -world_rank());
  CHECK(reversed.size() == world_size());
  CHECK(reversed.rank() == heddle::Rank{world_size() - 1 - world_rank()});
  const heddle::Communicator parity = all.split(world_rank() % 2, 0);
  CHECK(parity.size() == (world_size() + 1 - world_rank() % 2) / 2);
  CHECK(parity.rank() == heddle::Rank{world_rank() / 2});
  CHECK_THROWS_MATCHES(all.split(-1, 0), heddle::contract_error,
                       MessageMatches(ContainsSubstring("a color must be at least 0") &&
                                      ContainsSubstring("gave -1")));
}

TEST_CASE("a rank can be in no part of a split") {
  const heddle::Communicator all(MPI_COMM_WORLD);
  const bool last = world_rank() == world_size() - 1;
  const heddle::Communicator part = all.split(last ? MPI_UNDEFINED : 0, 0);
  CHECK(part.size() == (last ? 0 : world_size() - 1));
  CHECK((part.get() == MPI_COMM_NULL) == last);
  if (last)
    CHECK_THROWS_MATCHES(part.split(0, 0), heddle::contract_error,
                         MessageMatches(ContainsSubstring("heddle::Communicator::split: the "
                                                          "communicator is empty")));
  else
    CHECK(part.split(0, 0).size() == world_size() - 1);
}

TEST_CASE("a wrong color on one rank is an error on all ranks") {
  if (world_size() < 2) return;
  const auto split_by = [](int color) {
    return [=](const heddle::Communicator& comm) { static_cast<void>(comm.split(color, 0)); };
  };
  CHECK(said(split_by(0), split_by(MPI_UNDEFINED)) == "nothing");
  const std::string why = said(split_by(0), split_by(-1));
  CHECK_THAT(why, ContainsSubstring("heddle::Communicator::split") &&
                      ContainsSubstring("a color must be at least 0 (rank 1 gave -1)"));
  CHECK((why.find("rank 1 reports: ") != std::string::npos) == (world_rank() != 1));
}

TEST_CASE("what cannot be done with an empty communicator is a contract_error") {
  heddle::Communicator moved(MPI_COMM_WORLD);
  const heddle::Communicator to(std::move(moved));
  const heddle::Communicator& empty = moved;  // NOLINT(bugprone-use-after-move)
  const auto call = [] { return heddle::impl::CollectiveCall{"heddle::here", {}}; };
  using Exchange = heddle::StridedExchange<Kokkos::DefaultHostExecutionSpace>;
  const std::pair<const char*, std::function<void()>> doors[] = {
      {"split", [&] { static_cast<void>(empty.split(0, 0)); }},
      {"attached", [&] { static_cast<void>(empty.attached<heddle::MpiTransport>()); }},
      {"check_agreement",
       [&] { heddle::impl::check_agreement(empty, call, heddle::ContractLevel::communication); }},
      {"heddle::here",
       [&] {
         heddle::impl::check_together(
             empty, "heddle::here", [] {}, call);
       }},
      {"attached", [&] { const Exchange exchange(empty, {}, {}); }},
      {"the communicator is null", [&] { const heddle::Communicator copy(empty.get()); }},
      {"the communicator is null", [&] { const heddle::MpiTransport transport(empty.get()); }},
      {"the communicator is null", [&] { const heddle::SharedTransport transport(empty.get()); }},
      {"the communicator is null",
       [&] {
         const heddle::DeviceMesh mesh(empty.get(), {{"a", 1}});
       }},
      {"measure_paths", [&] {
         static_cast<void>(heddle::measure_paths<Kokkos::DefaultHostExecutionSpace>(empty));
       }}};
  for (const auto& [name, door] : doors)
    CHECK_THROWS_MATCHES(door(), heddle::contract_error, MessageMatches(ContainsSubstring(name)));
}

TEST_CASE("an error that is no contract_error reaches the other ranks as a communication_error") {
  if (world_size() < 2) return;
  const heddle::Communicator comm(MPI_COMM_WORLD);
  const auto check = [&] {
    if (comm.rank() == heddle::Rank{1}) throw std::bad_alloc();
  };
  const auto call = [&] {
    heddle::impl::check_together(
        comm, "heddle::here", check,
        [] {
          return heddle::impl::CollectiveCall{"heddle::here", {}};
        },
        heddle::ContractLevel::communication);
  };
  if (comm.rank() == heddle::Rank{1})
    CHECK_THROWS_AS(call(), std::bad_alloc);
  else
    CHECK_THROWS_MATCHES(call(), heddle::communication_error,
                         MessageMatches(ContainsSubstring("rank 1 reports: std::bad_alloc")));
}

TEST_CASE("a null or inter-communicator is refused") {
  CHECK_THROWS_MATCHES(heddle::Communicator(MPI_COMM_NULL), heddle::contract_error,
                       MessageMatches(ContainsSubstring("the communicator is null")));
  if (world_size() < 2) return;
  const heddle::Communicator halves =
      heddle::Communicator(MPI_COMM_WORLD).split(world_rank() % 2, 0);
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Intercomm_create(halves.get(), 0, MPI_COMM_WORLD, 1 - world_rank() % 2, 5, &inter);
  CHECK_THROWS_MATCHES(heddle::Communicator(inter), heddle::contract_error,
                       MessageMatches(ContainsSubstring("inter-communicator") &&
                                      ContainsSubstring("MPI_Intercomm_merge")));
  MPI_Comm_free(&inter);
}

TEST_CASE("errors of MPI are thrown with MPI's sentence") {
  CHECK_NOTHROW(heddle::check(MPI_SUCCESS, "here"));
  const heddle::Communicator comm(MPI_COMM_WORLD);
  const int code = MPI_Send(nullptr, 0, MPI_BYTE, world_size(), 0, comm.get());  // no such rank
  CHECK(code != MPI_SUCCESS);
  CHECK_THROWS_MATCHES(heddle::check(code, "heddle::here"), heddle::communication_error,
                       MessageMatches(ContainsSubstring("heddle::here: MPI reports an error") &&
                                      ContainsSubstring(heddle::impl::mpi_error_text(code))));
}

TEST_CASE("an environment takes what is up and leaves it up") {
  int argc = 1;
  char name[] = "test";
  char* argv[] = {name, nullptr};
  {
    const heddle::Environment environment(argc, argv);
    CHECK_FALSE(environment.owns_mpi());
    CHECK_FALSE(environment.owns_kokkos());
    CHECK(environment.thread_level() >= heddle::ThreadLevel::funneled);
  }
  int finalized = 1;
  MPI_Finalized(&finalized);
  CHECK(finalized == 0);
  CHECK(Kokkos::is_initialized());
  CHECK_FALSE(Kokkos::is_finalized());
}

TEST_CASE("an environment refuses an MPI that is up with too low a thread level") {
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  if (provided >= MPI_THREAD_MULTIPLE) SKIP("this MPI was started with MULTIPLE");
  int argc = 0;
  CHECK_THROWS_MATCHES(heddle::Environment(argc, nullptr, heddle::ThreadLevel::multiple),
                       heddle::contract_error,
                       MessageMatches(ContainsSubstring("thread level multiple was asked for") &&
                                      ContainsSubstring("MPI is up with only")));
}

}  // namespace

}  // namespace test_communicator
