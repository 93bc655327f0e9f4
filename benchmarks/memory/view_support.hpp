// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Views made by Kokkos alone, by make_view and by Kokkos with a Space, measured in turns. By
/// processor time.

#include <array>
#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "../support.hpp"

namespace bench {

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

constexpr int views = 400;  ///< a sample
constexpr int rounds = 201;

/// Nanoseconds for each View that `make()` makes.
template <class Make>
double sample(Made& made, const Make& make) {
  return processor_seconds_of([&] {
           for (int i = 0; i < views; ++i) made.count(make());
         }) /
         views * 1e9;
}

/// Kokkos alone, make_view and a Space, measured in turns.
struct Compared {
  Summary view, space;  ///< ratios of Kokkos to each
};
template <class ByKokkos, class ByView, class BySpace>
Compared compare(const std::string& what, const ByKokkos& by_kokkos, const ByView& by_view,
                 const BySpace& by_space) {
  Made made_by_kokkos, made_by_view, made_by_space;
  std::vector<double> kokkos, view, space;
  for (int round = -2; round < rounds; ++round) {  // the first two warm up
    if (round == 0) kokkos.clear(), view.clear(), space.clear();
    const auto first = [&] { kokkos.push_back(sample(made_by_kokkos, by_kokkos)); };
    const auto second = [&] { view.push_back(sample(made_by_view, by_view)); };
    const auto third = [&] { space.push_back(sample(made_by_space, by_space)); };
    if (round % 2 == 0)
      first(), second(), third();
    else
      third(), second(), first();
  }
  require_equal("what make_view made", made_by_view, made_by_kokkos);
  require_equal("what Spaces made", made_by_space, made_by_kokkos);
  const Compared compared{ratios(kokkos, view), ratios(kokkos, space)};
  print_value("memory/view", "time" + what, summarise(view), "ns");
  print_value("memory/space", "time" + what, summarise(space), "ns");
  print_value("memory/view", "kokkos_time" + what, summarise(kokkos), "ns");
  print_ratio("memory/view", "kokkos" + what, compared.view);
  print_ratio("memory/space", "kokkos" + what, compared.space);
  return compared;
}

}  // namespace bench
