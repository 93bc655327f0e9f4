// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Random programs of several clients on random layouts, with functions that fail and functions
// whose sizes are found while running, against the same computations on one thread.
// ranks: 2 3 4
// space: its own

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/hash.hpp>
#include <heddle/systems/pathways/island.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/world.hpp"

namespace test_gang_random {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Matrix = heddle::Sharded<std::uint64_t**, Exec>;
using heddle::test::world_rank;
using heddle::test::world_size;
namespace hd = heddle;

constexpr std::int64_t rows = 5, columns = 3;
using Numbers = std::vector<std::uint64_t>;  // rows * columns

/// Layouts of every kind: divided, copied and added up, on all ranks, on some, and on one.
std::vector<hd::Layout> layouts() {
  const int ranks = world_size();
  const std::vector<std::int64_t> sizes{rows, columns};
  const hd::Rank last{ranks - 1};
  return {hd::Layout({{"all", ranks}}, sizes, {hd::Shard{0}}),
          hd::Layout({{"all", ranks}}, sizes, {hd::Shard{1}}),
          hd::Layout({{"all", ranks}}, sizes, {hd::Replicate{}}),
          hd::Layout({{"two", 2}}, sizes, {hd::Shard{0}}, {last, hd::Rank{0}}),
          hd::Layout({{"two", 2}}, sizes, {hd::Replicate{}}, {hd::Rank{0}, last}),
          hd::Layout({{"one", 1}}, sizes, {hd::Replicate{}}, {last}),
          hd::Layout({{"one", 1}}, sizes, {hd::Replicate{}}, {hd::Rank{0}})};
}

/// The functions of an island, on every layout.
struct Functions {
  std::vector<hd::systems::GangFunction<Matrix()>> input;
  std::vector<hd::systems::GangFunction<Matrix(Matrix)>> twice, fails, unsized;
  std::vector<hd::systems::GangFunction<Matrix(Matrix, Matrix)>> minus;
  hd::systems::GangFunction<Matrix(Matrix)>
      parts;  // the sum over the ranks of rank + 1 times the argument

  static hd::systems::GangFunction<Matrix(Matrix)> make_parts(hd::systems::Island& island) {
    const auto all = layouts()[2];
    return island.add<Matrix(Matrix)>(
        "parts", {all}, all.with({hd::Partial{}}), [](const Matrix& in, Matrix& out) {
          for (std::size_t i = 0; i < in.parts().size(); ++i)
            out.parts().data()[i] =
                static_cast<std::uint64_t>(world_rank() + 1) * in.parts().data()[i];
        });
  }
  explicit Functions(hd::systems::Island& island) : parts(make_parts(island)) {
    for (const hd::Layout& layout : layouts()) {
      input.push_back(island.input<Matrix>("input", layout));
      twice.push_back(
          island.add<Matrix(Matrix)>("twice", {layout}, layout,
                                     [](const Matrix& in, Matrix& out) {
                                       for (std::size_t i = 0; i < in.parts().size(); ++i)
                                         out.parts().data()[i] = 2 * in.parts().data()[i];
                                     },
                                     {.communicates = input.size() % 2 == 0}));
      fails.push_back(island.add<Matrix(Matrix)>(
          "fails", {layout}, layout,
          [](const Matrix&, Matrix&) { throw std::runtime_error("as it should"); }));
      // Twice the argument, with sizes that are found while running. Every third one fails to.
      unsized.push_back(island.add_unsized<Matrix(Matrix)>(
          "unsized", {layout},
          hd::Layout(layout.mesh(), {0, 0}, layout.placements(), layout.ranks()),
          [third = input.size() % 3 == 0](const Matrix& in) -> std::vector<std::int64_t> {
            if (third) throw std::runtime_error("no sizes");
            return in.layout().sizes();
          },
          [](const Matrix& in, Matrix& out) {
            for (std::size_t i = 0; i < in.parts().size(); ++i)
              out.parts().data()[i] = 2 * in.parts().data()[i];
          },
          {.communicates = input.size() % 2 == 0}));
      minus.push_back(island.add<Matrix(Matrix, Matrix)>(
          "minus", {layout, layout}, layout, [](const Matrix& a, const Matrix& b, Matrix& out) {
            for (std::size_t i = 0; i < out.parts().size(); ++i)
              out.parts().data()[i] = a.parts().data()[i] - b.parts().data()[i];
          }));
    }
  }
};

/// A future and what it must have; nullopt: an error.
struct Known {
  hd::systems::Future<Matrix> future;
  std::optional<Numbers> numbers;
};

/// Makes random calls, and compares what it gets with the same calls on plain vectors.
std::string play(hd::systems::IslandClient& client, const Functions& functions,
                 const hd::Random& random, std::uint64_t calls) {
  std::uint64_t drawn = 0;
  const auto draw = [&](std::size_t below) {
    return static_cast<std::size_t>(random.bits(drawn++) % below);
  };
  std::vector<Known> pool;
  const auto put = [&] {
    const Matrix::View all("all", rows, columns);
    Numbers numbers(all.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = all.data()[i] = draw(100);
    pool.push_back({client.put(functions.input[draw(functions.input.size())], all), numbers});
  };
  const auto check = [&](const Known& known) -> std::string {
    try {
      const Matrix::View found = client.get(known.future);
      if (!known.numbers) return "an error did not arrive";
      for (std::size_t i = 0; i < known.numbers->size(); ++i)
        if (found.data()[i] != (*known.numbers)[i])
          return hd::text("element ", i, " is ", found.data()[i], ", not ", (*known.numbers)[i]);
    } catch (const hd::communication_error& error) {
      if (known.numbers) return error.what();
    }
    return {};
  };
  put();
  for (std::uint64_t call = 0; call < calls; ++call) {
    const Known a = pool[draw(pool.size())], b = pool[draw(pool.size())];
    const std::size_t layout = draw(functions.input.size());
    std::optional<Numbers> numbers = a.numbers;
    switch (draw(9)) {
      case 0: put(); break;
      case 1: pool.push_back({client.call(functions.fails[layout], a.future), std::nullopt}); break;
      case 2:
      case 3:
        if (!b.numbers) numbers.reset();
        for (std::size_t i = 0; numbers && i < numbers->size(); ++i)
          (*numbers)[i] -= (*b.numbers)[i];
        pool.push_back({client.call(functions.minus[layout], a.future, b.future), numbers});
        break;
      case 4:
        for (std::size_t i = 0; numbers && i < numbers->size(); ++i) (*numbers)[i] *= 2;
        pool.push_back({client.call(functions.twice[layout], a.future), numbers});
        break;
      case 5:
        for (std::size_t i = 0; numbers && i < numbers->size(); ++i)
          (*numbers)[i] *= static_cast<std::uint64_t>(world_size() * (world_size() + 1) / 2);
        pool.push_back({client.call(functions.parts, a.future), numbers});
        break;
      case 6: client.start(); break;
      case 7:
        for (std::size_t i = 0; numbers && i < numbers->size(); ++i) (*numbers)[i] *= 2;
        if ((layout + 1) % 3 == 0) numbers.reset();
        pool.push_back({client.call(functions.unsized[layout], a.future), numbers});
        break;
      default: {
        const std::size_t at = draw(pool.size());
        const std::string wrong = draw(3) == 0 ? check(pool[at]) : std::string();
        if (!wrong.empty()) return hd::text("call ", call, ": ", wrong);
        pool.erase(pool.begin() + static_cast<std::ptrdiff_t>(at));  // taken, or dropped
        if (pool.empty()) put();
        break;
      }
    }
  }
  for (const Known& known : pool)
    if (const std::string wrong = check(known); !wrong.empty()) return wrong;
  return {};
}

TEST_CASE("random programs of several clients compute what one thread computes") {
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", world_size()}});
  for (std::uint64_t seed = 0; seed < hd::test::cases(6, 200); ++seed) {
    const hd::Random common(seed, "clients");
    hd::systems::Island island(mesh,
                               {.policy = common.bits(0) % 2 == 0 ? hd::systems::GangPolicy::fifo
                                                                  : hd::systems::GangPolicy::share,
                                .ahead = 1 + common.bits(1) % 8,
                                .wait = {.idle = hd::Idle::nap, .watchdog = 20},
                                .record = true});
    const Functions functions(island);
    const std::size_t clients = 1 + common.bits(2) % 4;
    std::vector<std::string> wrong(clients);
    std::vector<hd::systems::IslandClientSpec> mine;
    for (std::size_t c = 0; c < clients; ++c)
      if (common.bits(3 + c) % static_cast<std::uint64_t>(world_size()) ==
          static_cast<std::uint64_t>(world_rank()))
        mine.push_back({hd::text("client ", c), static_cast<std::uint32_t>(1 + c),
                        [&, c](hd::systems::IslandClient& client) {
                          wrong[c] = play(client, functions, hd::Random(seed, hd::text(c)), 60);
                        }});
    island.serve(std::move(mine));
    for (std::size_t c = 0; c < clients; ++c) {
      INFO("seed " << seed << ", client " << c << ": " << wrong[c]);
      REQUIRE(wrong[c].empty());
    }
    // All ranks ran the same list.
    std::uint64_t least = heddle::hash(island.record()), most = least;
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    REQUIRE(least == most);
  }
}

}  // namespace test_gang_random
