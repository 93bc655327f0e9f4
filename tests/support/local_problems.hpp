// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Small problems that ranks solve by local steps, and the serial references of such runs.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/shaped_transport.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/systems/co2/local_steps.hpp>
#include <heddle/systems/co2/local_updates.hpp>

#include "support/rounds.hpp"

namespace heddle::test {

using Vector = std::vector<double>;

/// Least squares, or a network with a hidden layer of tanh units, on data that every rank draws for
/// itself. A step descends the gradient of all samples of the rank.
struct LocalProblem {
  int ranks;
  std::size_t features;
  std::size_t hidden;   ///< 0: least squares
  std::size_t samples;  ///< of a rank
  double rate;
  std::uint64_t seed;
  Vector inputs = {};
  Vector targets = {};

  LocalProblem(int of_ranks, std::size_t of_hidden, double of_rate, std::uint64_t of_seed = 1)
      : ranks(of_ranks), features(4), hidden(of_hidden), samples(40), rate(of_rate), seed(of_seed) {
    const std::size_t all = samples * static_cast<std::size_t>(ranks);
    for (std::size_t i = 0; i < all * features; ++i)
      inputs.push_back(Random(seed, "input").normal(i));
    for (std::size_t s = 0; s < all; ++s) {
      double sum = 0;
      for (std::size_t j = 0; j < features; ++j) sum += (j % 2 == 0 ? 1 : -1) * input(s, j);
      targets.push_back((hidden == 0 ? sum : std::tanh(sum)) +
                        0.3 * Random(seed, "noise").normal(s));
    }
  }

  [[nodiscard]] std::size_t size() const {
    return hidden == 0 ? features : hidden * (features + 1);
  }
  [[nodiscard]] Vector start() const {
    Vector x(size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = Random(seed, "start").normal(i) * 0.3;
    return x;
  }
  [[nodiscard]] double input(std::size_t sample, std::size_t feature) const {
    return inputs[sample * features + feature];
  }

  /// Adds the gradient of a rank's mean square error at `x` to `gradient`; returns the error.
  double add_gradient(std::size_t rank, std::span<const double> x, Vector& gradient) const {
    const auto n = static_cast<double>(samples);
    double loss = 0;
    for (std::size_t s = rank * samples; s < (rank + 1) * samples; ++s) {
      double out = 0;
      Vector units(hidden);
      for (std::size_t h = 0; h < hidden; ++h) {
        for (std::size_t j = 0; j < features; ++j) units[h] += x[h * features + j] * input(s, j);
        units[h] = std::tanh(units[h]);
        out += units[h] * x[hidden * features + h];
      }
      if (hidden == 0)
        for (std::size_t j = 0; j < features; ++j) out += x[j] * input(s, j);
      const double error = out - targets[s];
      loss += error * error / n;
      if (gradient.empty()) continue;
      for (std::size_t h = 0; h < hidden; ++h) {
        const double weight = x[hidden * features + h];
        gradient[hidden * features + h] += 2 / n * error * units[h];
        for (std::size_t j = 0; j < features; ++j)
          gradient[h * features + j] +=
              2 / n * error * weight * (1 - units[h] * units[h]) * input(s, j);
      }
      if (hidden == 0)
        for (std::size_t j = 0; j < features; ++j) gradient[j] += 2 / n * error * input(s, j);
    }
    return loss;
  }
  void step(std::size_t rank, std::span<double> x) const {
    Vector gradient(size(), 0);
    add_gradient(rank, x, gradient);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= rate * gradient[i];
  }
  /// The mean square error of all samples.
  [[nodiscard]] double loss(std::span<const double> x) const {
    double sum = 0;
    Vector none;
    for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r)
      sum += add_gradient(r, x, none);
    return sum / ranks;
  }

  /// Plain data parallelism: steps along the mean of the ranks' gradients.
  [[nodiscard]] Vector data_parallel(int steps) const {
    Vector x = start();
    for (int k = 0; k < steps; ++k) {
      Vector gradient(size(), 0);
      for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r)
        add_gradient(r, x, gradient);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] -= rate / ranks * gradient[i];
    }
    return x;
  }

  /// The shared parameters after `rounds` rounds, by one thread that plays all ranks.
  [[nodiscard]] Vector serial(int steps, int delay, int rounds,
                              const systems::OuterUpdate& outer) const {
    const auto p = static_cast<std::size_t>(ranks);
    Vector shared = start();
    Vector before = shared;  // one outer update earlier
    Vector momentum(size(), 0);
    std::vector<Vector> own(p, shared);
    std::optional<Vector> late;
    for (int round = 0; round < rounds; ++round) {
      Vector mean(size(), 0);
      for (std::size_t r = 0; r < p; ++r)
        for (int k = 0; k < steps; ++k) step(r, own[r]);
      for (std::size_t i = 0; i < mean.size(); ++i) {
        for (std::size_t r = 0; r < p; ++r) mean[i] += own[r][i];
        mean[i] /= ranks;
      }
      std::optional<Vector> average = mean;
      if (delay == 1) std::swap(average, late);
      if (!average) continue;
      const Vector now = shared;
      for (std::size_t i = 0; i < mean.size(); ++i) {
        double gap = 1;
        if (delay == 1 && outer.gap_penalty && now[i] != before[i])
          gap += std::abs(now[i] - before[i]) / std::abs(before[i] - (*average)[i]);
        momentum[i] = outer.momentum * momentum[i] + (now[i] - (*average)[i]) / gap;
        momentum[i] = std::min(std::max(momentum[i], -outer.clip), outer.clip);
        shared[i] -= outer.rate * momentum[i];
      }
      before = now;
      for (Vector& x : own) x = shared;
    }
    return shared;
  }

  /// The shared parameters of the rank of `transport` after `rounds` rounds over it.
  template <class Transport>
  [[nodiscard]] Vector run(Transport& transport, int steps, int delay, int rounds,
                           const systems::OuterUpdate& outer,
                           schedule::Algorithm algorithm = schedule::Algorithm::ring) const {
    systems::LocalUpdates<double> model(
        start(), [&](std::span<double> x, std::int64_t) { step(+transport.rank(), x); }, outer);
    const Bytes bytes = size() * sizeof(double);
    Runner train(model,
                 systems::local_steps({.ranks = ranks,
                                       .steps = steps,
                                       .delay = delay,
                                       .algorithm = algorithm,
                                       .bytes = bytes}),
                 transport);
    for (int round = 0; round < rounds; ++round) train.step();
    train.drain();
    return {model.parameters().begin(), model.parameters().end()};
  }
  /// The same of all ranks, over threads.
  [[nodiscard]] std::vector<Vector> run_on_threads(
      int steps, int delay, int rounds, const systems::OuterUpdate& outer,
      schedule::Algorithm algorithm = schedule::Algorithm::ring) const {
    std::vector<Vector> found(static_cast<std::size_t>(ranks));
    run_threads(ranks, [&](ThreadTransport& transport) {
      found[+transport.rank()] = run(transport, steps, delay, rounds, outer, algorithm);
    });
    return found;
  }
};

/// The largest difference of two vectors, relative to the larger of their elements and 1.
[[nodiscard]] inline double largest_difference(const Vector& a, const Vector& b) {
  double largest = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double scale = std::max({1.0, std::abs(a[i]), std::abs(b[i])});
    const double difference = std::abs(a[i] - b[i]) / scale;
    largest = difference <= largest ? largest : difference;  // also if it is not a number
  }
  return largest;
}

/// Returns the seconds of the median of three rounds on the rank of `inner`, over links of
/// `latency`. A round has two local steps for each rank but one, and each of them waits 6 ms. A
/// ring's sum has as many hops.
template <Transport T>
[[nodiscard]] double seconds_of_round(T& inner, int delay, double latency) {
  ShapedTransport transport(inner, {.link = [&](Rank, Rank, Seconds) {
                              return Link{.latency = latency, .bandwidth = 1e9};
                            }});
  systems::LocalUpdates<double> model(Vector(16, 1), [](std::span<double>, std::int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(6));
  });
  const int ranks = inner.size();
  Runner train(model,
               systems::local_steps(
                   {.ranks = ranks, .steps = 2 * (ranks - 1), .delay = delay, .bytes = 128}),
               transport, {.execute = {.idle = Idle::nap}});
  train.step();
  std::array<Seconds, 3> rounds;
  for (Seconds& each : rounds) {
    const Seconds begin = steady_seconds();
    train.step();
    each = steady_seconds() - begin;
  }
  train.drain();
  std::ranges::sort(rounds);
  return rounds[1];
}

/// Returns the share of a sum that hides behind local steps of 6 ms, or nothing if other programs
/// disturb the measurement. Each of its hops takes 4.5 ms. `round(delay, latency)` returns what
/// seconds_of_round() does. The rounds of measure_in_rounds() end when the share is `wanted`.
template <class Round>
[[nodiscard]] std::optional<double> measured_overlap(Round&& round, double wanted,
                                                     const RoundOptions& options = {}) {
  constexpr double hop = 0.0045;
  std::array forms{Form{"local steps without a sum, s", [&] { return round(1, 0.0); }},
                   Form{"local steps with a late sum, s", [&] { return round(1, hop); }},
                   Form{"local steps that wait for the sum, s", [&] { return round(0, hop); }}};
  const auto overlap = [&] {
    const double work = forms[0].spread.median();
    return 1 - (forms[1].spread.median() - work) / (forms[2].spread.median() - work);
  };
  if (!measure_in_rounds(
          forms, [&] { return overlap() >= wanted; }, options))
    return {};
  return overlap();
}

/// Returns seconds_of_round() on the first of three threads.
[[nodiscard]] inline double seconds_of_round_on_threads(int delay, double latency) {
  double seconds = 0;
  run_threads(3, [&](ThreadTransport& transport) {
    const double mine = seconds_of_round(transport, delay, latency);
    if (transport.rank() == Rank{0}) seconds = mine;
  });
  return seconds;
}

}  // namespace heddle::test
