// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 7 8
// space: its own

// Merges that do not commute: products of matrices, exact, in the order of the ranks, by whatever a
// call takes and by every algorithm that it does not refuse. And merges that do, but not in every
// bit: all ranks have the same.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>
#include <heddle/schedule/collective/group_level.hpp>

#include "support/complaint.hpp"

namespace test_merge_order {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::Rank;
using hd::schedule::Algorithm;
using hd::schedule::Collective;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;

/// 2 x 2 whole numbers modulo 2^64: products are exact, associative, and depend on the order.
struct Matrix {
  std::array<std::uint64_t, 4> at;
  friend bool operator==(const Matrix&, const Matrix&) = default;
};

struct InOrder {
  static constexpr bool commutes = false;
  void join(Matrix& into, const Matrix& from) const {
    const auto [a, b, c, d] = into.at;
    const auto [e, f, g, h] = from.at;
    into = {{a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h}};
  }
  void init(Matrix& value) const { value = {{1, 0, 0, 1}}; }
};
static_assert(!hd::commutes<InOrder> && hd::commutes<hd::Sum> &&
              hd::commutes<Kokkos::MinLoc<double, int>>);

using View = Kokkos::View<Matrix*, Kokkos::HostSpace>;

/// Of equal first numbers, whatever was there stays: which, is a matter of the order.
struct KeepsOwn {
  void join(Matrix& into, const Matrix& from) const {
    if (from.at[0] > into.at[0]) into = from;
  }
  void init(Matrix& value) const { value = {}; }
};

Matrix part(std::size_t rank, std::size_t i) {
  return {{rank + 2, i % 13 + 1, 3 * rank + i % 7, rank * i % 11 + 5}};
}

template <class Into>
void fill(const Into& view, const hd::Communicator& comm) {
  for (std::size_t i = 0; i < view.size(); ++i) view(i) = part(+comm.rank(), i);
}

/// How many elements of `view` are not the product from the left, `first` being the first of them.
template <class Found>
std::size_t wrong(const Found& view, const hd::Communicator& comm, std::size_t first = 0) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < view.size(); ++i) {
    Matrix expected = part(0, first + i);
    for (int r = 1; r < comm.size(); ++r)
      InOrder{}.join(expected, part(static_cast<std::size_t>(r), first + i));
    count += !(view(i) == expected);
  }
  return count;
}

/// Ours, and those that keep the order by their names; by messages, too. Ranks of one host share
/// memory for the large counts.
std::vector<hd::CallOptions> ways(int ranks) {
  std::vector<hd::CallOptions> found(1);
  for (const int chunks : {1, 3}) {
    found.push_back({.algorithm = Algorithm::star, .chunks = chunks});
    found.push_back({.algorithm = Algorithm::binomial_tree, .chunks = chunks});
  }
  if (ranks % 2 == 0)
    found.push_back({.algorithm = Algorithm::hierarchical,
                     .levels = {{2, Algorithm::binomial_tree}, {ranks / 2, Algorithm::star}}});
  if (ranks == 8)
    found.push_back(
        {.algorithm = Algorithm::hierarchical,
         .levels = {{2, Algorithm::star}, {2, Algorithm::binomial_tree}, {2, Algorithm::star}}});
  if (ranks > 2) {  // groups of several sizes
    std::vector<std::uint32_t> groups;
    for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(ranks); ++r) groups.push_back(r / 3);
    found.push_back({.algorithm = Algorithm::hierarchical,
                     .levels = {hd::schedule::level_of(groups, Algorithm::star),
                                {static_cast<int>(groups.back()) + 1, Algorithm::binomial_tree}}});
  }
  for (std::size_t way = found.size(); way-- > 0;) {
    found.push_back(found[way]);
    found.back().shared_memory = false;
  }
  return found;
}

constexpr std::array<std::size_t, 4> counts = {0, 1, 13, 4099};

}  // namespace

TEST_CASE("an all-reduce merges ranks in their order, at once, as a request and prepared") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  for (const std::size_t count : counts) {
    const View view("view", count);
    for (const hd::CallOptions& options : ways(comm.size())) {
      fill(view, comm);
      hd::all_reduce(Exec{}, view, InOrder{}, comm, options);
      REQUIRE(wrong(view, comm) == 0);
      fill(view, comm);
      hd::all_reduce<hd::Request>(Exec{}, view, InOrder{}, comm, options).wait();
      REQUIRE(wrong(view, comm) == 0);
      auto prepared = hd::all_reduce<hd::Prepared>(Exec{}, view, InOrder{}, comm, options);
      for (int again = 0; again < 2; ++again) {
        fill(view, comm);
        prepared();
        REQUIRE(wrong(view, comm) == 0);
      }
    }
  }
}

TEST_CASE("a reduction to every root does") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  for (const std::size_t count : counts) {
    const View view("view", count);
    for (const hd::CallOptions& options : ways(comm.size()))
      for (std::size_t root = 0; root < static_cast<std::size_t>(comm.size()); ++root) {
        const auto leaves_products = [&](auto&& call) {
          fill(view, comm);
          call();
          if (+comm.rank() == root) REQUIRE(wrong(view, comm) == 0);
        };
        leaves_products([&] { hd::reduce(Exec{}, view, InOrder{}, Rank{root}, comm, options); });
        leaves_products([&] {
          hd::reduce<hd::Request>(Exec{}, view, InOrder{}, Rank{root}, comm, options).wait();
        });
        auto prepared =
            hd::reduce<hd::Prepared>(Exec{}, view, InOrder{}, Rank{root}, comm, options);
        leaves_products([&] { prepared(); });
        leaves_products([&] { prepared.start().wait(); });
      }
  }
}

TEST_CASE("a reduce-scatter does, of even and of uneven blocks") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  for (const std::size_t count : counts) {
    for (const bool even : {true, false}) {
      std::vector<std::size_t> blocks;
      for (std::size_t r = 0; r < p; ++r)
        blocks.push_back(even ? count / p + (r < count % p ? 1 : 0) : r + 1 == p ? count : 0);
      const View input("input", count), output("output", blocks[+comm.rank()]);
      std::size_t first = 0;
      for (std::size_t r = 0; r < +comm.rank(); ++r) first += blocks[r];
      for (hd::CallOptions options : ways(comm.size())) {
        if (!even) options.counts = blocks;
        const auto leaves_products = [&](auto&& call) {
          fill(input, comm);
          Kokkos::deep_copy(output, Matrix{});
          call();
          REQUIRE(wrong(output, comm, first) == 0);
        };
        leaves_products(
            [&] { hd::reduce_scatter(Exec{}, input, output, InOrder{}, comm, options); });
        leaves_products([&] {
          hd::reduce_scatter<hd::Request>(Exec{}, input, output, InOrder{}, comm, options).wait();
        });
        auto prepared =
            hd::reduce_scatter<hd::Prepared>(Exec{}, input, output, InOrder{}, comm, options);
        leaves_products([&] { prepared(); });
        leaves_products([&] { prepared.start().wait(); });
      }
    }
  }
}

TEST_CASE("so do calls on Views that all ranks see, and calls with a cost table") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const hd::SharedView<Matrix*> shared(comm, 4099);
  const hd::SharedView<Matrix*>::View view = shared.view();
  for (const hd::CallOptions& options : ways(comm.size())) {
    fill(view, comm);
    hd::all_reduce(Exec{}, view, InOrder{}, comm, options);
    REQUIRE(wrong(view, comm) == 0);
  }
  hd::plan::CostTable costs(hd::Machine::uniform(comm.size(), {"rank"}, {1e-6, 1e9}));
  costs.set(Collective::all_reduce, 8, {.algorithm = Algorithm::ring}, 1e-9);
  fill(view, comm);
  hd::all_reduce(Exec{}, view, InOrder{}, comm,
                 {.costs = std::make_shared<const hd::plan::CostTable>(costs)});
  CHECK(wrong(view, comm) == 0);
}

TEST_CASE("an algorithm that merges in another order is refused by its name") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const View view("view", 5);
  for (std::size_t a = 0; a < hd::schedule::algorithm_count; ++a) {
    const auto algorithm = static_cast<Algorithm>(a);
    if (algorithm == Algorithm::star || algorithm == Algorithm::binomial_tree) continue;
    const hd::CallOptions options{.algorithm = algorithm,
                                  .levels = {{1, Algorithm::star}, {comm.size(), Algorithm::ring}}};
    CHECK_THAT(
        hd::test::message_of<hd::infeasible>(
            [&] { hd::all_reduce(Exec{}, view, InOrder{}, comm, options); }),
        ContainsSubstring("heddle::collective::all_reduce: the reduction is not commutative") &&
            ContainsSubstring("choose star, binomial_tree or levels of these"));
  }
}

TEST_CASE(
    "groups of ranks that do not follow one another merge in another order, and are refused") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  if (comm.size() < 3) return;
  const View view("view", 5);
  const auto p = static_cast<std::uint32_t>(comm.size());
  std::vector<std::uint32_t> turns, around(p, 1);
  for (std::uint32_t r = 0; r < p; ++r) turns.push_back(r % 2);
  around.front() = around.back() = 0;
  const auto refused = [&](std::vector<hd::schedule::GroupLevel> levels) {
    const hd::CallOptions options{.algorithm = Algorithm::hierarchical,
                                  .levels = std::move(levels)};
    CHECK_THAT(
        hd::test::message_of<hd::infeasible>(
            [&] { hd::all_reduce(Exec{}, view, InOrder{}, comm, options); }),
        ContainsSubstring("heddle::collective::all_reduce: the reduction is not commutative") &&
            ContainsSubstring("choose star, binomial_tree or levels of these"));
    hd::all_reduce(Exec{}, view, KeepsOwn{}, comm, options);  // may be in any order
  };
  using hd::schedule::level_of;
  for (const Algorithm algorithm : {Algorithm::star, Algorithm::binomial_tree}) {
    refused({level_of(turns, algorithm), {2, algorithm}});
    refused({level_of(around, algorithm), {2, algorithm}});
    refused({{1, algorithm}, level_of(turns, algorithm), {2, algorithm}});
  }
}

TEST_CASE("what merges in any order has the same bits on all ranks") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  using Partials = Kokkos::View<hd::WeightedMean::Partial<double>*, Kokkos::HostSpace>;
  const auto same = [&](const auto& view) {  // as rank 0's
    const auto bytes = std::as_bytes(std::span(view.data(), view.size()));
    std::vector<std::byte> first(bytes.begin(), bytes.end());
    MPI_Bcast(first.data(), static_cast<int>(first.size()), MPI_BYTE, 0, comm.get());
    return std::ranges::equal(first, bytes);
  };
  const auto check = [&](std::size_t count, const hd::CallOptions& options) {
    const Partials means("means", count);
    const View longest("longest", count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto number = static_cast<double>(i * 7 + +comm.rank() * 3 + 1);
      means(i) = {std::sqrt(number), std::sin(number) + 1.5};
      longest(i) = {{i, +comm.rank(), i, +comm.rank()}};
    }
    hd::all_reduce(Exec{}, means, hd::WeightedMean{}, comm, options);
    CHECK(same(means));
    hd::all_reduce(Exec{}, longest, KeepsOwn{}, comm, options);
    CHECK(same(longest));
  };
  for (const std::size_t count : {std::size_t{1}, std::size_t{5}, std::size_t{300}}) {
    check(count, {});
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::bidirectional_ring, Algorithm::recursive_doubling,
          Algorithm::recursive_halving, Algorithm::binomial_tree, Algorithm::double_tree,
          Algorithm::star, Algorithm::direct}) {
      INFO(algorithm << ", " << count);
      check(count, {.algorithm = algorithm});
    }
  }
}

TEST_CASE("MPI is told that the operation does not commute, and merges in order") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const hd::MpiOperation<Matrix, InOrder> taught;
  int commutes = 1;
  MPI_Op_commutative(taught.operation(), &commutes);
  CHECK(commutes == 0);
  const hd::MpiOperation<double, hd::Sum> sum;
  MPI_Op_commutative(sum.operation(), &commutes);
  CHECK(commutes == 1);
  for (const std::size_t count : counts) {
    const View view("view", count);
    fill(view, comm);
    MPI_Allreduce(MPI_IN_PLACE, view.data(), static_cast<int>(count), taught.type(),
                  taught.operation(), comm.get());
    REQUIRE(wrong(view, comm) == 0);
  }
}

}  // namespace test_merge_order
