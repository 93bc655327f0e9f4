// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 7 8
// space: its own

// Requests: how long they keep what they use, in which order they end, what becomes of errors; and
// calls that a cost table decides about.

#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/reduce.hpp>

namespace test_requests {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using hd::schedule::Algorithm;
using hd::schedule::Collective;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<double*, Kokkos::HostSpace>;

static_assert(!std::is_copy_constructible_v<hd::Request> &&
              std::is_move_constructible_v<hd::Request>);

View filled(const hd::Communicator& comm, std::size_t count, double scale = 1) {
  const View view("view", count);
  for (std::size_t i = 0; i < count; ++i)
    view(i) = scale * static_cast<double>((+comm.rank() + 1) * (i + 1));
  return view;
}

bool is_sum(const hd::Communicator& comm, const View& view, double scale = 1) {
  const double ranks = comm.size() * (comm.size() + 1) / 2;
  for (std::size_t i = 0; i < view.size(); ++i)
    if (view(i) != scale * ranks * static_cast<double>(i + 1)) return false;
  return true;
}

const std::vector<hd::CallOptions> ways{{}, {.algorithm = Algorithm::ring}};

}  // namespace

TEST_CASE("a request keeps its View, and its destructor waits") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  for (const hd::CallOptions& options : ways) {
    View kept;
    {
      View view = filled(comm, 1001);
      kept = view;
      const long mine = view.use_count();
      const hd::Request request =
          hd::all_reduce<hd::Request>(Exec{}, view, hd::Sum{}, comm, options);
      CHECK(view.use_count() > mine);
      view = View();
    }
    CHECK(kept.use_count() == 1);
    CHECK(is_sum(comm, kept));
  }
}

TEST_CASE("requests move; an assignment waits for what it replaces") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  for (const hd::CallOptions& options : ways) {
    const View a = filled(comm, 17), b = filled(comm, 5000, 3);
    hd::Request request;
    CHECK(request.test());
    request = hd::all_reduce<hd::Request>(Exec{}, a, hd::Sum{}, comm, options);
    hd::Request other = std::move(request);
    other = hd::all_reduce<hd::Request>(Exec{}, b, hd::Sum{}, comm, options);
    CHECK(is_sum(comm, a));
    other.wait();
    CHECK(is_sum(comm, b, 3));
    CHECK(other.test());
    other.wait();
  }
}

TEST_CASE("hundreds under way at once, of one size and of many, waited for in any order") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  for (const hd::CallOptions& options : ways) {
    std::vector<View> views;
    std::vector<hd::Request> requests;
    for (std::size_t k = 0; k < 300; ++k) {
      views.push_back(filled(comm, k % 2 == 0 ? 8 : k, static_cast<double>(k + 1)));
      requests.push_back(hd::all_reduce<hd::Request>(Exec{}, views[k], hd::Sum{}, comm, options));
      // Ranks look at different ones, and find different ones done.
      if (k % 7 == +comm.rank()) static_cast<void>(requests[k / 2].test());
    }
    for (std::size_t k = 0; k < 300; ++k) requests[(k * 7 + +comm.rank() * 3) % 300].wait();
    for (std::size_t k = 0; k < 300; ++k)
      REQUIRE(is_sum(comm, views[k], static_cast<double>(k + 1)));
  }
}

TEST_CASE("the library's calls match where some ranks know a request to be over, and others not") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  for (int round = 0; round < 20; ++round) {
    const View ours = filled(comm, 3000), theirs = filled(comm, 9, 2);
    hd::Request request =
        hd::all_reduce<hd::Request>(Exec{}, ours, hd::Sum{}, comm, {.algorithm = Algorithm::star});
    // Rank 0 may have seen its end before the others do.
    if (comm.rank() == hd::Rank{0} && comm.size() > 1)
      for (int polls = 0; polls < 1000 && !request.test(); ++polls) {
      }
    hd::all_reduce(Exec{}, theirs, hd::Sum{}, comm);
    request.wait();
    CHECK(is_sum(comm, ours));
    CHECK(is_sum(comm, theirs, 2));
  }
}

TEST_CASE("an exception that leaves a request's scope is told to the other ranks") {
  const hd::Communicator all(MPI_COMM_WORLD);
  if (all.size() == 1) return;
  const hd::Communicator comm(MPI_COMM_WORLD);
  const View view = filled(comm, 100);
  const hd::CallOptions options{.algorithm = Algorithm::ring};
  if (comm.rank() == hd::Rank{0}) {
    const auto fail = [&] {
      const hd::Request request =
          hd::all_reduce<hd::Request>(Exec{}, view, hd::Sum{}, comm, options);
      throw std::runtime_error("of the caller");
    };
    CHECK_THROWS_MATCHES(fail(), std::runtime_error, Catch::Matchers::Message("of the caller"));
  } else {
    // Those that rank 0 has served may be done before they hear of it.
    try {
      hd::Request request = hd::all_reduce<hd::Request>(Exec{}, view, hd::Sum{}, comm, options);
      request.wait();
    } catch (const hd::communication_error& error) {
      CHECK_THAT(error.what(), ContainsSubstring("rank 0 failed") &&
                                   ContainsSubstring("an exception left the scope"));
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  // From here on the communicator is spent, and says why.
  CHECK_THROWS_AS(hd::all_reduce(Exec{}, view, hd::Sum{}, comm, options), hd::communication_error);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a call in which another request fails is given up, and the other ranks hear of it") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  if (comm.size() == 1) return;
  struct FailingSum {
    bool fails;
    void join(double& into, const double& from) const {
      if (fails) throw std::runtime_error("no more");
      into += from;
    }
    void init(double& value) const { value = 0; }
  };
  const bool root = comm.rank() == hd::Rank{0};
  const View small = filled(comm, 3), large = filled(comm, 20011);
  // In memory that ranks share, where nobody hears of messages.
  const auto call = [&] {
    hd::all_reduce(Exec{}, large, hd::Sum{}, comm,
                   {.algorithm = Algorithm::ring, .wait = {.watchdog = 30}});
  };
  call();
  // Rank 0 has started before the first message is on its way, and makes no progress until the
  // others are done with theirs: it fails within `call`, and they hear of it there.
  if (!root) MPI_Barrier(MPI_COMM_WORLD);
  hd::Request request = hd::reduce<hd::Request>(Exec{}, small, FailingSum{root}, hd::Rank{0}, comm,
                                                {.algorithm = Algorithm::binomial_tree});
  if (root) MPI_Barrier(MPI_COMM_WORLD);
  if (!root) request.wait();
  MPI_Barrier(MPI_COMM_WORLD);
  if (root) {
    CHECK_THROWS_MATCHES(call(), std::runtime_error, Catch::Matchers::Message("no more"));
    CHECK_THROWS(request.wait());
  } else {
    // Rank 0 waits for this one meanwhile, and comes to what it was sent.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    CHECK_THROWS_MATCHES(
        call(), hd::communication_error,
        MessageMatches(ContainsSubstring("rank 0 failed at heddle::collective::all_reduce") &&
                       ContainsSubstring("another request of the communicator failed")));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a progress thread is refused where MPI does not take calls from several threads") {
  int level = MPI_THREAD_MULTIPLE;
  MPI_Query_thread(&level);
  if (level == MPI_THREAD_MULTIPLE) return;  // an MPI that gives more than it was asked for
  const hd::Communicator comm(MPI_COMM_WORLD);
  const View view = filled(comm, 3);
  CHECK_THROWS_MATCHES(
      hd::all_reduce<hd::Request>(Exec{}, view, hd::Sum{}, comm, {.progress_thread = true}),
      hd::contract_error,
      MessageMatches(ContainsSubstring("a progress thread needs MPI at MPI_THREAD_MULTIPLE")));
}

TEST_CASE("a cost table chooses for each size, the library's call or one of ours") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  hd::plan::CostTable costs(hd::Machine::uniform(comm.size(), {"rank"}, {1e-6, 1e9}));
  const hd::plan::CollectiveChoice library{.library = true};
  const hd::plan::CollectiveChoice ring{.algorithm = Algorithm::ring, .piece = 4096};
  costs.set(Collective::all_reduce, 8, library, 1e-6);
  costs.set(Collective::all_reduce, 8, ring, 1e-5);
  costs.set(Collective::all_reduce, 80000, library, 2e-3);
  costs.set(Collective::all_reduce, 80000, ring, 1e-3);
  const hd::CallOptions options{.costs = std::make_shared<const hd::plan::CostTable>(costs)};
  for (const std::size_t count : {0, 1, 10000, 20000}) {
    const View view = filled(comm, count);
    auto sum = hd::all_reduce<hd::Prepared>(Exec{}, view, hd::Sum{}, comm, options);
    CHECK(sum.by_library() == (count < 10000));
    if (count >= 10000)
      CHECK_THAT(sum.schedule().name(), ContainsSubstring("ring"));
    else
      CHECK_THROWS_MATCHES(sum.schedule(), hd::contract_error,
                           MessageMatches(ContainsSubstring("the MPI library performs this call")));
    sum();
    CHECK(is_sum(comm, view));
    hd::all_reduce(Exec{}, filled(comm, count), hd::Sum{}, comm, options);
  }
  // What the library does not know is done by ours, whatever the table says.
  struct Last {
    void join(double& into, const double& from) const { into = into < from ? from : into; }
    void init(double& value) const { value = -1; }
  };
  const View view = filled(comm, 1);
  auto last = hd::all_reduce<hd::Prepared>(Exec{}, view, Last{}, comm, options);
  CHECK_FALSE(last.by_library());
  last();
  CHECK(view(0) == comm.size());
  const auto others = std::make_shared<const hd::plan::CostTable>(
      hd::Machine::uniform(comm.size() + 1, {"rank"}, {1e-6, 1e9}));
  CHECK_THROWS_MATCHES(
      hd::all_reduce(Exec{}, view, hd::Sum{}, comm, {.costs = others}), hd::contract_error,
      MessageMatches(ContainsSubstring("the cost table was measured for another number of ranks")));
}

TEST_CASE("a table that replaces another one chooses, although the communicator knows the size") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const View view = filled(comm, 10000);
  for (int round = 0; round < 8; ++round) {  // the memory of a table may be that of the last one
    const bool by_library = round % 2 == 0;
    hd::plan::CostTable costs(hd::Machine::uniform(comm.size(), {"rank"}, {1e-6, 1e9}));
    costs.set(Collective::all_reduce, 80000, {.library = true}, by_library ? 1e-6 : 1e-3);
    costs.set(Collective::all_reduce, 80000, {.algorithm = Algorithm::ring}, 1e-5);
    const hd::CallOptions options{.costs = std::make_shared<const hd::plan::CostTable>(costs)};
    const auto sum = hd::all_reduce<hd::Prepared>(Exec{}, view, hd::Sum{}, comm, options);
    CHECK(sum.by_library() == by_library);
  }
}

TEST_CASE("levels of the hierarchical algorithm") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  if (comm.size() != 4) return;
  const View view = filled(comm, 103);
  auto sum =
      hd::all_reduce<hd::Prepared>(Exec{}, view, hd::Sum{}, comm,
                                   {.algorithm = Algorithm::hierarchical,
                                    .levels = {{2, Algorithm::direct}, {2, Algorithm::ring}}});
  sum();
  CHECK(is_sum(comm, view));
}

TEST_CASE("calls that block read peers of the host in place, beside requests that are under way") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  for (const bool shared : {true, false}) {
    const hd::CallOptions options{.algorithm = Algorithm::ring, .shared_memory = shared};
    const View small = filled(comm, 5000, 2);
    for (int again = 0; again < 3; ++again) {
      const View large = filled(comm, 20011), other = filled(comm, 20011, 5);
      Kokkos::deep_copy(small, filled(comm, 5000, 2));
      hd::Request request = hd::all_reduce<hd::Request>(Exec{}, small, hd::Sum{}, comm, options);
      // Some ranks wait for the request first, which needs the others' part of it.
      if (+comm.rank() % 2 == 1) request.wait();
      hd::all_reduce(Exec{}, large, hd::Sum{}, comm, options);
      auto prepared = hd::all_reduce<hd::Prepared>(Exec{}, other, hd::Sum{}, comm, options);
      prepared();
      // Where memory is shared, the Schedule says among whom.
      CHECK(prepared.schedule().domains().empty() == (!shared || comm.size() == 1));
      request.wait();
      CHECK(is_sum(comm, small, 2));
      CHECK(is_sum(comm, large));
      CHECK(is_sum(comm, other, 5));
    }
  }
  // More than there is room for goes by messages, and says so.
  const View view = filled(comm, 20012);
  auto bounded = hd::all_reduce<hd::Prepared>(Exec{}, view, hd::Sum{}, comm,
                                              {.algorithm = Algorithm::ring, .shared_bytes = 100});
  CHECK(bounded.schedule().domains().empty());
  bounded();
  CHECK(is_sum(comm, view));
}

}  // namespace test_requests
