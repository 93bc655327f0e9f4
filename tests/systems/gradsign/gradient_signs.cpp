// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks the score of gradient signs by hand, over threads, and as a rank of networks by their loss
// after training.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <thread>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/systems/gradsign/gradient_signs.hpp>

#include "support/complaint.hpp"
#include "support/toy_networks.hpp"

namespace test_gradient_signs {

namespace hd = heddle;
using hd::systems::GradientSigns;
using Vector = std::vector<double>;

namespace {

void add(GradientSigns& signs, const Vector& gradient) {
  signs.add(std::span<const double>(gradient));
}

}  // namespace

TEST_CASE("the score is the sum of |sum of signs|, by hand") {
  GradientSigns signs(4);
  CHECK(signs.score() == 0);
  add(signs, {1, -2, 0, 5});
  add(signs, {3, 1e-300, -0.0, 5});
  add(signs, {-1, -std::numeric_limits<double>::infinity(), 0, 5});
  CHECK(signs.sums()[0] == 1);
  CHECK(signs.sums()[1] == -1);
  CHECK(signs.sums()[2] == 0);
  CHECK(signs.sums()[3] == 3);
  CHECK(signs.score() == 5);
  CHECK(signs.samples() == 3);
  CHECK(signs.parameters() == 4);
}

TEST_CASE("samples on threads have the score of a serial sum") {
  constexpr std::size_t parameters = 501;
  constexpr std::size_t samples = 60;
  const auto gradient = [](std::size_t s) {
    const hd::Random random(s, "gradient");
    std::vector<float> values(parameters);
    for (std::size_t k = 0; k < parameters; ++k) values[k] = static_cast<float>(random.normal(k));
    return values;
  };
  GradientSigns serial(parameters);
  for (std::size_t s = 0; s < samples; ++s) serial.add(std::span<const float>(gradient(s)));
  for (const std::size_t workers : {1u, 2u, 3u, 7u, 64u}) {
    std::vector<GradientSigns> parts(workers, GradientSigns(parameters));
    {
      std::vector<std::jthread> threads;
      for (std::size_t w = 0; w < workers; ++w)
        threads.emplace_back([&, w] {
          for (std::size_t s = w; s < samples; s += workers)
            parts[w].add(std::span<const float>(gradient(s)));
        });
    }
    GradientSigns forward(parameters);
    GradientSigns back(parameters);
    for (std::size_t w = 0; w < workers; ++w) {
      forward.merge(parts[w]);
      back.merge(parts[workers - 1 - w]);
    }
    CHECK(forward == serial);
    CHECK(back == serial);
  }
}

TEST_CASE("wrong gradients are rejected and change nothing") {
  GradientSigns signs(2);
  add(signs, {1, 1});
  const GradientSigns before = signs;
  const auto message = [](auto&& call) { return hd::test::message_of<hd::contract_error>(call); };
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(message([&] { add(signs, {1}); }), ContainsSubstring("expected 2, got 1"));
  CHECK_THAT(message([&] { add(signs, {1, std::nan("")}); }), ContainsSubstring("parameter 1"));
  CHECK_THAT(message([&] { signs.merge(GradientSigns(3)); }),
             ContainsSubstring("expected 2, got 3"));
  CHECK(signs == before);
}

TEST_CASE("the toy networks have the gradients of finite differences") {
  const hd::test::ToyNetwork network(3, 2, 4, 5, 6);
  Vector weights = network.initial();
  Vector gradient(weights.size(), 0);
  Vector unused(weights.size(), 0);
  for (std::size_t i = 0; i < 6; ++i) network.add_gradient(weights, i, gradient);
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const auto loss = [&](double change) {
      Vector moved = weights;
      moved[k] += change;
      double sum = 0;
      for (std::size_t i = 0; i < 6; ++i) sum += network.add_gradient(moved, i, unused);
      return sum;
    };
    // The error of central differences is of order 1e-10 here, and rounding is of order 1e-10.
    CHECK(gradient[k] == Catch::Approx((loss(1e-5) - loss(-1e-5)) / 2e-5).margin(1e-7));
  }
}

TEST_CASE("the score ranks networks of any width and depth by their loss after training") {
  const hd::test::ToyRanks ranks = hd::test::rank_by_size(0);
  INFO("score " << ranks.score << ", norm " << ranks.norm << ", parameters " << ranks.parameters);
  CHECK(ranks.score > 0.3);
  CHECK(ranks.score > ranks.norm);
}

TEST_CASE("Kendall's tau by hand") {
  const Vector up{1, 2, 3, 4}, down{4, 3, 2, 1}, swapped{1, 2, 4, 3}, flat{1, 1, 1, 1};
  CHECK(hd::test::kendall_tau(up, up) == 1);
  CHECK(hd::test::kendall_tau(up, down) == -1);
  CHECK(hd::test::kendall_tau(up, swapped) == Catch::Approx(4.0 / 6));
  CHECK(hd::test::kendall_tau(up, flat) == 0);
}

}  // namespace test_gradient_signs
