// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2

/// @file
/// The halo of a block between two ranks, against the same exchange written by hand, which packs,
/// and against one by MPI datatypes: across rows, where a face is one run a plane, and across
/// columns, where each of its elements lies alone. Beside it what the halo gains by the table that
/// is shipped, for faces of several sizes.
///
/// All take turns sample by sample, each sample between barriers. Times are of the slower
/// rank. What the halos hold is compared first.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/comm.hpp>
#include <heddle/comm/default_pack_gains.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/tensor.hpp>

#include "../../ranks.hpp"

namespace hd = heddle;
using Exec = Kokkos::DefaultHostExecutionSpace;
using Block = hd::Sharded<double***, Kokkos::HostSpace>;
using Call = std::function<void()>;

namespace {

constexpr const char* where = "tensor/halo";
constexpr std::int64_t side = 128;  ///< of each rank's cube, without a halo, compared by hand

/// Each rank has a core of its own, and waits as MPI does.
const hd::ExecuteOptions spins{.idle = hd::Idle::spin};

/// The face of a rank towards the other one, or the halo behind it: where it begins in the View
/// along the dimension that is divided.
struct Faces {
  int dim = 0;
  std::size_t given = 0, taken = 0;

  Faces(int divided, int rank) : dim(divided) {
    const std::size_t last = static_cast<std::size_t>(side);
    given = rank == 0 ? last : 1;
    taken = rank == 0 ? last + 1 : 0;
  }
  /// Calls `visit(a, b)` with the two other indices of every element, the last one fastest.
  template <class Visit>
  static void for_each(Visit&& visit) {
    // The dimensions that are not divided have no halo.
    for (std::size_t a = 0; a < static_cast<std::size_t>(side); ++a)
      for (std::size_t b = 0; b < static_cast<std::size_t>(side); ++b) visit(a, b);
  }
};

/// By hand: packed into a buffer, sent, received and unpacked.
class ByHand {
 public:
  ByHand(Block::View view, const Faces& faces, int other, MPI_Comm comm)
      : m_view(std::move(view)), m_faces(faces), m_other(other), m_comm(comm) {
    m_send.resize(static_cast<std::size_t>(side * side));
    m_receive = m_send;
  }
  void operator()() {
    const auto count = static_cast<int>(m_send.size());
    MPI_Request requests[2];
    MPI_Irecv(m_receive.data(), count, MPI_DOUBLE, m_other, 0, m_comm, &requests[0]);
    double* next = m_send.data();
    const Block::View view = m_view;
    if (m_faces.dim == 2)
      Faces::for_each([&](std::size_t a, std::size_t b) { *next++ = view(a, b, m_faces.given); });
    else
      Faces::for_each([&](std::size_t a, std::size_t b) { *next++ = view(a, m_faces.given, b); });
    MPI_Isend(m_send.data(), count, MPI_DOUBLE, m_other, 0, m_comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    const double* from = m_receive.data();
    if (m_faces.dim == 2)
      Faces::for_each([&](std::size_t a, std::size_t b) { view(a, b, m_faces.taken) = *from++; });
    else
      Faces::for_each([&](std::size_t a, std::size_t b) { view(a, m_faces.taken, b) = *from++; });
  }

 private:
  Block::View m_view;
  Faces m_faces;
  int m_other;
  MPI_Comm m_comm;
  std::vector<double> m_send, m_receive;
};

/// By datatypes: MPI finds the elements where they lie.
class ByDatatype {
 public:
  ByDatatype(Block::View view, const Faces& faces, int other, MPI_Comm comm)
      : m_view(std::move(view)), m_other(other), m_comm(comm) {
    m_given = face(faces, faces.given);
    m_taken = face(faces, faces.taken);
  }
  ByDatatype(const ByDatatype&) = delete;
  ByDatatype& operator=(const ByDatatype&) = delete;
  ~ByDatatype() {
    MPI_Type_free(&m_given);
    MPI_Type_free(&m_taken);
  }
  void operator()() {
    MPI_Request requests[2];
    MPI_Irecv(m_view.data(), 1, m_taken, m_other, 0, m_comm, &requests[0]);
    MPI_Isend(m_view.data(), 1, m_given, m_other, 0, m_comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }

 private:
  [[nodiscard]] MPI_Datatype face(const Faces& faces, std::size_t at) const {
    std::array<int, 3> sizes{}, some{}, starts{};
    for (std::size_t dim = 0; dim < 3; ++dim) {
      const bool divided = static_cast<int>(dim) == faces.dim;
      sizes[dim] = static_cast<int>(m_view.extent(dim));
      some[dim] = divided ? 1 : static_cast<int>(side);
      starts[dim] = divided ? static_cast<int>(at) : 0;
    }
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_subarray(3, sizes.data(), some.data(), starts.data(), MPI_ORDER_C, MPI_DOUBLE,
                             &type);
    MPI_Type_commit(&type);
    return type;
  }

  Block::View m_view;
  int m_other;
  MPI_Comm m_comm;
  MPI_Datatype m_given = MPI_DATATYPE_NULL, m_taken = MPI_DATATYPE_NULL;
};

/// A cube of each of two ranks, divided along one dimension, filled by the rank.
Block make(const hd::DeviceMesh& mesh, int dim, std::int64_t cube) {
  std::vector<std::int64_t> sizes(3, cube);
  sizes[static_cast<std::size_t>(dim)] = 2 * cube;
  Block block(mesh, sizes, {hd::Shard{dim, {}, 1}});
  for (std::size_t i = 0; i < block.view().size(); ++i)
    block.view().data()[i] = static_cast<double>((i * 7 + mesh.rank().value) % 1013);
  return block;
}

/// Seconds of `repetitions` of each of the calls, which take turns.
template <std::size_t count>
std::array<std::vector<double>, count> times_of(const std::array<Call, count>& calls,
                                                int repetitions, MPI_Comm comm) {
  std::array<std::vector<double>, count> times;
  for (std::size_t round = 0; round < 101; ++round)
    for (std::size_t c = 0; c < count; ++c) {
      const std::size_t which = (c + round) % count;
      times[which].push_back(bench::seconds_of_all(comm, [&] {
        for (int i = 0; i < repetitions; ++i) calls[which]();
      }));
    }
  return times;
}

void require_equal(std::string_view name, const Block& a, const Block& b) {
  bench::require_equal(
      hd::text("the halo across ", name),
      std::memcmp(a.view().data(), b.view().data(), a.view().size() * sizeof(double)), 0);
}

void compare(std::string_view name, int dim, const hd::DeviceMesh& mesh) {
  const int rank = static_cast<int>(mesh.rank().value);
  const MPI_Comm comm = mesh.all().get();
  const Block ours = make(mesh, dim, side), by_hand = make(mesh, dim, side),
              by_type = make(mesh, dim, side);
  const Faces faces(dim, rank);
  hd::Halo halo(ours);
  ByHand hand(by_hand.view(), faces, 1 - rank, comm);
  ByDatatype type(by_type.view(), faces, 1 - rank, comm);
  const std::array<Call, 3> calls{[&] { halo.exchange(Exec{}, ours, spins); }, [&] { hand(); },
                                  [&] { type(); }};
  for (const Call& call : calls) call();
  for (const Block* other : {&by_hand, &by_type}) require_equal(name, ours, *other);
  const auto times = times_of(calls, 5, comm);
  if (rank != 0) return;
  bench::print_ratio(where, hd::text(name, "_by_hand"), bench::ratios(times[1], times[0]));
  bench::print_ratio(where, hd::text(name, "_datatype"), bench::ratios(times[2], times[0]));
}

/// What a halo gains where a table says which of its messages are packed, and not all are.
void compare_table(std::string_view name, int dim, std::int64_t cube, const hd::DeviceMesh& mesh) {
  const Block packs = make(mesh, dim, cube), chooses = make(mesh, dim, cube);
  hd::Halo without(packs);
  hd::Halo with(chooses, {}, {}, hd::PathTable(hd::default_pack_gains()));
  const std::array<Call, 2> calls{[&] { without.exchange(Exec{}, packs, spins); },
                                  [&] { with.exchange(Exec{}, chooses, spins); }};
  for (const Call& call : calls) call();
  require_equal(name, packs, chooses);
  const int repetitions = cube > 128 ? 3 : cube > 32 ? 10 : 50;
  const auto times = times_of(calls, repetitions, mesh.all().get());
  if (+mesh.rank() == 0)
    bench::print_value(where, hd::text(name, "_by_table_", cube), bench::ratios(times[0], times[1]),
                       "x");
}

void run() {
  (void)bench::one_of_two_ranks(where);
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", 2}});
  compare("rows", 1, mesh);
  compare("columns", 2, mesh);
  for (const std::int64_t cube : {16, 32, 64, 128, 256}) {
    compare_table("rows", 1, cube, mesh);
    compare_table("columns", 2, cube, mesh);
  }
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  const int status = bench::status_of(where, [] { run(); });
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
}
