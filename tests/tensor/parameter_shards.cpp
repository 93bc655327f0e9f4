// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 6 8
// program: its own

// Parameters divided over replicas against the same on one rank: what travels between levels, the
// bytes that it takes, the memory that is kept, and training by every sharding.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/core/random.hpp>
#include <heddle/tensor.hpp>

#include "gpt.hpp"  // with it ParameterShards is compiled already
#include "support/complaint.hpp"
#include "support/sent_bytes.hpp"
#include "support/world.hpp"

namespace test_parameter_shards {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::ShardLevel;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Shards = hd::ParameterShards<double, Exec>;
using Vector = Shards::Vector;
using Group = std::shared_ptr<const hd::ShardGroup>;

constexpr hd::Codec narrow{.type = hd::Scalar::i8, .block = 64};
const std::vector<ShardLevel> levels = {ShardLevel::rank, ShardLevel::pair, ShardLevel::node,
                                        ShardLevel::world};

/// Calls `visit(group)` for every way to make pairs and nodes of the ranks.
template <class Visit>
void for_each_group(Visit&& visit) {
  const hd::Communicator world(MPI_COMM_WORLD);
  for (int node = 1; node <= world.size(); ++node) {
    if (world.size() % node != 0) continue;
    for (int pair = 1; pair <= node; ++pair) {
      if (node % pair != 0) continue;
      INFO("nodes of " << node << ", pairs of " << pair);
      visit(std::make_shared<const hd::ShardGroup>(world, node, pair));
    }
  }
}

/// What this rank has sent, by the links that it took: those to its pair, its node, and others.
hd::ShardPlace::Traffic sent(const hd::ShardGroup& group) {
  const auto pair = static_cast<int>(group.ranks(ShardLevel::pair)),
             node = static_cast<int>(group.ranks(ShardLevel::node)), me = world_rank();
  hd::ShardPlace::Traffic traffic;
  for (const auto& [to, bytes] : hd::test::sent_to)
    (to / pair == me / pair   ? traffic.pair
     : to / node == me / node ? traffic.node
                              : traffic.world) += bytes;
  return traffic;
}

double value(std::size_t i) { return hd::Random(3, "values").normal(i); }

/// Numbers, and by how much they are off at most for what a codec has rounded.
struct Rounded {
  std::vector<double> numbers, errors;

  /// What a line adds on which shares at level `inner` travel: 64 numbers from the beginning of a
  /// share have one scale, and are off by half of it, m / 127, for the largest magnitude m that one
  /// of them can have by then. See Codec.
  [[nodiscard]] std::vector<double> added(const hd::ShardGroup& group, ShardLevel inner) const {
    const auto node = static_cast<int>(group.ranks(ShardLevel::node)),
               pair = static_cast<int>(group.ranks(ShardLevel::pair));
    std::vector<double> result(numbers.size());
    for (int r = 0; r < world_size(); ++r) {
      const hd::Share share =
          hd::ShardPlace(hd::Rank{r}, world_size(), node, pair).share(inner, numbers.size());
      for (std::size_t first = share.first; first < share.end(); first += narrow.block) {
        const std::size_t end = std::min(first + narrow.block, share.end());
        double most = 0;
        for (std::size_t i = first; i < end; ++i)
          most = std::max(most, std::abs(numbers[i]) + errors[i]);
        for (std::size_t i = first; i < end; ++i) result[i] = most / 127;
      }
    }
    return result;
  }
};

}  // namespace

TEST_CASE("shares of a level divide those of the level before, and make the whole") {
  for_each_group([](const Group& ranks) {
    const hd::ShardGroup& group = *ranks;
    for (const std::size_t count : {0, 1, 2, 7, 64, 1009}) {
      for (const ShardLevel level : levels) {
        const hd::Share own = group.share(level, count);
        // Every element is in the shares of as many ranks as there are groups of the level.
        std::vector<int> holders(count, 0);
        for (std::size_t i = own.first; i < own.end(); ++i) holders[i] = 1;
        MPI_Allreduce(MPI_IN_PLACE, holders.data(), static_cast<int>(count), MPI_INT, MPI_SUM,
                      MPI_COMM_WORLD);
        const auto groups = static_cast<std::size_t>(world_size()) / group.ranks(level);
        CHECK(std::ranges::all_of(holders,
                                  [&](int n) { return static_cast<std::size_t>(n) == groups; }));
        if (level == ShardLevel::rank) continue;
        const auto before = static_cast<ShardLevel>(static_cast<int>(level) - 1);
        const hd::Share outer = group.share(before, count);
        CHECK(outer.first + group.within(before, level, count).first == own.first);
        CHECK(own.end() <= outer.end());
      }
    }
  });
}

TEST_CASE("gathering and reducing between any two levels, with the bytes of the closed forms") {
  for_each_group([](const Group& ranks) {
    const hd::ShardGroup& group = *ranks;
    for (const std::size_t count : {0, 1, 7, 257})
      for (const ShardLevel outer : levels)
        for (const ShardLevel inner : levels) {
          if (inner < outer) continue;
          INFO(count << " elements, " << outer << " and " << inner);
          const hd::Share all = group.share(outer, count), own = group.share(inner, count);
          const Exec exec;
          Vector block("block", all.count);
          for (std::size_t i = own.first; i < own.end(); ++i) block(i - all.first) = value(i);
          hd::test::count_sent_bytes();
          group.gather(exec, block.data(), count, inner, outer);
          CHECK(sent(group) == group.gather_traffic(count, 8, inner, outer));
          for (std::size_t i = 0; i < all.count; ++i) CHECK(block(i) == value(all.first + i));

          // Sums of small integers are exact in any order. The terms are of the ranks that have
          // the outer share in common and different ones of the inner level.
          for (std::size_t i = 0; i < all.count; ++i)
            block(i) = static_cast<double>(all.first + i + 1);
          hd::test::count_sent_bytes();
          group.reduce(exec, block.data(), count, outer, inner);
          CHECK(sent(group) == group.reduce_traffic(count, 8, outer, inner));
          const auto terms =
              static_cast<double>(group.ranks(inner)) / static_cast<double>(group.ranks(outer));
          for (std::size_t i = own.first; i < own.end(); ++i)
            CHECK(block(i - all.first) == terms * static_cast<double>(i + 1));
        }
  });
}

TEST_CASE("with a codec what travels is smaller, within its bound, and all ranks have the same") {
  for_each_group([](const Group& ranks) {
    const hd::ShardGroup& group = *ranks;
    for (const std::size_t count : {1, 7, 1009}) {
      INFO(count << " elements");
      const Exec exec;
      const hd::Share own = group.share(ShardLevel::world, count);
      // Every block has a magnitude of its own.
      const auto faded = [](std::size_t i) {
        return value(i) * std::exp2(-0.02 * static_cast<double>(i));
      };
      Rounded gathered{std::vector<double>(count), std::vector<double>(count)};
      for (std::size_t i = 0; i < count; ++i) gathered.numbers[i] = faded(i);
      Rounded reduced = gathered;
      for (std::size_t line = levels.size() - 1; line > 0; --line) {
        if (group.ranks(levels[line]) == group.ranks(levels[line - 1])) continue;
        const std::vector<double> added = gathered.added(group, levels[line]);
        for (std::size_t i = 0; i < count; ++i) gathered.errors[i] += added[i];
      }
      // Of the terms that meet on a line all but the receiver's own are rounded.
      for (std::size_t line = 1; line < levels.size(); ++line) {
        const auto terms =
            static_cast<double>(group.ranks(levels[line]) / group.ranks(levels[line - 1]));
        const std::vector<double> added = reduced.added(group, levels[line]);
        for (std::size_t i = 0; i < count; ++i) {
          reduced.numbers[i] *= terms;
          reduced.errors[i] = terms * reduced.errors[i] + (terms - 1) * added[i];
        }
      }

      Vector all("all", count);
      for (std::size_t i = own.first; i < own.end(); ++i) all(i) = faded(i);
      hd::test::count_sent_bytes();
      group.gather(exec, all.data(), count, ShardLevel::world, ShardLevel::rank, narrow);
      CHECK(sent(group) ==
            group.gather_traffic(count, 8, ShardLevel::world, ShardLevel::rank, narrow));
      for (std::size_t i = 0; i < count; ++i)
        CHECK(std::abs(all(i) - faded(i)) <= gathered.errors[i]);
      std::vector<double> lowest(all.data(), all.data() + count), highest = lowest;
      const int n = static_cast<int>(count);
      MPI_Allreduce(MPI_IN_PLACE, lowest.data(), n, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
      MPI_Allreduce(MPI_IN_PLACE, highest.data(), n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      CHECK(lowest == highest);

      for (std::size_t i = 0; i < count; ++i) all(i) = faded(i);
      hd::test::count_sent_bytes();
      group.reduce(exec, all.data(), count, ShardLevel::rank, ShardLevel::world, narrow);
      CHECK(sent(group) ==
            group.reduce_traffic(count, 8, ShardLevel::rank, ShardLevel::world, narrow));
      for (std::size_t i = own.first; i < own.end(); ++i)
        CHECK(std::abs(all(i) - reduced.numbers[i]) <= reduced.errors[i]);
    }
  });
}

TEST_CASE("every sharding trains as one rank does, in the memory and bytes of its formulas") {
  constexpr int passes = 3;
  const heddle::kernel::AdamOptions options{.learning_rate = 0.05};
  const Exec exec;
  // The gradient of a quadratic of pass m on replica r, at weights w.
  const auto gradient = [](double w, std::size_t i, int r, int m) {
    return w - std::sin(static_cast<double>(i + 1) * (1 + r) * (2 + m));
  };
  for (const std::size_t count : {1, 5, 211}) {
    // All replicas on one rank, in order.
    Shards serial(count, exec);
    for (std::size_t i = 0; i < count; ++i) serial.weights()[i] = value(i);
    serial.started(exec);
    for (int step = 0; step < 4; ++step) {
      serial.zero_gradients(exec);
      for (int m = 0; m < passes; ++m)
        for (int r = 0; r < world_size(); ++r) {
          const double* const w = serial.forward_weights(exec);
          double* const g = serial.begin_gradients(exec);
          for (std::size_t i = 0; i < count; ++i) g[i] += gradient(w[i], i, r, m);
          serial.add(exec);
        }
      serial.update(exec, options);
    }
    for_each_group([&](const Group& ranks) {
      for (const hd::ParameterSharding& sharding :
           {hd::ParameterSharding::zero(1), hd::ParameterSharding::zero(2),
            hd::ParameterSharding::zero(3), hd::ParameterSharding::zeropp({}),
            hd::ParameterSharding::three_level({}), hd::ParameterSharding::zeropp(),
            hd::ParameterSharding::three_level()}) {
        INFO(count << " parameters, weights by " << sharding.weights << ", gradients by "
                   << sharding.gradients << (sharding.weight_codec ? ", encoded" : ""));
        const auto room = std::make_shared<Shards::Room>();
        room->group = ranks;
        room->sharding = sharding;
        Shards shards(count, exec, room);
        const hd::Share own = shards.owned();
        for (std::size_t i = 0; i < own.count; ++i) shards.weights()[i] = value(own.first + i);
        shards.started(exec);

        const auto of = [&](ShardLevel level) { return ranks->share(level, count).count; };
        const auto divided = [&](ShardLevel level) {
          return ranks->ranks(level) < ranks->ranks(ShardLevel::world);
        };
        CHECK(shards.kept() == 8 * (3 * of(ShardLevel::world) + of(sharding.gradients) +
                                    (divided(sharding.weights) ? of(sharding.weights) : 0) +
                                    (sharding.backward ? of(*sharding.backward) : 0)));
        CHECK(room->weights.size() == (ranks->ranks(sharding.weights) > 1 ? count : 0));
        CHECK(room->gradients.size() == (ranks->ranks(sharding.gradients) > 1 ? count : 0));

        for (int step = 0; step < 4; ++step) {
          hd::test::count_sent_bytes();
          shards.zero_gradients(exec);
          for (int m = 0; m < passes; ++m) {
            static_cast<void>(shards.forward_weights(exec));
            const double* const w = shards.backward_weights(exec);
            double* const g = shards.begin_gradients(exec);
            for (std::size_t i = 0; i < count; ++i) g[i] += gradient(w[i], i, world_rank(), m);
            shards.add(exec);
          }
          shards.update(exec, options);
          CHECK(sent(*ranks) == shards.step_traffic(passes));
        }
        // Adam divides by the root of the mean square: a difference of rounding stays one of
        // rounding, but where weights are encoded it is as large as a step.
        const double bound = sharding.weight_codec ? 0.1 : 1e-12;
        for (std::size_t i = 0; i < own.count; ++i)
          CHECK(std::abs(shards.weights()[i] - serial.weights()[own.first + i]) <= bound);
        CHECK(shards.steps() == 4);
      }
    });
  }
}

TEST_CASE("on two nodes of two pairs a step of 64 numbers sends these bytes") {
  // Blocks of 32, 16 and 8 numbers of 8 bytes, or of one and a scale: the half that a rank of a
  // pair lacks, a pair of a node, a node.
  using Traffic = hd::ShardPlace::Traffic;
  const auto of = [](const hd::ParameterSharding& sharding) {
    Traffic first;
    for (int rank = 0; rank < 8; ++rank) {
      const Traffic sent = hd::ShardPlace(hd::Rank{rank}, 8, 4, 2).step_traffic(sharding, 64, 8, 3);
      if (rank == 0) first = sent;
      CHECK(sent == first);
    }
    return first;
  };
  // Three passes of three gathers or sums.
  CHECK(of(hd::ParameterSharding::zero(3)) == Traffic{9 * 256, 9 * 128, 9 * 64});
  // Sums of gradients; a sum once a step, and new weights to all.
  CHECK(of(hd::ParameterSharding::zero(2)) == Traffic{3 * 256 + 256, 3 * 128 + 128, 3 * 64 + 64});
  CHECK(of(hd::ParameterSharding::zero(1)) == Traffic{256 + 256, 128 + 128, 64 + 64});
  // A gather of three stays in the node.
  CHECK(of(hd::ParameterSharding::zeropp({})) == Traffic{9 * 256, 9 * 128, 6 * 64});
  CHECK(of(hd::ParameterSharding::zeropp()) ==
        Traffic{3 * (33 + 256 + 33), 3 * (17 + 128 + 17), 3 * (9 + 9)});
  // Gathers stay in the pair, sums in the node; once a step a sum and a gather between nodes.
  CHECK(of(hd::ParameterSharding::three_level({})) == Traffic{9 * 256, 3 * 128 + 128, 64 + 64});
  CHECK(of(hd::ParameterSharding::three_level()) == Traffic{9 * 33, 3 * 17 + 17, 9 + 9});
}

TEST_CASE("what does not divide, or by the wrong order, is refused with the remedy") {
  const hd::Communicator world(MPI_COMM_WORLD);
  CHECK_THAT(
      hd::test::message_of<hd::contract_error>([&] { hd::ShardGroup(world, world.size() + 1, 1); }),
      ContainsSubstring("the pairs must divide the node, and the nodes must divide all ranks") &&
          ContainsSubstring("choose a node size that divides the ranks"));
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] { hd::ShardGroup(world, 1, 2); }),
             ContainsSubstring("pairs of 2, nodes of 1"));
  const auto room = std::make_shared<Shards::Room>();
  room->sharding = {.weights = ShardLevel::world, .gradients = ShardLevel::node};
  CHECK_THAT(
      hd::test::message_of<hd::contract_error>([&] { Shards(3, Exec{}, room); }),
      ContainsSubstring(
          "the shards of the gradients or of the second copy do not fit those of the weights") &&
          ContainsSubstring("divide gradients at least as finely as weights"));
  CHECK_THAT(hd::test::message_of<hd::contract_error>([] { (void)hd::ParameterSharding::zero(4); }),
             ContainsSubstring("the ZeRO stage must be 1, 2 or 3"));
  CHECK_THAT(
      hd::test::message_of<hd::contract_error>([] { (void)hd::ParameterSharding::find("zero4"); }),
      ContainsSubstring("no sharding 'zero4'") && ContainsSubstring("three-level"));
}

}  // namespace test_parameter_shards
