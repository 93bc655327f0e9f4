// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3 4
// space: its own

// The watchdog ends calls that another rank does not make, and the error says so.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/all_to_all.hpp>
#include <heddle/collective/barrier.hpp>
#include <heddle/collective/impl/shared_performer.hpp>
#include <heddle/collective/shared_view.hpp>
#include <heddle/comm/internal/roll_call.hpp>
#include <heddle/core/text.hpp>

#include "support/complaint.hpp"

namespace test_stuck {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using hd::schedule::Algorithm;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<double*, Kokkos::HostSpace>;

/// All ranks but the last make `call`, named `name`, with `options`, and are told. All make a
/// Request by a Schedule before it where it is to be `polled`. Those that wait are not named if
/// there is time for their words, as `patient` says.
void ends(const char* name,
          const std::function<void(const hd::Communicator&, hd::CallOptions)>& call,
          bool polled = false, hd::CallOptions options = {}, bool patient = false) {
  const hd::Communicator comm(MPI_COMM_WORLD);
  if (polled) hd::barrier<hd::Request>(comm, {.algorithm = Algorithm::bruck}).wait();
  // One rank ends the call by its watchdog, and the others hear of it.
  const double watchdog = patient ? 1 : 0.2;
  options.wait.watchdog = +comm.rank() == 0 ? watchdog : 30;
  options.wait.grace = patient ? 2 : 0.4;
  const auto last = static_cast<std::size_t>(comm.size()) - 1;
  if (+comm.rank() < last) {
    const std::string message =
        hd::test::message_of<hd::communication_error>([&] { call(comm, options); });
    const std::string stuck =
        hd::text("heddle::collective::", name, ", rank ", comm.rank(), ": stuck: rank");
    const auto alone =
        ContainsSubstring(hd::text(stuck, " ", last, " does not take part in the call"));
    if (patient)
      CHECK_THAT(message, alone);
    else
      CHECK_THAT(message, alone || (ContainsSubstring(stuck + "s ") &&
                                    ContainsSubstring(hd::text(", ", last, " do not take part"))));
    CHECK_THAT(message,
               ContainsSubstring(+comm.rank() == 0 ? hd::text("watchdog after ", watchdog, " s")
                                                   : std::string("watchdog of another rank")));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

TEST_CASE("a Request of the library's call") {
  const auto call = [](const auto& comm, const auto& options) {
    auto request = hd::all_reduce<hd::Request>(Exec{}, View("view", 3), hd::Sum{}, comm, options);
    request.wait();
  };
  ends("all_reduce", call, false, {}, true);
}

TEST_CASE("a call of all ranks that takes longer than the watchdog is no silent rank") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const bool first = comm.rank() == hd::Rank{0};
  const auto last = static_cast<std::size_t>(comm.size()) - 1;
  const bool found = hd::impl::found_silent_rank.exchange(false);
  // All ranks tell each other that they are there; the last one only when it was asked.
  const hd::ExecuteOptions options{.watchdog = first ? 0.2 : 100, .grace = 100};
  if (+comm.rank() == last)
    while (!hd::impl::RollCall::begun(comm)) continue;
  const std::string message = hd::impl::RollCall(comm).stuck("here", options, first).what();
  CHECK_THAT(message, ContainsSubstring(first ? "all ranks are in the call, and it takes longer "
                                                "than the watchdog (watchdog after 0.2 s)"
                                              : "another rank has given up the call"));
  CHECK_FALSE(hd::impl::found_silent_rank.exchange(found));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a Request that is only tested, by the library or by a Schedule") {
  for (const bool scheduled : {false, true})
    ends("all_reduce", [&](const auto& comm, auto options) {
      if (scheduled) options.algorithm = Algorithm::ring;
      auto request = hd::all_reduce<hd::Request>(Exec{}, View("view", 3), hd::Sum{}, comm, options);
      while (!request.test()) continue;
    });
}

TEST_CASE("the library's call that blocks, once a Request by a Schedule was begun or where asked") {
  const auto call = [](const auto& comm, const auto& options) {
    hd::all_reduce(Exec{}, View("view", 3), hd::Sum{}, comm, options);
  };
  ends("all_reduce", call, true);
  ends("all_reduce", call, false, {.watch_library = true});
}

TEST_CASE("the exchange of the counts of an all_to_all") {
  ends("all_to_all", [](const auto& comm, auto options) {
    const auto p = static_cast<std::size_t>(comm.size());
    options.counts.assign(p, 1);
    hd::all_to_all(Exec{}, View("in", p), View("out", p), comm, options);
  });
}

TEST_CASE("a call by a Schedule that is kept, for as long as this one says, and to its own log") {
  for (const bool shared : {false, true}) {
    const hd::Communicator comm(MPI_COMM_WORLD);
    // Few by messages: a sender would have to wait for the rank that does not come.
    const View view("view", shared ? 20011 : 17);
    const auto call = [&](hd::Seconds watchdog, std::string& said) {
      hd::all_reduce(Exec{}, view, hd::Sum{}, comm,
                     {.algorithm = Algorithm::ring,
                      .shared_memory = shared,
                      .wait = {.watchdog = watchdog,
                               .log = [&](std::string_view reason) { said += reason; }}});
    };
    {
      std::string said;
      call(100, said);
      CHECK(said.empty());
    }
    if (+comm.rank() + 1 < static_cast<std::size_t>(comm.size())) {
      std::string said;
      CHECK_THROWS_MATCHES(call(0.2, said), hd::communication_error,
                           MessageMatches(ContainsSubstring("watchdog after 0.2 s")));
      CHECK_THAT(said, ContainsSubstring("watchdog after 0.2 s"));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/// What an error says of the last rank, which this rank or another one has waited for: "rank 1 does
/// not take part", or "ranks 0, 1 do not take part" if a third one has given up already.
std::string names_last(const hd::Communicator& comm) { return hd::text(comm.size() - 1, " do"); }
const char* const waited = "not take part in the call in time (watchdog ";

TEST_CASE("a rank that leaves before memory is shared for a call") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto sum = [&](std::size_t count, hd::Seconds watchdog) {
    hd::all_reduce(Exec{}, View("view", count), hd::Sum{}, comm,
                   {.algorithm = Algorithm::ring, .wait = {.watchdog = watchdog}});
  };
  sum(20011, 100);
  if (+comm.rank() + 1 < static_cast<std::size_t>(comm.size())) {
    CHECK_THROWS_MATCHES(
        sum(30011, 0.2), hd::communication_error,
        MessageMatches((ContainsSubstring("SharedTransport::share") &&
                        ContainsSubstring(names_last(comm)) && ContainsSubstring(waited)) ||
                       ContainsSubstring("failed at what ranks share")));
  } else {
    // It meets the others, as all do that come to a call of which nothing is kept yet, and no more.
    MPI_Request met = MPI_REQUEST_NULL;
    MPI_Ibarrier(comm.get(), &met);
    MPI_Wait(&met, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  // The one that left is told.
  if (+comm.rank() + 1 == static_cast<std::size_t>(comm.size()))
    CHECK_THROWS_MATCHES(
        static_cast<void>(comm.attached<hd::impl::SharedPlace>().line([] {}).share(1)),
        hd::communication_error, MessageMatches(ContainsSubstring("failed at what ranks share")));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a rank that does not come to make a SharedView, however long the call before may wait") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  static_cast<void>(comm.attached<hd::impl::SharedPlace>().line([] {}, {.watchdog = 0.2}));
  hd::all_reduce(Exec{}, View("view", 20011), hd::Sum{}, comm,
                 {.algorithm = Algorithm::ring, .wait = {.watchdog = 1000}});
  const auto make = [&] { hd::SharedView<double*>(comm, 9); };
  const auto told = ContainsSubstring("failed at what ranks share");
  MPI_Barrier(MPI_COMM_WORLD);
  if (+comm.rank() + 1 < static_cast<std::size_t>(comm.size()))
    CHECK_THROWS_MATCHES(
        make(), hd::communication_error,
        MessageMatches((ContainsSubstring(names_last(comm)) && ContainsSubstring(waited)) || told));
  MPI_Barrier(MPI_COMM_WORLD);
  if (+comm.rank() + 1 == static_cast<std::size_t>(comm.size()))
    CHECK_THROWS_MATCHES(make(), hd::communication_error, MessageMatches(told));
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace test_stuck
