// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 7

/// @file
/// check_agreement: every kind of mismatch on every rank is named, on all ranks alike; and where
/// the level is off, MPI is not called.

#include <cstddef>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/agreement.hpp>
#include <heddle/core/text.hpp>

#include "support/complaint.hpp"
#include "support/world.hpp"

namespace test_agreement {

namespace {

int calls_of_mpi = 0;

}  // namespace

// The two calls that a message of check_agreement begins with, counted.
extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  ++calls_of_mpi;
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

extern "C" int MPI_Iprobe(int from, int tag, MPI_Comm comm, int* there, MPI_Status* status) {
  ++calls_of_mpi;
  return PMPI_Iprobe(from, tag, comm, there, status);
}

namespace {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Equals;
using hd::ContractLevel;
using hd::impl::CollectiveCall;
using hd::test::message_of;
using hd::test::world_rank;
using hd::test::world_size;

CollectiveCall usual() {
  return {"heddle::all_reduce",
          {{"count", "17"}, {"type", "f64"}, {"operation", "sum"}, {"algorithm", "ring"}}};
}

void check(const hd::Communicator& comm, const CollectiveCall& call, double watchdog = 60) {
  hd::impl::check_agreement(
      comm, [&] { return call; }, ContractLevel::communication, watchdog);
}

/// What all ranks are told where rank `odd` calls `other` and all others call usual().
std::string told(int odd, const CollectiveCall& other) {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const CollectiveCall call = world_rank() == odd ? other : usual();
  return message_of<hd::contract_error>([&] { check(comm, call); });
}

TEST_CASE("equal calls agree, again and again") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  for (int i = 0; i < 100; ++i) {
    CollectiveCall call = usual();
    call.terms[0].value = std::to_string(i);
    CHECK_NOTHROW(check(comm, call));
  }
  CHECK_NOTHROW(check(comm, {"heddle::barrier", {}}));
}

TEST_CASE("with the level off nothing is sent, whatever the ranks call") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  static_assert(hd::contract_level == ContractLevel::local, "the default");
  calls_of_mpi = 0;
  bool described = false;
  const auto describe = [&] {
    described = true;
    return CollectiveCall{std::to_string(world_rank()), {}};
  };
  CHECK_NOTHROW(hd::impl::check_agreement(comm, describe));
  CHECK_NOTHROW(hd::impl::check_agreement(comm, describe, ContractLevel::local));
  CHECK(calls_of_mpi == 0);
  CHECK_FALSE(described);
  CHECK_NOTHROW(check(comm, usual()));
  CHECK((calls_of_mpi > 0) == (world_size() > 1));  // the counter counts
}

TEST_CASE("the rank that differs is named, with the term in which it does") {
  if (world_size() == 1) return;
  const std::vector<std::string> wrong = {"16", "f32", "max", "double_tree"};
  for (int odd = 0; odd < world_size(); ++odd) {
    for (std::size_t term = 0; term < wrong.size(); ++term) {
      CollectiveCall other = usual();
      const auto [name, right] = other.terms[term];
      other.terms[term].value = wrong[term];
      // Of two ranks neither is in the majority: the lower one is taken at its word.
      const bool swapped = world_size() == 2 && odd == 0;
      const int named = swapped ? 1 : odd;
      const int most = named == 0 ? 1 : 0;
      CHECK_THAT(
          told(odd, other),
          Equals(hd::text("heddle::all_reduce: the ranks do not make the same call (rank ", named,
                          " has ", name, " ", swapped ? right : wrong[term], " where rank ", most,
                          " has ", name, " ", swapped ? wrong[term] : right,
                          "); all ranks make the same calls in the same order")));
    }
  }
}

TEST_CASE("several terms that differ, and terms that only some ranks have, are all named") {
  if (world_size() == 1) return;
  CollectiveCall other = usual();
  other.terms[0].value = "0";
  other.terms[1].value = "i32";
  other.terms.push_back({"root", "1"});
  CHECK_THAT(told(1, other), ContainsSubstring("rank 1 has count 0 where rank 0 has count 17, and "
                                               "rank 1 has type i32 where rank 0 has type f64, and "
                                               "rank 1 has root 1 where rank 0 has nothing"));
}

TEST_CASE("calls in another order are named by their functions") {
  if (world_size() < 3) return;
  const int odd = world_size() - 1;
  const CollectiveCall other{"heddle::broadcast", {{"count", "17"}, {"root", "0"}}};
  CHECK_THAT(told(odd, other),
             ContainsSubstring(hd::text("rank ", odd,
                                        " calls heddle::broadcast where rank 0 calls "
                                        "heddle::all_reduce")));
}

TEST_CASE("a rank that leaves a call out is found at its next call") {
  if (world_size() < 3) return;
  const hd::Communicator comm(MPI_COMM_WORLD);
  const CollectiveCall next{"heddle::barrier", {}};
  if (world_rank() == 1) {
    const std::string message = message_of<hd::contract_error>([&] { check(comm, next); });
    CHECK_THAT(message, ContainsSubstring("rank 1 calls heddle::barrier where rank 0 calls "
                                          "heddle::all_reduce"));
  } else {
    CHECK_THROWS_AS(check(comm, usual()), hd::contract_error);
  }
}

TEST_CASE("a rank that makes no call at all is named when the time is over") {
  if (world_size() == 1) return;
  for (int missing = 0; missing < world_size(); ++missing) {
    hd::Communicator comm(MPI_COMM_WORLD);
    if (world_rank() != missing) {
      const std::string message =
          message_of<hd::communication_error>([&] { check(comm, usual(), 0.2); });
      CHECK_THAT(message,
                 ContainsSubstring(hd::text("rank ", missing, " does not make the call")) &&
                     ContainsSubstring("watchdog after 0.2 s"));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    // One that comes too late is told the same.
    if (missing != 0 && world_rank() == missing)
      CHECK_THROWS_AS(check(comm, usual(), 5), hd::communication_error);
    MPI_Barrier(MPI_COMM_WORLD);
    // Not freed: MPICH would give its messages that nobody has taken to the next communicator.
    static_cast<void>(comm.release());
  }
}

TEST_CASE("a rank that throws what is no std::exception reports it, and throws its own") {
  if (world_size() == 1) return;
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto call = [&] {
    hd::impl::check_together(
        comm, "heddle::barrier", [] { throw 5; }, usual, ContractLevel::communication);
  };
  if (world_rank() == 1)
    CHECK_THROWS_AS(call(), int);
  else
    CHECK_THAT(message_of<hd::communication_error>([&] { check(comm, usual()); }),
               ContainsSubstring("rank 1 reports: unknown exception"));
}

TEST_CASE("a rank whose report fails throws its own error") {
  if (world_size() == 1) return;
  hd::Communicator comm(MPI_COMM_WORLD);
  if (world_rank() == 1)
    CHECK_THROWS_AS(hd::impl::check_together(
                        comm, "heddle::barrier", [] { throw 5; }, usual,
                        ContractLevel::communication, 60, [] { throw 'r'; }),
                    int);
  else
    CHECK_THROWS_AS(check(comm, usual()), hd::communication_error);
  MPI_Barrier(MPI_COMM_WORLD);
  static_cast<void>(comm.release());  // the answer to rank 1 may not be taken
}

}  // namespace

}  // namespace test_agreement
