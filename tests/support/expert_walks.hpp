// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Walks of tokens through experts: the experts, a serial walk, and the rows that must be sent.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/systems/exflow/expert_placement.hpp>
#include <heddle/systems/exflow/expert_walk.hpp>

namespace heddle::test {

/// An expert that mixes a row, with a context that all ranks have: the number of the token.
[[gnu::noinline]] inline void mix_row(std::size_t layer, std::size_t expert, std::uint64_t token,
                                      std::span<double> row) {
  double carry = 0.1 * static_cast<double>(expert) + 0.01 * static_cast<double>(token);
  for (double& value : row) {
    value = std::sin(value + carry) + 0.3 * static_cast<double>(layer);
    carry += value;
  }
}

/// Tokens with traced routes, or, without a trace, with routes that depend on their rows.
struct ExpertCase {
  systems::ExpertPlacement placement;
  systems::ExpertTrace trace;
  std::size_t tokens = 0;
  std::size_t width = 5;

  [[nodiscard]] std::size_t route(std::uint64_t token, std::size_t layer,
                                  std::span<const double> row) const {
    if (trace.tokens() > 0) return trace.expert(static_cast<std::size_t>(token), layer);
    std::uint64_t bits = 0;
    std::memcpy(&bits, row.data(), sizeof(bits));
    return static_cast<std::size_t>((bits >> 5) % placement.experts);
  }
  [[nodiscard]] std::vector<double> start() const {
    std::vector<double> rows(tokens * width);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = 0.5 * static_cast<double>(i % 17);
    return rows;
  }
  /// The rows after a walk of one token after another, and what each of the ways sends.
  struct Expected {
    std::vector<double> rows;
    std::uint64_t stays = 0;
    std::uint64_t comes_home = 0;
  };
  [[nodiscard]] Expected serial() const {
    Expected expected{start()};
    const auto p = static_cast<std::size_t>(placement.ranks);
    for (std::size_t t = 0; t < tokens; ++t) {
      const std::span<double> row = std::span(expected.rows).subspan(t * width, width);
      std::size_t at = p;
      for (std::size_t l = 0; l < placement.layers; ++l) {
        const std::size_t e = route(t, l, row);
        const std::size_t rank = +placement.rank(l, e);
        if (at != p && at != rank) ++expected.stays;
        if (rank != t * p / tokens) expected.comes_home += 2;
        at = rank;
        mix_row(l, e, t, row);
      }
      expected.stays += p - 1;
    }
    return expected;
  }

  /// The walk of the rank of `transport`; `rows` are all rows.
  template <class Transport>
  systems::ExpertTraffic walk(Transport& transport, systems::AfterExpert after,
                              std::vector<double>& rows) const {
    rows = start();
    return systems::walk_experts(
        transport, placement, std::span(rows), {.width = width, .after = after},
        [&](std::uint64_t token, std::size_t layer, std::span<const double> row) {
          return route(token, layer, row);
        },
        mix_row);
  }
  /// Whether the rows of a rank are the expected ones: its own, or all if tokens stay.
  [[nodiscard]] bool is_right(const Expected& expected, const std::vector<double>& rows, Rank rank,
                              systems::AfterExpert after) const {
    const auto p = static_cast<std::size_t>(placement.ranks);
    bool right = rows.size() == expected.rows.size();
    for (std::size_t i = 0; right && i < rows.size(); ++i)
      if (after == systems::AfterExpert::stays || i / width * p / tokens == +rank)
        right = std::memcmp(&rows[i], &expected.rows[i], sizeof(double)) == 0;
    return right;
  }

  /// The traffic of all ranks over threads, whose rows are compared with the expected ones.
  struct Walked {
    bool right = true;
    std::vector<systems::ExpertTraffic> traffic;
    [[nodiscard]] std::uint64_t rows(std::size_t width_of_row) const {
      Bytes sum = 0;
      for (const systems::ExpertTraffic& rank : traffic) sum += rank.rows;
      return sum / (width_of_row * sizeof(double));
    }
  };
  [[nodiscard]] Walked on_threads(const Expected& expected, systems::AfterExpert after) const {
    const auto p = static_cast<std::size_t>(placement.ranks);
    Walked walked{true, std::vector<systems::ExpertTraffic>(p)};
    std::vector<std::vector<double>> rows(p);
    run_threads(placement.ranks, [&](ThreadTransport& transport) {
      const std::size_t rank = +transport.rank();
      walked.traffic[rank] = walk(transport, after, rows[rank]);
    });
    for (std::size_t r = 0; r < p; ++r)
      walked.right = walked.right && is_right(expected, rows[r], Rank{r}, after);
    return walked;
  }
};

}  // namespace heddle::test
