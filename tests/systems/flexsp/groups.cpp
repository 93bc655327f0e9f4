// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// program: its own
// space: its own

// SequenceGroups: communicators of all levels, made once, serve every group of every plan; and
// gradients that are weighted by tokens equal those of one rank.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>
#include <heddle/systems/flexsp/sequence_costs.hpp>
#include <heddle/systems/flexsp/sequence_groups.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/world.hpp"

namespace test_groups {

int made_communicators = 0;  ///< by MPI_Comm_split

}  // namespace test_groups

/// Counts, in the place of MPI's own.
extern "C" int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
  ++test_groups::made_communicators;
  return PMPI_Comm_split(comm, color, key, made);
}

namespace test_groups {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

/// Costs of all degrees for this many ranks.
hd::systems::SequenceCosts costs_of(const hd::Random& random) {
  hd::systems::SequenceCosts costs{world_size(), 200, {}};
  double slower = 1;
  for (int degree = 1; degree <= world_size(); degree *= 2) {
    costs.degrees.push_back({degree, 0.1 * random.uniform(1), 1e-3 * slower / degree, 0});
    slower *= 1 + random.uniform(2 + static_cast<std::uint64_t>(degree));
  }
  return costs;
}

/// A plan for a random batch.
hd::systems::SequencePlan plan_of(std::uint64_t seed) {
  const hd::Random random(seed, "sequence groups");
  std::vector<std::int64_t> lengths;
  const std::size_t count = 1 + random.below(3, 12);
  for (std::size_t i = 0; i < count; ++i)
    lengths.push_back(1 + static_cast<std::int64_t>(random.below(10 + i, i % 4 == 0 ? 200 : 60)));
  return hd::systems::plan_sequence_groups(lengths, costs_of(random));
}

std::size_t own() { return static_cast<std::size_t>(world_rank()); }

}  // namespace

TEST_CASE("sequence groups: communicators of all levels, made once, serve every plan") {
  const hd::Communicator world(MPI_COMM_WORLD);
  made_communicators = 0;
  const hd::systems::SequenceGroups groups(world);
  int levels = 0;
  for (int size = 1; size <= world_size(); size *= 2) ++levels;
  CHECK(groups.levels() == levels);
  CHECK(made_communicators == levels);
  std::vector<int> used(static_cast<std::size_t>(levels), 0);
  for (std::uint64_t seed = 0; seed < hd::test::cases(50, 2000); ++seed) {
    const hd::systems::SequencePlan plan = plan_of(seed);
    for (const hd::systems::SequenceMicrobatch& microbatch : plan.microbatches) {
      const hd::systems::SequenceGroup& group = microbatch.groups[groups.number_of(microbatch)];
      const hd::Communicator& comm = groups.group(microbatch);
      REQUIRE(comm.size() == group.degree);
      REQUIRE(+comm.rank() == own() - +group.first);
      // The ranks of the communicator are those of the group, in their order.
      std::vector<int> members(static_cast<std::size_t>(comm.size()));
      const int mine = world_rank();
      MPI_Allgather(&mine, 1, MPI_INT, members.data(), 1, MPI_INT, comm.get());
      for (std::size_t i = 0; i < members.size(); ++i)
        REQUIRE(members[i] == static_cast<int>(+group.first + i));
      ++used[static_cast<std::size_t>(std::log2(group.degree))];
    }
  }
  CHECK(made_communicators == levels);
  if (world_size() == 4)  // the plans have groups of all sizes on some rank
    for (int& level : used) {
      MPI_Allreduce(MPI_IN_PLACE, &level, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      CHECK(level > 0);
    }
}

TEST_CASE("sequence groups: gradients weighted by tokens equal those of one rank") {
  // y = W x, loss = mean over tokens of |y - t|^2 / 2; W has 2 rows and 3 columns.
  constexpr std::size_t rows = 2, columns = 3;
  const double weights[rows][columns] = {{0.5, -1, 2}, {1.5, 0.25, -0.75}};
  using Gradient = std::vector<double>;
  const auto add_token = [&](const hd::Random& random, std::uint64_t sequence, std::uint64_t token,
                             double weight, Gradient& gradient) {
    double x[columns], error[rows];
    for (std::uint64_t c = 0; c < columns; ++c)
      x[c] = random.normal((sequence * 1000 + token) * 8 + c);
    for (std::uint64_t r = 0; r < rows; ++r) {
      // Long sequences have other targets than short ones, so that weights matter.
      error[r] =
          -static_cast<double>(sequence) - random.normal((sequence * 1000 + token) * 8 + 4 + r);
      for (std::size_t c = 0; c < columns; ++c) error[r] += weights[r][c] * x[c];
    }
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c)
        gradient[r * columns + c] += weight * error[r] * x[c];
  };
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::systems::SequenceGroups groups(world);
  bool weights_matter = false;
  for (std::uint64_t seed = 0; seed < hd::test::cases(20, 500); ++seed) {
    const hd::systems::SequencePlan plan = plan_of(seed);
    const hd::Random random(seed, "tokens");
    Gradient serial(rows * columns, 0), weighted = serial, unweighted = serial;
    for (std::size_t s = 0; s < plan.lengths.size(); ++s)
      for (std::int64_t token = 0; token < plan.lengths[s]; ++token)
        add_token(random, s, static_cast<std::uint64_t>(token),
                  1 / static_cast<double>(plan.tokens()), serial);
    double parts = 0;  // means that are not empty
    for (const hd::systems::SequenceMicrobatch& microbatch : plan.microbatches) {
      const hd::systems::SequenceGroup& group = microbatch.groups[groups.number_of(microbatch)];
      const hd::Communicator& comm = groups.group(microbatch);
      const auto share = [&](std::size_t sequence) {
        return hd::even_share(static_cast<std::size_t>(plan.lengths[sequence]),
                              static_cast<std::size_t>(comm.size()), +comm.rank());
      };
      std::size_t tokens = 0;
      for (const std::size_t s : group.sequences) tokens += share(s).count;
      if (tokens == 0) continue;
      // What a rank knows: the mean over its tokens.
      Gradient mean(rows * columns, 0);
      for (const std::size_t s : group.sequences)
        for (std::size_t token = share(s).first; token < share(s).end(); ++token)
          add_token(random, s, token, 1 / static_cast<double>(tokens), mean);
      const double weight =
          hd::systems::token_weight(static_cast<std::int64_t>(tokens), plan.tokens());
      parts += 1;
      for (std::size_t i = 0; i < mean.size(); ++i) {
        weighted[i] += weight * mean[i];
        unweighted[i] += mean[i];
      }
    }
    const auto sum = [&](double* data, std::size_t count) {
      MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_DOUBLE, MPI_SUM, world.get());
    };
    sum(weighted.data(), weighted.size());
    sum(unweighted.data(), unweighted.size());
    sum(&parts, 1);
    double largest = 0;
    for (const double each : serial) largest = std::max(largest, std::abs(each));
    for (std::size_t i = 0; i < serial.size(); ++i) {
      REQUIRE(std::abs(weighted[i] - serial[i]) <= 1e-12 * largest);
      weights_matter =
          weights_matter || std::abs(unweighted[i] / parts - serial[i]) > 1e-2 * largest;
    }
  }
  CHECK((weights_matter || world_size() == 1));
}

TEST_CASE("sequence groups: what does not fit the ranks is rejected") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::systems::SequenceGroups groups(world);
  const auto complaint = [](auto&& call) { return hd::test::message_of<hd::contract_error>(call); };
  CHECK_THAT(complaint([&] { (void)groups.level(9); }), ContainsSubstring("level 9"));
  hd::systems::SequenceMicrobatch wide;
  wide.groups.emplace_back().degree = 8;
  CHECK_THAT(
      complaint([&] { (void)groups.group(wide); }),
      ContainsSubstring(hd::text("its groups have 8 ranks, the communicator has ", world_size())));
  if (world_size() == 3) {
    if (world_rank() == 2)
      CHECK_THAT(complaint([&] { (void)groups.level(1); }), ContainsSubstring("not complete"));
    else
      CHECK(groups.level(1).size() == 2);
  }
  hd::Communicator moved(MPI_COMM_WORLD);
  const hd::Communicator there(std::move(moved));
  CHECK_THAT(complaint([&] { const hd::systems::SequenceGroups of_none(moved); }),  // NOLINT
             ContainsSubstring("heddle::systems::SequenceGroups: the communicator is empty"));
  CHECK_THAT(complaint([&] { (void)hd::systems::token_weight(5, 4); }),
             ContainsSubstring("5 of 4 tokens"));
  CHECK(hd::systems::token_weight(0, 0) == 0);
  CHECK(hd::systems::token_weight(1, 4) == 0.25);
}

}  // namespace test_groups
