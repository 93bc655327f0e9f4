// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LayerStage: a PipelineStage made of layers, each a forward and a backward function with its
/// parameters. For models of your own that are a chain of layers.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/map.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/pipeline/layer.hpp>
#include <heddle/pipeline/parameter.hpp>
#include <heddle/pipeline/stage.hpp>
#include <heddle/pipeline/state.hpp>

namespace heddle::inline v0 {

/// The position of a LayerStage in its model, and the number of samples that it gets.
struct LayerPlace {
  std::size_t rows = 1;  ///< samples of a microbatch, or of the largest one
  /// Microbatches of a usual step on this replica. A step has as many as its data: a Runner whose
  /// schedule has more or fewer of them takes the data of so many.
  int microbatches = 1;
  bool takes_data = false;     ///< holds the model's first layer
  bool computes_loss = false;  ///< holds the model's last layer
  /// The samples of each microbatch, such as those of schedule::microbatch_sizes(). Empty: all have
  /// `rows`. The schedule must have them as StageShares::microbatches. A step may have the first
  /// ones of them only.
  std::vector<std::int64_t> sizes = {};
};

namespace impl {

/// A sum of two numbers.
struct Plus {
  template <class T>
  KOKKOS_FUNCTION T operator()(T a, T b) const {
    return a + b;
  }
};

}  // namespace impl

/// An update whose memory has names: `for_each_memory(visit)` calls `visit(name, vector)` for every
/// vector that it keeps from step to step. Each has as many elements as there are parameters, in
/// their order. It must exist before the first update.
template <class U>
concept UpdateMemory = requires(U& update) {
  update.for_each_memory([](const auto&, const auto&) {});
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
  using Elements = Kokkos::View<T*, typename Exec::memory_space>;

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
        m_place(place),
        m_loss(std::move(loss)),
        m_update(std::move(update)),
        m_exec(exec) {
    check();
    std::size_t count = 0, widest = m_layers.front().inputs();
    for_each_parameter([&](auto& parameter) { count += parameter.size(); });
    for (const L& layer : m_layers) widest = std::max<std::size_t>(widest, layer.outputs());
    m_own = Elements("heddle::pipeline::parameters", count);
    m_gradients = Elements("heddle::pipeline::gradients", count);
    for (Elements& scratch : m_scratch)
      scratch = Elements("heddle::pipeline::layer_grad", m_place.rows * widest);
    std::size_t begin = 0;
    for_each_parameter([&](auto& parameter) {
      const auto own = parameter.at(m_own.data() + begin);
      Kokkos::deep_copy(own, parameter.value);
      begin += parameter.size();
    });
    use_parameters(m_own.data());
    use_gradients(m_gradients.data());
  }
  /// Moves the stage without a copy, because the layers refer to the stage's memory.
  LayerStage(LayerStage&&) = default;
  /// Moves the stage.
  LayerStage& operator=(LayerStage&&) = default;

  /// Number of elements of the first layer's input, per microbatch; 0 if the stage takes the data.
  [[nodiscard]] std::size_t input_size() const {
    return m_place.takes_data ? 0 : m_place.rows * m_layers.front().inputs();
  }
  /// Number of elements of the last layer's output, per microbatch; 0 if it computes the loss.
  [[nodiscard]] std::size_t output_size() const {
    return m_place.computes_loss ? 0 : output_elements(m_layers.size() - 1, m_place.rows);
  }
  /// Number of elements of the outputs of all layers, and of the gradient of the loss.
  [[nodiscard]] std::size_t saved_size() const {
    return outputs_before(m_layers.size(), m_place.rows) +
           (m_place.computes_loss ? output_elements(m_layers.size() - 1, m_place.rows) : 0);
  }
  /// Number of elements of the deltas of all layers; if layers are not split, of the gradients of
  /// one microbatch, for which the samples of the smallest microbatch have room.
  [[nodiscard]] std::size_t delta_size() const {
    if constexpr (SplitLayer<L>) return outputs_before(m_layers.size(), m_place.rows);
    std::size_t least = m_place.rows;
    for (const std::int64_t size : m_place.sizes)
      least = std::min(least, static_cast<std::size_t>(size));
    return (parameter_count() + least - 1) / least * m_place.rows;
  }
  /// Number of parameters of all layers.
  [[nodiscard]] std::size_t parameter_count() const { return m_own.size(); }
  /// The parameters of all layers, one after the other.
  [[nodiscard]] T* parameters() { return m_parameters; }
  /// Their gradients, in the same order.
  [[nodiscard]] T* gradients() { return m_gradients.data(); }
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
        expects(vector.size() == parameter_count(), [&] {
          return ErrorInfo{"heddle::LayerStage::visit_state",
                           "the memory of an update needs one element for each parameter",
                           text("'", name, "' has ", vector.size(), " elements, there are ",
                                parameter_count(), " parameters")};
        });
        visit_vector(visitor, text(name, "/"), vector.data());
      });
  }

  /// Points the layers' Parameters to values that the caller owns.
  void use_parameters(T* parameters) {
    m_parameters = parameters;
    for_each_parameter([&](auto& parameter) {
      parameter.value = parameter.at(parameters);
      parameters += parameter.size();
    });
  }

  /// Takes the data of a step, whose samples make its number of microbatches.
  /// @throws contract_error if this stage needs the inputs or targets, and their samples make no
  ///         whole number of microbatches or not the same one, or if the inputs have another number
  ///         of columns.
  void begin_step(const Input& inputs, const Input& targets) {
    m_microbatches.reset();
    if (m_place.takes_data) {
      take_samples("inputs", inputs);
      kernel::expect_shape("heddle::LayerStage::begin_step", "inputs", inputs, inputs.extent(0),
                           m_layers.front().inputs());
    }
    if (m_place.computes_loss) take_samples("targets", targets);
    m_inputs = inputs;
    m_targets = targets;
    m_losses.assign(m_microbatches.value_or(0), 0.0);
  }

  /// Number of microbatches of the last begin_step(). It has no value if the stage needs no data.
  [[nodiscard]] std::optional<std::size_t> microbatches() const { return m_microbatches; }

  /// Runs the layers from the first to the last one, then the loss.
  void forward(const ForwardCall<T>& call) {
    const std::size_t rows = rows_of(call);
    Input input = input_of(call, call.input);
    for (std::size_t l = 0; l < m_layers.size(); ++l) {
      const Matrix output = output_of(l, rows, call.saved);
      m_layers[l].forward(LayerForward<T, Exec>{m_exec, input, output});
      input = output;
    }
    if (m_place.computes_loss)
      m_losses.at(+call.item) =
          m_loss(m_exec, input, data_of(m_targets, call), loss_grad(rows, call.saved));
    else if (call.output != nullptr)
      Kokkos::deep_copy(m_exec, Matrix(call.output, input.extent(0), input.extent(1)), input);
  }

  /// Runs the backward passes from the last layer to the first one.
  void backward(const BackwardCall<T>& call) {
    descend(call, [](L& layer, const LayerBackward<T, Exec>& each) {
      if constexpr (SplitLayer<L>) {
        layer.backward_input(each);
        layer.backward_weight(each);
      } else {
        layer.backward(each);
      }
    });
  }

  /// Runs the first halves of the backward passes. If layers are not split, it runs all of them and
  /// keeps the gradients of this microbatch in `delta`.
  void backward_input(const BackwardCall<T>& call) {
    if constexpr (SplitLayer<L>) {
      descend(call,
              [](L& layer, const LayerBackward<T, Exec>& each) { layer.backward_input(each); });
    } else {
      Kokkos::deep_copy(m_exec, kernel::Vector<T, Exec>(call.delta, parameter_count()), T{});
      use_gradients(call.delta);
      backward(call);
      use_gradients(m_gradients.data());
    }
  }

  /// Runs the second halves, or adds what `backward_input` has kept.
  void backward_weight(const BackwardCall<T>& call) {
    if constexpr (SplitLayer<L>) {
      const std::size_t rows = rows_of(call);
      for (std::size_t l = 0; l < m_layers.size(); ++l)
        m_layers[l].backward_weight(LayerBackward<T, Exec>{m_exec,
                                                           input_of(l, call),
                                                           output_of(l, rows, call.saved),
                                                           {},
                                                           {},
                                                           output_of(l, rows, call.delta)});
    } else {
      const kernel::Vector<T, Exec> sum(m_gradients.data(), m_gradients.size());
      kernel::map(m_exec, impl::Plus{}, sum, sum,
                  kernel::Vector<const T, Exec>(call.delta, parameter_count()));
    }
  }

  /// Sets all gradients to zero.
  void zero_gradients() { Kokkos::deep_copy(m_exec, m_gradients, T{}); }
  /// Calls the update with the parameters and gradients of all layers.
  void update() {
    m_update(m_exec, kernel::Vector<T, Exec>(m_parameters, parameter_count()),
             kernel::Vector<T, Exec>(m_gradients.data(), parameter_count()));
  }
  /// Waits for all kernels of the calls before.
  void fence() { m_exec.fence("heddle::pipeline::layer_stage"); }
  /// The loss of a microbatch of this step; 0 on a stage that computes none.
  [[nodiscard]] double loss(Item item) const {
    return +item < m_losses.size() ? m_losses[+item] : 0;
  }

 private:
  void check() const {
    constexpr const char* where = "heddle::LayerStage";
    expects(!m_layers.empty() && m_place.rows > 0 && m_place.microbatches > 0, [&] {
      return ErrorInfo{where, "a stage needs at least one layer, one row and one microbatch",
                       text(m_layers.size(), " layers, ", m_place.rows, " rows, ",
                            m_place.microbatches, " microbatches")};
    });
    const bool sizes_fit =
        m_place.sizes.empty() ||
        (m_place.sizes.size() == static_cast<std::size_t>(m_place.microbatches) &&
         std::ranges::all_of(m_place.sizes, [&](std::int64_t size) {
           return size >= 1 && static_cast<std::size_t>(size) <= m_place.rows;
         }));
    expects(sizes_fit, [&] {
      std::string sizes;
      for (const std::int64_t size : m_place.sizes) sizes += text(" ", size);
      return ErrorInfo{
          where, "every microbatch needs its size, of at most `rows` samples",
          text(m_place.microbatches, " microbatches, ", m_place.rows, " rows, sizes:", sizes),
          "use schedule::microbatch_sizes()"};
    });
    for (std::size_t l = 1; l < m_layers.size(); ++l)
      expects(m_layers[l].inputs() == m_layers[l - 1].outputs(), [&] {
        return ErrorInfo{where, "a layer must have as many inputs as the one before has outputs",
                         text("layer ", l, " of the stage has ", m_layers[l].inputs(),
                              " inputs, the one before ", m_layers[l - 1].outputs(), " outputs")};
      });
  }
  /// The number of microbatches that so many samples make, if it is a whole one.
  [[nodiscard]] std::optional<std::size_t> microbatches_of(std::size_t samples) const {
    std::size_t count = m_place.sizes.empty() ? samples / m_place.rows : 0;
    std::size_t sum = count * m_place.rows;
    while (count < m_place.sizes.size() && sum < samples)
      sum += static_cast<std::size_t>(m_place.sizes[count++]);
    return count > 0 && sum == samples ? std::optional(count) : std::nullopt;
  }
  /// Sets the number of microbatches of the step from data that the stage needs.
  void take_samples(const char* name, const Input& samples) {
    const auto count = microbatches_of(samples.extent(0));
    const std::size_t usual = m_microbatches.value_or(m_place.microbatches);
    expects(count && (!m_microbatches || count == m_microbatches), [&] {
      return ErrorInfo{"heddle::LayerStage::begin_step",
                       m_microbatches ? "a step takes as many targets as inputs"
                                      : "the samples of a step make no whole microbatches",
                       text(name, " has ", samples.extent(0), " rows, expected ",
                            begin_of(Item{usual}), " for ", usual, " microbatches of ",
                            m_place.sizes.empty() ? "" : "at most ", m_place.rows, " samples"),
                       "make the batch a multiple of the microbatches, and set LayerPlace::rows"};
    });
    m_microbatches = count;
  }

  /// Visits the parts of a vector that belong to the Parameters.
  template <class Visitor, class Element>
  void visit_vector(Visitor&& visitor, const std::string& prefix, Element* data) {
    for (std::size_t l = 0; l < m_layers.size(); ++l) {
      std::size_t number = 0;
      std::apply(
          [&](auto&... parameter) {
            ((visitor(whole_array<memory_space>(static_cast<int>(l), text(prefix, number++), data,
                                                parameter.size())),
              data += parameter.size()),
             ...);
          },
          m_layers[l].parameters());
    }
  }

  /// Calls `visit(parameter)` for every Parameter of the stage, in order.
  template <class Visit>
  void for_each_parameter(Visit&& visit) {
    for (L& layer : m_layers)
      std::apply([&](auto&... parameter) { (visit(parameter), ...); }, layer.parameters());
  }
  void use_gradients(T* gradients) {
    for_each_parameter([&](auto& parameter) {
      parameter.gradient = parameter.at(gradients);
      gradients += parameter.size();
    });
  }

  [[nodiscard]] std::size_t output_elements(std::size_t layer, std::size_t rows) const {
    return rows * m_layers[layer].outputs();
  }
  [[nodiscard]] std::size_t outputs_before(std::size_t layer, std::size_t rows) const {
    std::size_t sum = 0;
    for (std::size_t l = 0; l < layer; ++l) sum += output_elements(l, rows);
    return sum;
  }
  /// The first sample of a microbatch among those of a step.
  [[nodiscard]] std::size_t begin_of(Item item) const {
    if (m_place.sizes.empty()) return +item * m_place.rows;
    std::size_t begin = 0;
    for (std::size_t m = 0; m < +item; ++m) begin += static_cast<std::size_t>(m_place.sizes[m]);
    return begin;
  }
  /// The samples of a call.
  template <class Call>
  [[nodiscard]] std::size_t rows_of(const Call& call) const {
    std::size_t planned = m_place.sizes.empty() ? m_place.rows : 0;
    if (+call.item < m_place.sizes.size())
      planned = static_cast<std::size_t>(m_place.sizes[+call.item]);
    expects(planned > 0 && (call.samples == 0 || call.samples == planned), [&] {
      return ErrorInfo{"heddle::LayerStage",
                       "the schedule has another number of samples than LayerPlace",
                       text("microbatch ", call.item, ": ", call.samples, " in the schedule, ",
                            planned, " here"),
                       "give LayerPlace the samples of StagePlace, and LayerPlace::sizes if "
                       "microbatches differ"};
    });
    return planned;
  }
  template <class Call>
  [[nodiscard]] Input data_of(const Input& samples, const Call& call) const {
    const std::size_t begin = begin_of(call.item);
    return Kokkos::subview(samples, std::pair(begin, begin + rows_of(call)), Kokkos::ALL);
  }
  template <class Call>
  [[nodiscard]] Input input_of(const Call& call, const T* input) const {
    return m_place.takes_data ? data_of(m_inputs, call)
                              : Input(input, rows_of(call), m_layers.front().inputs());
  }
  [[nodiscard]] Input input_of(std::size_t layer, const BackwardCall<T>& call) const {
    return layer == 0 ? input_of(call, call.input)
                      : Input(output_of(layer - 1, rows_of(call), call.saved));
  }
  /// The block of `layer` in memory that holds one for the output of each.
  template <class U>
  [[nodiscard]] Matrix output_of(std::size_t layer, std::size_t rows, U* blocks) const {
    return Matrix(const_cast<T*>(blocks) + outputs_before(layer, rows), rows,
                  m_layers[layer].outputs());
  }
  [[nodiscard]] Matrix loss_grad(std::size_t rows, const T* saved) const {
    return Matrix(const_cast<T*>(saved) + outputs_before(m_layers.size(), rows), rows,
                  m_layers.back().outputs());
  }

  /// Calls `visit(layer, arguments)` from the last layer to the first one.
  template <class Visit>
  void descend(const BackwardCall<T>& call, Visit&& visit) {
    const std::size_t rows = rows_of(call);
    Input output_grad = m_place.computes_loss
                            ? Input(loss_grad(rows, call.saved))
                            : Input(call.output_grad, rows, m_layers.back().outputs());
    for (std::size_t l = m_layers.size(); l-- > 0;) {
      T* const into =
          l == 0 && call.input_grad != nullptr ? call.input_grad : m_scratch[l % 2].data();
      const Matrix input_grad(into, rows, m_layers[l].inputs());
      const Matrix delta = SplitLayer<L> ? output_of(l, rows, call.delta) : Matrix();
      visit(m_layers[l],
            LayerBackward<T, Exec>{m_exec, input_of(l, call), output_of(l, rows, call.saved),
                                   output_grad, input_grad, delta});
      output_grad = input_grad;
    }
  }

  std::vector<L> m_layers;
  LayerPlace m_place;
  Loss m_loss;
  Update m_update;
  Exec m_exec;
  Elements m_own, m_gradients;
  T* m_parameters = nullptr;
  std::array<Elements, 2> m_scratch;  ///< gradients between layers
  Input m_inputs, m_targets;
  std::optional<std::size_t> m_microbatches;  ///< number in the last step, if it is known
  std::vector<double> m_losses;
};

}  // namespace heddle::inline v0
