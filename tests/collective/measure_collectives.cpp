// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// timeout: 240
// space: its own

/// @file
/// measure_collectives: every rank has the same table, the library's call and ours in it; how calls
/// are timed.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/collective/measure_collectives.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>

namespace test_measure_collectives {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using heddle::schedule::Algorithm;
using heddle::schedule::Collective;

heddle::CollectiveMeasureOptions quick() {
  heddle::CollectiveMeasureOptions options;
  options.collectives.clear();
  for (std::size_t c = 0; c < heddle::schedule::collective_count; ++c)
    options.collectives.push_back(static_cast<Collective>(c));
  options.sizes = {4, 1 << 12};  // fewer elements than ranks, too
  options.candidates = 2;
  options.budget = 1e-3;
  options.links = {.budget = 1e-3, .largest = 16 << 10, .bursts = 1};
  return options;
}

TEST_CASE("every rank has the same table, with the library's call and ours") {
  const heddle::Communicator comm(MPI_COMM_WORLD);
  const heddle::plan::CostTable table = heddle::measure_collectives(comm, quick());
  std::string text = table.to_text();
  std::string first = text;
  auto length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, comm.get());
  first.resize(static_cast<std::size_t>(length));
  MPI_Bcast(first.data(), length, MPI_CHAR, 0, comm.get());
  CHECK(text == first);
  for (const Collective collective : quick().collectives) {
    INFO(collective);
    REQUIRE_FALSE(table.sizes(collective).empty());
    CHECK(table.sizes(collective).front() == (collective == Collective::barrier ? 0u : 4u));
    for (const heddle::Bytes bytes : table.sizes(collective)) {
      const auto times = table.times(collective, bytes);
      CHECK(std::ranges::count(times, true,
                               [](const auto& entry) { return entry.choice.library; }) == 1);
      CHECK((times.size() > 1) == (comm.size() > 1));
      for (const auto& entry : times) CHECK(entry.time > 0);
    }
  }
}

TEST_CASE("without any time to spend the first size is measured, and no other") {
  const heddle::Communicator comm(MPI_COMM_WORLD);
  if (comm.size() == 1) return;  // where no candidate is expected to take time
  heddle::CollectiveMeasureOptions options = quick();
  options.collectives = {Collective::all_reduce};
  options.budget = 0;
  const heddle::plan::CostTable table = heddle::measure_collectives(comm, options);
  CHECK(table.sizes(Collective::all_reduce) == std::vector<heddle::Bytes>{4});
  CHECK(table.times(Collective::all_reduce, 4).size() > 1);
}

TEST_CASE("of one algorithm two candidates are timed at most") {
  std::vector<heddle::plan::CollectivePrediction> all;
  for (const heddle::Bytes piece : {0u, 1u, 2u}) all.push_back({{.piece = piece}, 1.0 + piece});
  all.push_back({{.algorithm = Algorithm::ring}, 9});
  all.push_back({{.algorithm = Algorithm::star}, 10});
  const auto found = heddle::impl::shortlist(all, 3);
  REQUIRE(found.size() == 3);
  CHECK(found[1].piece == 1);
  CHECK(found[2].algorithm == Algorithm::ring);
}

TEST_CASE("two over levels and two over shared memory are timed beside them") {
  std::vector<heddle::plan::CollectivePrediction> all;
  for (const heddle::Bytes piece : {3u, 2u, 1u}) {
    all.push_back({{.piece = piece, .shared = true}, 1});
    all.push_back({{.algorithm = Algorithm::hierarchical,
                    .levels = {{2, Algorithm::direct}, {2, Algorithm::ring}},
                    .piece = piece},
                   2});
  }
  all.push_back({{.algorithm = Algorithm::ring}, 9});
  const auto found = heddle::impl::shortlist(all, 1);
  REQUIRE(found.size() == 5);
  CHECK(found[0].algorithm == Algorithm::ring);
  for (const std::size_t i : {1u, 2u}) CHECK((found[i].shared && found[i].piece == 4 - i));
  for (const std::size_t i : {3u, 4u})
    CHECK((found[i].levels.size() == 2 && found[i].piece == 6 - i));
}

TEST_CASE("a size that is not whole floats, or too large for MPI to count, is refused") {
  heddle::CollectiveMeasureOptions options = quick();
  const heddle::Communicator comm(MPI_COMM_WORLD);
  for (const heddle::Bytes bytes : {heddle::Bytes{7}, heddle::Bytes{1} << 31}) {
    options.sizes = {8, bytes};
    CHECK_THROWS_MATCHES(heddle::measure_collectives(comm, options), heddle::contract_error,
                         MessageMatches(ContainsSubstring("a size must be a multiple of 4 bytes") &&
                                        ContainsSubstring(heddle::text("sizes[1] = ", bytes))));
  }
}

TEST_CASE("options that differ on one rank are refused on all") {
  const heddle::Communicator comm(MPI_COMM_WORLD);
  if (comm.size() == 1) return;
  const std::pair<const char*, std::function<void(heddle::CollectiveMeasureOptions&)>> changes[] = {
      {"sizes 4 8 where rank 0 has sizes 4 4096", [](auto& options) { options.sizes[1] = 8; }},
      {"collectives ", [](auto& options) { options.collectives.pop_back(); }},
      {"candidates 3 where", [](auto& options) { options.candidates = 3; }},
      {"has budget 1 where", [](auto& options) { options.budget = 1; }},
      {"budget of a link 1 where", [](auto& options) { options.links.budget = 1; }},
      {"piece 8 where", [](auto& options) { options.links.piece = 8; }},
      {"bursts 2 where", [](auto& options) { options.links.bursts = 2; }},
      {"names of devices a where", [](auto& options) { options.links.name = "a"; }}};
  for (const auto& [difference, change] : changes) {
    heddle::CollectiveMeasureOptions options = quick();
    if (comm.rank() == heddle::Rank{1}) change(options);
    CHECK_THROWS_MATCHES(heddle::measure_collectives(comm, options), heddle::contract_error,
                         MessageMatches(ContainsSubstring(difference)));
  }
}

TEST_CASE("nine tenths of a sample do not exceed its value") {
  const auto of = [](int count) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back((i * 37) % count);  // all of them, mixed
    return heddle::impl::nine_tenths(values);
  };
  CHECK(of(1) == 0);
  CHECK(of(2) == 1);
  CHECK(of(9) == 8);
  CHECK(of(10) == 8);
  CHECK(of(11) == 9);
  CHECK(of(50) == 44);
}

void spin(heddle::Seconds time) {
  const heddle::Seconds begin = heddle::steady_seconds();
  while (heddle::steady_seconds() - begin < time) {
  }
}

TEST_CASE("whatever the budget, there are seven rounds") {
  const heddle::Communicator comm(MPI_COMM_WORLD);
  for (const heddle::Seconds budget :
       {0.0, -1.0, 1e-3, std::numeric_limits<heddle::Seconds>::quiet_NaN()}) {
    int calls = 0;
    const auto call = [&] {
      ++calls;
      spin(2e-3);  // too long to be repeated in a sample
    };
    const auto found = heddle::impl::time_in_turns({call, [] { spin(1e-3); }}, budget, comm);
    CHECK(calls == 7);
    REQUIRE(found.size() == 2);
    CHECK(found[0] >= 2e-3);
    CHECK(found[1] >= 1e-3);
  }
}

TEST_CASE("one that is mostly faster, but slower in every fourth round, is not taken for faster") {
  const heddle::Communicator comm(MPI_COMM_WORLD);
  int calls = 0;
  // Too long to be repeated in a sample.
  const auto varies = [&] { spin(++calls % 4 == 0 ? 6e-3 : 1.1e-3); };
  const auto found = heddle::impl::time_in_turns({[] { spin(3e-3); }, varies}, 0.5, comm);
  CHECK(found[1] > found[0]);
}

TEST_CASE("calls take turns; one as fast as the first takes no less, a slower one more") {
  const heddle::Communicator comm(MPI_COMM_WORLD);
  std::vector<int> calls(4);
  const auto spins = [&](std::size_t which, heddle::Seconds time) {
    return [&calls, which, time] {
      ++calls[which];
      spin(time);
    };
  };
  const std::vector<heddle::Seconds> found = heddle::impl::time_in_turns(
      {spins(0, 1e-4), spins(1, 1e-4), spins(2, 1e-3), spins(3, 1e-6)}, 1, comm);
  REQUIRE(found.size() == 4);
  CHECK(found[0] >= 1e-4);
  // Two such times differ by a reading of the clock, which takes far less than a hundredth.
  CHECK(found[1] >= 0.99 * found[0]);
  CHECK(found[2] > found[0]);
  CHECK(found[3] < found[0]);
  // Samples are about as long, so the fast one is called more often.
  CHECK(calls[3] > calls[2]);
}

}  // namespace

}  // namespace test_measure_collectives
