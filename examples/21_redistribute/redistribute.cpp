// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Redistributes a matrix: from rows to columns, to rows of uneven shares, and from one half of the
// ranks to the other half, on communicators without a common rank. Each redistribution is a
// Schedule that can be printed, counted and simulated before a message is sent.
//
//   mpiexec -n 3 example_21_redistribute     (or any other number of ranks)

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <optional>
#include <vector>

#include <heddle/heddle.hpp>
#include <heddle/plan/message_costs.hpp>
#include <heddle/schedule/redistribution/redistribution.hpp>
#include <heddle/tensor/among.hpp>

namespace hd = heddle;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Matrix = hd::Sharded<double**, Exec>;

constexpr int rows = 7, columns = 500;

/// Returns element (i, j), on any rank.
double element(std::int64_t i, std::int64_t j) { return static_cast<double>(1000 * i + j); }

/// Calls `visit(here, there)` for each element of this rank: its present value and its expected
/// value.
template <class Visit>
void for_each_element(const Matrix& matrix, Visit&& visit) {
  const auto mine = matrix.owned();
  for (std::size_t i = 0; i < mine.extent(0); ++i)
    for (std::size_t j = 0; j < mine.extent(1); ++j)
      visit(mine(i, j), element(matrix.indices(0)[static_cast<std::int64_t>(i)],
                                matrix.indices(1)[static_cast<std::int64_t>(j)]));
}

/// Copies the elements of `from` to `to`, and prints how, and the number of wrong elements.
void move(const Matrix& from, const Matrix& to) {
  const hd::Communicator& comm = from.comm();
  hd::redistribute(Exec{}, from, to);
  long wrong = 0;
  for_each_element(to, [&](double here, double meant) { wrong += here == meant ? 0 : 1; });
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, comm.get());
  if (comm.rank() != 0) return;
  const auto plan =
      hd::schedule::redistribution(from.layout(), to.layout(), comm.size(), sizeof(double));
  const hd::Machine machine = hd::Machine::uniform(comm.size(), {"rank"}, {1e-6, 1e9});
  std::cout
      << plan << "\n  " << wrong << " of " << from.layout().elements() << " are wrong, "
      << hd::simulate(hd::schedule::to_schedule(plan), hd::plan::MessageCosts(machine)).makespan() *
             1e6
      << " us on links of 1 us and 1 GB/s\n";
}

void run() {
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", hd::Communicator(MPI_COMM_WORLD).size()}});
  const hd::Communicator& world = mesh.all();
  const int ranks = world.size(), half = ranks / 2;

  const Matrix by_rows(mesh, {rows, columns}, {hd::Shard{0}});
  for_each_element(by_rows, [](double& here, double meant) { here = meant; });
  const Matrix by_columns(mesh, {rows, columns}, {hd::Shard{1}});
  move(by_rows, by_columns);

  // Rank r has r + 1 parts of the rows. Some ranks may have none.
  std::vector<std::int64_t> parts;
  for (int r = 0; r < ranks; ++r) parts.push_back(r + 1);
  const Matrix uneven(mesh, {rows, columns}, {hd::Shard{0, hd::ShardOrder::weighted(parts)}});
  move(by_columns, uneven);

  // The two halves of the ranks do not know each other's tensors. One half has a tensor divided by
  // columns, and the other one a tensor divided by cyclic rows. Ranks without a tensor pass none.
  if (ranks == 1) return;
  const bool left = world.rank() < half;
  const hd::Communicator mine = world.split(left ? 0 : 1, static_cast<int>(+world.rank()));
  const hd::MeshShape shape{{"half", mine.size()}};
  std::optional<Matrix> ours, theirs;
  if (left) {
    ours.emplace(mine, hd::Layout(shape, {rows, columns}, {hd::Shard{1}}));
    for_each_element(*ours, [](double& here, double meant) { here = meant; });
  } else {
    theirs.emplace(mine,
                   hd::Layout(shape, {rows, columns}, {hd::Shard{0, hd::ShardOrder::cyclic()}}));
  }
  move(hd::among(world, ours), hd::among(world, theirs));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const hd::Environment env(argc, argv);
    run();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "redistribute: " << error.what() << '\n';
    return 1;
  }
}
