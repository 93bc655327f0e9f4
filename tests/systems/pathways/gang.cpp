// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// An island: results against serial computations, errors that arrive at futures, wrong use, the
// order of programs, and shares.
// ranks: 1 2 4 8
// space: its own

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/comm/device_mesh.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/pathways/island.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/world.hpp"

namespace test_gang {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Vector = heddle::Sharded<std::int64_t*, Exec>;
using Matrix = heddle::Sharded<double**, Exec>;
using heddle::test::message_of;
using heddle::test::world_rank;
using heddle::test::world_size;
namespace hd = heddle;

constexpr std::int64_t length = 12;

/// Clients of one process check one after another.
std::mutex checks;

hd::DeviceMesh world() { return {MPI_COMM_WORLD, {{"all", world_size()}}}; }

/// A layout over all ranks.
hd::Layout over_all(hd::Placement placement, std::int64_t size = length) {
  return hd::Layout({{"all", world_size()}}, {size}, {placement});
}
hd::Layout on_rank(int rank) {
  return hd::Layout({{"one", 1}}, {length}, {hd::Replicate{}}, {hd::Rank{rank}});
}

Vector::View numbers(std::int64_t first, std::int64_t size = length) {
  const Vector::View view("numbers", static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) view(static_cast<std::size_t>(i)) = first + i;
  return view;
}

/// Applies `each` to every element of this rank.
template <class Each>
auto elementwise(Each each) {
  return [each](const Vector& in, Vector& out) {
    for (std::size_t i = 0; i < in.parts().size(); ++i) out.parts()(i) = each(in.parts()(i));
  };
}

hd::systems::IslandOptions napping() { return {.wait = {.idle = hd::Idle::nap, .watchdog = 20}}; }

TEST_CASE("functions run on their ranks, and tensors change their layouts between them") {
  const hd::DeviceMesh mesh = world();
  hd::systems::Island island(mesh, napping());
  const int last = world_size() - 1;
  const auto x = island.input<Vector>("x", over_all(hd::Shard{0}));
  const auto twice =
      island.add<Vector(Vector)>("twice", {over_all(hd::Shard{0})}, over_all(hd::Shard{0}),
                                 elementwise([](auto v) { return 2 * v; }));
  const auto next = island.add<Vector(Vector)>("next", {on_rank(last)}, on_rank(last),
                                               elementwise([](auto v) { return v + 1; }));
  // Every rank contributes its rank + 1 times the elements, and all of them need the sum.
  const std::int64_t factor = world_rank() + 1;
  const auto parts =
      island.add<Vector(Vector)>("parts", {over_all(hd::Replicate{})}, over_all(hd::Partial{}),
                                 elementwise([factor](auto v) { return factor * v; }));
  const auto minus = island.add<Vector(Vector, Vector)>(
      "minus", {over_all(hd::Replicate{}), over_all(hd::Replicate{})}, over_all(hd::Replicate{}),
      [](const Vector& a, const Vector& b, Vector& out) {
        for (std::size_t i = 0; i < out.parts().size(); ++i)
          out.parts()(i) = a.parts()(i) - b.parts()(i);
      });
  const auto check = [&](hd::systems::IslandClient& client) {
    const auto a = client.put(x, numbers(5));
    const auto b = client.call(next, client.call(twice, a));
    const auto c = client.call(minus, client.call(parts, b), a);
    CHECK(b.layout() == on_rank(last));
    const auto found = client.get(c);
    const auto middle = client.get(b);
    const std::int64_t sum = world_size() * (world_size() + 1) / 2;
    for (std::size_t i = 0; i < length; ++i) {
      const auto value = 5 + static_cast<std::int64_t>(i);
      CHECK(middle(i) == 2 * value + 1);
      CHECK(found(i) == sum * (2 * value + 1) - value);
    }
  };
  for (int rank = 0; rank < world_size(); ++rank) {
    if (rank == world_rank())
      island.serve(check);
    else
      island.serve();
    CHECK(island.counts().order == std::vector<std::uint32_t>{0, 0});
    if (world_rank() == 0) {
      CHECK(island.counts().programs == 2);
      CHECK(island.counts().dispatches == 2 * static_cast<std::uint64_t>(world_size()));
    }
  }
}

TEST_CASE("matrices by rows become matrices by columns") {
  const hd::DeviceMesh mesh = world();
  hd::systems::Island island(mesh, napping());
  const auto layout = [&](int dim) {
    return hd::Layout({{"all", world_size()}}, {5, 7}, {hd::Shard{dim}});
  };
  const auto x = island.input<Matrix>("x", layout(0));
  const auto columns = island.add<Matrix(Matrix)>(
      "columns", {layout(1)}, layout(1),
      [](const Matrix& in, Matrix& out) { Kokkos::deep_copy(out.view(), in.view()); });
  const auto client = [&](hd::systems::IslandClient& of) {
    const Matrix::View all("all", 5, 7);
    for (std::size_t i = 0; i < all.size(); ++i) all.data()[i] = static_cast<double>(i) / 3;
    const auto found = of.get(of.call(columns, of.put(x, all)));
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(found.data()[i] == all.data()[i]);
  };
  world_rank() == 0 ? island.serve(client) : island.serve();
}

TEST_CASE("an error arrives at the future of its function and of all that read it") {
  const hd::DeviceMesh mesh = world();
  hd::systems::Island island(mesh, napping());
  const auto all = over_all(hd::Shard{0});
  const int last = world_size() - 1;
  const auto x = island.input<Vector>("x", all);
  const auto fails =
      island.add<Vector(Vector)>("fails", {all}, all, [last](const Vector& in, Vector& out) {
        if (world_rank() == last) throw std::runtime_error("no more paper");
        Kokkos::deep_copy(out.view(), in.view());
      });
  std::atomic<int> runs = 0;
  const auto counts =
      island.add<Vector(Vector)>("counts", {over_all(hd::Replicate{})}, over_all(hd::Replicate{}),
                                 [&](const Vector&, Vector&) { ++runs; }, {.communicates = true});
  const auto good =
      island.add<Vector(Vector)>("good", {all}, all, elementwise([](auto v) { return -v; }));
  const auto client = [&](hd::systems::IslandClient& of) {
    const auto a = of.put(x, numbers(0));
    const auto b = of.call(fails, a);
    const auto c = of.call(counts, b);
    const auto d = of.call(good, a);
    const std::string told = message_of<hd::communication_error>([&] { (void)of.get(b); });
    CHECK(told.find(hd::text("'fails' failed on rank ", last, ": no more paper")) !=
          std::string::npos);
    CHECK(message_of<hd::communication_error>([&] { (void)of.get(c); }).find("no more paper") !=
          std::string::npos);
    CHECK(of.get(d)(3) == -3);
  };
  world_rank() == 0 ? island.serve(client) : island.serve();
  CHECK(runs == 0);
}

TEST_CASE("wrong use is an error at the call") {
  const hd::DeviceMesh mesh = world();
  hd::systems::Island island(mesh, napping()), other(mesh, napping());
  const auto all = over_all(hd::Shard{0});
  const auto same = elementwise([](auto v) { return v; });
  const auto x = island.input<Vector>("x", all);
  const auto longer = island.input<Vector>("longer", over_all(hd::Shard{0}, length + 1));
  const auto copy = island.add<Vector(Vector)>("copy", {all}, all, same);
  const auto partial = over_all(hd::Partial{});
  const auto sums = island.add<Vector(Vector)>("sums", {partial}, partial, same);
  const auto foreign = other.add<Vector(Vector)>("copy", {all}, all, same);
  hd::systems::Future<Vector> kept;
  std::optional<hd::systems::IslandClient> gone;
  const auto first = [&](hd::systems::IslandClient& of) {
    const auto wrong = [&](auto&& call) { return message_of<hd::contract_error>(call); };
    const auto has = [](const std::string& text, const char* words) {
      return text.find(words) != std::string::npos;
    };
    const auto a = of.put(x, numbers(1));
    CHECK(has(wrong([&] { (void)of.call(foreign, a); }), "another island"));
    CHECK(has(wrong([&] { (void)of.call(copy, of.put(longer, numbers(1, length + 1))); }),
              "argument 0 of 'copy' does not fit"));
    CHECK(has(wrong([&] { (void)of.call(sums, a); }), "cannot become Partial"));
    CHECK(has(wrong([&] { (void)of.call(copy, hd::systems::Future<Vector>()); }),
              "refers to nothing"));
    CHECK(has(wrong([&] { (void)of.put(x, numbers(1, 3)); }), "other extents"));
    CHECK(of.get(a)(0) == 1);
    CHECK(has(wrong([&] { (void)of.get(a); }), "was taken"));
    CHECK(has(wrong([&] { (void)of.call(copy, a); }), "was taken"));
    kept = of.call(copy, of.put(x, numbers(1)));
    gone = of;
  };
  world_rank() == 0 ? island.serve(first) : island.serve();
  if (gone) {  // a client that is used after its function has returned
    for (const auto& use : std::vector<std::function<void()>>{
             [&] { (void)gone->call(copy, kept); }, [&] { (void)gone->put(x, numbers(1)); },
             [&] { (void)gone->get(kept); }})
      CHECK(message_of<hd::contract_error>(use).find("the client has ended") != std::string::npos);
    gone->start();  // there is nothing to submit
  }
  // The client of the first service is gone, and its future belongs to nobody.
  const auto second = [&](hd::systems::IslandClient& of) {
    CHECK(message_of<hd::contract_error>([&] { (void)of.get(kept); }).find("another client") !=
          std::string::npos);
  };
  world_rank() == 0 ? island.serve(second) : island.serve();
  // A future of another island.
  const auto theirs = other.input<Vector>("x", all);
  const auto third = [&](hd::systems::IslandClient& of) { kept = of.put(theirs, numbers(1)); };
  world_rank() == 0 ? other.serve(third) : other.serve();
  const auto fourth = [&](hd::systems::IslandClient& of) {
    for (const auto& use : std::vector<std::function<void()>>{[&] { (void)of.call(copy, kept); },
                                                              [&] { (void)of.get(kept); }})
      CHECK(message_of<hd::contract_error>(use).find("another island") != std::string::npos);
  };
  world_rank() == 0 ? island.serve(fourth) : island.serve();

  CHECK(message_of<hd::contract_error>([&] {
          (void)island.add<Vector(Vector)>("none", {}, all, same);
        }).find("one layout for each argument") != std::string::npos);
  CHECK(message_of<hd::contract_error>([&] { (void)island.record(); }).find("record") !=
        std::string::npos);
  CHECK(message_of<hd::contract_error>([&] {
          island.serve(std::vector<hd::systems::IslandClientSpec>{
              {.name = "zero", .weight = 0, .run = [](hd::systems::IslandClient&) {}}});
        }).find("weight") != std::string::npos);
  if (world_size() > 1) {
    hd::systems::Island unequal(mesh, napping());
    (void)unequal.input<Vector>(world_rank() == 1 ? "a" : "b", all);
    CHECK(message_of<hd::contract_error>([&] { unequal.serve(); }).find("rank 1 differs") !=
          std::string::npos);
  }
}

TEST_CASE("a client that throws or drops its futures disturbs nobody") {
  const hd::DeviceMesh mesh = world();
  hd::systems::Island island(mesh, napping());
  const auto all = over_all(hd::Shard{0});
  const auto x = island.input<Vector>("x", all);
  std::atomic<int> runs = 0;
  const auto counts =
      island.add<Vector(Vector)>("counts", {all}, all, [&](const Vector& in, Vector& out) {
        ++runs;
        Kokkos::deep_copy(out.view(), in.view());
      });
  const hd::systems::IslandClientSpec leaves{"leaves", 1, [&](hd::systems::IslandClient& of) {
                                               for (int k = 0; k < 100; ++k)
                                                 (void)of.call(
                                                     counts, of.put(x, numbers(k)));  // all dropped
                                               throw std::logic_error("out of ideas");
                                             }};
  const hd::systems::IslandClientSpec stays{"stays", 1, [&](hd::systems::IslandClient& of) {
                                              auto a = of.put(x, numbers(0));
                                              for (int k = 0; k < 100; ++k) a = of.call(counts, a);
                                              CHECK(of.get(a)(7) == 7);
                                            }};
  if (world_rank() == world_size() - 1)
    CHECK(message_of<std::logic_error>([&] { island.serve({leaves, stays}); }) == "out of ideas");
  else
    island.serve();
  CHECK(runs == 200);
}

TEST_CASE("the ranks release a tensor when its future is gone, and when it was taken") {
  const hd::DeviceMesh mesh = world();
  hd::systems::Island island(mesh, napping());
  const auto all = over_all(hd::Shard{0});
  Vector::View kept;
  std::vector<int> holders;  // beside `kept`
  const auto x = island.input<Vector>("x", all);
  const auto keeps = island.add<Vector(Vector)>(
      "keeps", {all}, all, [&](const Vector&, Vector& out) { kept = out.view(); });
  const auto looks = island.add<Vector(Vector)>("looks", {all}, all, [&](const Vector&, Vector&) {
    holders.push_back(static_cast<int>(kept.use_count()) - 1);
  });
  const auto client = [&](hd::systems::IslandClient& of) {
    const auto a = of.put(x, numbers(0));
    const auto look = [&] {
      (void)of.call(looks, a);
      of.start();
    };
    for (const bool takes : {false, true}) {
      auto b = of.call(keeps, a);
      look();
      look();
      if (takes) (void)of.get(b);
      b = {};
      look();  // the note of the drop comes with this program, and is heeded after it
      look();
    }
  };
  world_rank() == 0 ? island.serve(client) : island.serve();
  REQUIRE(holders.size() == 8);
  for (const std::size_t round : {std::size_t{0}, std::size_t{4}}) {
    CHECK(holders[round] >= 1);
    CHECK(holders[round + 1] >= 1);
    CHECK(holders[round + 3] == 0);
  }
}

/// A function whose result all ranks sum: every rank needs the parts of all others.
hd::systems::GangFunction<Vector(Vector)> exchange(hd::systems::Island& island) {
  return island.add<Vector(Vector)>("exchange", {over_all(hd::Replicate{})},
                                    over_all(hd::Partial{}), elementwise([](auto v) { return v; }));
}

TEST_CASE("two clients whose programs communicate always end in the order of the island") {
  const hd::DeviceMesh mesh = world();
  hd::systems::Island island(mesh, napping());
  const auto x = island.input<Vector>("x", over_all(hd::Replicate{}));
  const std::vector sums{exchange(island), exchange(island)};
  for (std::uint64_t round = 0; round < hd::test::cases(50, 200); ++round) {
    // One client calls the functions in the opposite order of the other.
    const auto run = [&](hd::systems::IslandClient& of, std::size_t first) {
      auto a = of.put(x, numbers(0));
      for (const std::size_t k : {first, 1 - first}) {
        a = of.call(sums[k], a);
        of.start();
      }
      const std::int64_t found = of.get(a)(2);
      const std::lock_guard lock(checks);
      CHECK(found == 2 * world_size() * world_size());
    };
    std::vector<hd::systems::IslandClientSpec> mine;
    if (world_rank() == 0) mine.push_back({"left", 1, [&](auto& of) { run(of, 0); }});
    if (world_rank() == world_size() - 1)
      mine.push_back({"right", 1, [&](auto& of) { run(of, 1); }});
    island.serve(std::move(mine));
    CHECK(island.counts().order.size() == 6);
  }
}

TEST_CASE("functions of two clients may call collectives on one communicator") {
  const hd::DeviceMesh mesh = world();
  hd::systems::Island island(mesh, napping());
  const auto all = over_all(hd::Shard{0});
  const auto x = island.input<Vector>("x", all);
  const auto total =
      island.add<Vector(Vector)>("total", {all}, all,
                                 [&](const Vector& in, Vector& out) {
                                   const Vector::View sum("sum", 1);
                                   for (std::size_t i = 0; i < in.view().size(); ++i)
                                     sum(0) += in.view()(i);
                                   hd::all_reduce(Exec{}, sum, hd::Sum{}, mesh.all());
                                   Kokkos::deep_copy(out.view(), sum(0));
                                 },
                                 {.communicates = true});
  const auto body = [&](hd::systems::IslandClient& of) {
    for (std::int64_t k = 0; k < 20; ++k) {
      const std::int64_t found = of.get(of.call(total, of.put(x, numbers(k))))(length - 1);
      const std::lock_guard lock(checks);
      CHECK(found == length * k + length * (length - 1) / 2);
    }
  };
  std::vector<hd::systems::IslandClientSpec> mine;
  if (world_rank() == 0) mine.push_back({"left", 1, body});
  if (world_rank() == world_size() - 1) mine.push_back({"right", 1, body});
  island.serve(std::move(mine));
}

TEST_CASE("without the order of the island, the watchdog names both programs") {
  if (world_size() == 1) return;
  for (std::uint64_t round = 0; round < hd::test::cases(3, 20); ++round) {
    const hd::DeviceMesh mesh = world();
    hd::systems::IslandOptions options = napping();
    options.wait.watchdog = 0.3;
    // Rank 0 begins with the client 0, all others with the client 1. They wait until both are
    // there.
    options.pick = [](std::span<const std::uint32_t> clients) -> std::optional<std::size_t> {
      bool has[2] = {false, false};
      for (const std::uint32_t client : clients) has[client] = true;
      if (!has[0] || !has[1]) return std::nullopt;
      const std::uint32_t wanted = world_rank() == 0 ? 0 : 1;
      std::size_t at = 0;
      while (clients[at] != wanted) ++at;
      return at;
    };
    hd::systems::Island island(mesh, options);
    const auto x = island.input<Vector>("x", on_rank(0));
    const auto sum = exchange(island);
    const auto body = [&](hd::systems::IslandClient& of) {
      const auto told = message_of<hd::communication_error>(
          [&] { (void)of.get(of.call(sum, of.call(sum, of.put(x, numbers(0))))); });
      const std::lock_guard lock(checks);
      CHECK(told.find("client '") != std::string::npos);
    };
    std::vector<hd::systems::IslandClientSpec> mine;
    if (world_rank() == 0) mine = {{"left", 1, body}, {"right", 1, body}};
    const std::string told =
        message_of<hd::communication_error>([&] { island.serve(std::move(mine)); });
    // Every rank names the call at which it is, and the program behind it.
    INFO(told);
    CHECK(told.find(world_rank() == 0 ? "client 'left', call" : "client 'right', call") !=
          std::string::npos);
    CHECK(told.find("client 'left'") != std::string::npos);
    CHECK(told.find("client 'right'") != std::string::npos);
    CHECK(message_of<hd::contract_error>([&] { island.serve(); }).find("failed before") !=
          std::string::npos);
  }
}

TEST_CASE("the watchdog of an island names the ranks that a call waits for") {
  if (world_size() == 1) return;
  for (int first_silent = 1; first_silent < world_size(); ++first_silent) {
    const hd::DeviceMesh mesh = world();
    hd::systems::IslandOptions options = napping();
    options.wait.watchdog = 0.3;
    if (world_rank() >= first_silent)  // these ranks never begin a program
      options.pick = [](std::span<const std::uint32_t>) { return std::nullopt; };
    hd::systems::Island island(mesh, options);
    const std::int64_t size = 2 * world_size();
    const auto x = island.input<Vector>("x", over_all(hd::Shard{0}, size));
    const hd::Layout whole({{"one", 1}}, {size}, {hd::Replicate{}}, {hd::Rank{0}});
    const auto gather =
        island.add<Vector(Vector)>("gather", {whole}, whole, elementwise([](auto v) { return v; }));
    const auto body = [&](hd::systems::IslandClient& of) {
      (void)of.get(of.call(gather, of.put(x, numbers(0, size))));
    };
    std::vector<hd::systems::IslandClientSpec> mine;
    if (world_rank() == 0) mine = {{"client", 1, body}};
    const std::string told =
        message_of<hd::communication_error>([&] { island.serve(std::move(mine)); });
    std::string silent = first_silent + 1 < world_size() ? "ranks " : "rank ";
    for (int r = first_silent; r < world_size(); ++r)
      silent += hd::text(r == first_silent ? "" : ", ", r);
    silent += first_silent + 1 < world_size() ? " do not answer" : " does not answer";
    INFO(told);
    CHECK(told.find(silent) != std::string::npos);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("clients of weights 1:2:4:8 get these shares of 1000 programs") {
  const hd::DeviceMesh mesh = world();
  hd::systems::IslandOptions options = napping();
  options.policy = hd::systems::GangPolicy::share;
  options.ahead = 1;
  hd::systems::Island island(mesh, options);
  const auto all = over_all(hd::Shard{0});
  std::atomic<int> submitted = 0;
  const auto x = island.input<Vector>("x", all);
  const auto waits =
      island.add<Vector(Vector)>("waits", {on_rank(0)}, on_rank(0), [&](const Vector&, Vector&) {
        while (submitted.load() < 4) std::this_thread::yield();
      });
  const auto same =
      island.add<Vector(Vector)>("same", {all}, all, elementwise([](auto v) { return v; }));
  constexpr int programs = 600;  // of the client of weight 8: those before it ends are compared
  std::vector<hd::systems::IslandClientSpec> mine;
  for (int c = 0; c < 4 && world_rank() == 0; ++c)
    mine.push_back({hd::text("weight ", 1 << c), 1u << c, [&, c](hd::systems::IslandClient& of) {
                      const auto a = of.put(x, numbers(c));
                      if (c == 0) (void)of.call(waits, a);
                      of.start();
                      for (int k = 0; k < programs; ++k) {
                        (void)of.call(same, a);
                        of.start();
                      }
                      ++submitted;
                    }});
  island.serve(std::move(mine));
  const std::vector<std::uint32_t>& order = island.counts().order;
  REQUIRE(order.size() == 4 * programs + 4);
  std::vector<double> counts(4, 0.0);
  for (std::size_t k = 4; k < 1004; ++k) counts[order[k]] += 1;
  for (std::size_t c = 0; c < 4; ++c) {
    const double share = 1000 * static_cast<double>(1 << c) / 15;
    INFO(c << ": " << counts[c] << " of " << share);
    CHECK(counts[c] >= 0.95 * share);
    CHECK(counts[c] <= 1.05 * share);
  }
  if (world_rank() == 0) {
    CHECK(island.counts().dispatches ==
          island.counts().programs * static_cast<std::uint64_t>(world_size()));
  }
}

}  // namespace test_gang
