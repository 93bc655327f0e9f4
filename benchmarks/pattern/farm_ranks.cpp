// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2

/// @file
/// farm() of empty items over two ranks of one host, of which one gives the items out: the time of
/// an item if the other rank holds one or two items at a time. The rounds are short, so that some
/// are undisturbed on a machine that has more to do.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <mpi.h>

#include <heddle/comm/environment.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/pattern/rank_farm.hpp>

#include "../ranks.hpp"

namespace {

constexpr const char* name = "pattern/farm_ranks";
constexpr std::size_t rounds = 301;
constexpr std::int64_t items = 200;

double seconds(heddle::MpiTransport& transport, int prefetch) {
  std::int64_t next = 0, sum = 0;
  const double time = bench::seconds_of_all(MPI_COMM_WORLD, [&] {
    heddle::pattern::farm(
        transport, {.prefetch = prefetch, .wait = {.idle = heddle::Idle::spin}},
        [&] { return next < items ? std::optional<std::int64_t>(next++) : std::nullopt; },
        [](std::int64_t item) { return item; },
        [&](std::int64_t, heddle::pattern::FarmOutcome<std::int64_t>&& outcome) {
          sum += *outcome.value;
        });
  });
  if (transport.rank() == heddle::Rank{0})
    bench::require_equal("the sum of the results", sum, items * (items - 1) / 2);
  return time;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::status_of(name, [&] {
    const heddle::Environment environment(argc, argv);
    const int rank = bench::one_of_two_ranks(name);
    heddle::MpiTransport transport(MPI_COMM_WORLD);
    std::vector<std::vector<double>> each(2);
    for (std::size_t round = 0; round < rounds; ++round)
      for (const int prefetch : {1, 2})
        each[static_cast<std::size_t>(prefetch - 1)].push_back(1e6 * seconds(transport, prefetch) /
                                                               static_cast<double>(items));
    if (rank != 0) return;
    for (const int prefetch : {1, 2})
      bench::print_value(name, heddle::text("item_prefetch_", prefetch),
                         bench::summarise(each[static_cast<std::size_t>(prefetch - 1)]), "us");
  });
}
