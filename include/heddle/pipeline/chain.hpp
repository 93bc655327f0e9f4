// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Chain: a model whose layers are of several types and work on flat arrays in host memory. For
/// existing code, whose layers are functions with a forward and a backward pass.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/pipeline/chain_calls.hpp>
#include <heddle/pipeline/impl/any_chain_layer.hpp>
#include <heddle/pipeline/impl/chain_sizes.hpp>
#include <heddle/pipeline/stage.hpp>
#include <heddle/pipeline/stage_place.hpp>
#include <heddle/pipeline/state.hpp>
#include <heddle/pipeline/tied_parameter.hpp>

namespace heddle::inline v0 {

/// The options of a Chain.
template <class T>
struct ChainOptions {
  std::size_t samples = 1;  ///< samples of a microbatch; sizes of layers are for one sample
  /// Steps the optimiser. It is called once in a step for each stage, or for parts of a stage if
  /// the replicas divide the update (GradientSum::sharded).
  std::function<void(const ChainUpdate<T>&)> update = {};
  /// The names of the arrays that the update keeps from step to step, such as {"m", "v"}. Each has
  /// as many elements as there are parameters, and begins with zeros.
  std::vector<std::string> memory = {};
};

/// A PipelineStage made of consecutive layers of a Chain.
///
/// It saves the input of every layer but the first one, and what the layers save. If a layer has
/// one function `backward` and the schedule splits backward passes, the gradients of a microbatch
/// are computed on their own and added later. This changes the order of sums, so the last bits of
/// gradients may differ from those of other schedules. A layer with `backward_input` and
/// `backward_weight` gives the same bits under every schedule that has the same order of
/// microbatches.
template <class T>
class ChainStage {
 public:
  using scalar_type = T;                   ///< the type of parameters and activations
  using memory_space = Kokkos::HostSpace;  ///< the memory that holds them

  /// A stage of `layers` for the samples that `place` has. Called by Chain.
  ChainStage(std::vector<impl::ChainEntry<T>> layers, const ChainOptions<T>& options,
             const StagePlace& place, bool takes_data, bool computes_loss);
  /// Moves the stage.
  ChainStage(ChainStage&&) = default;
  /// Moves the stage.
  ChainStage& operator=(ChainStage&&) = default;

  /// Number of elements of the first layer's input, per microbatch; 0 if it has none.
  [[nodiscard]] std::size_t input_size() const { return m_samples * m_sizes[0].inputs; }
  /// Number of elements of the last layer's output, per microbatch; 0 if it has none.
  [[nodiscard]] std::size_t output_size() const { return m_samples * m_sizes.last().outputs; }
  /// Number of elements of what all layers save, and of the outputs between them.
  [[nodiscard]] std::size_t saved_size() const { return m_samples * m_sizes.saved(); }
  /// Number of elements of the gradients between layers, and of what layers keep between the halves
  /// of their backward passes.
  [[nodiscard]] std::size_t delta_size() const { return m_samples * m_sizes.delta(); }
  /// Number of parameters of all layers.
  [[nodiscard]] std::size_t parameter_count() const { return m_sizes.parameters(); }
  /// The parameters of all layers, one after the other.
  [[nodiscard]] T* parameters() { return m_parameters; }
  /// Their gradients, in the same order.
  [[nodiscard]] T* gradients() { return m_gradients.data(); }
  /// From now on the parameters are those at `parameters`, memory of the caller.
  void use_parameters(T* parameters) { m_parameters = parameters; }
  /// The parameters that another layer of the model has, too.
  [[nodiscard]] std::vector<TiedParameter> tied_parameters() const;

  /// Runs the layers from the first to the last one.
  void forward(const ForwardCall<T>& call);
  /// Runs the backward passes from the last layer to the first one.
  void backward(const BackwardCall<T>& call);
  /// Runs the first halves. A layer whose backward pass is not split does all of it, and keeps its
  /// gradients in `delta`.
  void backward_input(const BackwardCall<T>& call);
  /// Runs the second halves, or adds the gradients that `backward_input` has kept.
  void backward_weight(const BackwardCall<T>& call);
  /// Sets all gradients to zero.
  void zero_gradients() { std::fill(m_gradients.begin(), m_gradients.end(), T{}); }
  /// Calls the update with the parameters and gradients of all layers.
  void update() { update(0, parameter_count()); }
  /// Calls the update with `count` parameters from `first` on. Their part of the memory of the
  /// update is then all that this stage has. @throws contract_error if it had another part before.
  void update(std::size_t first, std::size_t count);
  /// Does nothing, because the calls of layers return when they are done.
  void fence() {}
  /// The loss that the last layer returned for a microbatch of this step; 0 on other stages.
  [[nodiscard]] double loss(Item item) const {
    return +item < m_losses.size() ? m_losses[+item] : 0;
  }

  /// Calls `visitor(array)` for every StateArray: the arrays of each layer by their names, and what
  /// the update keeps of them. A tied array is one of the whole model.
  template <class Visitor>
  void visit_state(Visitor&& visitor) {
    const auto visit = [&](const std::string& prefix, T* data, const impl::ChainPart& part) {
      each_array([&](std::size_t l, const ChainArray& array, std::size_t first) {
        const IndexSet elements = part.of_array(first, array.size);
        T* const begin =
            elements.size() == 0 ? nullptr : data + first + static_cast<std::size_t>(elements[0]);
        visitor(StateArray<T, memory_space>{array.tied ? whole_model : static_cast<int>(l),
                                            prefix + array.name, begin, elements,
                                            static_cast<std::int64_t>(array.size)});
      });
    };
    visit("", m_parameters, {});
    for (std::size_t m = 0; m < m_memory.size(); ++m)
      visit(m_options.memory[m] + '/', m_memory[m].data(), m_part);
  }

 private:
  [[nodiscard]] std::span<T> weights(std::size_t l) {
    return {m_parameters + m_sizes.at(l).parameters, m_sizes[l].parameters};
  }
  [[nodiscard]] std::span<T> gradients_of(std::size_t l) {
    return {gradients() + m_sizes.at(l).parameters, m_sizes[l].parameters};
  }
  [[nodiscard]] std::span<const T> input_of(std::size_t l, const T* input, const T* saved) const {
    return {l == 0 ? input : saved + m_samples * m_sizes.at(l - 1).output,
            m_samples * m_sizes[l].inputs};
  }
  /// Returns the call of a backward function of layer `l`, without its input's gradient.
  [[nodiscard]] ChainBackward<T> backward_of(std::size_t l, const BackwardCall<T>& call) {
    const impl::ChainPlace& at = m_sizes.at(l);
    const impl::LayerNumbers& layer = m_sizes[l];
    const bool last = l + 1 == m_layers.size();
    ChainBackward<T> each{call.item, m_first, m_samples, weights(l)};
    each.input = input_of(l, call.input, call.saved);
    each.saved = {call.saved + m_samples * at.saved, m_samples * layer.saved};
    each.output_grad = {last ? call.output_grad : call.delta + m_samples * at.output_grad,
                        m_samples * layer.outputs};
    each.delta = {call.delta + m_samples * at.delta, m_samples * layer.delta};
    return each;
  }
  template <class Backward>
  void descend(const BackwardCall<T>& call, Backward&& backward) {
    impl::check_chain_samples(call.item, call.samples, m_samples);
    for (std::size_t l = m_layers.size(); l-- > 0;) {
      ChainBackward<T> each = backward_of(l, call);
      each.input_grad = {
          l == 0 ? call.input_grad : call.delta + m_samples * m_sizes.at(l - 1).output_grad,
          m_samples * m_sizes[l].inputs};
      backward(l, each);
    }
  }
  /// Calls `visit(layer, array, first)` for every array, with its place among the parameters.
  template <class Visit>
  void each_array(Visit&& visit) const {
    for (std::size_t l = 0, first = 0; l < m_layers.size(); ++l)
      for (const ChainArray& array : m_layers[l].arrays) {
        visit(l, array, first);
        first += array.size;
      }
  }

  std::vector<impl::ChainEntry<T>> m_layers;
  ChainOptions<T> m_options;
  std::size_t m_first, m_samples;  ///< its samples of a microbatch
  impl::ChainSizes m_sizes;
  std::vector<T> m_own, m_gradients;
  std::vector<std::vector<T>> m_memory;  ///< that the update keeps
  impl::ChainPart m_part;                ///< the part of the memory that is up to date
  T* m_parameters;
  std::vector<double> m_losses;
};

// Apart from the class, and not inline, so that the library has those of float.

template <class T>
ChainStage<T>::ChainStage(std::vector<impl::ChainEntry<T>> layers, const ChainOptions<T>& options,
                          const StagePlace& place, bool takes_data, bool computes_loss)
    : m_layers(std::move(layers)),
      m_options(options),
      m_first(static_cast<std::size_t>(place.samples.begin)),
      m_samples(place.samples.size() > 0 ? static_cast<std::size_t>(place.samples.size())
                                         : options.samples),
      m_sizes(impl::chain_numbers(m_layers), m_samples, true),
      m_own(m_sizes.parameters()),
      m_gradients(m_sizes.parameters()),
      m_memory(options.memory.size(), std::vector<T>(m_sizes.parameters())),
      m_parameters(m_own.data()) {
  impl::check_chain_ends(impl::chain_numbers(m_layers), place, takes_data, computes_loss);
  for (std::size_t l = 0; l < m_layers.size(); ++l) m_layers[l].layer->initialize(weights(l));
}

template <class T>
void ChainStage<T>::forward(const ForwardCall<T>& call) {
  impl::check_chain_samples(call.item, call.samples, m_samples);
  for (std::size_t l = 0; l < m_layers.size(); ++l) {
    const impl::ChainPlace& at = m_sizes.at(l);
    const impl::LayerNumbers& layer = m_sizes[l];
    const bool last = l + 1 == m_layers.size();
    ChainForward<T> each{call.item, m_first, m_samples, weights(l)};
    each.input = input_of(l, call.input, call.saved);
    each.output = {last ? call.output : call.saved + m_samples * at.output,
                   m_samples * layer.outputs};
    each.saved = {call.saved + m_samples * at.saved, m_samples * layer.saved};
    const double loss = m_layers[l].layer->forward(each);
    if (m_losses.size() <= +call.item) m_losses.resize(+call.item + 1);
    if (last) m_losses[+call.item] = loss;
  }
}

template <class T>
void ChainStage<T>::backward(const BackwardCall<T>& call) {
  descend(call, [&](std::size_t l, ChainBackward<T>& each) {
    each.gradients = gradients_of(l);
    m_layers[l].layer->backward(each);
  });
}

template <class T>
void ChainStage<T>::backward_input(const BackwardCall<T>& call) {
  descend(call, [&](std::size_t l, ChainBackward<T>& each) {
    if (m_layers[l].layer->is_split()) return m_layers[l].layer->backward_input(each);
    each.gradients = std::exchange(each.delta, {}).first(weights(l).size());
    std::fill(each.gradients.begin(), each.gradients.end(), T{});
    m_layers[l].layer->backward(each);
  });
}

template <class T>
void ChainStage<T>::backward_weight(const BackwardCall<T>& call) {
  for (std::size_t l = m_layers.size(); l-- > 0;) {
    ChainBackward<T> each = backward_of(l, call);
    each.gradients = gradients_of(l);
    if (m_layers[l].layer->is_split()) {
      m_layers[l].layer->backward_weight(each);
    } else {
      for (std::size_t i = 0; i < each.gradients.size(); ++i) each.gradients[i] += each.delta[i];
    }
  }
}

template <class T>
void ChainStage<T>::update(std::size_t first, std::size_t count) {
  if (!m_memory.empty()) m_part.check_next(first, count, parameter_count());
  ChainUpdate<T> part{{m_parameters + first, count}, {gradients() + first, count}, {}};
  for (std::vector<T>& each : m_memory)
    part.memory.push_back(std::span(each).subspan(first, count));
  if (count > 0) m_options.update(part);
}

template <class T>
std::vector<TiedParameter> ChainStage<T>::tied_parameters() const {
  std::vector<TiedParameter> tied;
  each_array([&](std::size_t, const ChainArray& array, std::size_t first) {
    if (array.tied) tied.push_back({array.name, first, array.size});
  });
  return tied;
}

/// A model that is a chain of layers, each of its own type (see ChainLayer). Every rank has the
/// same Chain; the layers say how large they are, and a stage has the memory of its layers only:
///
///     heddle::Chain<float> gpt({.samples = 2, .update = step});
///     gpt.add(Embedding{config});
///     for (int l = 0; l < 12; ++l) gpt.add(Block{config, l});
///     gpt.add(Head{config});
///     heddle::Stages<heddle::ChainStage<float>> model(gpt.size(), gpt);
template <class T>
class Chain {
 public:
  /// A model without layers. @throws contract_error if there are no samples or no update.
  explicit Chain(ChainOptions<T> options) : m_options(std::move(options)) {
    impl::check_chain_options(m_options.samples, m_options.update != nullptr);
  }

  /// Appends a layer. @throws contract_error if it does not have as many inputs as the last one has
  /// outputs, or if two of its arrays have one name.
  template <ChainLayer<T> L>
  Chain& add(L layer) {
    impl::ChainEntry<T> entry{layer.arrays(),
                              std::make_shared<impl::ChainLayerOf<T, L>>(std::move(layer))};
    impl::check_chain_layer(m_layers.empty() ? 0 : m_layers.back().layer->outputs(),
                            entry.layer->inputs(), m_layers.size(), entry.arrays);
    m_layers.push_back(std::move(entry));
    return *this;
  }
  /// Returns the number of layers.
  [[nodiscard]] int size() const noexcept { return static_cast<int>(m_layers.size()); }

  /// Returns the stage that holds the layers of `place`. Called by Stages.
  [[nodiscard]] ChainStage<T> operator()(const StagePlace& place) const {
    return ChainStage<T>(
        {m_layers.begin() + place.layers.first, m_layers.begin() + place.layers.last}, m_options,
        place, place.layers.first == 0, place.layers.last == size());
  }

 private:
  ChainOptions<T> m_options;
  std::vector<impl::ChainEntry<T>> m_layers;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/chain.ipp>
#else
extern template class heddle::ChainStage<float>;
#endif
