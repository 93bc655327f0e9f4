// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle_mpi
// ranks: 2

/// @file
/// Strided messages between two ranks, by size and length of runs: their datatypes sent as they
/// are, packed on either side, and as libheddle_mpi.so chooses. Of each: a message there and back
/// by calls that block, and one both ways at once by calls that do not. First what packing gains is
/// measured past the library, then all three with it, which chooses by these tables; they are
/// printed for HEDDLE_MPI_TABLE. What its shipped table would have chosen is printed beside it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <mpi.h>

#include <heddle/comm/shipped_gains.hpp>
#include <heddle/layout/pack.hpp>
#include <heddle/layout/pack_table.hpp>

#include "../../mpi_library.hpp"
#include "../../ranks.hpp"
#include "../../support.hpp"

namespace hd = heddle;

namespace {

using hd::Bytes;

constexpr std::size_t pairs = 31;
constexpr std::size_t pairs_for_tables = 15;

enum Who : std::size_t { chosen, by_type, packed, number_of };

/// One shape of message, and the memory of both sides.
class Message {
 public:
  /// Whose datatype the interposer is told, or not.
  Message(Bytes bytes, Bytes run, int rank, bool told)
      : m_peer(1 - rank),
        m_block(hd::StridedBlock(run).repeated(bytes / run, 2 * static_cast<std::int64_t>(run))),
        m_bytes(static_cast<int>(bytes)),
        m_from(2 * bytes, std::byte(rank + 1)),
        m_to(2 * bytes),
        m_packed_from(bytes),
        m_packed_to(bytes) {
    MPI_Type_create_hvector(m_bytes / static_cast<int>(run), static_cast<int>(run / sizeof(double)),
                            2 * static_cast<MPI_Aint>(run), MPI_DOUBLE, &m_type);
    told ? MPI_Type_commit(&m_type) : PMPI_Type_commit(&m_type);
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() { MPI_Type_free(&m_type); }

  void there_and_back(Who who, int rank) {
    if (rank == 0) send(who);
    receive(who);
    if (rank == 1) send(who);
  }

  void both_ways(Who who) {
    std::array<MPI_Request, 2> requests;
    if (who == chosen) {
      MPI_Irecv(m_to.data(), 1, m_type, m_peer, 0, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(m_from.data(), 1, m_type, m_peer, 0, MPI_COMM_WORLD, &requests[1]);
      MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    } else if (who == by_type) {
      PMPI_Irecv(m_to.data(), 1, m_type, m_peer, 0, MPI_COMM_WORLD, &requests[0]);
      PMPI_Isend(m_from.data(), 1, m_type, m_peer, 0, MPI_COMM_WORLD, &requests[1]);
      PMPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    } else {
      PMPI_Irecv(m_packed_to.data(), m_bytes, MPI_PACKED, m_peer, 0, MPI_COMM_WORLD, &requests[0]);
      hd::pack(m_block, m_from.data(), m_packed_from.data());
      PMPI_Isend(m_packed_from.data(), m_bytes, MPI_PACKED, m_peer, 0, MPI_COMM_WORLD,
                 &requests[1]);
      PMPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
      hd::unpack(m_block, m_packed_to.data(), m_to.data());
    }
  }

  /// Ends the benchmark where the message did not arrive, or more than it; and forgets it.
  void require_arrived() {
    std::vector<std::byte> meant(m_to.size());
    m_block.for_each_run([&](std::int64_t offset) {
      std::fill_n(meant.begin() + offset, m_block.run(), std::byte(m_peer + 1));
    });
    bench::require_equal("what has arrived", m_to == meant, true);
    std::fill(m_to.begin(), m_to.end(), std::byte());
  }

 private:
  void send(Who who) {
    if (who == chosen) {
      MPI_Send(m_from.data(), 1, m_type, m_peer, 0, MPI_COMM_WORLD);
    } else if (who == by_type) {
      PMPI_Send(m_from.data(), 1, m_type, m_peer, 0, MPI_COMM_WORLD);
    } else {
      hd::pack(m_block, m_from.data(), m_packed_from.data());
      PMPI_Send(m_packed_from.data(), m_bytes, MPI_PACKED, m_peer, 0, MPI_COMM_WORLD);
    }
  }
  void receive(Who who) {
    if (who == chosen) {
      MPI_Recv(m_to.data(), 1, m_type, m_peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (who == by_type) {
      PMPI_Recv(m_to.data(), 1, m_type, m_peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      PMPI_Recv(m_packed_to.data(), m_bytes, MPI_PACKED, m_peer, 0, MPI_COMM_WORLD,
                MPI_STATUS_IGNORE);
      hd::unpack(m_block, m_packed_to.data(), m_to.data());
    }
  }

  int m_peer;
  hd::StridedBlock m_block;
  int m_bytes;
  MPI_Datatype m_type = MPI_DATATYPE_NULL;
  std::vector<std::byte> m_from;
  std::vector<std::byte> m_to;
  std::vector<std::byte> m_packed_from;
  std::vector<std::byte> m_packed_to;
};

const std::vector<Bytes> sizes{256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304};
const std::vector<Bytes> runs{8, 32, 128, 512, 2048, 8192};

enum Pattern : std::size_t { there_and_back, both_ways, patterns };
constexpr std::array<const char*, patterns> pattern_names{"", "_both_ways"};

/// Of rank 0, by pattern and who.
using Times = std::array<std::array<std::vector<double>, number_of>, patterns>;

/// Times of a message by `ways`, in turn, in seconds. Each is done once before it is timed, so that
/// none finds the caches as another one leaves them.
Times time_of(Message& message, const std::vector<Who>& ways, std::size_t rounds, Bytes bytes,
              int rank) {
  const std::array<std::function<void(Who)>, patterns> work{
      [&](Who who) { message.there_and_back(who, rank); },
      [&](Who who) { message.both_ways(who); }};
  for (const Who who : ways)
    for (const auto& pattern : work) {
      pattern(who);
      message.require_arrived();
    }
  const auto repetitions = std::clamp<Bytes>((Bytes{256} << 10) / bytes, 1, 200);
  Times times;
  for (std::size_t round = 0; round < rounds + 2; ++round)
    for (std::size_t i = 0; i < ways.size(); ++i)
      for (std::size_t p = 0; p < patterns; ++p) {
        const Who who = ways[(i + round) % ways.size()];
        work[p](who);
        const double seconds = bench::seconds_of_all(MPI_COMM_WORLD, [&] {
          for (Bytes r = 0; r < repetitions; ++r) work[p](who);
        });
        if (round >= 2)
          times[p][who].push_back(seconds / static_cast<double>(repetitions) /
                                  (p == there_and_back ? 2 : 1));
      }
  return times;
}

/// What packing gains on this machine, by pattern.
std::vector<hd::PackTable> measure_gains(int rank) {
  std::array<std::vector<double>, patterns> gains;
  for (const Bytes size : sizes)
    for (const Bytes run : runs) {
      if (2 * run > size) {  // as the nearest that there is
        for (auto& of_pattern : gains) of_pattern.push_back(of_pattern.back());
        continue;
      }
      Message message(size, run, rank, false);
      const Times times = time_of(message, {by_type, packed}, pairs_for_tables, size, rank);
      for (std::size_t p = 0; p < patterns; ++p)
        gains[p].push_back(rank == 0 ? bench::ratios(times[p][by_type], times[p][packed]).median
                                     : 1);
    }
  return {{sizes, runs, gains[there_and_back]}, {sizes, runs, gains[both_ways]}};
}

/// Has the interposer of both ranks, which has done nothing yet, choose by rank 0's `gains`.
void choose_by(const std::vector<hd::PackTable>& gains, int rank) {
  std::int64_t writer = getpid();
  MPI_Bcast(&writer, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / hd::text("heddle-gains-", writer);
  if (rank == 0) {
    std::ofstream out(file);
    for (const hd::PackTable& table : gains) out << table;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  setenv("HEDDLE_MPI_TABLE", file.c_str(), 1);
  Message(sizes[0], runs[0], rank, true);  // for which it reads them
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) std::filesystem::remove(file);
}

/// The worst of all shapes.
struct Worst {
  std::optional<bench::Summary> over_type;
  std::optional<bench::Summary> over_packed;
  std::optional<bench::Summary> over_better;
  std::optional<bench::Summary> shipped_over_better;
};

void keep(std::optional<bench::Summary>& worst, const bench::Summary& next) {
  if (!worst || next.median < worst->median) worst = next;
}

std::string case_name() { return "comm/strided_" + bench::mpi_library(); }

/// What the choice is against either; and what that of the shipped table is, which `packs` or not.
void print_times(const std::string& what, const std::array<std::vector<double>, number_of>& times,
                 bool shipped_packs, Worst& worst) {
  const bench::Summary over_type = bench::ratios(times[by_type], times[chosen]);
  const bench::Summary over_packed = bench::ratios(times[packed], times[chosen]);
  const bench::Summary gain = bench::ratios(times[by_type], times[packed]);
  bench::print_value(case_name(), what + "_over_type", over_type, "x");
  bench::print_value(case_name(), what + "_over_packed", over_packed, "x");
  bench::print_value(case_name(), what + "_gain", gain, "x");
  keep(worst.over_type, over_type);
  keep(worst.over_packed, over_packed);
  const bool packing_is_better = gain.median > 1;
  keep(worst.over_better, packing_is_better ? over_packed : over_type);
  const Who better = packing_is_better ? packed : by_type;
  keep(worst.shipped_over_better,
       bench::ratios(times[better], times[shipped_packs ? packed : by_type]));
}

void run() {
  const int rank = bench::one_of_two_ranks("comm/strided");
  if (rank == 0) bench::skip_other_libraries("comm/strided");
  const std::vector<hd::PackTable> gains = measure_gains(rank);
  choose_by(gains, rank);
  const hd::PackTable shipped = hd::shipped_gains();
  Worst worst;
  for (const Bytes size : sizes)
    for (const Bytes length : runs) {
      if (2 * length > size) continue;
      Message message(size, length, rank, true);
      const Times times = time_of(message, {chosen, by_type, packed}, pairs, size, rank);
      for (std::size_t p = 0; rank == 0 && p < patterns; ++p)
        print_times(hd::text(size, "B_of_", length, pattern_names[p]), times[p],
                    shipped.packs(size, length), worst);
    }
  if (rank != 0) return;
  bench::print_ratio(case_name(), "chosen_over_type", *worst.over_type);
  bench::print_ratio(case_name(), "chosen_over_packed", *worst.over_packed);
  bench::print_ratio(case_name(), "chosen_over_better", *worst.over_better);
  bench::print_ratio(case_name(), "shipped_over_better", *worst.shipped_over_better);
  for (const hd::PackTable& table : gains) std::cout << table;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = bench::status_of("comm/strided", run);
  MPI_Finalize();
  return status;
}
