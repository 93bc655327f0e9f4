// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of sequence_costs.hpp.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/systems/flexsp/sequence_costs.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// Solves the normal equations of `chosen` columns by Gaussian elimination; false if they are
/// singular.
inline bool solve(std::array<std::array<double, 4>, 3> system,
                  const std::vector<std::size_t>& chosen, std::array<double, 3>& found) {
  found = {};
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    std::size_t pivot = k;
    for (std::size_t r = k; r < chosen.size(); ++r)
      if (std::abs(system[chosen[r]][chosen[k]]) > std::abs(system[chosen[pivot]][chosen[k]]))
        pivot = r;
    std::swap(system[chosen[k]], system[chosen[pivot]]);
    const auto& row = system[chosen[k]];
    if (!(std::abs(row[chosen[k]]) > 1e-12)) return false;
    for (std::size_t r = k + 1; r < chosen.size(); ++r) {
      auto& below = system[chosen[r]];
      const double factor = below[chosen[k]] / row[chosen[k]];
      for (const std::size_t c : chosen) below[c] -= factor * row[c];
      below[3] -= factor * row[3];
    }
  }
  for (std::size_t k = chosen.size(); k-- > 0;) {
    double right = system[chosen[k]][3];
    for (std::size_t c = k + 1; c < chosen.size(); ++c)
      right -= system[chosen[k]][chosen[c]] * found[chosen[c]];
    found[chosen[k]] = right / system[chosen[k]][chosen[k]];
  }
  return true;
}

}  // namespace impl

HEDDLE_INLINE const DegreeCost& SequenceCosts::of(int degree) const {
  const auto found = std::ranges::find(degrees, degree, &DegreeCost::degree);
  expects(found != degrees.end(), [&] {
    return ErrorInfo{"heddle::systems::SequenceCosts::of",
                     "the costs have no entry for this degree", text("degree ", degree)};
  });
  return *found;
}

HEDDLE_INLINE DegreeCost fit_degree_cost(int degree, std::span<const DegreeSample> samples) {
  constexpr const char* where = "heddle::systems::fit_degree_cost";
  expects(degree >= 1 && std::has_single_bit(static_cast<unsigned>(degree)) && samples.size() >= 3,
          [&] {
            return ErrorInfo{where, "a fit needs a power of two as degree and at least 3 samples",
                             text("degree ", degree, ", ", samples.size(), " samples")};
          });
  // Rows (1, tokens, squares) / time of a system whose right side is 1, with columns scaled to 1.
  std::vector<std::array<double, 3>> rows;
  std::array<double, 3> scale{};
  for (const DegreeSample& sample : samples) {
    std::array<double, 3> row{1, 0, 0};
    for (const std::int64_t length : sample.lengths) {
      expects(length >= 1, [&] {
        return ErrorInfo{where, "a sequence needs at least one token", text("length ", length)};
      });
      row[1] += static_cast<double>(length);
      row[2] += static_cast<double>(length) * static_cast<double>(length);
    }
    expects(sample.time > 0 && std::isfinite(sample.time), [&] {
      return ErrorInfo{where, "a sample's time must be positive and finite",
                       text("time ", sample.time, " s")};
    });
    for (std::size_t c = 0; c < 3; ++c) {
      row[c] /= sample.time;
      expects(std::isfinite(row[c]), [&] {
        return ErrorInfo{where, "a sample's time is too short for its tokens",
                         text("time ", sample.time, " s"), "choose a smaller unit of time"};
      });
      scale[c] = std::max(scale[c], row[c]);
    }
    rows.push_back(row);
  }
  std::array<std::array<double, 4>, 3> system{};
  for (std::array<double, 3>& row : rows) {
    for (std::size_t c = 0; c < 3; ++c)
      if (scale[c] > 0) row[c] /= scale[c];
    for (std::size_t r = 0; r < 3; ++r) {
      for (std::size_t c = 0; c < 3; ++c) system[r][c] += row[r] * row[c];
      system[r][3] += row[r];
    }
  }
  // The best of all subsets of columns whose coefficients are not negative.
  std::array<double, 3> best{};
  double least = static_cast<double>(rows.size());  // of no column: every relative error is 1
  for (std::size_t subset = 1; subset < 8; ++subset) {
    std::vector<std::size_t> chosen;
    for (std::size_t c = 0; c < 3; ++c)
      if ((subset >> c & 1) != 0) chosen.push_back(c);
    std::array<double, 3> found{};
    if (!impl::solve(system, chosen, found) || *std::ranges::min_element(found) < 0) continue;
    double squares = 0;
    for (const auto& row : rows) {
      const double error = row[0] * found[0] + row[1] * found[1] + row[2] * found[2] - 1;
      squares += error * error;
    }
    if (squares >= least) continue;
    least = squares;
    best = found;
  }
  for (std::size_t c = 0; c < 3; ++c)
    if (scale[c] > 0) best[c] /= scale[c];
  return {degree, best[0], best[1], best[2]};
}

HEDDLE_INLINE SequenceCosts flexsp_costs(const FlexSpModel& model, int ranks, double memory,
                                         std::span<const double> bandwidths) {
  constexpr const char* where = "heddle::systems::flexsp_costs";
  expects(ranks >= 1 && !bandwidths.empty(), [&] {
    return ErrorInfo{where, "the costs need at least one rank and one bandwidth",
                     text(ranks, " ranks, ", bandwidths.size(), " bandwidths")};
  });
  for (const auto& [name, part] : {std::pair{"square", model.square},
                                   {"token", model.token},
                                   {"fixed", model.fixed},
                                   {"parameters", model.parameters}})
    heddle::impl::expect_time(where, name, part);
  for (const auto& [name, size] : {std::pair{"layers", model.layers}, {"hidden", model.hidden}})
    expects(size >= 0, [&, name = name, size = size] {
      return ErrorInfo{where, "a size of the model is below 0", text(name, " = ", size)};
    });
  const auto rate = [](double value) { return value > 0 && std::isfinite(value); };
  expects(rate(model.activation) && std::ranges::all_of(bandwidths, rate), [&] {
    std::string given;
    for (const double bandwidth : bandwidths) given += text(' ', bandwidth);
    return ErrorInfo{where, "a bandwidth or the activation of a token is not above 0 and finite",
                     text("activation = ", model.activation, ", bandwidths", given)};
  });
  SequenceCosts costs;
  costs.ranks = ranks;
  const double tokens = (memory * 1024 - 16 * model.parameters * 1024 / ranks) / model.activation;
  expects(tokens >= 1 && tokens < 9e18, [&] {
    return ErrorInfo{where, "the memory of a device must hold at least one token",
                     text(memory, " GB hold ", tokens, " tokens"),
                     "shard the parameters over more ranks"};
  });
  costs.tokens_per_rank = static_cast<std::int64_t>(tokens);
  const double megabytes = 8.0 * model.layers * model.hidden * 2 / 0x1p20;  // per token
  int degree = 2;
  for (const double bandwidth : bandwidths) {
    if (degree > ranks) break;
    costs.degrees.push_back({degree, 1e-3 * model.fixed,
                             1e-3 * (model.token + megabytes / bandwidth) / degree,
                             1e-3 * model.square / degree});
    for (const double part : {costs.degrees.back().fixed, costs.degrees.back().per_token,
                              costs.degrees.back().per_square})
      heddle::impl::expect_sum(
          where, part, [&] { return text("degree ", degree); },
          "correct the times of the model or the bandwidths");
    degree *= 2;
  }
  return costs;
}

}  // namespace heddle::inline v0::systems
