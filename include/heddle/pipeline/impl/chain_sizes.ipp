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
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/pipeline/impl/chain_sizes.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE ChainSizes::ChainSizes(std::vector<LayerNumbers> layers, std::size_t least,
                                          bool between)
    : m_layers(std::move(layers)) {
  for (LayerNumbers& layer : m_layers) {
    const bool last = m_places.size() + 1 == m_layers.size();
    if (layer.keeps_gradients) layer.delta = kept_for_each(layer.parameters, least);
    ChainPlace& at = m_places.emplace_back();
    at.saved = m_saved;
    m_saved += layer.saved;
    at.output = m_saved;
    at.output_grad = m_delta;
    if (!last) m_saved += layer.outputs;
    if (!last && between) m_delta += layer.outputs;
    at.delta = m_delta;
    m_delta += layer.delta;
    at.parameters = m_parameters;
    m_parameters += layer.parameters;
  }
}

HEDDLE_FULL_INLINE void check_neighbours(const char* where, std::size_t number, std::size_t before,
                                         std::size_t inputs) {
  expects(before == inputs, [&] {
    return ErrorInfo{
        where, "a layer must have as many inputs as the one before has outputs",
        text("layer ", number, " has ", inputs, " inputs, the one before ", before, " outputs")};
  });
}

HEDDLE_FULL_INLINE void check_chain_ends(const std::vector<LayerNumbers>& layers,
                                         const StagePlace& place, bool takes_data,
                                         bool computes_loss) {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerNumbers& layer = layers[l];
    expects((layer.inputs > 0 || (takes_data && l == 0)) &&
                (layer.outputs > 0 || (computes_loss && l + 1 == layers.size())),
            [&] {
              return ErrorInfo{
                  "heddle::Chain", "a layer between others has no inputs or no outputs",
                  text("layer ", static_cast<std::size_t>(place.layers.first) + l, " has ",
                       layer.inputs, " inputs and ", layer.outputs, " outputs"),
                  "only the first layer of the model reads the data itself, and only "
                  "the last one computes the loss"};
            });
  }
}

HEDDLE_FULL_INLINE void check_chain_samples(Item item, std::size_t samples, std::size_t own) {
  expects(samples == 0 || samples == own, [&] {
    return ErrorInfo{"heddle::Chain", "the schedule has another number of samples than the chain",
                     text("microbatch ", item, ": ", samples, " in the schedule, ", own, " here"),
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
  if (number > 0) check_neighbours("heddle::Chain", number, before, inputs);
  std::set<std::string> names;
  for (const ChainArray& array : arrays)
    expects(!array.name.empty() && names.insert(array.name).second, [&] {
      return ErrorInfo{"heddle::Chain", "every array of a layer needs a name of its own",
                       text("layer ", number, ": '", array.name, "'")};
    });
}

}  // namespace heddle::inline v0::impl
