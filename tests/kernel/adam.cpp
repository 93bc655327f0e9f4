// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/kernel/adam.hpp>

#include "support.hpp"

namespace test_adam {

using namespace kernel_test;

TEST_CASE("Adam: ten steps equal the published algorithm written plainly") {
  const std::size_t size = GENERATE(0, 1, 7, 130);
  const hk::AdamOptions options{.learning_rate = 0.01,
                                .beta1 = 0.8,
                                .beta2 = 0.95,
                                .epsilon = 1e-6,
                                .weight_decay = GENERATE(0.0, 0.1)};
  Tensor<double> parameter(1, size, "parameter"), mean(1, size), square(1, size);
  std::vector<double> p = parameter.values(), m(size), v(size);
  for (std::uint64_t step = 1; step <= 10; ++step) {
    const Tensor<double> gradient(1, size, heddle::text("gradient", step));
    hk::adam_update(Exec{}, options, step, gradient.flat(), mean.flat(), square.flat(),
                    parameter.flat());
    const auto t = static_cast<double>(step);
    for (std::size_t i = 0; i < size; ++i) {
      const double g = gradient.at(i);
      m[i] = 0.8 * m[i] + 0.2 * g;
      v[i] = 0.95 * v[i] + 0.05 * g * g;
      const double m_hat = m[i] / (1 - std::pow(0.8, t)), v_hat = v[i] / (1 - std::pow(0.95, t));
      p[i] -= 0.01 * (m_hat / (std::sqrt(v_hat) + 1e-6) + options.weight_decay * p[i]);
    }
  }
  parameter.pull();
  for (std::size_t i = 0; i < size; ++i)
    CHECK(std::abs(parameter.at(i) - p[i]) <= 1e-13 * (1 + std::abs(p[i])));
}

TEST_CASE("Adam: the first step moves by the learning rate against the gradient's sign") {
  Tensor<float> parameter(1, 3), mean(1, 3), square(1, 3), gradient(1, 3);
  gradient.at(0) = 1e-3f;
  gradient.at(1) = -50;
  gradient.push();
  hk::adam_update(Exec{}, {.learning_rate = 0.5}, 1, gradient.flat(), mean.flat(), square.flat(),
                  parameter.flat());
  parameter.pull();
  CHECK(std::abs(parameter.at(0) + 0.5f) < 1e-4f);
  CHECK(std::abs(parameter.at(1) - 0.5f) < 1e-4f);
  CHECK(parameter.at(2) == 0);
}

TEST_CASE("Adam: refuses step 0 and vectors of different sizes") {
  const Tensor<double> three(1, 3, 0.0), four(1, 4, 0.0);
  CHECK_THROWS_WITH(
      hk::adam_update(Exec{}, {}, 0, three.flat(), three.flat(), three.flat(), three.flat()),
      Catch::Matchers::ContainsSubstring("steps must be at least 1, got 0"));
  CHECK_THROWS_WITH(
      hk::adam_update(Exec{}, {}, 1, four.flat(), three.flat(), three.flat(), three.flat()),
      Catch::Matchers::ContainsSubstring(
          "gradient has the wrong size (it has 4 elements, expected 3)"));
}

}  // namespace test_adam
