// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The edges of the benchmark: drawn (R-MAT) or read from a file. Each rank has a slice of the
/// list.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>

namespace graph500 {

using Edge = heddle::systems::GraphEdge;

/// An undirected graph before it is stored. Loops and parallel edges are allowed.
struct EdgeList {
  std::int64_t vertices = 0;
  std::int64_t edges = 0;  ///< of all ranks
  std::int32_t heaviest = 1;
  std::vector<Edge> mine;  ///< this rank's slice
};

/// Numbers the 2^scale vertices anew, because R-MAT gives low numbers to vertices of high degree.
class Scramble {
 public:
  Scramble(std::uint64_t seed, int scale)
      : m_mask((std::uint32_t{1} << scale) - 1), m_shift((scale + 1) / 2) {
    const heddle::Random random(seed, "graph500 vertices");
    for (std::size_t i = 0; i < m_draws.size(); ++i)
      m_draws[i] = static_cast<std::uint32_t>(random.bits(i));
  }
  [[nodiscard]] std::int32_t operator()(std::uint32_t vertex) const {
    for (std::size_t i = 0; i < m_draws.size(); i += 2) {  // each step can be undone
      vertex = (vertex * (m_draws[i] | 1) + m_draws[i + 1]) & m_mask;
      vertex ^= vertex >> m_shift;
    }
    return static_cast<std::int32_t>(vertex);
  }

 private:
  std::uint32_t m_mask;
  int m_shift;
  std::array<std::uint32_t, 8> m_draws{};
};

/// Draws this rank's slice of factor * 2^scale edges. Each edge is a function of the seed and of
/// its index, so the graph is the same for any number of ranks. Weights are 1 to 255.
[[nodiscard]] inline EdgeList r_mat(int scale, std::int64_t factor, std::uint64_t seed, int ranks,
                                    int rank) {
  heddle::expects(scale >= 1 && scale <= 23 && factor >= 1, [&] {
    return heddle::ErrorInfo{"command line", "there is no such graph",
                             heddle::text("--scale ", scale, ", --edgefactor ", factor),
                             "give a scale from 1 to 23 and an edge factor of at least 1"};
  });
  EdgeList list{std::int64_t{1} << scale, factor << scale, 255, {}};
  const heddle::Random random(seed, "graph500 edges");
  const Scramble scramble(seed, scale);
  const auto share =
      heddle::even_share(static_cast<std::size_t>(list.edges), static_cast<std::size_t>(ranks),
                         static_cast<std::size_t>(rank));
  list.mine.reserve(share.count);
  for (std::uint64_t index = share.first; index < share.end(); ++index) {
    std::uint64_t draw = index * static_cast<std::uint64_t>(scale + 1);
    std::uint32_t from = 0, to = 0;
    for (int bit = 0; bit < scale; ++bit) {  // quadrants of 0.57, 0.19, 0.19 and 0.05
      const double u = random.uniform(draw++);
      from = 2 * from + (u >= 0.76 ? 1 : 0);
      to = 2 * to + ((u >= 0.57 && u < 0.76) || u >= 0.95 ? 1 : 0);
    }
    const auto weight = static_cast<std::int32_t>(1 + random.below(draw, 255));
    list.mine.push_back({scramble(from), scramble(to), weight});
  }
  return list;
}

/// Returns this rank's slice of the edges in `content`, the text of the file `path`. A line has two
/// vertices, from 0 on, and a weight of at least 1, which is 1 if it is missing. Lines that begin
/// with # or % are comments.
/// @throws format_error that names the line if it is no edge, or if there is none.
[[nodiscard]] inline EdgeList edges_of(std::string_view content, const std::string& path, int ranks,
                                       int rank) {
  EdgeList list;
  std::vector<Edge> all;
  std::size_t line_number = 0;
  for (std::string_view rest = content; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++line_number;
    std::array<std::int64_t, 4> numbers{};
    std::size_t count = 0;
    const char* at = line.data();
    const char* const last = at + line.size();
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == ','; };
    bool good = true;
    for (;; ++count) {
      while (at < last && blank(*at)) ++at;
      if (at == last || count == numbers.size() || (count == 0 && (*at == '#' || *at == '%')))
        break;
      const auto [next, error] = std::from_chars(at, last, numbers[count]);
      good = error == std::errc{} && (next == last || blank(*next));
      if (!good) break;
      at = next;
    }
    if (good && count == 0) continue;
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    const std::int64_t weight = count == 3 ? numbers[2] : 1;
    good = good && (count == 2 || count == 3) && std::min(numbers[0], numbers[1]) >= 0 &&
           std::max(numbers[0], numbers[1]) < most && weight >= 1 && weight <= most;
    if (!good)
      throw heddle::format_error(
          {heddle::text(path, ":", line_number), "not an edge",
           heddle::text("'", line.substr(0, 60), "'"),
           "write two vertices from 0 to 2147483646, and a weight of at least 1 if there is one"});
    all.push_back({static_cast<std::int32_t>(numbers[0]), static_cast<std::int32_t>(numbers[1]),
                   static_cast<std::int32_t>(weight)});
    list.vertices = std::max({list.vertices, numbers[0] + 1, numbers[1] + 1});
    list.heaviest = std::max(list.heaviest, static_cast<std::int32_t>(weight));
  }
  if (all.empty())
    throw heddle::format_error({path, "the file has no edge", {}, "write one edge a line"});
  list.edges = static_cast<std::int64_t>(all.size());
  const auto share = heddle::even_share(all.size(), static_cast<std::size_t>(ranks),
                                        static_cast<std::size_t>(rank));
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(share.first);
  list.mine.assign(first, first + static_cast<std::ptrdiff_t>(share.count));
  return list;
}

/// Reads this rank's slice of the edges in the file `path`. See edges_of().
[[nodiscard]] inline EdgeList read_edges(const std::string& path, int ranks, int rank) {
  return edges_of(heddle::read_file(path), path, ranks, rank);
}

}  // namespace graph500
