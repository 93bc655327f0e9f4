// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// space: its own
// program: its own

// Stages that mix one dimension of a tensor each, with plan_switches() and redistribute(): prefix
// sums of integers equal serial ones bit by bit, forward and backward, for any sizes; and the bytes
// that MPI is given to send are those of the closed forms.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/core.hpp>
#include <heddle/systems/dsp/switches.hpp>
#include <heddle/tensor.hpp>

#include "support/cases.hpp"
#include "support/sent_bytes.hpp"

namespace test_space_time {

namespace hd = heddle;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Tensor = hd::Sharded<std::int64_t****, Exec>;
using Sizes = std::array<std::int64_t, 4>;
using Index = std::array<std::int64_t, 4>;

/// Calls visit(i) for all indices of an array of these sizes, the last dimension fastest.
template <class Visit>
void for_each_index(const Sizes& sizes, Visit&& visit) {
  Index i{};
  for (i[0] = 0; i[0] < sizes[0]; ++i[0])
    for (i[1] = 0; i[1] < sizes[1]; ++i[1])
      for (i[2] = 0; i[2] < sizes[2]; ++i[2])
        for (i[3] = 0; i[3] < sizes[3]; ++i[3]) visit(i);
}

/// An array of the whole tensor.
struct Whole {
  explicit Whole(const Sizes& of)
      : sizes(of), values(static_cast<std::size_t>(of[0] * of[1] * of[2] * of[3])) {}
  std::int64_t& operator()(const Index& i) {
    return values[static_cast<std::size_t>(((i[0] * sizes[1] + i[1]) * sizes[2] + i[2]) * sizes[3] +
                                           i[3])];
  }
  Sizes sizes;
  std::vector<std::int64_t> values;
};

/// Sums along `dim`, from the first element on, or from the last one: each the other's transpose.
/// `at` returns a reference to an element.
template <class At>
void sums_along(std::size_t dim, bool from_first, const Sizes& sizes, At&& at) {
  Sizes lines = sizes;
  lines[dim] = std::min<std::int64_t>(1, sizes[dim]);
  for_each_index(lines, [&](Index i) {
    std::int64_t sum = 0;
    for (std::int64_t k = 0; k < sizes[dim]; ++k) {
      i[dim] = from_first ? k : sizes[dim] - 1 - k;
      sum += at(i);
      at(i) = sum;
    }
  });
}
void sums_along(std::size_t dim, bool from_first, const Tensor& tensor) {
  const auto mine = tensor.owned();
  Sizes sizes{};
  for (std::size_t d = 0; d < 4; ++d) sizes[d] = static_cast<std::int64_t>(mine.extent(d));
  sums_along(dim, from_first, sizes, [&](const Index& i) -> std::int64_t& {
    return mine(static_cast<std::size_t>(i[0]), static_cast<std::size_t>(i[1]),
                static_cast<std::size_t>(i[2]), static_cast<std::size_t>(i[3]));
  });
}

/// Calls visit(element of this rank, index in the whole tensor).
template <class Visit>
void for_each_element(const Tensor& tensor, Visit&& visit) {
  const auto mine = tensor.owned();
  Sizes sizes{};
  for (std::size_t d = 0; d < 4; ++d) sizes[d] = static_cast<std::int64_t>(mine.extent(d));
  for_each_index(sizes, [&](const Index& i) {
    Index whole{};
    for (std::size_t d = 0; d < 4; ++d) whole[d] = tensor.indices(d)[i[d]];
    visit(mine(static_cast<std::size_t>(i[0]), static_cast<std::size_t>(i[1]),
               static_cast<std::size_t>(i[2]), static_cast<std::size_t>(i[3])),
          whole);
  });
}

/// A tensor of these sizes with dimension `dim` sharded.
Tensor sharded(const hd::Communicator& comm, const Sizes& sizes, std::size_t dim) {
  return {comm, hd::Layout({{"all", comm.size()}}, {sizes.begin(), sizes.end()},
                           {hd::Shard{static_cast<int>(dim)}})};
}

/// `tensor` with dimension `dim` sharded instead.
Tensor switched(const Tensor& tensor, std::size_t dim) {
  return hd::redistribute(tensor, {hd::Shard{static_cast<int>(dim)}});
}

/// The sum over all ranks.
std::uint64_t over_all(std::uint64_t number) {
  MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return number;
}

}  // namespace

TEST_CASE("prefix sums along one dimension after another equal serial ones, forward and backward") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  std::uint64_t bad = 0;
  for (std::uint64_t seed = 0; seed < hd::test::cases(150, 3000); ++seed) {
    const hd::Random random(seed, "space time");
    std::uint64_t drawn = 0;
    Sizes sizes{};
    for (std::int64_t& size : sizes) size = 1 + static_cast<std::int64_t>(random.below(drawn++, 9));
    // Time, then space, of (batch, time, space, channels); or any stages over three dimensions.
    std::vector<std::size_t> dims{1, 2}, mixed{1, 2};
    if (seed % 2 == 1) {
      dims = {0, 1, 2};
      mixed.resize(1 + random.below(drawn++, 6));
      for (std::size_t& dim : mixed) dim = random.below(drawn++, 4);
    }
    const std::size_t end = dims[random.below(drawn++, dims.size())];
    const hd::systems::SwitchPlan plan =
        hd::systems::plan_switches(dims, mixed, {.first = end, .last = end});

    Whole whole(sizes);
    std::uint64_t element = 1000;
    for (std::int64_t& value : whole.values)
      value = static_cast<std::int64_t>(random.below(element++, 2001)) - 1000;
    Tensor x = sharded(comm, sizes, end);
    for_each_element(x, [&](std::int64_t& here, const Index& i) { here = whole(i); });

    const auto count_wrong = [&] {
      for_each_element(x, [&](std::int64_t here, const Index& i) {
        if (here != whole(i)) ++bad;
      });
    };
    for (std::size_t stage = 0; stage < mixed.size(); ++stage) {
      x = switched(x, plan.sharded[stage]);
      sums_along(mixed[stage], true, x);
      sums_along(mixed[stage], true, sizes,
                 [&](const Index& i) -> std::int64_t& { return whole(i); });
    }
    x = switched(x, end);
    count_wrong();
    for (std::size_t stage = mixed.size(); stage-- > 0;) {
      x = switched(x, plan.sharded[stage]);
      sums_along(mixed[stage], false, x);
      sums_along(mixed[stage], false, sizes,
                 [&](const Index& i) -> std::int64_t& { return whole(i); });
    }
    x = switched(x, end);
    count_wrong();
  }
  CHECK(over_all(bad) == 0);
}

TEST_CASE("two switches send a half, or a quarter, of what Ulysses sends, and 1/P of a ring") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto ranks = static_cast<std::uint64_t>(comm.size());
  const Sizes sizes{2, 12, 24, 36};
  const std::uint64_t bytes = 2 * 12 * 24 * 36 * sizeof(std::int64_t);

  // Time on sharded space; switch; space on sharded time; back.
  const auto plan = hd::systems::plan_switches({1, 2}, {1, 2}, {.first = 2, .last = 2});
  CHECK(plan.switches.size() == 2);
  Tensor x = sharded(comm, sizes, 2);
  hd::test::count_sent_bytes();
  for (const hd::systems::DimensionSwitch& change : plan.switches) {
    CHECK(x.layout().placements().front() ==
          hd::Placement(hd::Shard{static_cast<int>(change.from)}));
    x = switched(x, change.to);
  }
  const std::uint64_t dsp = over_all(hd::test::sent_bytes);
  CHECK(dsp * ranks == 2 * (ranks - 1) * bytes);

  // Ulysses leaves space sharded: q, k and v to whole lines of some heads, the output back. Where
  // both stages mix along what is sharded, it does so in each.
  const auto ulysses = [&] {
    for (int tensor = 0; tensor < 3; ++tensor) (void)switched(sharded(comm, sizes, 2), 3);
    (void)switched(sharded(comm, sizes, 3), 2);
  };
  hd::test::count_sent_bytes();
  ulysses();
  const std::uint64_t one_stage = over_all(hd::test::sent_bytes);
  hd::test::count_sent_bytes();
  ulysses();
  ulysses();
  const std::uint64_t both_stages = over_all(hd::test::sent_bytes);
  CHECK(2 * dsp == one_stage);
  CHECK(4 * dsp == both_stages);
  // A ring sends each rank's block of keys and values to P - 1 ranks.
  const std::uint64_t ring = 2 * (ranks - 1) * bytes;
  CHECK(ranks * dsp == ring);
  CHECK((dsp > 0) == (ranks > 1));
}

}  // namespace test_space_time
