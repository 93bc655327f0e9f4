// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Matrix products beside collectives, as in a layer whose weights are divided over several ranks.
// While one part of the result is summed over the ranks, the next part is computed. Product and
// collective are one Schedule, and overlap() is a pass on it. The handler multiplies the rows that
// it is given, and is the same with and without the pass.
//
//   mpiexec -n 3 example_15_overlap     (or any other number of ranks)

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <heddle/execute/combine.hpp>
#include <heddle/heddle.hpp>
#include <heddle/kernel/linalg.hpp>
#include <heddle/schedule/collective/with_product.hpp>
#include <heddle/schedule/pass/overlap.hpp>

namespace hd = heddle;
namespace hs = heddle::schedule;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Rows = hd::kernel::Matrix<double, Exec>;

constexpr std::size_t rows = 301, depth = 200, columns = 250;
constexpr hd::Bytes read_row = depth * sizeof(double), made_row = columns * sizeof(double);

/// One rank: its weights, and every buffer of the schedule that is not scratch. All numbers are
/// small and whole, so their sums are exact with any BLAS.
class Layer {
 public:
  explicit Layer(hd::Rank rank) : m_random(+rank, "layer"), m_weights("weights", depth, columns) {
    for (std::size_t i = 0; i < depth * columns; ++i) m_weights.data()[i] = number(i);
  }

  std::byte* memory(const hd::Schedule& schedule, hd::BufferId id) {
    const std::string& role = schedule[schedule[id].label];
    if (role == "scratch") return nullptr;  // the Runner's
    auto& numbers = m_numbers[role];
    for (std::size_t i = 0; i < schedule[id].bytes / sizeof(double); ++i)
      numbers.push_back(number(i));
    return reinterpret_cast<std::byte*>(numbers.data());
  }

  void operator()(const hd::Task& task) {
    if (task.kind() == hd::Kind::combine) return hd::combine_on_host(task);
    if (task.kind() == hd::Kind::move) {  // a rank's block for itself
      std::ranges::copy(task.get<double>("input"), task.get<double>("output").begin());
      return;
    }
    const bool sums = task.has("operand");
    const auto from = task.get<double>(sums ? "operand" : (task.has("data") ? "data" : "output"));
    const auto to = task.get<double>(sums ? "data" : "result");
    const std::size_t count = to.size() / columns;  // all rows, or those of a part
    using hd::kernel::Transpose;
    hd::kernel::gemm(Exec{}, Transpose::no, Transpose::no, 1.0, Rows(from.data(), count, depth),
                     m_weights, 0.0, Rows(to.data(), count, columns));
    Exec{}.fence("example::multiply");
  }

  [[nodiscard]] const std::vector<double>& numbers(const std::string& role) const {
    return m_numbers.at(role);
  }

 private:
  [[nodiscard]] double number(std::size_t i) const {
    return std::floor(9 * m_random.uniform(i)) - 4;
  }

  hd::Random m_random;
  Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace> m_weights;
  std::map<std::string, std::vector<double>> m_numbers;
};

/// Runs the product, then the collective.
hd::Schedule pair(hs::Collective collective, int ranks) {
  const bool sums = collective == hs::Collective::reduce_scatter;
  const bool exchanges = collective == hs::Collective::all_to_all;
  return hs::with_product(collective, exchanges ? hs::Algorithm::direct : hs::Algorithm::ring,
                          {.ranks = ranks,
                           .bytes = rows * (sums ? made_row : read_row),
                           .element = sums ? made_row : read_row},
                          sums ? read_row : made_row);
}

/// Returns the predicted time of a step if the product takes 1, a part of it 1/P, and the ring's P
/// - 1 messages R.
double predicted(const hd::Schedule& schedule, int ranks, double r, bool in_parts) {
  const hd::StageCosts costs{.forward = in_parts ? 1.0 / ranks : 1.0,
                             .latency = ranks > 1 ? r / (ranks - 1) : 0};
  return hd::simulate(schedule, costs).makespan();
}

void run(const hd::Communicator& comm, hd::DeviceMesh& mesh) {
  const int ranks = comm.size();
  const bool speaks = comm.rank() == 0;
  using enum hs::Collective;

  const hd::Schedule serial = pair(reduce_scatter, ranks);
  const hd::Schedule overlapped = hs::overlap(serial);
  const hd::Schedule ascending = hs::overlap(serial, hs::PartOrder::ascending);
  if (speaks) {
    std::cout << "one after the other:\n" << hd::to_text(serial);
    std::cout << "part by part:\n" << hd::to_text(overlapped);
    for (const double r : {0.5, 1.0})
      std::cout << "the product takes 1, the reduce-scatter " << r << ": one after the other "
                << predicted(serial, ranks, r, false) << ", part by part "
                << predicted(overlapped, ranks, r, true) << ", with part 0 first on every rank "
                << predicted(ascending, ranks, r, true) << '\n';
  }

  for (const auto& [collective, result] :
       {std::pair{reduce_scatter, "data"}, {all_gather, "result"}, {all_to_all, "result"}}) {
    const hd::Schedule whole = pair(collective, ranks);
    Layer expected(comm.rank()), found(comm.rank());
    hd::Runner(expected, whole, mesh).step();
    hd::Runner(found, hs::overlap(whole), mesh).step();
    // After a reduce-scatter, only the rank's own block is a sum. The other elements must be the
    // same too.
    const Kokkos::View<std::int64_t, Kokkos::HostSpace> wrong("wrong");
    for (std::size_t i = 0; i < expected.numbers(result).size(); ++i)
      wrong() += expected.numbers(result)[i] != found.numbers(result)[i];
    hd::all_reduce(Exec{}, wrong, hd::Sum{}, comm);
    if (speaks)
      std::cout << collective << ": elements that differ, of all ranks: " << wrong() << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  const hd::Communicator comm(MPI_COMM_WORLD);
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"model", comm.size()}});
  run(comm, mesh);
}
