// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A family of small networks for a synthetic problem of two classes: the gradient of each sample,
/// training, and Kendall's rank correlation.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/systems/gradsign/gradient_signs.hpp>

namespace heddle::test {

/// A network of hidden layers of equal width with tanh, and a problem of two classes with 8
/// features, which are scaled from 1 down to 1 / condition.
class ToyNetwork {
 public:
  ToyNetwork(std::size_t width, std::size_t hidden, double condition, std::uint64_t seed,
             std::size_t samples)
      : m_width(width), m_hidden(hidden), m_seed(seed) {
    for (std::size_t i = 0; i < samples; ++i) m_samples.push_back(sample(i, condition));
  }

  static constexpr std::size_t features = 8;

  /// Returns the rows and columns of each matrix; the last row of outputs is the one logit.
  [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> shapes() const {
    std::vector<std::pair<std::size_t, std::size_t>> shapes;
    std::size_t inputs = features;
    for (std::size_t l = 0; l < m_hidden; ++l) {
      shapes.emplace_back(m_width, inputs);
      inputs = m_width;
    }
    shapes.emplace_back(1, inputs);
    return shapes;
  }
  [[nodiscard]] std::size_t parameters() const {
    std::size_t sum = 0;
    for (const auto& [rows, columns] : shapes()) sum += rows * columns;
    return sum;
  }
  /// Returns random weights with the variance 1 / inputs.
  [[nodiscard]] std::vector<double> initial() const {
    const Random random(m_seed, "weights");
    std::vector<double> weights;
    for (const auto& [rows, columns] : shapes())
      for (std::size_t i = 0; i < rows * columns; ++i)
        weights.push_back(random.normal(weights.size()) / std::sqrt(static_cast<double>(columns)));
    return weights;
  }

  /// Adds the gradient of the logistic loss of sample `i` to `gradient`, and returns the loss.
  double add_gradient(std::span<const double> weights, std::size_t i,
                      std::span<double> gradient) const {
    const auto& [x, label] = m_samples[i];
    const auto layers = shapes();
    std::vector<std::vector<double>> values{x};
    std::size_t at = 0;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const auto [rows, columns] = layers[l];
      std::vector<double> next(rows, 0);
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < columns; ++c)
          next[r] += weights[at + r * columns + c] * values[l][c];
        if (l + 1 < layers.size()) next[r] = std::tanh(next[r]);
      }
      at += rows * columns;
      values.push_back(std::move(next));
    }
    const double margin = label * values.back()[0];
    std::vector<double> back{-label / (1 + std::exp(margin))};
    for (std::size_t l = layers.size(); l-- > 0;) {
      const auto [rows, columns] = layers[l];
      at -= rows * columns;
      std::vector<double> before(columns, 0);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c) {
          gradient[at + r * columns + c] += back[r] * values[l][c];
          before[c] += back[r] * weights[at + r * columns + c];
        }
      if (l > 0)
        for (std::size_t c = 0; c < columns; ++c) before[c] *= 1 - values[l][c] * values[l][c];
      back = std::move(before);
    }
    return std::log1p(std::exp(-margin));
  }

  /// Returns the mean loss after `steps` steps of gradient descent on all samples.
  [[nodiscard]] double trained_loss(int steps, double rate) const {
    std::vector<double> weights = initial();
    double loss = 0;
    for (int step = 0; step <= steps; ++step) {
      std::vector<double> gradient(weights.size(), 0);
      loss = 0;
      for (std::size_t i = 0; i < m_samples.size(); ++i) loss += add_gradient(weights, i, gradient);
      for (std::size_t k = 0; k < weights.size(); ++k)
        weights[k] -= rate / static_cast<double>(m_samples.size()) * gradient[k];
    }
    return loss / static_cast<double>(m_samples.size());
  }
  [[nodiscard]] std::size_t samples() const noexcept { return m_samples.size(); }

 private:
  using Sample = std::pair<std::vector<double>, double>;  ///< features and class

  /// Sample `i`: its features, and its class, +1 or -1, by a fixed random quadratic form.
  [[nodiscard]] static Sample sample(std::size_t i, double condition) {
    const Random draw(17, "samples");
    const Random form(17, "form");
    std::vector<double> x(features);
    for (std::size_t f = 0; f < features; ++f) x[f] = draw.normal(i * features + f);
    double sum = 0;
    for (std::size_t a = 0; a < features; ++a) {
      sum += form.normal(1000 + a) * x[a];
      for (std::size_t b = 0; b < features; ++b)
        sum += form.normal(a * features + b) * x[a] * x[b] / 2;
    }
    for (std::size_t f = 0; f < features; ++f)
      x[f] *= std::pow(condition, -static_cast<double>(f) / static_cast<double>(features - 1));
    return {std::move(x), sum > 0 ? 1.0 : -1.0};
  }

  std::size_t m_width;
  std::size_t m_hidden;
  std::uint64_t m_seed;
  std::vector<Sample> m_samples;
};

/// Returns Kendall's tau-b of two lists: concordant less discordant pairs, over the geometric mean
/// of the pairs that are not tied in each list.
inline double kendall_tau(std::span<const double> a, std::span<const double> b) {
  double agree = 0, in_a = 0, in_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const int one = (a[i] > a[j]) - (a[i] < a[j]);
      const int other = (b[i] > b[j]) - (b[i] < b[j]);
      agree += one * other;
      in_a += one != 0;
      in_b += other != 0;
    }
  return in_a > 0 && in_b > 0 ? agree / std::sqrt(in_a * in_b) : 0;
}

/// Kendall's tau of three predictions with the loss after training, less loss being better.
struct ToyRanks {
  double score = 0;       ///< of systems::GradientSigns
  double norm = 0;        ///< of the gradient's norm
  double parameters = 0;  ///< of the number of parameters
};

/// Trains networks and ranks them before.
inline ToyRanks rank_networks(const std::vector<ToyNetwork>& networks) {
  std::vector<double> scores, norms, sizes, gains;
  for (const ToyNetwork& network : networks) {
    const std::vector<double> weights = network.initial();
    systems::GradientSigns signs(weights.size());
    std::vector<double> sum(weights.size(), 0);
    for (std::size_t i = 0; i < network.samples(); ++i) {
      std::vector<double> gradient(weights.size(), 0);
      network.add_gradient(weights, i, gradient);
      signs.add(std::span<const double>(gradient));
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += gradient[k];
    }
    double square = 0;
    for (const double element : sum) square += element * element;
    scores.push_back(static_cast<double>(signs.score()));
    norms.push_back(std::sqrt(square));
    sizes.push_back(static_cast<double>(weights.size()));
    gains.push_back(-network.trained_loss(100, 0.5));
  }
  return {kendall_tau(scores, gains), kendall_tau(norms, gains), kendall_tau(sizes, gains)};
}

/// Ranks 24 networks of 1 to 3 hidden layers of 2 to 24 units.
inline ToyRanks rank_by_size(std::uint64_t seed) {
  std::vector<ToyNetwork> networks;
  for (const std::size_t hidden : {1u, 2u, 3u})
    for (const std::size_t width : {2u, 3u, 4u, 6u, 8u, 12u, 16u, 24u})
      networks.emplace_back(width, hidden, 1, 1000 * seed + networks.size(), 48);
  return rank_networks(networks);
}

/// Ranks 27 networks of one size whose features are scaled by 1 to 1 / 256.
inline ToyRanks rank_by_condition(std::uint64_t seed) {
  std::vector<ToyNetwork> networks;
  for (int halvings = 0; halvings <= 8; ++halvings)
    for (int repeat = 0; repeat < 3; ++repeat)
      networks.emplace_back(8, 1, std::exp2(halvings), 1000 * seed + networks.size(), 48);
  return rank_networks(networks);
}

}  // namespace heddle::test
