// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2

/// @file
/// Redistributions of a matrix against the same written by hand with MPI: rows to columns, rows to
/// all, parts to their sum on every rank, and to rows of their sum; and what planning takes, the
/// first time and once a plan is known.
///
/// The two sides alternate sample by sample, each sample between barriers. Times are of the slower
/// rank. Both sides write to memory that is there; elements are compared first.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/comm.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/redistribution/redistribution.hpp>
#include <heddle/tensor.hpp>
#include <heddle/tensor/impl/redistributions.hpp>

#include "../../ranks.hpp"

namespace hd = heddle;
using Exec = Kokkos::DefaultHostExecutionSpace;
using Matrix = hd::Sharded<double**, Kokkos::HostSpace>;
using Call = std::function<void()>;

namespace {

constexpr const char* where = "tensor/redistribute";
constexpr std::array<hd::Bytes, 6> sizes{1 << 10, 16 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20};

/// Each rank has a core of its own, and waits as MPI does.
const hd::ExecuteOptions spins{.idle = hd::Idle::spin};

/// A square matrix of about so many bytes, of an even number of rows and columns.
std::int64_t side_of(hd::Bytes bytes) {
  return 2 * static_cast<std::int64_t>(std::sqrt(static_cast<double>(bytes) / sizeof(double)) / 2);
}

/// One redistribution of two ranks, and the same by hand.
struct Case {
  std::string_view name;
  hd::Placement from, to;
  /// From `in` to `out`, as the matrices of a rank have it; n rows and columns.
  std::function<void(MPI_Comm comm, int rank, std::size_t n, const double* in, double* out,
                     std::vector<double>& scratch)>
      by_hand;
};

const std::array<Case, 4> cases{
    Case{"rows_to_columns", hd::Shard{0}, hd::Shard{1},
         [](MPI_Comm comm, int rank, std::size_t n, const double* in, double* out,
            std::vector<double>& scratch) {
           const std::size_t half = n / 2, block = half * half;
           const auto me = static_cast<std::size_t>(rank), other = 1 - me;
           scratch.resize(block);
           for (std::size_t row = 0; row < half; ++row)
             std::memcpy(scratch.data() + row * half, in + row * n + other * half,
                         half * sizeof(double));
           MPI_Request requests[2];
           const auto count = static_cast<int>(block);
           MPI_Irecv(out + other * block, count, MPI_DOUBLE, 1 - rank, 0, comm, &requests[0]);
           MPI_Isend(scratch.data(), count, MPI_DOUBLE, 1 - rank, 0, comm, &requests[1]);
           for (std::size_t row = 0; row < half; ++row)
             std::memcpy(out + me * block + row * half, in + row * n + me * half,
                         half * sizeof(double));
           MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
         }},
    Case{
        "rows_to_all", hd::Shard{0}, hd::Replicate{},
        [](MPI_Comm comm, int, std::size_t n, const double* in, double* out, std::vector<double>&) {
          const auto count = static_cast<int>(n * n / 2);
          MPI_Allgather(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, comm);
        }},
    Case{
        "parts_to_sum", hd::Partial{}, hd::Replicate{},
        [](MPI_Comm comm, int, std::size_t n, const double* in, double* out, std::vector<double>&) {
          MPI_Allreduce(in, out, static_cast<int>(n * n), MPI_DOUBLE, MPI_SUM, comm);
        }},
    Case{
        "parts_to_rows", hd::Partial{}, hd::Shard{0},
        [](MPI_Comm comm, int, std::size_t n, const double* in, double* out, std::vector<double>&) {
          MPI_Reduce_scatter_block(in, out, static_cast<int>(n * n / 2), MPI_DOUBLE, MPI_SUM, comm);
        }}};

/// Seconds per call of `calls` calls, the slower rank's.
double time_of(const Call& call, int calls, MPI_Comm comm) {
  return bench::seconds_of_all(comm,
                               [&] {
                                 for (int i = 0; i < calls; ++i) call();
                               }) /
         calls;
}

/// By how much ours takes longer, in units of what it may: 5%, or a microsecond where that is more.
bench::Summary excess(const Call& by_hand, const Call& ours, MPI_Comm comm) {
  const double once = std::max(time_of(by_hand, 3, comm), 1e-7);
  const int calls = static_cast<int>(std::clamp(1e-3 / once, 1.0, 500.0));
  const int rounds = static_cast<int>(std::clamp(1.0 / (once * calls), 31.0, 101.0));
  std::vector<double> sample;
  for (int round = 0; round < rounds; ++round) {
    double first = 0;
    if (round % 2 == 0) first = time_of(ours, calls, comm);
    const double theirs = time_of(by_hand, calls, comm);
    const double mine = round % 2 == 0 ? first : time_of(ours, calls, comm);
    sample.push_back((mine - theirs) / std::max(0.05 * theirs, 1e-6));
  }
  return bench::summarise(std::move(sample));
}

void compare(const hd::DeviceMesh& mesh, const Case& each, bool prints) {
  bench::Summary worst;
  hd::Bytes worst_at = 0;
  const MPI_Comm comm = mesh.all().get();
  const int rank = static_cast<int>(mesh.rank().value);
  for (const hd::Bytes bytes : sizes) {
    const std::int64_t n = side_of(bytes);
    const Matrix source(mesh, {n, n}, {each.from});
    const Matrix ours(mesh, {n, n}, {each.to}), theirs(mesh, {n, n}, {each.to});
    double* const in = source.parts().data();
    for (std::size_t i = 0; i < source.parts().size(); ++i)
      in[i] = static_cast<double>((i * 7 + static_cast<std::size_t>(rank) * 3) % 1013);
    std::vector<double> scratch;
    const Call by_hand = [&] {
      each.by_hand(comm, rank, static_cast<std::size_t>(n), in, theirs.parts().data(), scratch);
    };
    const Call by_us = [&] { hd::redistribute(Exec{}, source, ours, spins); };
    by_hand();
    by_us();
    bench::require_equal(hd::text(each.name, " of ", bytes, " bytes"),
                         std::memcmp(ours.parts().data(), theirs.parts().data(),
                                     ours.parts().size() * sizeof(double)),
                         0);
    const bench::Summary found = excess(by_hand, by_us, comm);
    if (prints) bench::print_value(where, hd::text(each.name, "_", bytes, "B"), found, "x");
    if (worst_at == 0 || found.median > worst.median) {
      worst = found;
      worst_at = bytes;
    }
  }
  if (!prints) return;
  std::cout << each.name << " is worst at " << worst_at << " bytes\n";
  bench::print_value(where, each.name, worst, "x");
}

/// A plan of 4 ranks as a Schedule, and the finding of one that is known.
void plan(const hd::Communicator& comm) {
  const hd::MeshShape shape{{"data", 2}, {"tensor", 2}};
  std::vector<double> planning, finding;
  const hd::Layout source(shape, {1021, 509}, {hd::Shard{0}, hd::Replicate{}});
  hd::impl::Redistributions known(MPI_COMM_SELF);
  const hd::DeviceMesh alone(MPI_COMM_SELF, {{"self", 1}});
  const Matrix matrix(alone, {1021, 509}, {hd::Shard{0}});
  const auto by = hd::impl::exchange_instance<Matrix>(Exec());
  const auto find = [&] {
    const hd::Layout to(alone.shape(), {1021, 509}, {hd::Shard{1}});
    return &known.find(by, matrix, to, {}, {});
  };
  const auto* const first = find();
  for (int round = 0; round < 201; ++round) {
    planning.push_back(1e6 * bench::seconds_of([&] {
                         const auto target = source.with({hd::Shard{1}, hd::Replicate{}});
                         (void)to_schedule(hd::schedule::redistribution(source, target, 4, 8));
                       }));
    bool same = true;
    finding.push_back(1e6 / 16 * bench::seconds_of([&] {
                        for (int i = 0; i < 16; ++i) same = same && find() == first;
                      }));
    bench::require_equal("the plan that is found", same, true);
  }
  if (+comm.rank() != 0) return;
  bench::print_value(where, "planning", bench::summarise(planning), "us");
  bench::print_value(where, "cached", bench::summarise(finding), "us");
}

void run() {
  const int rank = bench::one_of_two_ranks(where);
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", 2}});
  plan(mesh.all());
  for (const Case& each : cases) compare(mesh, each, rank == 0);
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  const int status = bench::status_of(where, [] { run(); });
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
}
