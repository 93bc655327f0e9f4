// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Heat in a plate by MPI and Kokkos alone: what heat_mpi.cpp does with Heddle. Both print the same.
//
//   mpiexec -n 4 example_26_heat_mpi_by_hand [ROWS COLUMNS STEPS]

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<double**, Kokkos::LayoutRight, Exec>;
using Line = Kokkos::View<double*, Exec>;

// The plate is cold, but for a hot square in one corner.
double start(int row, int column) { return row < 40 && column < 30 ? 100 : 0; }

// One step of the elements in rows a to b - 1 and columns c to d - 1 of a rank's part.
void flow(const View& now, const View& next, int a, int b, int c, int d) {
  if (a >= b || c >= d) return;
  Kokkos::parallel_for(
      "flow", Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>({a, c}, {b, d}),
      KOKKOS_LAMBDA(int i, int j) {
        next(i, j) = now(i, j) + 0.2 * (now(i - 1, j) + now(i + 1, j) + now(i, j - 1) +
                                        now(i, j + 1) - 4 * now(i, j));
      });
}

// The part of the plate that a coordinate of the mesh has: the first element, and the number.
std::array<int, 2> part(int size, int parts, int which) {
  const int least = size / parts, more = size % parts;
  return {which * least + std::min(which, more), least + (which < more ? 1 : 0)};
}

class Plate {
 public:
  Plate(MPI_Comm comm, int rows, int columns) : m_rows(rows), m_columns(columns) {
    MPI_Comm_size(comm, &m_ranks);
    // The shape of the mesh with the shortest borders.
    double least = -1;
    for (int y = m_ranks; y >= 1; --y) {
      if (m_ranks % y != 0) continue;
      const double border = double(y - 1) * columns + double(m_ranks / y - 1) * rows;
      if (least >= 0 && border >= least) continue;
      least = border;
      m_dims = {y, m_ranks / y};
    }
    const std::array<int, 2> periodic = {0, 0};
    MPI_Cart_create(comm, 2, m_dims.data(), periodic.data(), 0, &m_comm);
    MPI_Comm_rank(m_comm, &m_rank);
    std::array<int, 2> at = {};
    MPI_Cart_coords(m_comm, m_rank, 2, at.data());
    MPI_Cart_shift(m_comm, 0, 1, &m_up, &m_down);
    MPI_Cart_shift(m_comm, 1, 1, &m_left, &m_right);
    const auto [row, height] = part(rows, m_dims[0], at[0]);
    const auto [column, width] = part(columns, m_dims[1], at[1]);
    m_height = height;
    m_width = width;
    m_now = View("now", height + 2, width + 2);
    m_next = View("next", height + 2, width + 2);
    for (Line* line : {&m_to_left, &m_to_right, &m_from_left, &m_from_right})
      *line = Line("column", height);
    for (int i = 0; i < height; ++i)
      for (int j = 0; j < width; ++j) m_now(i + 1, j + 1) = start(row + i, column + j);
  }
  ~Plate() { MPI_Comm_free(&m_comm); }
  Plate(const Plate&) = delete;
  Plate& operator=(const Plate&) = delete;

  void step() {
    const int h = m_height, w = m_width;
    std::array<MPI_Request, 8> requests;
    receive(&m_now(0, 1), w, m_up, 0, requests[0]);
    receive(&m_now(h + 1, 1), w, m_down, 1, requests[1]);
    receive(m_from_left.data(), h, m_left, 2, requests[2]);
    receive(m_from_right.data(), h, m_right, 3, requests[3]);
    pack();
    send(&m_now(h, 1), w, m_down, 0, requests[4]);
    send(&m_now(1, 1), w, m_up, 1, requests[5]);
    send(m_to_right.data(), h, m_right, 2, requests[6]);
    send(m_to_left.data(), h, m_left, 3, requests[7]);
    flow(m_now, m_next, 2, h, 2, w);  // the inside, which needs no neighbour
    MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    unpack();
    flow(m_now, m_next, 1, std::min(2, h + 1), 1, w + 1);  // the border
    flow(m_now, m_next, std::max(2, h), h + 1, 1, w + 1);
    flow(m_now, m_next, 2, h, 1, std::min(2, w + 1));
    flow(m_now, m_next, 2, h, std::max(2, w), w + 1);
    Kokkos::fence("step");
    std::swap(m_now, m_next);
  }

  // The hottest element, on all ranks.
  double hottest() const {
    double most = 0;
    for (int i = 1; i <= m_height; ++i)
      for (int j = 1; j <= m_width; ++j) most = std::max(most, m_now(i, j));
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, m_comm);
    return most;
  }

  // The whole plate, on rank 0.
  std::vector<double> gather() const {
    std::vector<double> mine;
    for (int i = 1; i <= m_height; ++i)
      for (int j = 1; j <= m_width; ++j) mine.push_back(m_now(i, j));
    std::vector<int> counts, places;
    std::vector<std::array<int, 4>> boxes;
    int total = 0;
    for (int rank = 0; rank < m_ranks; ++rank) {
      std::array<int, 2> at = {};
      MPI_Cart_coords(m_comm, rank, 2, at.data());
      const auto [row, height] = part(m_rows, m_dims[0], at[0]);
      const auto [column, width] = part(m_columns, m_dims[1], at[1]);
      boxes.push_back({row, height, column, width});
      counts.push_back(height * width);
      places.push_back(total);
      total += counts.back();
    }
    std::vector<double> all(std::size_t(m_rank == 0 ? total : 0)), plate(all.size());
    MPI_Gatherv(mine.data(), int(mine.size()), MPI_DOUBLE, all.data(), counts.data(), places.data(),
                MPI_DOUBLE, 0, m_comm);
    if (m_rank != 0) return {};
    const double* from = all.data();
    for (const auto& [row, height, column, width] : boxes)
      for (int i = 0; i < height; ++i, from += width)
        std::copy(from, from + width, &plate[std::size_t(row + i) * m_columns + column]);
    return plate;
  }

  // Public for nvcc, which takes no kernels of private functions.
  void pack() {
    const View now = m_now;
    const Line left = m_to_left, right = m_to_right;
    const int w = m_width;
    Kokkos::parallel_for(
        "pack", Kokkos::RangePolicy<Exec>(0, m_height), KOKKOS_LAMBDA(int i) {
          left(i) = now(i + 1, 1);
          right(i) = now(i + 1, w);
        });
    Kokkos::fence("pack");
  }
  void unpack() {
    const View now = m_now;
    const Line left = m_from_left, right = m_from_right;
    const int w = m_width;
    const bool has_left = m_left != MPI_PROC_NULL, has_right = m_right != MPI_PROC_NULL;
    Kokkos::parallel_for(
        "unpack", Kokkos::RangePolicy<Exec>(0, m_height), KOKKOS_LAMBDA(int i) {
          if (has_left) now(i + 1, 0) = left(i);
          if (has_right) now(i + 1, w + 1) = right(i);
        });
  }

 private:
  void receive(double* into, int count, int from, int tag, MPI_Request& request) {
    MPI_Irecv(into, count, MPI_DOUBLE, from, tag, m_comm, &request);
  }
  void send(const double* what, int count, int to, int tag, MPI_Request& request) {
    MPI_Isend(what, count, MPI_DOUBLE, to, tag, m_comm, &request);
  }

  int m_rows, m_columns;
  MPI_Comm m_comm = MPI_COMM_NULL;
  int m_ranks = 0, m_rank = 0;
  std::array<int, 2> m_dims = {};
  int m_up = 0, m_down = 0, m_left = 0, m_right = 0;
  int m_height = 0, m_width = 0;
  View m_now, m_next;
  Line m_to_left, m_to_right, m_from_left, m_from_right;
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Kokkos::initialize(argc, argv);
  {
    const int rows = argc > 1 ? std::atoi(argv[1]) : 101;
    const int columns = argc > 2 ? std::atoi(argv[2]) : 67;
    const int steps = argc > 3 ? std::atoi(argv[3]) : 200;
    Plate plate(MPI_COMM_WORLD, rows, columns);
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    for (int step = 0; step < steps; ++step) plate.step();
    const double seconds = MPI_Wtime() - began;
    const double hottest = plate.hottest();
    const std::vector<double> all = plate.gather();
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
      std::uint64_t bits = 0;
      for (const double degrees : all) {
        std::uint64_t word = 0;
        std::memcpy(&word, &degrees, sizeof word);
        bits = bits * 31 + word;
      }
      std::cout << rows << " x " << columns << " after " << steps << " steps: hottest " << hottest
                << ", bits " << bits << '\n';
      std::cerr << "a step takes " << 1e6 * seconds / std::max(steps, 1) << " us\n";
    }
  }
  Kokkos::finalize();
  MPI_Finalize();
}
