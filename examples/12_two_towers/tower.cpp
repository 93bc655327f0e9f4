// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cmath>

#include "tower.hpp"

namespace examples {

namespace hk = heddle::kernel;

namespace {

struct Descend {
  Kokkos::View<double*, Space> parameters, gradients;
  double rate;
  KOKKOS_FUNCTION void operator()(int i) const { parameters(i) -= rate * gradients(i); }
};

}  // namespace

std::vector<double> pairs(const TwoTowers& model, int tower, int step) {
  constexpr std::size_t hidden = 4;
  const std::size_t features = model.features[static_cast<std::size_t>(tower)];
  const std::size_t samples = model.rows * static_cast<std::size_t>(model.microbatches);
  const heddle::Random truth(model.seed, "hidden");
  const heddle::Random view(model.seed, tower == 0 ? "image" : "text");
  const heddle::Random noise(model.seed, tower == 0 ? "image noise" : "text noise");
  std::vector<double> values;
  for (std::size_t n = 0; n < samples; ++n) {
    const std::size_t sample = static_cast<std::size_t>(step) * samples + n;
    for (std::size_t f = 0; f < features; ++f) {
      double value = 0.1 * noise.normal(sample * features + f);
      for (std::size_t h = 0; h < hidden; ++h)
        value += truth.normal(sample * hidden + h) * view.normal(f * hidden + h) / 2;
      values.push_back(std::tanh(value));
    }
  }
  return values;
}

TowerStage::TowerStage(const TwoTowers& model, int first, int last)
    : m_model(model), m_first(first), m_last(last) {
  heddle::expects(first / model.layers == (last - 1) / model.layers, [&] {
    return heddle::ErrorInfo{
        "examples::TowerStage", "a stage holds layers of one tower",
        heddle::text("layers ", first, " to ", last - 1, " of towers of ", model.layers),
        "use a number of ranks that divides it"};
  });
  std::vector<double> values;
  for (int l = first; l < last; ++l) {
    m_offsets.push_back(values.size());
    const std::size_t from = inputs(m_offsets.size() - 1);
    const heddle::Random random(model.seed, heddle::text("layer ", l));
    for (std::size_t i = 0; i < from * model.width; ++i)
      values.push_back(random.normal(i) / std::sqrt(static_cast<double>(from)));
    values.resize(values.size() + model.width, 0.0);
  }
  m_parameters = Elements("example::two_towers::parameters", values.size());
  m_gradients = Elements("example::two_towers::gradients", values.size());
  copy_from_host<Space>(values, m_parameters.data());
  if (ends()) m_loss = JointLoss(model.rows, static_cast<std::size_t>(model.microbatches));
}

std::size_t TowerStage::inputs(std::size_t number) const {
  const int layer = m_first + static_cast<int>(number);
  return layer % m_model.layers > 0
             ? m_model.width
             : m_model.features[static_cast<std::size_t>(layer / m_model.layers)];
}

TowerStage::Layer TowerStage::layer(const Elements& flat, std::size_t number) const {
  double* const data = flat.data() + m_offsets[number];
  const std::size_t from = inputs(number);
  return {Matrix(data, from, m_model.width),
          heddle::kernel::Vector<double, Space>(data + from * m_model.width, m_model.width)};
}

TowerStage::Input TowerStage::taken(std::size_t number, heddle::Item m, const double* input,
                                    const double* saved) const {
  if (number > 0) return block(saved, count() + number - 1);
  if (!takes_data()) return block(input);
  const std::size_t features = inputs(0);
  return Input(m_data.data() + +m * m_model.rows * features, m_model.rows, features);
}

void TowerStage::begin_step(int step) {
  if (!takes_data()) return;
  const auto values = pairs(m_model, m_first / m_model.layers, step);
  if (m_data.size() == 0) m_data = Elements("example::two_towers::data", values.size());
  copy_from_host<Space>(values, m_data.data());
}

// `saved` holds the inputs of gelu in every layer, then the outputs of every layer.
void TowerStage::forward(const heddle::ForwardCall<double>& call) {
  for (std::size_t l = 0; l < count(); ++l) {
    const bool embeds = ends() && l + 1 == count();
    const auto [weight, bias] = layer(m_parameters, l);
    const Matrix sums = block(call.saved, l);
    const Matrix handed =
        block(l + 1 == count() ? call.output : call.saved, l + 1 == count() ? 0 : count() + l);
    hk::linear_forward(m_exec, taken(l, call.item, call.input, call.saved), weight, bias, sums);
    if (embeds)
      Kokkos::deep_copy(m_exec, handed, sums);
    else
      hk::gelu_forward(m_exec, sums, handed);
  }
}

void TowerStage::backward_input(const heddle::BackwardCall<double>& call) {
  for (std::size_t l = count(); l-- > 0;) {
    const Matrix grad = block(call.delta, l);  // of the layer's sums
    const bool last = l + 1 == count();
    if (last && ends()) {
      m_loss.backward(m_exec, call.item, block(call.saved, l), block(call.output_grad), grad);
      continue;
    }
    if (!last)
      hk::linear_backward_input(m_exec, layer(m_parameters, l + 1).weight, block(call.delta, l + 1),
                                grad);
    hk::gelu_backward_input(m_exec, block(call.saved, l),
                            last ? block(call.output_grad) : Input(grad), grad);
  }
  if (call.input_grad != nullptr)
    hk::linear_backward_input(m_exec, layer(m_parameters, 0).weight, block(call.delta),
                              block(call.input_grad));
}

void TowerStage::backward_weight(const heddle::BackwardCall<double>& call) {
  for (std::size_t l = 0; l < count(); ++l) {
    const auto [weight, bias] = layer(m_gradients, l);
    hk::linear_backward_weight(m_exec, taken(l, call.item, call.input, call.saved),
                               block(call.delta, l), weight, bias);
  }
}

void TowerStage::update() {
  Kokkos::parallel_for("example::two_towers::descend",
                       Kokkos::RangePolicy<Space>(m_exec, 0, static_cast<int>(m_parameters.size())),
                       Descend{m_parameters, m_gradients, m_model.rate});
}

double TowerStage::loss(heddle::Item m) const { return m_loss.share(m); }

}  // namespace examples
