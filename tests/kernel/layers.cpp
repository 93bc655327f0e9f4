// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/kernel.hpp>

#include "support.hpp"

namespace test_layers {

using namespace kernel_test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// The scratch, saved memory and output of a layer norm.
template <class Real>
struct Norm {
  Tensor<Real> x, scale, shift, normalised, inverse, y;
  Norm(std::size_t rows, std::size_t columns)
      : x(rows, columns, "x"),
        scale(1, columns, "scale"),
        shift(1, columns, "shift"),
        normalised(rows, columns),
        inverse(1, rows),
        y(rows, columns) {}
  Tensor<Real>& forward() {
    hk::layer_norm_forward(Exec{}, x.view(), scale.flat(), shift.flat(), normalised.view(),
                           inverse.flat(), y.view());
    return y.pull();
  }
};

template <class Real>
struct Attention {
  hk::AttentionShape shape;
  Tensor<Real> qkv, probabilities, output, scratch, grad;
  explicit Attention(const hk::AttentionShape& s)
      : shape(s),
        qkv(s.rows(), 3 * s.width, "qkv"),
        probabilities(s.probability_rows(), s.context),
        output(s.rows(), s.width),
        scratch(s.probability_rows(), s.context),
        grad(s.rows(), 3 * s.width) {}
  Tensor<Real>& forward() {
    hk::attention_forward(Exec{}, shape, qkv.view(), probabilities.view(), output.view());
    return output.pull();
  }
  Tensor<Real>& backward(const Tensor<Real>& output_grad) {
    hk::attention_backward_input(Exec{}, shape, qkv.view(), probabilities.view(),
                                 output_grad.view(), scratch.view(), grad.view());
    return grad.pull();
  }
};

template <class Real>
struct Entropy {
  Tensor<std::uint8_t> target;
  double weight;
  Tensor<Real> logits, probabilities, row_loss, grad;
  Tensor<double> loss{1, 1};
  Entropy(std::size_t sequences, std::size_t context, std::size_t classes, double w)
      : target(tokens(sequences, context, classes)),
        weight(w),
        logits(sequences * context, classes, "logits"),
        probabilities(sequences * context, classes),
        row_loss(1, sequences * context),
        grad(sequences * context, classes) {}
  double forward() {
    Kokkos::deep_copy(probabilities.view(), logits.view());
    hk::cross_entropy_forward(Exec{}, target.view(), weight, probabilities.view(), row_loss.flat(),
                              loss.flat());
    return loss.pull().at(0);
  }
  Tensor<Real>& backward() {
    hk::cross_entropy_backward_input(Exec{}, target.view(), weight, probabilities.view(),
                                     grad.view());
    return grad.pull();
  }
};

constexpr std::size_t odd_sizes[] = {1, 3, 5, 7};

}  // namespace

TEST_CASE("layer norm: gradients equal finite differences") {
  const std::size_t rows = GENERATE(1, 3, 7), columns = GENERATE(1, 2, 5, 7, 8, 19);
  Norm<double> norm(rows, columns);
  const Tensor<double> cotangent(rows, columns, "cotangent");
  const auto loss = [&] { return dot(cotangent, norm.forward()); };
  (void)loss();
  Tensor<double> x_grad(rows, columns), scale_grad(1, columns), shift_grad(1, columns);
  hk::layer_norm_backward_input(Exec{}, norm.normalised.view(), norm.inverse.flat(),
                                norm.scale.flat(), cotangent.view(), x_grad.view());
  hk::layer_norm_backward_weight(Exec{}, norm.normalised.view(), cotangent.view(),
                                 scale_grad.flat(), shift_grad.flat());
  // Two columns of nearly equal value differ by little more than the epsilon of the variance; there
  // the third derivative is large. The random x used here keeps clear of that.
  check_gradient(norm.x, x_grad.pull(), loss);
  check_gradient(norm.scale, scale_grad.pull(), loss);
  check_gradient(norm.shift, shift_grad.pull(), loss);
}

TEST_CASE("layer norm: rows have mean 0 and deviation 1, and the output is made again from them") {
  Norm<double> norm(5, 37);
  norm.forward();
  norm.normalised.pull();
  for (std::size_t row = 0; row < 5; ++row) {
    double sum = 0, squares = 0;
    for (std::size_t j = 0; j < 37; ++j) {
      sum += norm.normalised.at(row, j);
      squares += norm.normalised.at(row, j) * norm.normalised.at(row, j);
    }
    CHECK(std::abs(sum) < 1e-13);
    CHECK(std::abs(squares / 37 - 1) < 1e-4);  // epsilon lies inside the deviation
  }
  Tensor<double> again(5, 37);
  hk::layer_norm_output(Exec{}, norm.normalised.view(), norm.scale.flat(), norm.shift.flat(),
                        again.view());
  CHECK(difference(again.pull(), norm.y) == 0);
}

TEST_CASE("linear: gradients equal finite differences and are added to") {
  const std::size_t rows = GENERATE(1, 3, 7), inputs = GENERATE(1, 5), outputs = GENERATE(1, 7, 18);
  Tensor<double> x(rows, inputs, "x"), weight(inputs, outputs, "w"), bias(1, outputs, "b");
  Tensor<double> y(rows, outputs);
  const Tensor<double> cotangent(rows, outputs, "cotangent");
  const auto loss = [&] {
    hk::linear_forward(Exec{}, x.view(), weight.view(), bias.flat(), y.view());
    return dot(cotangent, y.pull());
  };
  Tensor<double> x_grad(rows, inputs, 9.0), weight_grad(inputs, outputs), bias_grad(1, outputs);
  hk::linear_backward_input(Exec{}, weight.view(), cotangent.view(), x_grad.view());
  hk::linear_backward_weight(Exec{}, x.view(), cotangent.view(), weight_grad.view(),
                             bias_grad.flat());
  check_gradient(x, x_grad.pull(), loss);
  check_gradient(weight, weight_grad.pull(), loss);
  check_gradient(bias, bias_grad.pull(), loss);

  const Tensor<double> once_weight = weight_grad, once_bias = bias_grad;
  const auto weight_before = once_weight.values(), bias_before = once_bias.values();
  hk::linear_backward_weight(Exec{}, x.view(), cotangent.view(), weight_grad.view(),
                             bias_grad.flat());
  weight_grad.pull();
  bias_grad.pull();
  for (std::size_t i = 0; i < weight_grad.size(); ++i)
    CHECK(std::abs(weight_grad.at(i) - 2 * weight_before[i]) <= 1e-13);
  for (std::size_t i = 0; i < bias_grad.size(); ++i) CHECK(bias_grad.at(i) == 2 * bias_before[i]);
}

TEST_CASE("gelu: gradient equals finite differences, values equal the tanh form") {
  Tensor<double> x(7, 5, "x"), y(7, 5), x_grad(7, 5);
  x.at(0) = 0;
  x.at(1) = -6;
  x.at(2) = 6;
  x.push();
  const Tensor<double> cotangent(7, 5, "cotangent");
  const auto loss = [&] {
    hk::gelu_forward(Exec{}, x.view(), y.view());
    return dot(cotangent, y.pull());
  };
  (void)loss();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double u = std::sqrt(2 / std::numbers::pi) * (x.at(i) + 0.044715 * std::pow(x.at(i), 3));
    CHECK(std::abs(y.at(i) - x.at(i) * 0.5 * (1 + std::tanh(u))) <=
          1e-15 * (1 + std::abs(x.at(i))));
  }
  hk::gelu_backward_input(Exec{}, x.view(), cotangent.view(), x_grad.view());
  check_gradient(x, x_grad.pull(), loss);
}

TEST_CASE("gelu: far out it is the identity or zero, with a slope of one or zero, and no NaN") {
  Tensor<float> x(1, 4), y(1, 4), grad(1, 4), ones(1, 4, 1.0f);
  const float far[] = {-1e6f, -60.0f, 60.0f, 1e6f};
  for (std::size_t i = 0; i < 4; ++i) x.at(i) = far[i];
  x.push();
  hk::gelu_forward(Exec{}, x.view(), y.view());
  hk::gelu_backward_input(Exec{}, x.view(), ones.view(), grad.view());
  y.pull();
  grad.pull();
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(y.at(i) == (far[i] > 0 ? far[i] : 0.0f));
    CHECK(grad.at(i) == (far[i] > 0 ? 1.0f : 0.0f));
  }
}

TEST_CASE("attention: the gradient equals finite differences") {
  const std::size_t context = GENERATE(1, 3, 5, 11), heads = GENERATE(1, 3);
  const hk::AttentionShape shape{GENERATE(1, 2), context, heads, heads * 5};
  Attention<double> attention(shape);
  const Tensor<double> cotangent(shape.rows(), shape.width, "cotangent");
  const auto loss = [&] { return dot(cotangent, attention.forward()); };
  (void)loss();
  check_gradient(attention.qkv, attention.backward(cotangent), loss);
}

TEST_CASE("attention: equals the definition and sees nothing later than itself") {
  const hk::AttentionShape shape{2, 7, 3, 15};
  Attention<double> attention(shape);
  attention.forward();
  const Tensor<double> first = attention.output;
  const auto before = first.values();
  const auto& qkv = attention.qkv;
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t h = 0; h < 3; ++h)
      for (std::size_t i = 0; i < 7; ++i) {
        std::vector<double> share(i + 1);
        double sum = 0;
        for (std::size_t j = 0; j <= i; ++j) {
          double score = 0;
          for (std::size_t d = 0; d < 5; ++d)
            score += qkv.at(s * 7 + i, h * 5 + d) * qkv.at(s * 7 + j, 15 + h * 5 + d);
          sum += share[j] = std::exp(score / std::sqrt(5.0));
        }
        for (std::size_t d = 0; d < 5; ++d) {
          double expected = 0;
          for (std::size_t j = 0; j <= i; ++j)
            expected += share[j] / sum * qkv.at(s * 7 + j, 30 + h * 5 + d);
          CHECK(std::abs(first.at(s * 7 + i, h * 5 + d) - expected) < 1e-13);
        }
      }
  // Change the last position of sequence 0: only its own output may change.
  for (std::size_t column = 0; column < 45; ++column) attention.qkv.at(6 * 45 + column) += 1;
  attention.qkv.push();
  attention.forward();
  for (std::size_t i = 0; i < before.size(); ++i)
    if (i / 15 != 6) CHECK(attention.output.at(i) == before[i]);
  CHECK(attention.output.at(6, 0) != before[6 * 15]);
}

TEST_CASE("attention: more positions than go through the products together") {
  const std::size_t context = GENERATE(64, 65, 131);  // blocks have 64 on the host
  const hk::AttentionShape shape{1, context, 2, 6};
  Attention<double> attention(shape);
  attention.forward();
  const auto& qkv = attention.qkv;
  double worst = 0;
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t i = 0; i < context; ++i) {
      double sum = 0, expected[3] = {};
      for (std::size_t j = 0; j <= i; ++j) {
        double score = 0;
        for (std::size_t d = 0; d < 3; ++d)
          score += qkv.at(i, h * 3 + d) * qkv.at(j, 6 + h * 3 + d);
        const double share = std::exp(score / std::sqrt(3.0));
        sum += share;
        for (std::size_t d = 0; d < 3; ++d) expected[d] += share * qkv.at(j, 12 + h * 3 + d);
      }
      for (std::size_t d = 0; d < 3; ++d)
        worst = std::max(worst, std::abs(attention.output.at(i, h * 3 + d) - expected[d] / sum));
    }
  CHECK(worst < 1e-13);
}

TEST_CASE("attention: the gradient over more than one block equals finite differences") {
  const hk::AttentionShape shape{1, 67, 1, 2};
  Attention<double> attention(shape);
  const Tensor<double> cotangent(shape.rows(), shape.width, "cotangent");
  const auto loss = [&] { return dot(cotangent, attention.forward()); };
  (void)loss();
  check_gradient(attention.qkv, attention.backward(cotangent), loss);
}

TEST_CASE("cross-entropy: gradient equals finite differences, loss equals the definition") {
  const std::size_t sequences = GENERATE(1, 3), context = GENERATE(1, 5),
                    classes = GENERATE(1, 2, 7, 19);
  Entropy<double> entropy(sequences, context, classes, 0.375);
  const double loss = entropy.forward();
  double expected = 0;
  for (std::size_t row = 0; row < sequences * context; ++row) {
    double sum = 0;
    for (std::size_t j = 0; j < classes; ++j) sum += std::exp(entropy.logits.at(row, j));
    expected += std::log(sum) - entropy.logits.at(row, entropy.target.at(row));
  }
  expected *= 0.375 / static_cast<double>(sequences * context);
  CHECK(std::abs(loss - expected) <= 1e-14 * (1 + expected));
  check_gradient(entropy.logits, entropy.backward(), [&] { return entropy.forward(); });
}

TEST_CASE(
    "cross-entropy: a hopeless target costs its distance, not infinity; no rows cost nothing") {
  Entropy<float> entropy(1, 1, 3, 1);
  for (std::size_t j = 0; j < 3; ++j) entropy.logits.at(j) = 0;
  entropy.logits.at(entropy.target.at(0)) = -1000;
  entropy.logits.push();
  CHECK(std::abs(entropy.forward() - (1000 + std::log(2.0))) < 1e-3);
  Entropy<double> none(0, 5, 3, 1);
  none.loss.at(0) = 8;
  none.loss.push();
  CHECK(none.forward() == 0);
}

TEST_CASE("embedding: gradients equal finite differences, also of a token that appears twice") {
  const std::size_t sequences = GENERATE(1, 3), context = GENERATE(1, 5),
                    width = GENERATE(1, 7, 17);
  constexpr std::size_t vocabulary = 3;
  const Tensor<std::uint8_t> token = tokens(sequences, context, vocabulary);
  Tensor<double> table(vocabulary, width, "table"), position(context, width, "position");
  Tensor<double> y(sequences * context, width);
  const Tensor<double> cotangent(sequences * context, width, "cotangent");
  const auto loss = [&] {
    hk::embedding_forward(Exec{}, token.view(), table.view(), position.view(), y.view());
    return dot(cotangent, y.pull());
  };
  Tensor<double> table_grad(vocabulary, width), position_grad(context, width);
  hk::embedding_backward_weight(Exec{}, token.view(), cotangent.view(), table_grad.view(),
                                position_grad.view());
  check_gradient(table, table_grad.pull(), loss);
  check_gradient(position, position_grad.pull(), loss);
}

TEST_CASE("residual add: adds, also on a block of rows") {
  Tensor<double> sum(3, 5, "sum");
  const Tensor<double> before(3, 5, "sum"), addend(3, 5, "addend");
  hk::residual_add(Exec{}, addend.view(), sum.view());
  sum.pull();
  for (std::size_t i = 0; i < 15; ++i) CHECK(sum.at(i) == before.at(i) + addend.at(i));
}

TEST_CASE("every layer in float agrees with itself in double") {
  // A few hundred operations of float, eps = 1.2e-7, on numbers of order 1.
  constexpr double close = 2e-5;
  const auto fill = [](auto& to, const auto& from) {
    for (std::size_t i = 0; i < to.size(); ++i)
      to.at(i) = static_cast<std::remove_reference_t<decltype(to.at(i))>>(from.at(i));
    to.push();
  };
  for (const std::size_t size : odd_sizes) {
    INFO("size " << size);
    const hk::AttentionShape shape{2, size, 1, size};
    Attention<float> attention_f(shape);
    Attention<double> attention_d(shape);
    fill(attention_d.qkv, attention_f.qkv);
    CHECK(difference(attention_f.forward(), attention_d.forward()) < close);
    const Tensor<float> cotangent_f(shape.rows(), size, "cotangent");
    Tensor<double> cotangent_d(shape.rows(), size);
    fill(cotangent_d, cotangent_f);
    CHECK(difference(attention_f.backward(cotangent_f), attention_d.backward(cotangent_d)) < close);

    Norm<float> norm_f(3, size + 1);
    Norm<double> norm_d(3, size + 1);
    fill(norm_d.x, norm_f.x);
    fill(norm_d.scale, norm_f.scale);
    fill(norm_d.shift, norm_f.shift);
    CHECK(difference(norm_f.forward(), norm_d.forward()) < close);

    Entropy<float> entropy_f(2, 3, size, 1);
    Entropy<double> entropy_d(2, 3, size, 1);
    fill(entropy_d.logits, entropy_f.logits);
    CHECK(std::abs(entropy_f.forward() - entropy_d.forward()) < close);
    CHECK(difference(entropy_f.backward(), entropy_d.backward()) < close);

    Tensor<float> x_f(3, size, "x"), y_f(3, size);
    Tensor<double> x_d(3, size), y_d(3, size);
    fill(x_d, x_f);
    hk::gelu_forward(Exec{}, x_f.view(), y_f.view());
    hk::gelu_forward(Exec{}, x_d.view(), y_d.view());
    CHECK(difference(y_f.pull(), y_d.pull()) < close);
    Tensor<float> w_f(size, 7, "w"), b_f(1, 7, "b"), z_f(3, 7);
    Tensor<double> w_d(size, 7), b_d(1, 7), z_d(3, 7);
    fill(w_d, w_f);
    fill(b_d, b_f);
    hk::linear_forward(Exec{}, x_f.view(), w_f.view(), b_f.flat(), z_f.view());
    hk::linear_forward(Exec{}, x_d.view(), w_d.view(), b_d.flat(), z_d.view());
    CHECK(difference(z_f.pull(), z_d.pull()) < close);
  }
}

TEST_CASE("layers refuse shapes that do not fit, naming the argument and both shapes") {
  const Tensor<double> a(2, 3, 0.0), b(2, 4, 0.0);
  CHECK_THROWS_WITH(hk::residual_add(Exec{}, a.view(), b.view()),
                    ContainsSubstring("heddle::kernel::residual_add: addend has the wrong shape") &&
                        ContainsSubstring("it is 2 x 3, expected 2 x 4"));
  CHECK_THROWS_WITH(hk::gelu_forward(Exec{}, a.view(), b.view()), ContainsSubstring("input"));
  CHECK_THROWS_WITH(hk::gelu_backward_input(Exec{}, b.view(), a.view(), b.view()),
                    ContainsSubstring("output_grad"));
  CHECK_THROWS_WITH(hk::linear_forward(Exec{}, a.view(), a.view(), b.flat(), b.view()),
                    ContainsSubstring("bias has the wrong size (it has 8 elements, expected 4)"));
  CHECK_THROWS_WITH(hk::linear_backward_weight(Exec{}, a.view(), b.view(), b.view(), b.flat()),
                    ContainsSubstring("bias_grad"));
  CHECK_THROWS_WITH(
      hk::layer_norm_forward(Exec{}, a.view(), a.flat(), a.flat(), b.view(), a.flat(), a.view()),
      ContainsSubstring("scale"));
  CHECK_THROWS_WITH(
      hk::attention_forward(Exec{}, {1, 2, 2, 3}, a.view(), a.view(), a.view()),
      ContainsSubstring("the width must be a multiple of the number of heads (width 3, heads 2)"));
  CHECK_THROWS_WITH(hk::attention_forward(Exec{}, {1, 2, 1, 3}, a.view(), a.view(), a.view()),
                    ContainsSubstring("qkv has the wrong shape (it is 2 x 3, expected 2 x 9)"));
  const Tensor<std::uint8_t> token = tokens(1, 3, 2);
  CHECK_THROWS_WITH(hk::embedding_forward(Exec{}, token.view(), a.view(), a.view(), a.view()),
                    ContainsSubstring("output has the wrong shape (it is 2 x 3, expected 3 x 3)"));
  CHECK_THROWS_AS(hk::cross_entropy_forward(Exec{}, token.view(), 1, a.view(), a.flat(), a.flat()),
                  heddle::contract_error);
}

}  // namespace test_layers
