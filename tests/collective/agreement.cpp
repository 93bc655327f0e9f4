// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3 4

// Calls at the contract level "communication": what differs between ranks is named.

#define HEDDLE_CHECK_COMMUNICATION

#include <functional>
#include <string>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/broadcast.hpp>

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::schedule::Algorithm;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
template <class T>
using View = Kokkos::View<T*, Kokkos::HostSpace>;

/// What is said where rank 1 makes the `other` call and the others make `usual`.
std::string said(const std::function<void(const hd::Communicator&)>& usual,
                 const std::function<void(const hd::Communicator&)>& other) {
  const hd::Communicator comm(MPI_COMM_WORLD);
  try {
    comm.rank() == hd::Rank{1} ? other(comm) : usual(comm);
  } catch (const hd::contract_error& error) {
    return error.what();
  }
  return "nothing";
}

void sum(const hd::Communicator& comm) {
  const View<double> view("view", 8);
  hd::all_reduce(Exec{}, view, hd::Sum{}, comm);
}

}  // namespace

TEST_CASE("equal calls agree") { CHECK(said(sum, sum) == "nothing"); }

TEST_CASE("a call that differs is named on every rank, and in what it differs") {
  const auto call = [](auto view, auto reduction, const hd::CallOptions& options = {}) {
    return [=](const hd::Communicator& comm) {
      hd::all_reduce(Exec{}, view, reduction, comm, options);
    };
  };
  const std::string count = said(sum, call(View<double>("view", 9), hd::Sum{}));
  CHECK_THAT(count,
             ContainsSubstring("bytes") && ContainsSubstring("64") && ContainsSubstring("72"));
  CHECK_THAT(said(sum, call(View<std::int64_t>("view", 8), hd::Sum{})),
             ContainsSubstring("type") && ContainsSubstring("f64") && ContainsSubstring("i64"));
  CHECK_THAT(said(sum, call(View<double>("view", 8), hd::Max{})), ContainsSubstring("reduction"));
  CHECK_THAT(
      said(sum, call(View<double>("view", 8), hd::Sum{}, {.algorithm = Algorithm::ring})),
      ContainsSubstring("algorithm") && ContainsSubstring("library") && ContainsSubstring("ring"));
  CHECK_THAT(said(sum,
                  [](const hd::Communicator& comm) {
                    hd::broadcast(Exec{}, View<double>("view", 8), hd::Rank{0}, comm);
                  }),
             ContainsSubstring("all_reduce") && ContainsSubstring("broadcast"));
}

TEST_CASE("of several ranks, the one that differs is named") {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 3) return;
  CHECK_THAT(said(sum,
                  [](const hd::Communicator& comm) {
                    hd::all_reduce(Exec{}, View<double>("view", 2), hd::Sum{}, comm);
                  }),
             ContainsSubstring("rank 1"));
}
