// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Two towers for pairs of an image and a text, as pipeline stages. Each tower is a perceptron
/// whose output is an embedding. The loss moves the embeddings of a pair together, and those of
/// different pairs apart. All numbers are double, so that gradients can be compared.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/heddle.hpp>
#include <heddle/kernel.hpp>

#include "host_copy.hpp"
#include "joint_loss.hpp"
#include "space.hpp"

namespace examples {

/// Layers 0 .. layers - 1 are the image tower, layers .. 2 layers - 1 the text tower.
struct TwoTowers {
  int layers = 4;                                  ///< of each tower
  std::size_t width = 16;                          ///< of the embeddings, and between the layers
  std::size_t rows = 6;                            ///< pairs in a microbatch
  int microbatches = 8;                            ///< in a step
  std::array<std::size_t, 2> features = {48, 20};  ///< numbers of an image and of a text
  double rate = 0.2;                               ///< of plain gradient descent
  std::uint64_t seed = 1;
};

/// Returns the images (tower 0) or texts (tower 1) of a step, microbatch by microbatch and pair by
/// pair. A pair has four hidden numbers. Its image and its text are these numbers times a matrix of
/// each tower, with a little noise.
[[nodiscard]] std::vector<double> pairs(const TwoTowers& model, int tower, int step);

/// Layers [first, last) of one tower. A layer computes gelu(x W + b), and the last layer of the
/// tower computes x W + b.
class TowerStage {
 public:
  using scalar_type = double;
  using memory_space = Space::memory_space;

  TowerStage(const TwoTowers& model, int first, int last);

  [[nodiscard]] std::size_t input_size() const { return takes_data() ? 0 : between(); }
  /// The last stages send their embeddings to each other.
  [[nodiscard]] std::size_t output_size() const { return between(); }
  [[nodiscard]] std::size_t saved_size() const { return (2 * count() - 1) * between(); }
  [[nodiscard]] std::size_t delta_size() const { return count() * between(); }
  [[nodiscard]] std::size_t parameter_count() const { return m_parameters.size(); }
  [[nodiscard]] double* parameters() { return m_parameters.data(); }
  [[nodiscard]] double* gradients() { return m_gradients.data(); }

  void begin_step(int step);
  void forward(const heddle::ForwardCall<double>& call);
  /// Computes the backward pass. `beyond` is the gradient of the output, or in a last stage the
  /// embeddings of the other tower.
  void backward_input(const heddle::BackwardCall<double>& call);
  void backward_weight(const heddle::BackwardCall<double>& call);
  void zero_gradients() { Kokkos::deep_copy(m_exec, m_gradients, 0.0); }
  void update();
  void fence() { m_exec.fence("example::two_towers"); }
  /// Returns this tower's share of the loss of a microbatch, after its backward. For last stages
  /// only.
  [[nodiscard]] double loss(heddle::Item m) const;

 private:
  using Elements = Kokkos::View<double*, Space>;
  using Matrix = heddle::kernel::Matrix<double, Space>;
  using Input = heddle::kernel::Matrix<const double, Space>;

  /// Returns the weights and the bias of one layer, or their gradients.
  struct Layer {
    Matrix weight;
    heddle::kernel::Vector<double, Space> bias;
  };

  [[nodiscard]] std::size_t count() const { return m_offsets.size(); }
  [[nodiscard]] std::size_t between() const { return m_model.rows * m_model.width; }
  [[nodiscard]] bool takes_data() const { return m_first % m_model.layers == 0; }
  [[nodiscard]] bool ends() const { return m_last % m_model.layers == 0; }
  [[nodiscard]] std::size_t inputs(std::size_t layer) const;
  [[nodiscard]] Layer layer(const Elements& flat, std::size_t number) const;
  /// Returns the input of layer `number`: the data, the input of the stage, or the output of the
  /// layer before from `saved`.
  [[nodiscard]] Input taken(std::size_t number, heddle::Item m, const double* input,
                            const double* saved) const;
  /// Returns the `number`-th matrix of rows x width elements.
  template <class Real>
  [[nodiscard]] auto block(Real* data, std::size_t number = 0) const {
    return heddle::kernel::Matrix<Real, Space>(data + number * between(), m_model.rows,
                                               m_model.width);
  }

  TwoTowers m_model;
  int m_first, m_last;
  std::vector<std::size_t> m_offsets;  ///< of each layer in the parameters
  Elements m_parameters, m_gradients;
  Elements m_data;   ///< of a step, where the stage takes data
  JointLoss m_loss;  ///< of a last stage
  Space m_exec;
};

}  // namespace examples
