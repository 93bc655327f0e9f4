// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of layer_chain.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pipeline/impl/layer_chain.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE LayerChain::LayerChain(std::vector<LayerNumbers> layers, LayerPlace place,
                                          bool split)
    : m_place(std::move(place)), m_split(split) {
  check(layers);
  m_widest = layers.front().inputs;
  for (const LayerNumbers& layer : layers) m_widest = std::max(m_widest, layer.outputs);
  // Backward passes read the output of the last layer, too, and the gradient of the loss.
  LayerNumbers& last = layers.back();
  last.saved = last.outputs * (m_place.computes_loss ? 2 : 1);
  m_sizes = ChainSizes(std::move(layers), 1, false);
}

HEDDLE_FULL_INLINE void LayerChain::check(const std::vector<LayerNumbers>& layers) const {
  constexpr const char* where = "heddle::LayerStage";
  expects(!layers.empty() && m_place.rows > 0 && m_place.microbatches > 0, [&] {
    return ErrorInfo{where, "a stage needs at least one layer, one row and one microbatch",
                     text(layers.size(), " layers, ", m_place.rows, " rows, ", m_place.microbatches,
                          " microbatches")};
  });
  const bool sizes_fit = m_place.sizes.empty() ||
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
  // The largest memory of a stage has the outputs of all layers, the gradient of the loss, and a
  // gradient of all parameters for each sample.
  std::size_t elements = layers.front().inputs;
  bool fits = true;
  const auto add = [&](std::size_t more) {
    fits = fits && !__builtin_add_overflow(elements, more, &elements);
  };
  for (const LayerNumbers& layer : layers) {
    add(layer.outputs);
    add(layer.outputs);
    add(layer.parameters);
  }
  constexpr std::size_t most = std::size_t{1} << 48;
  expects(fits && elements <= most && m_place.rows <= most / std::max<std::size_t>(elements, 1),
          [&] {
            return ErrorInfo{where, "the samples of a microbatch are too large",
                             text("rows = ", m_place.rows, ", at most ", elements,
                                  " elements for each; expected a product of at most 2^48"),
                             "see whether LayerPlace::rows was a negative number"};
          });
  for (std::size_t l = 1; l < layers.size(); ++l)
    check_neighbours(where, l, layers[l - 1].outputs, layers[l].inputs);
}

HEDDLE_FULL_INLINE std::size_t LayerChain::input_size() const {
  return m_place.takes_data ? 0 : m_place.rows * m_sizes[0].inputs;
}

HEDDLE_FULL_INLINE std::size_t LayerChain::output_size() const {
  return m_place.computes_loss ? 0 : m_place.rows * m_sizes.last().outputs;
}

HEDDLE_FULL_INLINE std::size_t LayerChain::saved_size() const {
  return m_place.rows * m_sizes.saved();
}

HEDDLE_FULL_INLINE std::size_t LayerChain::delta_size() const {
  if (m_split) return m_place.rows * m_sizes.delta();
  std::size_t least = m_place.rows;
  for (const std::int64_t size : m_place.sizes)
    least = std::min(least, static_cast<std::size_t>(size));
  return m_place.rows * kept_for_each(parameters(), least);
}

HEDDLE_FULL_INLINE void LayerChain::begin_step(std::size_t input_rows, std::size_t input_columns,
                                               std::size_t target_rows) {
  m_microbatches.reset();
  if (m_place.takes_data) {
    take_samples("inputs", input_rows);
    const std::size_t expected = m_sizes[0].inputs;
    expects(input_columns == expected, [&] {
      return ErrorInfo{"heddle::LayerStage::begin_step", "inputs has the wrong shape",
                       text("it is ", input_rows, " x ", input_columns, ", expected ", input_rows,
                            " x ", expected)};
    });
  }
  if (m_place.computes_loss) take_samples("targets", target_rows);
  m_losses.assign(m_microbatches.value_or(0), 0.0);
}

/// Sets the number of microbatches of the step from data that the stage needs.
HEDDLE_FULL_INLINE void LayerChain::take_samples(const char* name, std::size_t samples) {
  std::size_t count = m_place.sizes.empty() ? samples / m_place.rows : 0;
  std::size_t sum = count * m_place.rows;
  while (count < m_place.sizes.size() && sum < samples)
    sum += static_cast<std::size_t>(m_place.sizes[count++]);
  const bool whole = count > 0 && sum == samples;
  const std::size_t usual = m_microbatches.value_or(m_place.microbatches);
  expects(whole && count == m_microbatches.value_or(count), [&] {
    return ErrorInfo{"heddle::LayerStage::begin_step",
                     m_microbatches ? "a step takes as many targets as inputs"
                                    : "the samples of a step make no whole microbatches",
                     text(name, " has ", samples, " rows, expected ", begin_of(Item{usual}),
                          " for ", usual, " microbatches of ",
                          m_place.sizes.empty() ? "" : "at most ", m_place.rows, " samples"),
                     "make the batch a multiple of the microbatches, and set LayerPlace::rows"};
  });
  m_microbatches = count;
}

HEDDLE_FULL_INLINE std::size_t LayerChain::begin_of(Item item) const {
  if (m_place.sizes.empty()) return +item * m_place.rows;
  std::size_t begin = 0;
  for (std::size_t m = 0; m < +item; ++m) begin += static_cast<std::size_t>(m_place.sizes[m]);
  return begin;
}

HEDDLE_FULL_INLINE void LayerChain::check_call(const char* call, Item item,
                                               std::initializer_list<NamedPointer> pointers) const {
  const std::size_t count = m_microbatches.value_or(static_cast<std::size_t>(-1));
  expects(+item < count, [&] {
    return ErrorInfo{"heddle::LayerStage", "the step has fewer microbatches",
                     text(call, ": item = ", item, " of ", count),
                     "begin the step with the data of all its microbatches"};
  });
  for (const NamedPointer& each : pointers)
    expects(each.is_set, [&] {
      return ErrorInfo{"heddle::LayerStage", "a call lacks memory",
                       text(call, ": ", each.name, " is null")};
    });
}

HEDDLE_FULL_INLINE std::size_t LayerChain::rows(Item item, std::size_t scheduled) const {
  std::size_t planned = m_place.sizes.empty() ? m_place.rows : 0;
  if (+item < m_place.sizes.size()) planned = static_cast<std::size_t>(m_place.sizes[+item]);
  expects(planned > 0 && (scheduled == 0 || scheduled == planned), [&] {
    return ErrorInfo{
        "heddle::LayerStage", "the schedule has another number of samples than LayerPlace",
        text("microbatch ", item, ": ", scheduled, " in the schedule, ", planned, " here"),
        "give LayerPlace the samples of StagePlace, and LayerPlace::sizes if "
        "microbatches differ"};
  });
  return planned;
}

HEDDLE_FULL_INLINE void LayerChain::check_memory(const std::string& name,
                                                 std::size_t elements) const {
  expects(elements == parameters(), [&] {
    return ErrorInfo{
        "heddle::LayerStage::visit_state",
        "the memory of an update needs one element for each parameter",
        text("'", name, "' has ", elements, " elements, there are ", parameters(), " parameters")};
  });
}

}  // namespace heddle::inline v0::impl
