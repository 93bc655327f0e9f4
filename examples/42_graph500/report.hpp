// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The lines that the benchmark prints, as its reference code does (version 3), and a picture.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/trace/png.hpp>

#include "edges.hpp"
#include "validation.hpp"

namespace graph500 {

/// The statistics of the benchmark.
struct Statistics {
  double least = 0, first_quartile = 0, median = 0, third_quartile = 0, most = 0, mean = 0;
  double deviation = 0;
  std::size_t count = 0;

  explicit Statistics(std::vector<double> values) : count(values.size()) {
    std::ranges::sort(values);
    const std::size_t n = count;
    const auto between = [&](std::size_t a, std::size_t b) { return (values[a] + values[b]) / 2; };
    least = values.front();
    first_quartile = between((n - 1) / 4, n / 4);
    median = between((n - 1) / 2, n / 2);
    third_quartile = between(n - 1 - (n - 1) / 4, n - 1 - n / 4);
    most = values.back();
    mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(n);
    double squares = 0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    deviation = n > 1 ? std::sqrt(squares / static_cast<double>(n - 1)) : 0;
  }
};

inline void print_line(std::string_view name, const char* form, double value) {
  std::printf("%-32s", (std::string(name) + ":").c_str());
  std::printf(form, value);
  std::printf("\n");
}

/// Prints the seven statistics of `what`, such as "time", of a kernel, such as "bfs  ".
inline void print_statistics(const std::string& kernel, const std::string& what,
                             const Statistics& of, const char* form = "%g") {
  print_line(kernel + "min_" + what, form, of.least);
  print_line(kernel + "firstquartile_" + what, form, of.first_quartile);
  print_line(kernel + "median_" + what, form, of.median);
  print_line(kernel + "thirdquartile_" + what, form, of.third_quartile);
  print_line(kernel + "max_" + what, form, of.most);
  print_line(kernel + "mean_" + what, form, of.mean);
  print_line(kernel + "stddev_" + what, form, of.deviation);
}

/// Prints the edges per second, of which the mean is the harmonic one.
inline void print_rates(const std::string& kernel, const std::vector<double>& seconds,
                        const std::vector<double>& edges) {
  std::vector<double> each;
  for (std::size_t i = 0; i < seconds.size(); ++i) each.push_back(seconds[i] / edges[i]);
  const Statistics of(each);
  print_line(kernel + "min_TEPS", "%g", 1 / of.most);
  print_line(kernel + "firstquartile_TEPS", "%g", 1 / of.third_quartile);
  print_line(kernel + "median_TEPS", "%g", 1 / of.median);
  print_line(kernel + "thirdquartile_TEPS", "%g", 1 / of.first_quartile);
  print_line(kernel + "max_TEPS", "%g", 1 / of.least);
  std::printf("%-32s%g\n", (kernel + "harmonic_mean_TEPS:     !").c_str(), 1 / of.mean);
  const double others = of.count > 1 ? std::sqrt(static_cast<double>(of.count - 1)) : 1;
  print_line(kernel + "harmonic_stddev_TEPS", "%g", of.deviation / (of.mean * of.mean * others));
}

/// Returns the matrix of the edges as a PNG file. Rows and columns are the vertices that were
/// reached, by level. Edges within a level are orange, edges between two levels blue. All others
/// would be outside these blocks, and red.
[[nodiscard]] inline std::string to_picture(const Tree& tree, const EdgeList& list,
                                            const heddle::Communicator& comm) {
  constexpr std::size_t side = 200;
  std::vector<std::size_t> order, place(tree.distances.size());
  for (std::size_t v = 0; v < place.size(); ++v)
    if (tree.distances[v] >= 0) order.push_back(v);
  std::ranges::stable_sort(order, {}, [&](std::size_t v) { return tree.distances[v]; });
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i * side / order.size();
  const Kokkos::View<std::int64_t* [3], Kokkos::LayoutRight, Kokkos::HostSpace> cells(
      "graph500::cells", side * side);
  for (const Edge& edge : list.mine) {
    const auto u = static_cast<std::size_t>(edge.from), v = static_cast<std::size_t>(edge.to);
    if (tree.distances[u] < 0 || u == v) continue;
    const auto apart = std::min(std::abs(tree.distances[u] - tree.distances[v]), std::int64_t{2});
    ++cells(place[u] * side + place[v], static_cast<std::size_t>(apart));
    ++cells(place[v] * side + place[u], static_cast<std::size_t>(apart));
  }
  heddle::all_reduce(Kokkos::DefaultHostExecutionSpace{}, cells, heddle::Sum{}, comm);
  double most = 1;
  for (std::size_t i = 0; i < side * side; ++i)
    for (std::size_t kind = 0; kind < 3; ++kind)
      most = std::max(most, static_cast<double>(cells(i, kind)));
  std::vector<heddle::trace::Pixel> pixels;
  for (std::size_t i = 0; i < side * side; ++i) {
    double shares[3];
    for (std::size_t kind = 0; kind < 3; ++kind)
      shares[kind] = std::log1p(static_cast<double>(cells(i, kind))) / std::log1p(most);
    const auto part = [&](double same, double next, double other) {
      const double dark = same * shares[0] + next * shares[1] + other * shares[2];
      return static_cast<std::uint8_t>(255 - std::min(255.0, 255 * dark));
    };
    pixels.push_back({part(0.1, 1, 0), part(0.6, 0.6, 1), part(1, 0.1, 1)});
  }
  return heddle::trace::to_png(side, pixels);
}

}  // namespace graph500
