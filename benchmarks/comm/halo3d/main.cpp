// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle_mpi
// ranks: 2

/// @file
/// The six faces of a cube of doubles, to the other rank and from it: by subarray datatypes with
/// libheddle_mpi.so in front of the MPI library, by the same calls past it, and packed with Heddle
/// itself, all in one process; halo3d_preloaded starts a program that has nothing of Heddle. And
/// what the interposer costs messages without strided datatypes.

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <mpi.h>

#include <heddle/comm/strided_datatype.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/pack.hpp>

#include "../../mpi_library.hpp"
#include "../../ranks.hpp"
#include "../../support.hpp"

namespace hd = heddle;

namespace {

constexpr std::size_t pairs = 31;

/// The calls of a program, by their names and past the interposer.
struct Calls {
  decltype(&MPI_Isend) isend;
  decltype(&MPI_Irecv) irecv;
  decltype(&MPI_Waitall) waitall;
  decltype(&MPI_Send) send;
  decltype(&MPI_Recv) recv;
};
constexpr Calls by_name{MPI_Isend, MPI_Irecv, MPI_Waitall, MPI_Send, MPI_Recv};
constexpr Calls library{PMPI_Isend, PMPI_Irecv, PMPI_Waitall, PMPI_Send, PMPI_Recv};

/// A cube of n^3 doubles within a layer of its neighbours'.
class Cube {
 public:
  Cube(int n, int rank) : m_n(n), m_peer(1 - rank), m_cells(cells()) {
    for (int face = 0; face < 6; ++face) {
      m_inner[at(face)] = subarray(face, true);
      m_outer[at(face)] = subarray(face, false);
    }
    for (std::size_t i = 0; i < m_cells.size(); ++i) m_cells[i] = value(rank, i);
  }
  Cube(const Cube&) = delete;
  Cube& operator=(const Cube&) = delete;
  ~Cube() {
    for (MPI_Datatype& type : m_inner) MPI_Type_free(&type);
    for (MPI_Datatype& type : m_outer) MPI_Type_free(&type);
  }

  /// The program: it knows datatypes, and nothing of Heddle.
  void exchange(const Calls& mpi) {
    std::array<MPI_Request, 12> requests;
    for (int face = 0; face < 6; ++face)
      mpi.irecv(m_cells.data(), 1, m_outer[at(face)], m_peer, face, MPI_COMM_WORLD,
                &requests[at(face)]);
    for (int face = 0; face < 6; ++face)
      mpi.isend(m_cells.data(), 1, m_inner[at(face)], m_peer, face ^ 1, MPI_COMM_WORLD,
                &requests[at(6 + face)]);
    mpi.waitall(12, requests.data(), MPI_STATUSES_IGNORE);
  }

  /// The same, all faces packed by Heddle.
  void exchange_packed() {
    std::array<MPI_Request, 12> requests;
    const std::size_t size = static_cast<std::size_t>(m_n) * static_cast<std::size_t>(m_n);
    const auto bytes = static_cast<int>(size * sizeof(double));
    if (m_packed.empty()) m_packed.resize(12 * size);
    const auto packed = [&](int which) {
      return reinterpret_cast<std::byte*>(m_packed.data() + at(which) * size);
    };
    auto* const base = reinterpret_cast<std::byte*>(m_cells.data());
    for (int face = 0; face < 6; ++face)
      library.irecv(packed(face), bytes, MPI_BYTE, m_peer, face, MPI_COMM_WORLD,
                    &requests[at(face)]);
    for (int face = 0; face < 6; ++face) {
      hd::pack(m_inner_block[at(face)], base, packed(6 + face));
      library.isend(packed(6 + face), bytes, MPI_BYTE, m_peer, face ^ 1, MPI_COMM_WORLD,
                    &requests[at(6 + face)]);
    }
    for (int done = 0; done < 12; ++done) {
      int face = 0;
      MPI_Waitany(12, requests.data(), &face, MPI_STATUS_IGNORE);
      if (face < 6) hd::unpack(m_outer_block[at(face)], packed(face), base);
    }
  }

  /// Ends the benchmark where the faces around are not the peer's opposite ones, or anything else
  /// is not this rank's; and forgets the faces around.
  void require_exchanged(const char* who) {
    const int edge = m_n + 2;
    for (int i = 0; i < edge; ++i)
      for (int j = 0; j < edge; ++j)
        for (int k = 0; k < edge; ++k) {
          const std::array place = {i, j, k};
          int outside = 0, from = 0;
          std::array<int, 3> source = place;
          for (int d = 0; d < 3; ++d)
            if (place[at(d)] == 0 || place[at(d)] == edge - 1) {
              ++outside;
              source[at(d)] = place[at(d)] == 0 ? m_n : 1;
            }
          from = outside == 1 ? m_peer : 1 - m_peer;
          const std::size_t here = index(place);
          if (m_cells[here] != value(from, outside == 1 ? index(source) : here))
            bench::require_equal(who, m_cells[here], value(from, index(source)));
          if (outside == 1) m_cells[here] = value(1 - m_peer, here);
        }
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  static double value(int rank, std::size_t i) { return static_cast<double>(2 * i) + rank; }
  [[nodiscard]] std::vector<double> cells() const {
    const std::size_t edge = at(m_n + 2);
    return std::vector<double>(edge * edge * edge);
  }
  [[nodiscard]] std::size_t index(const std::array<int, 3>& place) const {
    const std::size_t edge = at(m_n + 2);
    return (at(place[0]) * edge + at(place[1])) * edge + at(place[2]);
  }

  /// Face 2 d + side: the layer of the cube at the low or high end of dimension d, or the one
  /// outside of it.
  MPI_Datatype subarray(int face, bool inner) {
    const int d = face / 2, high = face % 2;
    std::array<int, 3> sizes, parts, begins;
    sizes.fill(m_n + 2);
    parts.fill(m_n);
    begins.fill(1);
    parts[at(d)] = 1;
    begins[at(d)] = inner ? (high != 0 ? m_n : 1) : (high != 0 ? m_n + 1 : 0);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_subarray(3, sizes.data(), parts.data(), begins.data(), MPI_ORDER_C, MPI_DOUBLE,
                             &type);
    MPI_Type_commit(&type);
    (inner ? m_inner_block : m_outer_block)[at(face)] = *hd::strided_block_of(type);
    return type;
  }

  int m_n;
  int m_peer;
  std::vector<double> m_cells;
  std::vector<double> m_packed;
  std::array<MPI_Datatype, 6> m_inner;
  std::array<MPI_Datatype, 6> m_outer;
  std::array<hd::StridedBlock, 6> m_inner_block;
  std::array<hd::StridedBlock, 6> m_outer_block;
};

void compare_halo(int n, int rank) {
  Cube cube(n, rank);
  const auto exchange = [&](std::size_t who) {
    if (who == 2)
      cube.exchange_packed();
    else
      cube.exchange(who == 0 ? by_name : library);
  };
  for (const std::size_t who : {0u, 1u, 2u}) {
    exchange(who);
    cube.require_exchanged(hd::text("halo ", who).c_str());
  }
  std::array<std::vector<double>, 3> times;
  for (std::size_t round = 0; round < pairs + 2; ++round)
    for (std::size_t i = 0; i < times.size(); ++i) {
      const std::size_t who = (i + round) % times.size();
      const double seconds = bench::seconds_of_all(MPI_COMM_WORLD, [&] { exchange(who); });
      if (round >= 2) times[who].push_back(seconds * 1e6);
    }
  if (rank != 0) return;
  const std::string name = "comm/halo3d_" + bench::mpi_library();
  const std::string what = hd::text("interposed_", n);
  bench::print_ratio(name, what, bench::ratios(times[1], times[0]));
  bench::print_ratio(name, hd::text("packed_", n), bench::ratios(times[1], times[2]));
  bench::print_value(name, what + "_time", bench::summarise(times[0]), "us");
  bench::print_value(name, hd::text("packed_", n, "_time"), bench::summarise(times[2]), "us");
  bench::print_value(name, hd::text("library_", n, "_time"), bench::summarise(times[1]), "us");
}

/// Messages of doubles to and fro, one after the other, and both ways at once. One percent is a few
/// nanoseconds of a short one, so that many short rounds take turns: what disturbs the machine then
/// disturbs both of a pair, or one pair of thousands. A sample is 50 messages there and back, 0.07
/// ms of 8 B, or 4 of 128 KiB, 0.7 ms.
void compare_contiguous(int count, int rank) {
  const int repetitions = count > 1000 ? 4 : 50;
  const std::vector<double> data(static_cast<std::size_t>(count), 1.0);
  std::vector<double> got(data.size());
  const auto there_and_back = [&](const Calls& mpi) {
    for (int i = 0; i < repetitions; ++i)
      for (const int sender : {0, 1})
        if (rank == sender)
          mpi.send(data.data(), count, MPI_DOUBLE, 1 - rank, 7, MPI_COMM_WORLD);
        else
          mpi.recv(got.data(), count, MPI_DOUBLE, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  };
  const auto both_at_once = [&](const Calls& mpi) {
    for (int i = 0; i < 2 * repetitions; ++i) {
      std::array<MPI_Request, 2> requests;
      mpi.irecv(got.data(), count, MPI_DOUBLE, 1 - rank, 7, MPI_COMM_WORLD, &requests[0]);
      mpi.isend(data.data(), count, MPI_DOUBLE, 1 - rank, 7, MPI_COMM_WORLD, &requests[1]);
      mpi.waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    }
  };
  const auto compare = [&](const std::string& what, const auto& messages) {
    std::array<std::vector<double>, 2> times;
    for (std::size_t round = 0; round < 100 * pairs + 2; ++round)
      for (std::size_t i = 0; i < times.size(); ++i) {
        const std::size_t who = (i + round) % 2;
        const double seconds =
            bench::seconds_of_all(MPI_COMM_WORLD, [&] { messages(who == 0 ? by_name : library); });
        if (round >= 2) times[who].push_back(seconds / (2 * repetitions) * 1e9);
      }
    if (rank != 0) return;
    const std::string name = "comm/halo3d_" + bench::mpi_library();
    bench::print_ratio(name, what, bench::ratios(times[1], times[0]));
    bench::print_value(name, what + "_time", bench::summarise(times[0]), "ns");
  };
  compare(hd::text("contiguous_", 8 * count, "B"), there_and_back);
  compare(hd::text("contiguous_both_", 8 * count, "B"), both_at_once);
}

void run() {
  const int rank = bench::one_of_two_ranks("comm/halo3d");
  if (rank == 0) bench::skip_other_libraries("comm/halo3d");
  for (const int count : {1, 128, 16384}) compare_contiguous(count, rank);
  for (const int n : {32, 64, 128, 256}) compare_halo(n, rank);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = bench::status_of("comm/halo3d", run);
  MPI_Finalize();
  return status;
}
