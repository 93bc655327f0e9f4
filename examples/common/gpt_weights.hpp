// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GptWeights: the parameters of a whole GPT on the host, new or from a checkpoint of train_gpt. To
/// generate text needs no more than these.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>

#include "gpt_config.hpp"

namespace examples {

template <class Real>
struct GptWeights {
  GptConfig config = {};
  std::vector<Real> values = {};  ///< in the order of the GptTable of the whole model
};

/// Returns the first value of a parameter: element `index` of the whole tensor. `random` is the
/// stream of the tensor's name.
template <class Real>
[[nodiscard]] Real first_value(const GptTensor& tensor, const heddle::Random& random,
                               std::size_t index) {
  return static_cast<Real>(tensor.deviation > 0 ? tensor.deviation * random.normal(index)
                                                : tensor.start);
}

/// Returns the parameters that a training with this seed starts from.
template <class Real>
[[nodiscard]] GptWeights<Real> first_weights(const GptConfig& config, std::uint64_t seed) {
  validate(config);
  GptWeights<Real> weights{config, {}};
  for (const GptTensor& tensor : GptTable(config, 0, config.layers).tensors) {
    const heddle::Random random(seed, tensor.origin());
    for (std::size_t i = 0; i < tensor.size; ++i)
      weights.values.push_back(first_value<Real>(tensor, random, i));
  }
  return weights;
}

/// Returns the parameters of a tied model as those of one that is not.
template <class Real>
[[nodiscard]] GptWeights<Real> untied(GptWeights<Real> weights) {
  if (!std::exchange(weights.config.tied, false)) return weights;
  const auto width = static_cast<std::size_t>(weights.config.width);
  const auto classes = static_cast<std::size_t>(weights.config.vocabulary);
  const std::size_t at = GptTable(weights.config, 0, weights.config.layers).vocabulary_weight;
  const std::vector<Real> rows(
      weights.values.begin() + static_cast<std::ptrdiff_t>(at),
      weights.values.begin() + static_cast<std::ptrdiff_t>(at + width * classes));
  for (std::size_t i = 0; i < rows.size(); ++i)
    weights.values[at + i % width * classes + i / width] = rows[i];
  return weights;
}

namespace impl {

/// Returns a field of floats or doubles as Reals.
template <class Real>
[[nodiscard]] std::vector<Real> numbers(const heddle::Checkpoint& checkpoint,
                                        const std::string& field, std::size_t count, bool doubles) {
  if (!doubles) {
    const auto values = checkpoint.get<float>(field, count);
    return {values.begin(), values.end()};
  }
  const auto values = checkpoint.get<double>(field, count);
  std::vector<Real> numbers(count);
  std::ranges::transform(values, numbers.begin(), [](double x) { return static_cast<Real>(x); });
  return numbers;
}

/// Returns whether a field has doubles. @throws format_error if it has neither these nor floats.
[[nodiscard]] inline bool has_doubles(const heddle::Checkpoint& checkpoint,
                                      const std::string& field) {
  try {
    static_cast<void>(checkpoint.get<float>(field));
    return false;
  } catch (const heddle::format_error&) {
    static_cast<void>(checkpoint.get<double>(field));
    return true;
  }
}

}  // namespace impl

/// Reads the sizes and the parameters of the model in a checkpoint of train_gpt, which may have
/// been trained on any division of the ranks and in either precision. They are those of a model
/// that is not tied.
/// @throws format_error if the file cannot be read or has no such model.
template <class Real>
[[nodiscard]] GptWeights<Real> load_weights(const std::string& file) {
  const heddle::Checkpoint checkpoint = heddle::Checkpoint::load(file);
  const auto sizes = checkpoint.get<std::int64_t>("identity");
  if (sizes.size() < 6)
    throw heddle::format_error({"load_weights", "the checkpoint has no sizes of a GPT",
                                heddle::text(file, ": ", sizes.size(), " sizes"),
                                "give a checkpoint of train_gpt --save"});
  const auto size = [&](std::size_t i) { return static_cast<int>(sizes[i]); };
  GptWeights<Real> weights{{.layers = size(0),
                            .width = size(1),
                            .heads = size(2),
                            .context = size(4),
                            .vocabulary = size(5),
                            .kv_heads = size(3),
                            .tied = sizes.size() > 12 && size(12) != 0},
                           {}};
  validate(weights.config);
  const GptTable table(weights.config, 0, weights.config.layers);
  std::size_t layer = 0;
  const auto field = [&](const GptTensor& tensor) {
    return tensor.shared.empty() ? heddle::text("state/", layer, "/", tensor.name)
                                 : heddle::text("state/model/", tensor.shared);
  };
  const bool doubles = impl::has_doubles(checkpoint, field(table.tensors.front()));
  for (const GptTensor& tensor : table.tensors) {
    while (layer + 1 < table.blocks.size() && tensor.offset >= table.blocks[layer + 1].norm1_scale)
      ++layer;
    const auto values = impl::numbers<Real>(checkpoint, field(tensor), tensor.size, doubles);
    weights.values.insert(weights.values.end(), values.begin(), values.end());
  }
  return untied(std::move(weights));
}

}  // namespace examples
