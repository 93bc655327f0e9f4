// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle_mpi
// ranks: 2

/// @file
/// Strided messages between two ranks, by size and length of runs: their datatypes sent as they
/// are, packed on either side, and as libheddle_mpi.so chooses by its tables. Of each: a message
/// there and back by calls that block, and one both ways at once by calls that do not. Prints the
/// tables of this machine for HEDDLE_MPI_TABLE, of the former and of the latter.

#include <algorithm>
#include <array>
#include <cstddef>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

#include <heddle/comm/strided_datatype.hpp>
#include <heddle/layout/pack.hpp>
#include <heddle/layout/pack_table.hpp>

#include "../../mpi_library.hpp"
#include "../../ranks.hpp"
#include "../../support.hpp"

namespace hd = heddle;

namespace {

using hd::Bytes;

constexpr std::size_t pairs = 31;

enum Who : std::size_t { chosen, by_type, packed, number_of };

/// One shape of message, and the memory of both sides.
class Message {
 public:
  Message(Bytes bytes, Bytes run, int rank)
      : m_peer(1 - rank),
        m_block(hd::StridedBlock(run).repeated(bytes / run, 2 * static_cast<std::int64_t>(run))),
        m_bytes(static_cast<int>(bytes)),
        m_from(2 * bytes, std::byte(rank + 1)),
        m_to(2 * bytes),
        m_packed_from(bytes),
        m_packed_to(bytes) {
    MPI_Type_create_hvector(m_bytes / static_cast<int>(run), static_cast<int>(run / sizeof(double)),
                            2 * static_cast<MPI_Aint>(run), MPI_DOUBLE, &m_type);
    MPI_Type_commit(&m_type);
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

using Times = std::array<std::vector<double>, number_of>;

/// The worst of all shapes.
struct Worst {
  std::optional<bench::Summary> over_type;
  std::optional<bench::Summary> over_packed;
  std::optional<bench::Summary> over_better;
};

void keep(std::optional<bench::Summary>& worst, const bench::Summary& next) {
  if (!worst || next.median < worst->median) worst = next;
}

std::string case_name() { return "comm/strided_" + bench::mpi_library(); }

/// Prints what the choice is against either, and returns what packing gains.
double print_times(std::string_view what, const Times& times, Worst& worst) {
  const bench::Summary over_type = bench::ratios(times[by_type], times[chosen]);
  const bench::Summary over_packed = bench::ratios(times[packed], times[chosen]);
  const bench::Summary gain = bench::ratios(times[by_type], times[packed]);
  bench::print_value(case_name(), hd::text(what, "_over_type"), over_type, "x");
  bench::print_value(case_name(), hd::text(what, "_over_packed"), over_packed, "x");
  bench::print_value(case_name(), hd::text(what, "_gain"), gain, "x");
  keep(worst.over_type, over_type);
  keep(worst.over_packed, over_packed);
  keep(worst.over_better, gain.median > 1 ? over_packed : over_type);
  return gain.median;
}

/// @returns what packing gains, by pattern; on rank 0.
std::array<double, 2> compare(Bytes bytes, Bytes run, int rank, Worst& worst) {
  Message message(bytes, run, rank);
  for (std::size_t who = 0; who < number_of; ++who) {
    message.there_and_back(Who(who), rank);
    message.require_arrived();
    message.both_ways(Who(who));
    message.require_arrived();
  }
  const auto repetitions = std::clamp<Bytes>((Bytes{256} << 10) / bytes, 1, 200);
  std::array<Times, 2> times;
  for (std::size_t round = 0; round < pairs + 2; ++round)
    for (std::size_t i = 0; i < number_of; ++i) {
      const auto who = Who((i + round) % number_of);
      const std::array seconds = {bench::seconds_of_all(MPI_COMM_WORLD,
                                                        [&] {
                                                          for (Bytes r = 0; r < repetitions; ++r)
                                                            message.there_and_back(who, rank);
                                                        }) /
                                      2,
                                  bench::seconds_of_all(MPI_COMM_WORLD, [&] {
                                    for (Bytes r = 0; r < repetitions; ++r) message.both_ways(who);
                                  })};
      if (round < 2) continue;
      for (const std::size_t pattern : {0u, 1u})
        times[pattern][who].push_back(seconds[pattern] / static_cast<double>(repetitions));
    }
  if (rank != 0) return {1, 1};
  const std::string what = hd::text(bytes, "B_of_", run);
  return {print_times(what, times[0], worst), print_times(what + "_both_ways", times[1], worst)};
}

void run() {
  const int rank = bench::one_of_two_ranks("comm/strided");
  if (rank == 0) bench::skip_other_libraries("comm/strided");
  const std::vector<Bytes> sizes{256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304};
  const std::vector<Bytes> runs{8, 32, 128, 512, 2048, 8192};
  std::array<std::vector<double>, 2> gains;
  std::array<double, 2> last{};
  Worst worst;
  for (const Bytes size : sizes)
    for (const Bytes length : runs) {
      if (2 * length <= size) last = compare(size, length, rank, worst);
      for (const std::size_t pattern : {0u, 1u}) gains[pattern].push_back(last[pattern]);
    }
  if (rank != 0) return;
  bench::print_ratio(case_name(), "chosen_over_type", *worst.over_type);
  bench::print_ratio(case_name(), "chosen_over_packed", *worst.over_packed);
  bench::print_ratio(case_name(), "chosen_over_better", *worst.over_better);
  for (const std::vector<double>& pattern : gains) std::cout << hd::PackTable(sizes, runs, pattern);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = bench::status_of("comm/strided", run);
  MPI_Finalize();
  return status;
}
