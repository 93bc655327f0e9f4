// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Shards an array of one's own by rows, smooths it along its columns with the neighbours' rows, and
// redistributes it by columns to sum each of them. The result is compared with that of one rank.
//
//   mpiexec -n 3 example_22_own_array     (or any other number of ranks)

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/heddle.hpp>

namespace hd = heddle;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Array = hd::Sharded<double**, Exec>;

constexpr int rows = 48, columns = 20, steps = 10;

/// Returns the initial value of an element, on any rank.
KOKKOS_INLINE_FUNCTION double start(std::int64_t i, std::int64_t j) {
  return static_cast<double>((7 * i + 3 * j) % 11);
}

/// The sums of the columns, computed on one rank with ordinary arrays.
std::vector<double> sums_on_one_rank() {
  std::vector<std::vector<double>> now(rows + 2, std::vector<double>(columns)), next = now;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) now[i + 1][j] = start(i, j);
  for (int step = 0; step < steps; ++step) {
    for (int i = 1; i <= rows; ++i)
      for (int j = 0; j < columns; ++j)
        next[i][j] = (now[i - 1][j] + now[i][j] + now[i + 1][j]) / 3;
    std::swap(now, next);
  }
  std::vector<double> sums(columns);
  for (int i = 1; i <= rows; ++i)
    for (int j = 0; j < columns; ++j) sums[j] += now[i][j];
  return sums;
}

void run() {
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", world.size()}});
  const Exec exec;

  // Rows are divided among the ranks. Each rank also has room for one row of each neighbour.
  const std::vector<hd::Placement> by_rows = {hd::Shard{0, {}, 1}};
  Array now(mesh, {rows, columns}, by_rows), next(mesh, {rows, columns}, by_rows);

  // Fill the rows of this rank: owned() is a View of them, indices() are their global numbers.
  const auto mine = now.owned();
  const hd::IndexSet my_rows = now.indices(0);
  for (std::size_t i = 0; i < mine.extent(0); ++i)
    for (std::size_t j = 0; j < mine.extent(1); ++j)
      mine(i, j) = start(my_rows[static_cast<std::int64_t>(i)], static_cast<std::int64_t>(j));

  // Fetch the neighbours' rows before each step. In view(), row 0 is the neighbour's last row.
  hd::Halo halo(now);
  const Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>> elements({0, 0},
                                                              {mine.extent(0), mine.extent(1)});
  for (int step = 0; step < steps; ++step) {
    halo.exchange(exec, now);
    const auto from = now.view(), to = next.view();
    Kokkos::parallel_for(
        "smooth", elements, KOKKOS_LAMBDA(std::size_t i, std::size_t j) {
          to(i + 1, j) = (from(i, j) + from(i + 1, j) + from(i + 2, j)) / 3;
        });
    std::swap(now, next);
  }

  // Give each rank whole columns, and sum them without further messages.
  const Array by_columns(mesh, {rows, columns}, {hd::Shard{1}});
  hd::redistribute(exec, now, by_columns);
  const auto whole = by_columns.owned();
  const hd::Sharded<double*, Exec> sums(mesh, {columns}, {hd::Shard{0}});
  for (std::size_t i = 0; i < whole.extent(0); ++i)
    for (std::size_t j = 0; j < whole.extent(1); ++j) sums.owned()(j) += whole(i, j);

  // Give every rank all sums.
  const auto all = hd::redistribute(sums, {hd::Replicate{}});
  if (world.rank() != 0) return;
  const std::vector<double> expected = sums_on_one_rank();
  int wrong = 0;
  for (std::size_t j = 0; j < expected.size(); ++j) wrong += all.view()(j) != expected[j];
  std::cout << rows << " x " << columns << " elements, " << steps
            << " steps: the sum of column 0 is " << all.view()(0) << "; " << wrong << " of "
            << columns << " sums differ from those of one rank\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const hd::Environment env(argc, argv);
    run();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "own_array: " << error.what() << '\n';
    return 1;
  }
}
