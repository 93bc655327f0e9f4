// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A small multi-layer perceptron as pipeline stages, in double, by plain loops on the host: the
/// same sums in the same order however it is divided, so that results can be compared bit for bit
/// where the schedule leaves the order of the sums alone.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pipeline/stage.hpp>

namespace heddle::test {

/// Layers [first, last) of `layers`, each y = tanh(W x + b) of `width` numbers, for `rows` samples
/// a microbatch. The last adds the loss |y - target|^2 / 2, times the step's weight.
class MlpStage {
 public:
  using scalar_type = double;
  using memory_space = Kokkos::HostSpace;

  static constexpr std::size_t width = 3;
  static constexpr std::size_t rows = 2;
  static constexpr std::size_t per_layer = width * width + width;
  static constexpr std::size_t activation = rows * width;

  MlpStage(int first, int last, int layers, double rate)
      : m_count(static_cast<std::size_t>(last - first)),
        m_takes_data(first == 0),
        m_has_loss(last == layers),
        m_rate(rate),
        m_own(m_count * per_layer),
        m_gradients(m_own.size()),
        m_parameters(m_own.data()) {
    for (std::size_t l = 0; l < m_count; ++l) {
      const Random random(7, text("layer ", first + static_cast<int>(l)));
      for (std::size_t i = 0; i < per_layer; ++i) m_own[l * per_layer + i] = 0.6 * random.normal(i);
    }
  }

  // A copy would compute with the parameters of the original.
  MlpStage(MlpStage&&) = default;
  MlpStage& operator=(MlpStage&&) = default;

  std::size_t input_size() const { return m_takes_data ? 0 : activation; }
  std::size_t output_size() const { return m_has_loss ? 0 : activation; }
  std::size_t saved_size() const { return (m_count + 1) * activation; }
  std::size_t delta_size() const { return m_count * activation; }
  std::size_t parameter_count() const { return m_own.size(); }
  double* parameters() { return m_parameters; }
  double* gradients() { return m_gradients.data(); }
  void use_parameters(double* parameters) { m_parameters = parameters; }

  /// Microbatch m of the step is number `first` + m of all replicas.
  void begin_step(int step, int first, double weight) {
    m_step = step;
    m_first = static_cast<std::size_t>(first);
    m_weight = weight;
    m_losses.clear();
  }

  void forward(const ForwardCall<double>& call) {
    if (m_takes_data) data("input", call.item, call.saved);
    for (std::size_t i = 0; i < activation && !m_takes_data; ++i) call.saved[i] = call.input[i];
    for (std::size_t l = 0; l < m_count; ++l) {
      const double* const w = m_parameters + l * per_layer;
      const double* const x = call.saved + l * activation;
      double* const y = call.saved + (l + 1) * activation;
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t i = 0; i < width; ++i) {
          double sum = w[width * width + i];
          for (std::size_t j = 0; j < width; ++j) sum += w[i * width + j] * x[r * width + j];
          y[r * width + i] = std::tanh(sum);
        }
    }
    const double* const y = call.saved + m_count * activation;
    for (std::size_t i = 0; i < activation && !m_has_loss; ++i) call.output[i] = y[i];
    if (!m_has_loss) return;
    double target[activation];
    data("target", call.item, target);
    double loss = 0;
    for (std::size_t i = 0; i < activation; ++i) loss += (y[i] - target[i]) * (y[i] - target[i]);
    m_losses.resize(std::max(m_losses.size(), +call.item + 1));
    m_losses[+call.item] = m_weight * loss / 2;
  }

  void backward_input(const BackwardCall<double>& call) {
    double above[activation];
    if (m_has_loss) data("target", call.item, above);
    for (std::size_t i = 0; i < activation; ++i)
      above[i] = m_has_loss ? m_weight * (call.saved[m_count * activation + i] - above[i])
                            : call.output_grad[i];
    for (std::size_t l = m_count; l-- > 0;) {
      const double* const w = m_parameters + l * per_layer;
      const double* const y = call.saved + (l + 1) * activation;
      double* const z = call.delta + l * activation;
      for (std::size_t i = 0; i < activation; ++i) z[i] = above[i] * (1 - y[i] * y[i]);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t j = 0; j < width; ++j) {
          double sum = 0;
          for (std::size_t i = 0; i < width; ++i) sum += w[i * width + j] * z[r * width + i];
          above[r * width + j] = sum;
        }
    }
    for (std::size_t i = 0; i < activation && call.input_grad != nullptr; ++i)
      call.input_grad[i] = above[i];
  }

  void backward_weight(const BackwardCall<double>& call) {
    for (std::size_t l = 0; l < m_count; ++l) {
      double* const g = m_gradients.data() + l * per_layer;
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t i = 0; i < width; ++i) {
          const double z = call.delta[l * activation + r * width + i];
          for (std::size_t j = 0; j < width; ++j)
            g[i * width + j] += z * call.saved[l * activation + r * width + j];
          g[width * width + i] += z;
        }
    }
  }

  void zero_gradients() { std::fill(m_gradients.begin(), m_gradients.end(), 0.0); }
  void update() {
    for (std::size_t i = 0; i < m_gradients.size(); ++i) m_parameters[i] -= m_rate * m_gradients[i];
  }
  void fence() {}
  double loss(Item m) const { return +m < m_losses.size() ? m_losses[+m] : 0; }

 private:
  /// The same numbers wherever the microbatch runs.
  void data(const char* what, Item m, double* values) const {
    const Random random(11, what);
    const std::size_t sample = static_cast<std::size_t>(m_step) * 1000 + m_first + +m;
    for (std::size_t i = 0; i < activation; ++i)
      values[i] = 0.8 * random.normal(sample * activation + i);
  }

  std::size_t m_count;
  bool m_takes_data, m_has_loss;
  double m_rate;
  std::vector<double> m_own, m_gradients;
  double* m_parameters;
  int m_step = 0;
  std::size_t m_first = 0;
  double m_weight = 1;
  std::vector<double> m_losses;
};
static_assert(PipelineStage<MlpStage>);

/// The same stage, which does the passes of a fused pair at once, and counts them.
struct PairedMlpStage : MlpStage {
  using MlpStage::MlpStage;
  int pairs = 0;

  void forward_and_backward(const ForwardCall<double>& ahead, PairedMlpStage& other,
                            const BackwardCall<double>& back) {
    other.backward_input(back);
    forward(ahead);
    other.backward_weight(back);
    ++pairs;
  }
};
static_assert(PipelineStage<PairedMlpStage>);

}  // namespace heddle::test
