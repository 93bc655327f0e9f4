// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2

/// @file
/// A product and the reduce-scatter of what it makes, one after the other against part by part, on
/// 2 ranks over links that take half of the product's time, R = G/2. The bound is 1.5: G + R over
/// max(G, G/2 + R). Once with a product that only waits, so that busy cores are no hindrance, and
/// once with kernel::gemm. With the parts in the same order on both ranks nothing is to be gained.
///
/// There is nothing to iterate over that Google Benchmark could time: steps belong to all ranks.

#include <chrono>
#include <cmath>
#include <cstddef>
#include <exception>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <mpi.h>

#include <heddle/execute/combine.hpp>
#include <heddle/execute/shaped_transport.hpp>
#include <heddle/heddle.hpp>
#include <heddle/kernel/linalg.hpp>
#include <heddle/schedule/collective/with_product.hpp>
#include <heddle/schedule/pass/overlap.hpp>

#include "../ranks.hpp"
#include "../support.hpp"

namespace hd = heddle;

namespace {

constexpr const char* name = "overlap/executed";
constexpr int pairs = 31;
constexpr std::size_t rows = 768, depth = 768, columns = 768;
constexpr hd::Bytes element = columns * sizeof(double);  ///< a row of what is summed
constexpr hd::Bytes whole = rows * element;

using Exec = Kokkos::DefaultHostExecutionSpace;
using Rows = hd::kernel::Matrix<double, Exec>;

/// A product that sleeps, for as long as its share of the rows says.
struct WaitingProduct {
  static constexpr std::chrono::microseconds all{40'000};
  hd::Bytes made = 0;

  void operator()(const hd::Task& task) {
    if (task.kind() == hd::Kind::combine) return hd::combine_on_host(task);
    const hd::Bytes bytes = task.get<double>("data").size_bytes();
    made += bytes;
    std::this_thread::sleep_for(all * bytes / whole);
  }
};

/// A product of matrices that each rank has its own of.
class Gemm {
 public:
  explicit Gemm(hd::Rank rank)
      : m_operand("heddle::bench::operand", rows, depth),
        m_weights("heddle::bench::weights", depth, columns),
        m_data("heddle::bench::data", rows, columns) {
    const hd::Random random(+rank, "product");
    // Whole numbers, which any BLAS adds exactly, in parts or not.
    const auto number = [&](std::size_t i) { return std::floor(9 * random.uniform(i)) - 4; };
    for (std::size_t i = 0; i < rows * depth; ++i) m_operand.data()[i] = number(i);
    for (std::size_t i = 0; i < depth * columns; ++i)
      m_weights.data()[i] = number(rows * depth + i);
  }

  hd::Bytes made = 0;

  std::byte* memory(const hd::Schedule& schedule, hd::BufferId id) {
    const std::string& role = schedule[schedule[id].label];
    if (role == "operand") return reinterpret_cast<std::byte*>(m_operand.data());
    return role == "data" ? reinterpret_cast<std::byte*>(m_data.data()) : nullptr;
  }
  void operator()(const hd::Task& task) {
    if (task.kind() == hd::Kind::combine) return hd::combine_on_host(task);
    const auto from = task.get<double>("operand"), to = task.get<double>("data");
    made += to.size_bytes();
    multiply(from.data(), to.data(), to.size() / columns);
  }
  /// All of it, as the schedules do it before they send.
  void multiply() { multiply(m_operand.data(), m_data.data(), rows); }
  /// The block of the sum that is this rank's.
  [[nodiscard]] std::vector<double> block(hd::Rank rank) const {
    const double* const begin = m_data.data() + +rank * (rows / 2 * columns);
    return {begin, begin + rows / 2 * columns};
  }

 private:
  using Owned = Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace>;

  void multiply(double* from, double* to, std::size_t count) {
    using hd::kernel::Transpose;
    hd::kernel::gemm(Exec{}, Transpose::no, Transpose::no, 1.0, Rows(from, count, depth), m_weights,
                     0.0, Rows(to, count, columns));
    Exec{}.fence("heddle::bench::multiply");
  }

  Owned m_operand, m_weights, m_data;
};

namespace hs = hd::schedule;

/// The product, then the reduce-scatter.
hd::Schedule serial_pair() {
  return hs::with_product(hs::Collective::reduce_scatter, hs::Algorithm::ring,
                          {.ranks = 2, .bytes = whole, .element = element}, depth * sizeof(double));
}

/// Runs the two in turn and prints how much longer theirs takes. `product_time()` is G, asked
/// before every pair; `check()` is called when both have run once.
template <class Product, class ProductTime, class Check>
void compare(const char* peer, const hd::Schedule& theirs, Product& their_product,
             Product& our_product, ProductTime&& product_time, Check&& check) {
  hd::DeviceMesh their_mesh(MPI_COMM_WORLD, {{"model", 2}});
  hd::DeviceMesh our_mesh(MPI_COMM_WORLD, {{"model", 2}});
  hd::Link link{};
  const hd::Shape shape{.link = [&link](hd::Rank, hd::Rank, hd::Seconds) { return link; }};
  hd::ShapedTransport their_links(their_mesh.transport(), shape);
  hd::ShapedTransport our_links(our_mesh.transport(), shape);

  const hd::RunOptions options{.execute = {.idle = hd::Idle::nap}};
  hd::Runner their_run(their_product, theirs, their_links, options);
  hd::Runner our_run(our_product, hs::overlap(serial_pair()), our_links, options);

  std::vector<double> product_seconds, their_seconds, our_seconds;
  for (int i = 0; i <= pairs; ++i) {
    const double product = product_time();
    link.bandwidth = static_cast<double>(whole / 2) / (product / 2);
    double seconds[2];
    for (const bool ours : {i % 2 == 0, i % 2 != 0})
      seconds[ours] = bench::seconds_of_all(our_mesh.all().get(), [&] {
        decltype(our_run)& run = ours ? our_run : their_run;
        run.step();
        run.drain();
      });
    if (i == 0) {  // warms up connections
      check();
      continue;
    }
    product_seconds.push_back(product);
    their_seconds.push_back(seconds[0]);
    our_seconds.push_back(seconds[1]);
  }
  bench::require_equal("bytes made by a rank", our_product.made, their_product.made);
  if (our_mesh.rank() != hd::Rank{0}) return;
  std::cout << name << ' ' << peer << ": the product "
            << bench::summarise(product_seconds).median * 1e3 << " ms, theirs "
            << bench::summarise(their_seconds).median * 1e3 << " ms, ours "
            << bench::summarise(our_seconds).median * 1e3 << " ms, medians of " << pairs
            << " pairs\n";
  bench::print_ratio(name, peer, bench::ratios(their_seconds, our_seconds));
}

void waits(const char* peer, const hd::Schedule& schedule) {
  WaitingProduct theirs, ours;
  compare(
      peer, schedule, theirs, ours,
      [] { return std::chrono::duration<double>(WaitingProduct::all).count(); }, [] {});
}

void computes() {
  int number = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  const hd::Rank rank{number};
  Gemm theirs(rank), ours(rank), alone(rank);
  compare(
      "serial_pair_gemm", serial_pair(), theirs, ours,
      [&] { return bench::seconds_of_all(MPI_COMM_WORLD, [&] { alone.multiply(); }); },
      [&] {
        const std::vector<double> sum = theirs.block(rank);
        const std::vector<double> own = alone.block(rank);
        bench::require_equal("the sum", ours.block(rank) == sum, true);
        bench::require_equal("what is summed", sum != own, true);
      });
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  try {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    hd::expects(ranks == 2, [&] {
      return hd::ErrorInfo{name, "it runs on 2 ranks", hd::text(ranks, " ranks")};
    });
    waits("serial_pair", serial_pair());
    waits("same_order", hs::overlap(serial_pair(), hs::PartOrder::ascending));
    computes();
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
