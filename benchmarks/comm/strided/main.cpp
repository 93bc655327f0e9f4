// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle_mpi
// ranks: 2

/// @file
/// Strided messages between two ranks, by size and length of runs: past libheddle_mpi.so by their
/// datatypes as they are, or packed by hand on either side; and through it, packed always, never,
/// and as it chooses. Of each: a message there and back by calls that block, and one both ways at
/// once by calls that do not. The gains that it chooses by are measured through it: of each shape
/// just before its messages, and once for all shapes before any, which are printed for
/// HEDDLE_MPI_TABLE. What these, and its shipped table, would have chosen is printed beside.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <vector>

#include <mpi.h>

#include <heddle/comm/default_pack_gains.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/pack.hpp>
#include <heddle/layout/pack_table.hpp>

#include "../../mpi_library.hpp"
#include "../../ranks.hpp"
#include "../../support.hpp"

namespace hd = heddle;

extern "C" void heddle_mpi_choose_by(const char* table);

namespace {

using hd::Bytes;

constexpr std::size_t pairs = 31;
constexpr std::size_t pairs_for_tables = 15;

/// Through libheddle_mpi.so: packed by its table, always, never. Past it: by its datatype, packed.
enum Who : std::size_t { chosen, always, never, by_type, packed, number_of };

constexpr std::array<const char*, 3> tables{nullptr, "always", "never"};

/// A number of bytes in runs that are twice as far apart as they are long.
struct Shape {
  Bytes bytes;
  Bytes run;
};

/// One shape of message, and the memory of both sides.
class Message {
 public:
  /// `table` is what the interposer chooses by.
  Message(Shape shape, int rank, const char* table)
      : m_peer(1 - rank),
        m_block(hd::StridedBlock(shape.run).repeated(shape.bytes / shape.run,
                                                     2 * static_cast<std::int64_t>(shape.run))),
        m_bytes(static_cast<int>(shape.bytes)),
        m_from(2 * shape.bytes, std::byte(rank + 1)),
        m_to(2 * shape.bytes),
        m_packed_from(shape.bytes),
        m_packed_to(shape.bytes) {
    for (std::size_t who = 0; who < m_types.size(); ++who) {
      MPI_Type_create_hvector(m_bytes / static_cast<int>(shape.run),
                              static_cast<int>(shape.run / sizeof(double)),
                              2 * static_cast<MPI_Aint>(shape.run), MPI_DOUBLE, &m_types[who]);
      if (who >= by_type) {
        PMPI_Type_commit(&m_types[who]);
        continue;
      }
      heddle_mpi_choose_by(who == chosen ? table : tables[who]);
      MPI_Type_commit(&m_types[who]);
    }
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() {
    for (MPI_Datatype& type : m_types) MPI_Type_free(&type);
  }

  void there_and_back(Who who, int rank) {
    if (rank == 0) send(who);
    receive(who);
    if (rank == 1) send(who);
  }

  void both_ways(Who who) {
    std::array<MPI_Request, 2> requests;
    if (who < by_type) {
      MPI_Irecv(m_to.data(), 1, m_types[who], m_peer, 0, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(m_from.data(), 1, m_types[who], m_peer, 0, MPI_COMM_WORLD, &requests[1]);
      MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    } else if (who == by_type) {
      PMPI_Irecv(m_to.data(), 1, m_types[who], m_peer, 0, MPI_COMM_WORLD, &requests[0]);
      PMPI_Isend(m_from.data(), 1, m_types[who], m_peer, 0, MPI_COMM_WORLD, &requests[1]);
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
    if (who < by_type) {
      MPI_Send(m_from.data(), 1, m_types[who], m_peer, 0, MPI_COMM_WORLD);
    } else if (who == by_type) {
      PMPI_Send(m_from.data(), 1, m_types[who], m_peer, 0, MPI_COMM_WORLD);
    } else {
      hd::pack(m_block, m_from.data(), m_packed_from.data());
      PMPI_Send(m_packed_from.data(), m_bytes, MPI_PACKED, m_peer, 0, MPI_COMM_WORLD);
    }
  }
  void receive(Who who) {
    if (who < by_type) {
      MPI_Recv(m_to.data(), 1, m_types[who], m_peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (who == by_type) {
      PMPI_Recv(m_to.data(), 1, m_types[who], m_peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      PMPI_Recv(m_packed_to.data(), m_bytes, MPI_PACKED, m_peer, 0, MPI_COMM_WORLD,
                MPI_STATUS_IGNORE);
      hd::unpack(m_block, m_packed_to.data(), m_to.data());
    }
  }

  int m_peer;
  hd::StridedBlock m_block;
  int m_bytes;
  std::array<MPI_Datatype, packed> m_types{};
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

/// Times of a message by `ways`, in seconds, in another order each time: what one leaves in the
/// caches is found by all others. Each is done once before it is timed.
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
  // Some milliseconds of small ones, of which the first, new to caches and branches, are few.
  const auto repetitions = std::clamp<Bytes>((Bytes{4} << 20) / bytes, 1, 2000);
  Times times;
  std::vector<Who> order = ways;
  std::mt19937 random;  // the same of both ranks
  for (std::size_t round = 0; round < rounds + 2; ++round) {
    std::ranges::shuffle(order, random);
    for (const Who who : order)
      for (std::size_t p = 0; p < patterns; ++p) {
        work[p](who);
        const double seconds = bench::seconds_of_all(MPI_COMM_WORLD, [&] {
          for (Bytes r = 0; r < repetitions; ++r) work[p](who);
        });
        if (round >= 2)
          times[p][who].push_back(seconds / static_cast<double>(repetitions) /
                                  (p == there_and_back ? 2 : 1));
      }
  }
  return times;
}

/// What packing gains of a message through the interposer, by pattern; of rank 0, for both.
std::array<double, patterns> gains_of(Shape shape, int rank) {
  Message message(shape, rank, nullptr);
  const Times times = time_of(message, {always, never}, pairs_for_tables, shape.bytes, rank);
  std::array<double, patterns> gains{};
  for (std::size_t p = 0; rank == 0 && p < patterns; ++p)
    gains[p] = bench::ratios(times[p][never], times[p][always]).median;
  MPI_Bcast(gains.data(), static_cast<int>(gains.size()), MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return gains;
}

using Tables = std::array<hd::PackTable, patterns>;

/// The tables of all shapes.
Tables measure_all(int rank) {
  std::array<std::vector<double>, patterns> gains;
  for (const Bytes size : sizes)
    for (const Bytes run : runs) {
      const bool is_message = 2 * run <= size;  // else: as the nearest that there is
      const auto measured =
          is_message ? gains_of({size, run}, rank) : std::array<double, patterns>{};
      for (std::size_t p = 0; p < patterns; ++p)
        gains[p].push_back(is_message ? measured[p] : gains[p].back());
    }
  return {hd::PackTable{sizes, runs, gains[there_and_back]},
          hd::PackTable{sizes, runs, gains[both_ways]}};
}

/// Tables in a file of this process, as long as this lives.
class TableFile {
 public:
  explicit TableFile(const Tables& tables_of_it)
      : m_name(std::filesystem::temp_directory_path() / hd::text("heddle-gains-", getpid())) {
    std::ofstream out(m_name);
    for (const hd::PackTable& table : tables_of_it) out << table;
  }
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;
  ~TableFile() {
    std::error_code ignored;
    std::filesystem::remove(m_name, ignored);
  }
  [[nodiscard]] const char* name() const { return m_name.c_str(); }

 private:
  std::filesystem::path m_name;
};

/// The worst of all shapes.
class Worst {
 public:
  void keep(const std::string& what, const bench::Summary& next) {
    const auto [known, is_new] = m_of.try_emplace(what, next);
    if (!is_new && next.median < known->second.median) known->second = next;
  }
  [[nodiscard]] const bench::Summary& of(const std::string& what) const { return m_of.at(what); }

 private:
  std::map<std::string, bench::Summary> m_of;
};

std::string case_name() { return "comm/strided_" + bench::mpi_library(); }

using TimesOfOne = std::array<std::vector<double>, number_of>;

/// Of the two ways, the faster one, as their medians say.
Who better(const TimesOfOne& times, Who packs, Who does_not) {
  return bench::ratios(times[does_not], times[packs]).median > 1 ? packs : does_not;
}

/// What the choice is against the others; and what it would be by tables that pack, or not.
void print_times(const std::string& what, const TimesOfOne& times, bool one_table_packs,
                 bool shipped_packs, Worst& worst) {
  const auto against = [&](Who other, const std::string& name) {
    const bench::Summary ratio = bench::ratios(times[other], times[chosen]);
    bench::print_value(case_name(), what + "_over_" + name, ratio, "x");
    worst.keep("chosen_over_" + name, ratio);
  };
  against(by_type, "type");
  against(packed, "packed");
  against(better(times, packed, by_type), "better");
  const Who better_through = better(times, always, never);
  against(better_through, "better_through");
  const auto would = [&](bool packs, const std::string& name) {
    worst.keep(name, bench::ratios(times[better_through], times[packs ? always : never]));
  };
  would(one_table_packs, "one_table_over_better_through");
  would(shipped_packs, "shipped_over_better_through");
}

void run() {
  const int rank = bench::one_of_two_ranks("comm/strided");
  if (rank == 0) bench::skip_other_libraries("comm/strided");
  const Tables one_for_all = measure_all(rank);
  const hd::PackTable shipped = hd::default_pack_gains();
  Worst worst;
  for (const Bytes size : sizes)
    for (const Bytes length : runs) {
      const Shape shape{size, length};
      if (2 * length > size) continue;
      const std::array<double, patterns> gains = gains_of(shape, rank);
      const TableFile table({hd::PackTable{{size}, {length}, {gains[there_and_back]}},
                             hd::PackTable{{size}, {length}, {gains[both_ways]}}});
      Message message(shape, rank, table.name());
      const Times times =
          time_of(message, {chosen, always, never, by_type, packed}, pairs, size, rank);
      for (std::size_t p = 0; rank == 0 && p < patterns; ++p)
        print_times(hd::text(size, "B_of_", length, pattern_names[p]), times[p],
                    one_for_all[p].packs(size, length), shipped.packs(size, length), worst);
    }
  if (rank != 0) return;
  for (const char* const what : {"chosen_over_type", "chosen_over_packed", "chosen_over_better",
                                 "chosen_over_better_through", "one_table_over_better_through",
                                 "shipped_over_better_through"})
    bench::print_ratio(case_name(), what, worst.of(what));
  for (const hd::PackTable& table : one_for_all) std::cout << table;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = bench::status_of("comm/strided", run);
  MPI_Finalize();
  return status;
}
