// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// timeout: 240

/// @file
/// measure_collectives: every rank has the same table, the library's call and ours in it.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/measure_collectives.hpp>

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
  const heddle::CostTable table = heddle::measure_collectives(comm, quick());
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

TEST_CASE("of one algorithm two candidates are timed at most") {
  std::vector<heddle::CollectivePrediction> all;
  for (const heddle::Bytes piece : {0u, 1u, 2u}) all.push_back({{.piece = piece}, 1.0 + piece});
  all.push_back({{.algorithm = Algorithm::ring}, 9});
  all.push_back({{.algorithm = Algorithm::star}, 10});
  const auto found = heddle::impl::shortlist(all, 3);
  REQUIRE(found.size() == 3);
  CHECK(found[1].piece == 1);
  CHECK(found[2].algorithm == Algorithm::ring);
}

TEST_CASE("a size that is not whole floats is refused") {
  heddle::CollectiveMeasureOptions options = quick();
  options.sizes = {8, 7};
  const heddle::Communicator comm(MPI_COMM_WORLD);
  CHECK_THROWS_MATCHES(
      heddle::measure_collectives(comm, options), heddle::contract_error,
      MessageMatches(ContainsSubstring("a size is whole floats") && ContainsSubstring("7 bytes")));
}

}  // namespace
