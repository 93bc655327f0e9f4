// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of chain_sizes.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/pipeline/impl/chain_sizes.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE ChainSizes::ChainSizes(const std::vector<ChainNumbers>& layers,
                                          std::size_t samples, const StagePlace& place,
                                          bool takes_data, bool computes_loss)
    : m_first(static_cast<std::size_t>(place.samples.begin)),
      m_samples(place.samples.size() > 0 ? static_cast<std::size_t>(place.samples.size())
                                         : samples) {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const ChainNumbers& layer = layers[l];
    const bool last = l + 1 == layers.size();
    expects((layer.inputs > 0 || (takes_data && l == 0)) &&
                (layer.outputs > 0 || (computes_loss && last)),
            [&] {
              return ErrorInfo{
                  "heddle::Chain", "a layer between others has no inputs or no outputs",
                  text("layer ", static_cast<std::size_t>(place.layers.first) + l, " has ",
                       layer.inputs, " inputs and ", layer.outputs, " outputs"),
                  "only the first layer of the model reads the data itself, and only "
                  "the last one computes the loss"};
            });
    ChainPlace& at = m_layers.emplace_back();
    at.input = m_samples * layer.inputs;
    at.output = m_samples * layer.outputs;
    at.saved = m_samples * layer.saved;
    // Whole elements for each sample, because StageShares divide what a stage keeps.
    at.delta =
        m_samples * (layer.split ? layer.delta : (layer.parameters + m_samples - 1) / m_samples);
    at.parameters = layer.parameters;
    at.saved_at = m_saved;
    m_saved += at.saved;
    at.output_at = m_saved;
    at.output_grad_at = m_delta;
    if (!last) m_saved += at.output;
    if (!last) m_delta += at.output;
    at.delta_at = m_delta;
    m_delta += at.delta;
    at.parameters_at = m_parameters;
    m_parameters += at.parameters;
  }
}

HEDDLE_FULL_INLINE void ChainSizes::check_samples(Item item, std::size_t samples) const {
  expects(samples == 0 || samples == m_samples, [&] {
    return ErrorInfo{
        "heddle::Chain", "the schedule has another number of samples than the chain",
        text("microbatch ", item, ": ", samples, " in the schedule, ", m_samples, " here"),
        "set ChainOptions::samples to the samples of a microbatch; all microbatches "
        "have as many"};
  });
}

HEDDLE_FULL_INLINE void ChainPart::check_next(std::size_t from, std::size_t size, std::size_t all) {
  expects(count == static_cast<std::size_t>(-1) || (first == from && count == size) ||
              (first == 0 && count == all),
          [&] {
            return ErrorInfo{"heddle::Chain", "the replicas divide the update in another way",
                             text("parameters ", from, " to ", from + size, " of ", all,
                                  ", before ", first, " to ", first + count),
                             "save the model and restore it for the new division, or keep "
                             "StagesOptions::gradient_sum"};
          });
  first = from;
  count = size;
}

HEDDLE_FULL_INLINE IndexSet ChainPart::of_array(std::size_t from, std::size_t size) const {
  const std::size_t end = count > static_cast<std::size_t>(-1) - first ? count : first + count;
  const std::size_t begin = std::max(first, from), last = std::min(end, from + size);
  IndexSet elements;
  if (begin < last)
    elements.add({static_cast<std::int64_t>(begin - from), static_cast<std::int64_t>(last - from)});
  return elements;
}

HEDDLE_FULL_INLINE void check_chain_options(std::size_t samples, bool updates) {
  expects(samples > 0 && updates, [&] {
    return ErrorInfo{"heddle::Chain", "a chain needs at least one sample and an update",
                     text("samples = ", samples, updates ? "" : ", update is empty"),
                     "set ChainOptions::samples and ChainOptions::update"};
  });
}

HEDDLE_FULL_INLINE void check_chain_layer(std::size_t before, std::size_t inputs,
                                          std::size_t number,
                                          const std::vector<ChainArray>& arrays) {
  expects(number == 0 || before == inputs, [&] {
    return ErrorInfo{
        "heddle::Chain", "a layer must have as many inputs as the one before has outputs",
        text("layer ", number, " has ", inputs, " inputs, the one before ", before, " outputs")};
  });
  std::set<std::string> names;
  for (const ChainArray& array : arrays)
    expects(!array.name.empty() && names.insert(array.name).second, [&] {
      return ErrorInfo{"heddle::Chain", "every array of a layer needs a name of its own",
                       text("layer ", number, ": '", array.name, "'")};
    });
}

}  // namespace heddle::inline v0::impl
