// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// What it costs to make a View of doubles that is not initialised, and to give it back: by
/// make_view, and by Kokkos with a Space, both from a pool, against Kokkos alone. The label has 8
/// characters, which Kokkos keeps without taking memory. By processor time.

#include <array>
#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/memory/pool.hpp>
#include <heddle/memory/space.hpp>
#include <heddle/memory/view.hpp>

#include "../support.hpp"

namespace hm = heddle::memory;

namespace {

constexpr std::array<std::size_t, 4> sizes{0, 100, 10'000, 1'000'000};
constexpr int views = 400;  ///< a sample
constexpr int rounds = 201;

/// What is made, so that all make the same.
struct Made {
  std::size_t views = 0, elements = 0, aligned = 0, alone = 0;
  template <class View>
  void count(const View& view) {
    ++views;
    elements += view.extent(0);
    aligned += view.is_allocated() && reinterpret_cast<std::size_t>(view.data()) % 64 == 0;
    alone += view.use_count() == 1;
  }
  friend bool operator==(const Made&, const Made&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Made& made) {
    return out << made.views << " Views of " << made.elements << " elements";
  }
};

/// Nanoseconds for each View that `make()` makes.
template <class Make>
double sample(Made& made, const Make& make) {
  return bench::processor_seconds_of([&] {
           for (int i = 0; i < views; ++i) made.count(make());
         }) /
         views * 1e9;
}

void run() {
  hm::Pool<hm::Pages> pool;
  using Space = hm::Space<hm::Pool<hm::Pages>>;
  bench::Summary least_view, least_space;
  for (const std::size_t size : sizes) {
    const auto by_kokkos = [&] {
      return Kokkos::View<double*, Kokkos::HostSpace>(
          Kokkos::view_alloc(Kokkos::WithoutInitializing, "velocity"), size);
    };
    const auto by_make_view = [&] { return hm::make_view<double*>(pool, "velocity", size); };
    const auto by_space = [&] {
      return Kokkos::View<double*, Space>(
          Kokkos::view_alloc(Kokkos::WithoutInitializing, "velocity", Space(pool)), size);
    };
    Made made_by_kokkos, made_by_make_view, made_by_space;
    std::vector<double> kokkos, view, space;
    for (int round = -2; round < rounds; ++round) {  // the first two warm up
      if (round == 0) kokkos.clear(), view.clear(), space.clear();
      const auto first = [&] { kokkos.push_back(sample(made_by_kokkos, by_kokkos)); };
      const auto second = [&] { view.push_back(sample(made_by_make_view, by_make_view)); };
      const auto third = [&] { space.push_back(sample(made_by_space, by_space)); };
      if (round % 2 == 0)
        first(), second(), third();
      else
        third(), second(), first();
    }
    bench::require_equal("what make_view made", made_by_make_view, made_by_kokkos);
    bench::require_equal("what Spaces made", made_by_space, made_by_kokkos);
    const std::string of = "_" + std::to_string(size);
    const bench::Summary of_view = bench::ratios(kokkos, view);
    const bench::Summary of_space = bench::ratios(kokkos, space);
    bench::print_value("memory/view", "time" + of, bench::summarise(view), "ns");
    bench::print_value("memory/space", "time" + of, bench::summarise(space), "ns");
    bench::print_value("memory/view", "kokkos_time" + of, bench::summarise(kokkos), "ns");
    bench::print_ratio("memory/view", "kokkos" + of, of_view);
    bench::print_ratio("memory/space", "kokkos" + of, of_space);
    if (size == sizes.front() || of_view.median < least_view.median) least_view = of_view;
    if (size == sizes.front() || of_space.median < least_space.median) least_space = of_space;
  }
  // Bars are judged by the worst size.
  bench::print_ratio("memory/view", "kokkos", least_view);
  bench::print_ratio("memory/space", "kokkos", least_space);
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return bench::status_of("memory/view", run);
}
