// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LayerStage: a PipelineStage made of layers, each a forward and a backward function with its
/// parameters. For models of your own that are a chain of layers.

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/kernel/internal/elements.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/pipeline/impl/layer_chain.hpp>
#include <heddle/pipeline/impl/stage_space.hpp>
#include <heddle/pipeline/layer.hpp>
#include <heddle/pipeline/layer_place.hpp>
#include <heddle/pipeline/parameter.hpp>
#include <heddle/pipeline/stage.hpp>
#include <heddle/pipeline/state.hpp>
#include <heddle/pipeline/tied_parameter.hpp>

namespace heddle::inline v0 {

/// An update whose memory has names: `for_each_memory(visit)` calls `visit(name, vector)` for every
/// vector that it keeps from step to step. Each has as many elements as there are parameters, in
/// their order. It must exist before the first update.
template <class U>
concept UpdateMemory = requires(U& update) {
  update.for_each_memory(impl::AnyVisitor{});
};

/// A stage of a chain of layers. `loss(exec, output, targets, output_grad) -> double` computes the
/// loss of a microbatch and its gradient; `update(exec, parameters, gradients)` steps the optimiser
/// over flat vectors. Both are called on the stages that need them.
///
/// The stage has named state (see HasState) if its update is trivially copyable, and so keeps no
/// memory of its own, or if it names its memory: see UpdateMemory. The arrays of a layer are called
/// by the position of their Parameter, such as "0".
///
/// A step takes the data of this replica, `run.step(inputs, targets)`: one sample per row, the rows
/// of microbatch 0 first. They are referred to, not copied, until the step ends. If ranks divide
/// the samples of a microbatch, they are the data of this rank's samples.
template <Layer L, class Loss, class Update>
class LayerStage {
  using T = typename L::scalar_type;
  using Exec = typename L::execution_space;
  using Matrix = kernel::Matrix<T, Exec>;
  using Input = kernel::Matrix<const T, Exec>;

 public:
  using scalar_type = T;                             ///< the type of parameters and activations
  using memory_space = typename Exec::memory_space;  ///< the memory that holds them

  /// A stage of these layers, whose parameters it moves into its own memory.
  /// @throws contract_error if there are no layers or no rows, if a layer does not have as many
  ///         inputs as the one before it has outputs, or if LayerPlace::sizes are not the samples
  ///         of all microbatches, at most `rows` each.
  LayerStage(std::vector<L> layers, LayerPlace place, Loss loss, Update update,
             const Exec& exec = {})
      : m_layers(std::move(layers)),
        m_chain(numbers_of(m_layers), std::move(place), SplitLayer<L>),
        m_loss(std::move(loss)),
        m_update(std::move(update)),
        m_exec(exec),
        m_own(zeros("heddle::pipeline::parameters", parameter_count())),
        m_gradients(zeros("heddle::pipeline::gradients", parameter_count())) {
    for (std::shared_ptr<T>& scratch : m_scratch)
      scratch = zeros("heddle::pipeline::layer_grad", m_chain.place().rows * m_chain.widest());
    T* own = m_own.get();
    for_each_parameter([&](auto& parameter) {
      const auto& value = parameter.value;
      const std::size_t pieces = value.span_is_contiguous() ? 1 : value.extent(0);
      const std::size_t piece = pieces == 0 ? 0 : value.size() / pieces;
      for (std::size_t r = 0; r < pieces; ++r, own += piece)
        kernel::impl::copy_elements<Exec, T>(
            m_exec, value.data() + (pieces == 1 ? 0 : r * value.stride(0)), own, piece);
    });
    fence();
    m_parameters = m_own.get();
    refer(m_gradients.get());
  }
  /// Moves the stage without a copy, because the layers refer to the stage's memory.
  LayerStage(LayerStage&&) = default;
  /// Moves the stage.
  LayerStage& operator=(LayerStage&&) = default;

  /// Number of elements of the first layer's input, per microbatch; 0 if the stage takes the data.
  [[nodiscard]] std::size_t input_size() const { return m_chain.input_size(); }
  /// Number of elements of the last layer's output, per microbatch; 0 if it computes the loss.
  [[nodiscard]] std::size_t output_size() const { return m_chain.output_size(); }
  /// Number of elements of the outputs of all layers, and of the gradient of the loss.
  [[nodiscard]] std::size_t saved_size() const { return m_chain.saved_size(); }
  /// Number of elements of the deltas of all layers; if layers are not split, of the gradients of
  /// one microbatch, for which the samples of the smallest microbatch have room.
  [[nodiscard]] std::size_t delta_size() const { return m_chain.delta_size(); }
  /// Number of parameters of all layers.
  [[nodiscard]] std::size_t parameter_count() const { return m_chain.parameters(); }
  /// The parameters of all layers, one after the other.
  [[nodiscard]] T* parameters() { return m_parameters; }
  /// Their gradients, in the same order.
  [[nodiscard]] T* gradients() { return m_gradients.get(); }
  /// The parameters that another layer of the model has, too (see Parameter::tied).
  [[nodiscard]] std::vector<TiedParameter> tied_parameters() {
    std::vector<TiedParameter> tied;
    std::size_t first = 0;
    for_each_parameter([&](const auto& parameter) {
      if (!parameter.tied.empty()) tied.push_back({parameter.tied, first, parameter.size()});
      first += parameter.size();
    });
    return tied;
  }
  /// The layers, whose Parameters refer to the stage's memory.
  [[nodiscard]] std::vector<L>& layers() { return m_layers; }

  /// Calls `visitor(array)` for every StateArray: the parameters of each layer, and what the update
  /// keeps of them.
  template <class Visitor>
  requires(UpdateMemory<Update> ||
           std::is_trivially_copyable_v<Update>) void visit_state(Visitor&& visitor) {
    visit_vector(visitor, "", m_parameters);
    if constexpr (UpdateMemory<Update>)
      m_update.for_each_memory([&](const auto& name, const auto& vector) {
        const std::string called = text(name);
        m_chain.check_memory(called, vector.size());
        visit_vector(visitor, called + '/', vector.data());
      });
  }

  /// Points the layers' Parameters to values that the caller owns.
  void use_parameters(T* parameters) {
    m_parameters = parameters;
    refer(m_gradients.get());
  }

  /// Takes the data of a step, whose samples make its number of microbatches.
  /// @throws contract_error if this stage needs the inputs or targets, and their samples make no
  ///         whole number of microbatches or not the same one, or if the inputs have another number
  ///         of columns.
  void begin_step(const Input& inputs, const Input& targets) {
    m_chain.begin_step(inputs.extent(0), inputs.extent(1), targets.extent(0));
    m_inputs = inputs;
    m_targets = targets;
  }

  /// Number of microbatches of the last begin_step(). It has no value if the stage needs no data.
  [[nodiscard]] std::optional<std::size_t> microbatches() const { return m_chain.microbatches(); }

  /// Runs the layers from the first to the last one, then the loss.
  void forward(const ForwardCall<T>& call) {
    const LayerPlace& place = m_chain.place();
    const std::size_t rows = m_chain.rows(call.item, call.samples);
    m_chain.check_call(
        "forward", call.item,
        {{"input", place.takes_data || call.input != nullptr}, {"saved", call.saved != nullptr}});
    Input input = input_of(call.item, rows, call.input);
    for (std::size_t l = 0; l < m_layers.size(); ++l) {
      const Matrix output = output_of(l, rows, call.saved);
      m_layers[l].forward(LayerForward<T, Exec>{m_exec, input, output});
      input = output;
    }
    if (place.computes_loss)
      m_chain.set_loss(call.item, m_loss(m_exec, input, data_of(m_targets, call.item, rows),
                                         loss_gradient(rows, call.saved)));
    else if (call.output != nullptr)
      kernel::impl::copy_elements<Exec, T>(m_exec, input.data(), call.output, input.size());
  }

  /// Runs the backward passes from the last layer to the first one.
  void backward(const BackwardCall<T>& call) {
    check_backward("backward", call, true, true, SplitLayer<L>);
    descend(call, true);
  }

  /// Runs the first halves of the backward passes. If layers are not split, it runs all of them and
  /// keeps the gradients of this microbatch in `delta`.
  void backward_input(const BackwardCall<T>& call) {
    check_backward("backward_input", call, true, true, true);
    if constexpr (SplitLayer<L>) {
      descend(call, false);
    } else {
      kernel::impl::clear_elements<Exec, T>(m_exec, call.delta, parameter_count());
      refer(call.delta);
      descend(call, false);
      refer(m_gradients.get());
    }
  }

  /// Runs the second halves, or adds what `backward_input` has kept.
  void backward_weight(const BackwardCall<T>& call) {
    check_backward("backward_weight", call, SplitLayer<L>, false, true);
    if constexpr (SplitLayer<L>) {
      const std::size_t rows = m_chain.rows(call.item, call.samples);
      for (std::size_t l = 0; l < m_layers.size(); ++l)
        m_layers[l].backward_weight(LayerBackward<T, Exec>{m_exec,
                                                           layer_input(l, rows, call),
                                                           output_of(l, rows, call.saved),
                                                           {},
                                                           {},
                                                           delta_of(l, rows, call.delta)});
    } else {
      kernel::impl::add_elements<Exec, T>(m_exec, call.delta, m_gradients.get(), parameter_count());
    }
  }

  /// Sets all gradients to zero.
  void zero_gradients() {
    kernel::impl::clear_elements<Exec, T>(m_exec, m_gradients.get(), parameter_count());
  }
  /// Calls the update with the parameters and gradients of all layers.
  void update() {
    m_update(m_exec, kernel::Vector<T, Exec>(m_parameters, parameter_count()),
             kernel::Vector<T, Exec>(m_gradients.get(), parameter_count()));
  }
  /// Waits for all kernels of the calls before.
  void fence() { m_exec.fence("heddle::pipeline::layer_stage"); }
  /// The loss of a microbatch of this step; 0 on a stage that computes none.
  [[nodiscard]] double loss(Item item) const { return m_chain.loss(item); }

 private:
  [[nodiscard]] static std::vector<impl::LayerNumbers> numbers_of(std::vector<L>& layers) {
    std::vector<impl::LayerNumbers> numbers;
    for (L& layer : layers)
      numbers.push_back(
          {layer.inputs(), layer.outputs(), 0, SplitLayer<L> ? layer.outputs() : 0, false,
           std::apply([](auto&... each) { return (std::size_t{0} + ... + each.size()); },
                      layer.parameters())});
    return numbers;
  }
  [[nodiscard]] static std::shared_ptr<T> zeros(const char* label, std::size_t count) {
    const impl::StageSpace& space = impl::stage_space<memory_space>();
    const std::shared_ptr<std::byte> block = space.allocate(label, count * sizeof(T));
    space.clear(block.get(), count * sizeof(T));
    return {block, reinterpret_cast<T*>(block.get())};
  }

  /// Visits the parts of a vector that belong to the Parameters.
  template <class Visitor, class Element>
  void visit_vector(Visitor&& visitor, const std::string& prefix, Element* data) {
    for (std::size_t l = 0; l < m_layers.size(); ++l) {
      std::size_t number = 0;
      const auto visit = [&](const std::string& tied, std::size_t size) {
        const std::string name = tied.empty() ? text(prefix, number) : prefix + tied;
        visitor(whole_array<memory_space>(tied.empty() ? static_cast<int>(l) : whole_model, name,
                                          data, size));
        ++number;
        data += size;
      };
      std::apply([&](auto&... parameter) { (visit(parameter.tied, parameter.size()), ...); },
                 m_layers[l].parameters());
    }
  }

  /// Calls `visit(parameter)` for every Parameter of the stage, in order.
  template <class Visit>
  void for_each_parameter(Visit&& visit) {
    for (L& layer : m_layers)
      std::apply([&](auto&... parameter) { (visit(parameter), ...); }, layer.parameters());
  }
  /// Points the Parameters to the present values and to `gradients`.
  void refer(T* gradients) {
    T* values = m_parameters;
    for_each_parameter([&](auto& parameter) {
      const std::size_t size = parameter.size();
      parameter.value = parameter.at(values);
      parameter.gradient = parameter.at(gradients);
      values += size;
      gradients += size;
    });
  }

  /// The rows of a microbatch among the samples of a step.
  [[nodiscard]] Input data_of(const Input& samples, Item item, std::size_t rows) const {
    const std::size_t begin = m_chain.begin_of(item);
    return Kokkos::subview(samples, std::pair(begin, begin + rows), Kokkos::ALL);
  }
  [[nodiscard]] Input input_of(Item item, std::size_t rows, const T* input) const {
    return m_chain.place().takes_data ? data_of(m_inputs, item, rows)
                                      : Input(input, rows, m_chain[0].inputs);
  }
  [[nodiscard]] Input layer_input(std::size_t layer, std::size_t rows,
                                  const BackwardCall<T>& call) const {
    return layer == 0 ? input_of(call.item, rows, call.input)
                      : Input(output_of(layer - 1, rows, call.saved));
  }
  [[nodiscard]] Matrix output_of(std::size_t layer, std::size_t rows, const T* saved) const {
    return Matrix(const_cast<T*>(saved) + m_chain.output_at(layer, rows), rows,
                  m_chain[layer].outputs);
  }
  [[nodiscard]] Matrix delta_of(std::size_t layer, std::size_t rows, T* delta) const {
    return Matrix(delta + m_chain.delta_at(layer, rows), rows, m_chain[layer].outputs);
  }
  [[nodiscard]] Matrix loss_gradient(std::size_t rows, const T* saved) const {
    return Matrix(const_cast<T*>(saved) + m_chain.loss_gradient_at(rows), rows,
                  m_chain[m_layers.size() - 1].outputs);
  }

  /// Checks a backward call that needs the values of its forward, `output_grad` or `delta`.
  void check_backward(const char* name, const BackwardCall<T>& call, bool values, bool gradient,
                      bool delta) const {
    const LayerPlace& place = m_chain.place();
    m_chain.check_call(
        name, call.item,
        {{"input", !values || place.takes_data || call.input != nullptr},
         {"saved", !values || call.saved != nullptr},
         {"output_grad", !gradient || place.computes_loss || call.output_grad != nullptr},
         {"delta", !delta || parameter_count() == 0 || call.delta != nullptr}});
  }

  /// Runs backward passes from the last layer to the first one, of split layers the first halves,
  /// and their second halves if `whole`.
  void descend(const BackwardCall<T>& call, bool whole) {
    const std::size_t rows = m_chain.rows(call.item, call.samples);
    Input output_grad = m_chain.place().computes_loss
                            ? Input(loss_gradient(rows, call.saved))
                            : Input(call.output_grad, rows, m_chain[m_layers.size() - 1].outputs);
    for (std::size_t l = m_layers.size(); l-- > 0;) {
      T* const into =
          l == 0 && call.input_grad != nullptr ? call.input_grad : m_scratch[l % 2].get();
      const Matrix input_grad(into, rows, m_chain[l].inputs);
      const LayerBackward<T, Exec> each{m_exec,
                                        layer_input(l, rows, call),
                                        output_of(l, rows, call.saved),
                                        output_grad,
                                        input_grad,
                                        SplitLayer<L> ? delta_of(l, rows, call.delta) : Matrix()};
      if constexpr (SplitLayer<L>) {
        m_layers[l].backward_input(each);
        if (whole) m_layers[l].backward_weight(each);
      } else {
        m_layers[l].backward(each);
      }
      output_grad = input_grad;
    }
  }

  std::vector<L> m_layers;
  impl::LayerChain m_chain;
  Loss m_loss;
  Update m_update;
  Exec m_exec;
  std::shared_ptr<T> m_own, m_gradients;
  T* m_parameters = nullptr;
  std::array<std::shared_ptr<T>, 2> m_scratch;  ///< gradients between layers
  Input m_inputs, m_targets;
};

}  // namespace heddle::inline v0
