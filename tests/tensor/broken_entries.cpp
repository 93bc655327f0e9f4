// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2
// space: its own

// Options, rooms and levels of tensor/ that programs fill by hand: every door rejects a broken
// entry and names it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/device_mesh.hpp>
#include <heddle/tensor.hpp>

#include "support/broken_entries.hpp"
#include "support/world.hpp"

namespace test_tensor_broken_entries {

using namespace heddle;
using test::BrokenEntry;
using test::check_broken;
using test::world_size;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Line = TensorLine<double, Exec>;
using Shards = ParameterShards<double, Exec>;
using Room = ShardRoom<double, Exec>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr auto no_level = static_cast<ShardLevel>(9);

}  // namespace

TEST_CASE("shards of parameters reject rooms and steps that are none") {
  const auto room = [](const std::function<void(Room&)>& change) {
    return [=] {
      const auto made = std::make_shared<Room>();
      change(*made);
      Shards(3, Exec{}, made);
    };
  };
  const auto update = [](kernel::AdamOptions options) {
    return [=] { Shards(3, Exec{}).update(Exec{}, options); };
  };
  using enum ShardLevel;
  check_broken({
      {"group", room([](Room& r) { r.group = nullptr; }), {"ShardRoom::group is null"}},
      {"weights", room([](Room& r) { r.sharding.weights = no_level; }), {"weights = 9"}},
      {"gradients", room([](Room& r) { r.sharding.gradients = no_level; }), {"gradients = 9"}},
      {"backward", room([](Room& r) { r.sharding.backward = no_level; }), {"backward = 9"}},
      {"coarser gradients", room([](Room& r) { r.sharding.weights = world; }), {"world"}},
      {"codec",
       room([](Room& r) { r.sharding.weight_codec = Codec{.type = Scalar::byte}; }),
       {"Scalar::byte"}},
      {"codec of gradients",
       room([](Room& r) { r.sharding.gradient_codec = Codec{.type = Scalar::f16, .block = 4}; }),
       {"blocks of 4"}},
      {"beta1", update({.beta1 = 1}), {"ParameterShards::update", "beta1 = 1"}},
      {"learning_rate", update({.learning_rate = nan}), {"learning_rate = nan"}},
      {"stage", [] { (void)ParameterSharding::zero(4); }, {"4"}},
  });
}

TEST_CASE("groups of shards reject sizes and levels that are none") {
  const Communicator all(MPI_COMM_WORLD);
  const ShardGroup group(all, 1, 1);
  const ShardPlace place(Rank{0}, 4, 2, 1);
  double block[4] = {};
  using enum ShardLevel;
  check_broken({
      {"pair", [&] { ShardGroup(all, 1, 0); }, {"pairs of 0"}},
      {"node", [&] { ShardGroup(all, -1, 1); }, {"nodes of -1"}},
      {"rank", [] { ShardPlace(Rank{4}, 4, 2, 1); }, {"rank 4 of 4"}},
      {"level", [=] { (void)place.ranks(no_level); }, {"level = 9"}},
      {"share", [=] { (void)place.share(no_level, 4); }, {"level = 9"}},
      {"level of a gather", [&] { group.gather(Exec{}, block, 4, no_level, rank); }, {"level = 9"}},
      {"gather", [&] { group.gather(Exec{}, block, 4, rank, world); }, {"gather", "rank"}},
      {"reduce", [&] { group.reduce(Exec{}, block, 4, world, rank); }, {"reduce", "rank"}},
  });
}

TEST_CASE("lines of layers reject forms, counts and heads that are none") {
  const Communicator all(MPI_COMM_WORLD);
  const Line line(all);
  const auto form = static_cast<RowForm>(9);
  const auto heads = [&](kernel::AttentionShape shape) {
    return [=, &line] { (void)line.own_heads(shape); };
  };
  check_broken({
      {"form", [&] { Line(all, form); }, {"form = 9"}},
      {"counts",
       [&] {
         Line(all, RowForm::sharded, {.counts = {1, 2}});
       },
       {"2 counts"}},
      {"no heads", heads({1, 1, 0, 4}), {"heads 0"}},
      {"width", heads({1, 1, 2, 3}), {"width 3"}},
  });
}

TEST_CASE("sums and halos of old values reject ages and corrections that are none") {
  const DeviceMesh mesh(MPI_COMM_WORLD, {{"all", world_size()}});
  const auto sum = [&](schedule::Staleness staleness, Correction correction) {
    return [=, &mesh] { StaleSum<double, Exec>(mesh.all(), 2, staleness, correction); };
  };
  const Sharded<double*, Exec> tensor(mesh, {8}, {Shard{0, {}, 1}});
  const auto halo = [&](schedule::HaloOptions options, schedule::Staleness staleness) {
    return [=] { Halo(tensor, options, staleness); };
  };
  check_broken({
      {"age", sum({.age = -1}, Correction::own), {"-1"}},
      {"warmup", sum({.warmup = -2}, Correction::own), {"-2"}},
      {"correction", sum({}, static_cast<Correction>(9)), {"correction = 9"}},
      {"age of a halo", halo({}, {.age = -1}), {"-1"}},
      {"periodic", halo({.periodic = {true, false}}, {}), {"2"}},
      {"sizes",
       [&] { Sharded<double*, Exec>(mesh, std::vector<std::int64_t>{-3}, {Shard{0}}); },
       {"-3"}},
      {"placement", [&] { Sharded<double*, Exec>(mesh, {8}, {Shard{1}}); }, {"1"}},
  });
}

}  // namespace test_tensor_broken_entries
