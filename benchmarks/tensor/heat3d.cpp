// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2

/// @file
/// How a heat equation on a 256^3 grid gains by a second rank, against how STREAM's triad does,
/// which is all that the memory of this machine gives: time of one rank alone over that of two with
/// half of the grid each and a halo between them, over the same of the triad. Every round measures
/// all four, one behind the other. Who has nothing to do sleeps.
///
/// There is nothing to iterate over that Google Benchmark could time: steps belong to both ranks.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>

#include "../ranks.hpp"
#include "../support.hpp"

namespace hd = heddle;

namespace {

constexpr const char* name = "tensor/heat3d";
constexpr std::int64_t size = 256;
constexpr int rounds = 21, steps = 10, repetitions = 4;

using Exec = Kokkos::DefaultHostExecutionSpace;
using Grid = hd::Sharded<double***, Exec>;

/// A row of a step, inside of a halo of 1 along the first dimension; the ends of the others stay.
struct Flow {
  Grid::View now, next;
  std::size_t columns, depth;
  KOKKOS_FUNCTION void operator()(std::size_t row) const {
    const std::size_t i = row / (columns - 2) + 1, j = row % (columns - 2) + 1;
    const double* const from = &now(i, j, 0);
    const double* const before = &now(i - 1, j, 0);
    const double* const behind = &now(i + 1, j, 0);
    const double* const left = &now(i, j - 1, 0);
    const double* const right = &now(i, j + 1, 0);
    double* const to = &next(i, j, 0);
    HEDDLE_INDEPENDENT
    for (std::size_t k = 1; k + 1 < depth; ++k)
      to[k] = from[k] + 0.125 * (before[k] + behind[k] + left[k] + right[k] + from[k - 1] +
                                 from[k + 1] - 6 * from[k]);
  }
};

/// The grid on the ranks of a communicator, cut along its first dimension.
class Heat {
 public:
  explicit Heat(const hd::Communicator& comm)
      : m_now(make(comm)), m_next(make(comm)), m_halo(m_now) {
    const std::int64_t first = m_now.indices(0)[0];
    const auto view = m_now.parts();
    for (std::size_t i = 1; i + 1 < view.extent(0); ++i)
      for (std::size_t j = 0; j < view.extent(1); ++j)
        for (std::size_t k = 0; k < view.extent(2); ++k)
          view(i, j, k) = static_cast<double>((first + static_cast<std::int64_t>(i)) * 7 % 11 +
                                              static_cast<std::int64_t>(j * k % 13));
    Kokkos::deep_copy(m_next.parts(), view);
  }
  void run() {
    for (int step = 0; step < steps; ++step) {
      m_halo.exchange(Exec{}, m_now);
      const auto view = m_now.parts();
      const std::size_t rows = (view.extent(0) - 2) * (view.extent(1) - 2);
      Kokkos::parallel_for(name, Kokkos::RangePolicy<Exec>(0, rows),
                           Flow{view, m_next.parts(), view.extent(1), view.extent(2)});
      Exec{}.fence();
      std::swap(m_now, m_next);
    }
  }
  /// What this rank owns, without the halo.
  [[nodiscard]] std::vector<double> owned() const {
    const auto view = m_now.parts();
    const std::size_t plane = view.extent(1) * view.extent(2);
    return {view.data() + plane, view.data() + view.size() - plane};
  }

 private:
  [[nodiscard]] static Grid make(const hd::Communicator& comm) {
    return {comm, hd::Layout(hd::MeshShape{{"slabs", comm.size()}}, {size, size, size},
                             {hd::Shard{0, {}, 1}})};
  }
  Grid m_now, m_next;
  hd::Halo<double***, Exec> m_halo;
};

/// a = b + s c of as many elements as the grid has, dealt out to `ranks`.
class Triad {
 public:
  explicit Triad(int ranks)
      : m_count(static_cast<std::size_t>(size * size * size / ranks)),
        m_a("a", m_count),
        m_b("b", m_count),
        m_c("c", m_count) {
    Kokkos::deep_copy(m_b, 1.0);
    Kokkos::deep_copy(m_c, 2.0);
  }
  void run() {
    for (int i = 0; i < repetitions; ++i) {
      double* const a = m_a.data();
      const double* const b = m_b.data();
      const double* const c = m_c.data();
      HEDDLE_INDEPENDENT
      for (std::size_t k = 0; k < m_count; ++k) a[k] = b[k] + 3 * c[k];
      Kokkos::fence();
    }
  }

 private:
  std::size_t m_count;
  Kokkos::View<double*, Kokkos::HostSpace> m_a, m_b, m_c;
};

/// Waits for the other rank without a use of the core.
void sleep_until_all_are_here() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Seconds of rank 0's `work`, while the other one sleeps; known to rank 0.
template <class Work>
double alone(int rank, Work&& work) {
  sleep_until_all_are_here();
  const double seconds = rank == 0 ? bench::seconds_of(work) : 0;
  sleep_until_all_are_here();
  return seconds;
}

void compare(int rank) {
  const hd::Communicator both(MPI_COMM_WORLD), self(MPI_COMM_SELF);
  Heat shared(both);
  Triad half(2);
  // Rank 1 has no work alone.
  const auto heat = rank == 0 ? std::make_unique<Heat>(self) : nullptr;
  const auto triad = rank == 0 ? std::make_unique<Triad>(1) : nullptr;
  std::vector<double> gains, triads, relative;
  for (int round = 0; round <= rounds; ++round) {
    const double triad_alone = alone(rank, [&] { triad->run(); });
    const double triad_shared = bench::seconds_of_all(MPI_COMM_WORLD, [&] { half.run(); });
    const double heat_alone = alone(rank, [&] { heat->run(); });
    const double heat_shared = bench::seconds_of_all(MPI_COMM_WORLD, [&] { shared.run(); });
    if (round == 0) {  // touches all memory
      std::vector<double> mine = shared.owned();
      const auto count = static_cast<int>(mine.size());
      if (rank == 1) {
        MPI_Send(mine.data(), count, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
        continue;
      }
      mine.resize(2 * mine.size());
      MPI_Recv(mine.data() + count, count, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      bench::require_equal("the grid after some steps, bit by bit", mine == heat->owned(), true);
      continue;
    }
    gains.push_back(heat_alone / heat_shared);
    triads.push_back(triad_alone / triad_shared);
    relative.push_back(gains.back() / triads.back());
  }
  if (rank != 0) return;
  bench::print_value(name, "two_ranks", bench::summarise(gains), "x");
  bench::print_value(name, "triad_two_ranks", bench::summarise(triads), "x");
  bench::print_ratio(name, "triad_scaling", bench::summarise(relative));
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  return bench::status_of(name, [] { compare(bench::one_of_two_ranks(name)); });
}
