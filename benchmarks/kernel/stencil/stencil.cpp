// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The stencil pattern beside loops blocked by hand for the same cores, which may choose their
/// block from measurements. The competitors work on the same memory in turns of some milliseconds;
/// on one thread they are compared by the processor time that the system gave them.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/stencil.hpp>

#include "../../support.hpp"
#include "grids.hpp"

namespace hk = heddle::kernel;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
constexpr const char* name = "kernel/stencil";
constexpr int warm_up = 3;
constexpr int samples = 61;

struct Heat2 {
  template <class Neighbourhood>
  KOKKOS_FUNCTION double operator()(const Neighbourhood& u) const {
    return u(0, 0) +
           bench::heat_factor * (((u(-1, 0) + u(1, 0)) + (u(0, -1) + u(0, 1))) - 4 * u(0, 0));
  }
};
struct Heat3 {
  template <class Neighbourhood>
  KOKKOS_FUNCTION double operator()(const Neighbourhood& u) const {
    return u(0, 0, 0) +
           bench::heat_factor * (((u(-1, 0, 0) + u(1, 0, 0)) + (u(0, -1, 0) + u(0, 1, 0)) +
                                  (u(0, 0, -1) + u(0, 0, 1))) -
                                 6 * u(0, 0, 0));
  }
};

template <class Call>
double sample(const Call& call) {
  return Exec().concurrency() == 1 ? bench::processor_seconds_of(call) : bench::seconds_of(call);
}

/// `Rank` axes of `length` elements each.
template <int Rank>
class Case {
  using Data = std::conditional_t<Rank == 2, double**, double***>;
  using Grid = Kokkos::View<Data, Kokkos::LayoutRight, Kokkos::HostSpace>;

 public:
  explicit Case(std::size_t length) : m_length(length) {
    // First touched by the threads that compute there, the same for both.
    if constexpr (Rank == 2) {
      m_now = Grid("heddle::bench::now", length, length);
      m_next = Grid("heddle::bench::next", length, length);
    } else {
      m_now = Grid("heddle::bench::now", length, length, length);
      m_next = Grid("heddle::bench::next", length, length, length);
    }
    for (std::size_t i = 0; i < m_now.size(); ++i)
      m_now.data()[i] = static_cast<double>(i * 37 % 1009);
  }

  void run(const std::string& what) {
    const std::size_t block = best_block();
    pattern();
    const std::vector<double> ours = take();
    hand(block);
    const std::vector<double> theirs = take();
    bench::require_equal("whether the results are the same", true,
                         ours.size() == theirs.size() &&
                             std::memcmp(ours.data(), theirs.data(), ours.size() * 8) == 0);
    std::vector<double> us, them, rate;
    for (int i = -warm_up; i < samples; ++i) {
      if (i == 0) us.clear(), them.clear(), rate.clear();
      if (i % 2 == 0) us.push_back(sample([&] { pattern(); }));
      them.push_back(sample([&] { hand(block); }));
      if (i % 2 != 0) us.push_back(sample([&] { pattern(); }));
      rate.push_back(16e-9 * static_cast<double>(m_now.size()) / us.back());
    }
    std::cout << what << ": " << Rank << "-d, " << m_length << " along each axis, blocks of "
              << block << " rows by hand\n";
    bench::print_value(name, "rate_" + what, bench::summarise(rate), "GB/s");
    bench::print_ratio(name, "hand_blocked_" + what, bench::ratios(them, us));
  }

 private:
  void pattern() {
    if constexpr (Rank == 2)
      hk::stencil(Exec{}, 1, Heat2{}, m_next, m_now);
    else
      hk::stencil(Exec{}, 1, Heat3{}, m_next, m_now);
    Exec{}.fence("heddle::bench::stencil");
  }
  void hand(std::size_t block) {
    const bench::HeatGrid grid{m_next.data(), m_now.data(), m_length};
    Rank == 2 ? bench::hand_blocked_2d(grid, block) : bench::hand_blocked_3d(grid, block);
  }
  [[nodiscard]] std::size_t best_block() {
    std::size_t best = 1;
    double least = std::numeric_limits<double>::infinity();
    for (const std::size_t block : {std::size_t{4}, std::size_t{8}, std::size_t{16},
                                    std::size_t{32}, std::size_t{64}, m_length}) {
      std::vector<double> times;
      for (int i = 0; i < 7; ++i) times.push_back(sample([&] { hand(block); }));
      const double time = *std::min_element(times.begin(), times.end());
      if (time < least) least = time, best = block;
    }
    return best;
  }
  /// The result, which is cleared.
  [[nodiscard]] std::vector<double> take() {
    std::vector<double> result(m_next.data(), m_next.data() + m_next.size());
    Kokkos::deep_copy(m_next, 0.0);
    return result;
  }

  std::size_t m_length;
  Grid m_now, m_next;
};

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  std::cout << Exec().concurrency() << " threads, " << samples << " interleaved samples\n";
  return bench::status_of(name, [] {
    Case<2>(1536).run("2d_memory");
    Case<2>(512).run("2d_cache");
    Case<3>(150).run("3d_memory");
    Case<3>(64).run("3d_cache");
  });
}
