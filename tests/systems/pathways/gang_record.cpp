// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The Schedule that an island records: a legal list, the same on all ranks, and executed again it
// computes the same sums. Functions whose sizes are found while running. And the time of a pipeline
// of futures beside that of a Runner.
// ranks: 1 2 4 8
// alone: yes
// space: its own

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>
#include <heddle/systems/energonai/energon.hpp>
#include <heddle/systems/pathways/future.hpp>
#include <heddle/systems/pathways/island.hpp>
#include <heddle/systems/pathways/island_client.hpp>

#include "support/complaint.hpp"
#include "support/on_all_ranks.hpp"
#include "support/rounds.hpp"
#include "support/schedule_battery.hpp"
#include "support/world.hpp"

namespace test_gang_record {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Vector = heddle::Sharded<std::int64_t*, Exec>;
using heddle::test::world_rank;
using heddle::test::world_size;
namespace hd = heddle;

constexpr std::size_t length = 12;
constexpr std::uint32_t input = 0, next = 1, parts = 2,
                        plus = 3;  // the functions, as they are added

hd::Layout over_all(hd::Placement placement) {
  return hd::Layout({{"all", world_size()}}, {length}, {placement});
}
hd::Layout on_rank(int rank) {
  return hd::Layout({{"one", 1}}, {length}, {hd::Replicate{}}, {hd::Rank{rank}});
}

/// What a function makes of an element of each of its arguments, on a rank.
std::int64_t value_of(std::uint32_t function, std::int64_t rank, std::int64_t a, std::int64_t b) {
  return function == next ? a + 1 : function == parts ? (rank + 1) * a : a + b;
}

/// Performs the actions of a record on a rank, in memory of its own.
struct Replay {
  std::int64_t rank;
  void operator()(const hd::Task& task) const {
    const auto uses = task.uses();
    if (task.kind() == hd::Kind::combine) return hd::combine_on_host(task);
    if (task.kind() == hd::Kind::move) {
      std::memcpy(uses[1].data, uses[0].data, uses[0].bytes);
      return;
    }
    REQUIRE(task.kind() == hd::Kind::user);
    if (uses.empty()) return;  // a rank without elements
    const auto elements = [&](std::size_t use) {
      return reinterpret_cast<std::int64_t*>(uses[use].data);
    };
    const std::size_t result = uses.size() - 1;
    for (std::size_t i = 0; i < uses[result].bytes / sizeof(std::int64_t); ++i)
      elements(result)[i] =
          value_of(task.stage().value, rank, elements(0)[i], result > 1 ? elements(1)[i] : 0);
  }
};

TEST_CASE("an island records the list that it ran, and the list computes the same sums") {
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", world_size()}});
  hd::systems::Island island(mesh,
                             {.wait = {.idle = hd::Idle::nap, .watchdog = 20}, .record = true});
  const int last = world_size() - 1;
  const auto x = island.input<Vector>("x", over_all(hd::Shard{0}));
  const auto one = [&](std::uint32_t function) {
    return [function](const Vector& a, Vector& out) {
      for (std::size_t i = 0; i < out.parts().size(); ++i)
        out.parts()(i) = value_of(function, world_rank(), a.parts()(i), 0);
    };
  };
  const auto add_one =
      island.add<Vector(Vector)>("next", {on_rank(last)}, on_rank(last), one(next));
  const auto sum = island.add<Vector(Vector)>("parts", {over_all(hd::Replicate{})},
                                              over_all(hd::Partial{}), one(parts));
  const auto both = island.add<Vector(Vector, Vector)>(
      "plus", {over_all(hd::Shard{0}), over_all(hd::Shard{0})}, over_all(hd::Shard{0}),
      [](const Vector& a, const Vector& b, Vector& out) {
        for (std::size_t i = 0; i < out.parts().size(); ++i)
          out.parts()(i) = value_of(plus, 0, a.parts()(i), b.parts()(i));
      },
      {.communicates = true});
  std::vector<std::int64_t> found;
  const auto client = [&](hd::systems::IslandClient& of) {
    const Vector::View all("all", length);
    for (std::size_t i = 0; i < length; ++i) all(i) = static_cast<std::int64_t>(100 + i);
    auto a = of.put(x, all);
    for (int k = 0; k < 3; ++k) {
      a = of.call(both, a, of.call(sum, of.call(add_one, a)));
      if (k == 1) of.start();
    }
    const auto values = of.get(a);
    found.assign(values.data(), values.data() + length);
  };
  world_rank() == 0 ? island.serve(client) : island.serve();

  const hd::Schedule record = island.record();
  std::uint64_t mine = hash(record), least = mine, most = mine;
  MPI_Allreduce(&mine, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  CHECK(least == most);
  if (world_rank() == 0) {
    hd::test::schedule_battery(record);
    std::vector<std::vector<std::int64_t>> memory;
    for (const hd::Buffer& buffer : record.buffers()) {
      auto& words = memory.emplace_back(buffer.bytes / sizeof(std::int64_t), 0);
      if (record[buffer.label] == "put")
        for (std::size_t i = 0; i < words.size(); ++i)
          words[i] = static_cast<std::int64_t>(100 + i);
    }
    hd::run_threads(record.ranks(), [&](hd::ThreadTransport& transport) {
      const Replay replay{static_cast<std::int64_t>(transport.rank().value)};
      hd::execute(hd::slice(record, transport.rank(),
                            [&](hd::BufferId id, const hd::Buffer&) {
                              return reinterpret_cast<std::byte*>(memory[+id].data());
                            }),
                  replay, transport);
    });
    std::vector<std::int64_t> expected(length);
    for (std::size_t i = 0; i < length; ++i) expected[i] = static_cast<std::int64_t>(100 + i);
    const std::int64_t factor = world_size() * (world_size() + 1) / 2;
    for (int k = 0; k < 3; ++k)
      for (std::int64_t& value : expected) value += factor * (value + 1);
    CHECK(found == expected);
    std::size_t got = 0;
    for (std::size_t b = 0; b < memory.size(); ++b)
      if (record[record.buffers()[b].label] == "got") {
        CHECK(memory[b] == expected);
        ++got;
      }
    CHECK(got == 1);
  }
  // Once more the same programs: the same list.
  world_rank() == 0 ? island.serve(client) : island.serve();
  CHECK(hash(island.record()) == mine);
}

/// The elements of `in` that are multiples of `divisor`, in their order.
std::vector<std::int64_t> multiples(const std::int64_t* in, std::size_t count,
                                    std::int64_t divisor) {
  std::vector<std::int64_t> kept;
  std::copy_if(in, in + count, std::back_inserter(kept),
               [&](std::int64_t value) { return value % divisor == 0; });
  return kept;
}

TEST_CASE("sizes that are found while running: results, errors and the recorded list") {
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", world_size()}});
  hd::systems::Island island(mesh,
                             {.wait = {.idle = hd::Idle::nap, .watchdog = 20}, .record = true});
  const auto rows = over_all(hd::Shard{0});
  const auto last = on_rank(world_size() - 1);
  const auto x = island.input<Vector>("x", rows);
  // keep: the multiples of the first element among the others, on the last rank.
  const auto kept_of = [](const std::int64_t* in, std::size_t count) {
    return multiples(in + 1, count - 1, in[0]);
  };
  const auto keep = island.add_unsized<Vector(Vector)>(
      "keep", {last}, last,
      [&](const Vector& in) -> std::vector<std::int64_t> {
        if (in.view().size() == 0) return {0};
        return {static_cast<std::int64_t>(kept_of(in.view().data(), in.view().size()).size())};
      },
      [&](const Vector& in, Vector& out) {
        if (in.view().size() == 0) return;
        const auto kept = kept_of(in.view().data(), in.view().size());
        std::copy(kept.begin(), kept.end(), out.view().data());
      });
  // add_one: of any size, over all ranks.
  const auto add_one = island.add_unsized<Vector(Vector)>(
      "add_one", {rows}, rows, [](const Vector& in) { return in.layout().sizes(); },
      [](const Vector& in, Vector& out) {
        for (std::size_t i = 0; i < out.parts().size(); ++i) out.parts()(i) = in.parts()(i) + 1;
      });
  const auto copy = island.add<Vector(Vector)>(
      "copy", {rows}, rows,
      [](const Vector& in, Vector& out) { Kokkos::deep_copy(out.view(), in.view()); });
  const auto wrong = [&](std::vector<std::int64_t> sizes) {
    return island.add_unsized<Vector(Vector)>(
        "wrong", {last}, last,
        [sizes](const Vector&) {
          if (sizes.empty()) throw std::runtime_error("no idea");
          return sizes;
        },
        [](const Vector&, Vector&) {});
  };
  const auto throws = wrong({}), negative = wrong({-1}), two = wrong({1, 1});

  const auto numbers = [](std::int64_t divisor) {
    const Vector::View all("all", length);
    all(0) = divisor;
    for (std::size_t i = 1; i < length; ++i) all(i) = static_cast<std::int64_t>(100 + i);
    return all;
  };
  std::int64_t divisor = 1;
  std::vector<std::int64_t> found;
  const auto filter = [&](hd::systems::IslandClient& of) {
    const auto kept = of.call(keep, of.put(x, numbers(divisor)));
    CHECK_FALSE(kept.sized());
    const auto values = of.get(of.call(add_one, kept));  // one program: put, keep, add_one, get
    found.assign(values.data(), values.data() + values.size());
  };
  for (const std::int64_t next_divisor : {1, 5, 37, 200}) {  // 11, 2, 1 and 0 elements
    divisor = next_divisor;
    world_rank() == 0 ? island.serve(filter) : island.serve();
    // Before "keep" has run nobody prepares add_one, and before that has run nobody the get.
    CHECK(island.counts().prepared_late == 2);
    const hd::Schedule record = island.record();
    const std::uint64_t mine = hash(record);
    std::uint64_t least = mine, most = mine;
    MPI_Allreduce(&mine, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    CHECK(least == most);
    if (world_rank() != 0) continue;
    const Vector::View all = numbers(divisor);
    std::vector<std::int64_t> expected = kept_of(all.data(), length);
    for (std::int64_t& value : expected) ++value;
    CHECK(found == expected);
    hd::test::schedule_battery(record);
  }

  const auto errors = [&](hd::systems::IslandClient& of) {
    const auto told = [&](const hd::systems::Future<Vector>& future) {
      return hd::test::message_of<hd::communication_error>([&] { (void)of.get(future); });
    };
    const auto a = of.put(x, numbers(1));
    const auto has = [](const std::string& text, const std::string& words) {
      CHECK_THAT(text, Catch::Matchers::ContainsSubstring(words));
    };
    has(told(of.call(copy, of.call(keep, a))), "argument 0 of 'copy' does not fit: it is 11 on");
    const std::string where = hd::text("'wrong' failed on rank ", world_size() - 1);
    has(told(of.call(add_one, of.call(throws, a))), where + ": no idea");
    has(told(of.call(copy, of.call(throws, a))), where + ": no idea");
    has(told(of.call(negative, a)), "'wrong' has wrong sizes");
    has(told(of.call(two, a)), "'wrong' returned 2 sizes, expected 1");
    CHECK(of.get(of.call(copy, of.call(add_one, a)))(3) == 104);  // the sizes fit
  };
  world_rank() == 0 ? island.serve(errors) : island.serve();
  if (world_rank() == 0) hd::test::schedule_battery(island.record());
}

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds work{5};
constexpr int microbatches = 8;

double milliseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

using Stages = std::vector<hd::systems::GangFunction<Vector(Vector)>>;

/// An input, and a stage that waits on every rank.
std::pair<hd::systems::GangFunction<Vector()>, Stages> add_stages(hd::systems::Island& island) {
  const auto x = island.input<Vector>("x", on_rank(0));
  Stages stages;
  for (int s = 0; s < world_size(); ++s)
    stages.push_back(island.add<Vector(Vector)>(hd::text("stage ", s), {on_rank(s)}, on_rank(s),
                                                [](const Vector& in, Vector& out) {
                                                  std::this_thread::sleep_for(work);
                                                  out.view()(0) = in.view()(0) + 1;
                                                }));
  return {x, stages};
}

/// The time of a pipeline of futures with a stage on every rank, on rank 0.
double time_of_futures(hd::systems::Island& island, const hd::systems::GangFunction<Vector()>& x,
                       const Stages& stages) {
  double time = 0;
  const auto client = [&](hd::systems::IslandClient& of) {
    const auto begin = Clock::now();
    std::vector<hd::systems::Future<Vector>> results;
    for (int m = 0; m < microbatches; ++m) {
      const Vector::View all("all", length);
      all(0) = m;
      auto value = of.put(x, all);
      for (const auto& stage : stages) value = of.call(stage, value);
      results.push_back(value);
      of.start();
    }
    for (int m = 0; m < microbatches; ++m)
      CHECK(of.get(results[static_cast<std::size_t>(m)])(0) == m + world_size());
    time = milliseconds(begin);
  };
  world_rank() == 0 ? island.serve(client) : island.serve();
  return time;
}

TEST_CASE("a pipeline of futures takes about as long as the Runner's, and posts receives early") {
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", world_size()}});
  hd::systems::Island island(mesh, {.wait = {.idle = hd::Idle::nap, .watchdog = 20}});
  const auto [x, stages] = add_stages(island);
  // One program at a time: nothing overlaps.
  hd::systems::Island in_turn(mesh, {.ahead = 1, .wait = {.idle = hd::Idle::nap, .watchdog = 20}});
  const auto [x_in_turn, stages_in_turn] = add_stages(in_turn);
  const double slowest = time_of_futures(in_turn, x_in_turn, stages_in_turn);
  if (world_rank() == 0) CHECK(slowest >= 5.0 * world_size() * microbatches);

  const auto schedule =
      hd::systems::energon({.ranks = world_size(),
                            .requests = microbatches,
                            .sizes = {.activation = length * sizeof(std::int64_t)}});
  const auto handler = [](const hd::Task&) { std::this_thread::sleep_for(work); };
  hd::Runner runner(handler, schedule, mesh);
  const auto time_of_runner = [&] {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = Clock::now();
    runner.step();
    MPI_Barrier(MPI_COMM_WORLD);
    return milliseconds(begin);
  };
  const std::string what = hd::text(world_size(), " stages, ", microbatches, " microbatches, ");
  std::array forms{
      hd::test::Form{what + "futures, ms", [&] { return time_of_futures(island, x, stages); }},
      hd::test::Form{what + "Runner, ms", time_of_runner}};
  const hd::test::Spread &futures = forms[0].spread, &runners = forms[1].spread;
  const bool first = world_rank() == 0;  // the only rank that knows the time of futures
  const auto holds = [&] { return !first || futures.median() <= 2 * runners.median(); };
  // Ranks spin in barriers.
  (void)hd::test::measure_in_rounds(forms, holds,
                                    {.print = first, .spins = true, .all = hd::test::on_all_ranks});
  if (first) {
    CHECK(futures.least() >= 5.0 * (world_size() + microbatches - 1));
    CHECK(futures.median() <= 2 * runners.median());
  } else {
    CHECK(island.counts().posted_early >= microbatches / 2);
  }
}

}  // namespace test_gang_record
