// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// gpt_program(): the example's GPT as a tensor program, for planners of tensor programs.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/transformer_program.hpp>

#include "gpt_config.hpp"
#include "gpt_weights.hpp"

namespace examples {

/// Returns the forward pass of the GPT for a microbatch, up to "loss", the mean over its positions.
[[nodiscard]] inline heddle::systems::TensorProgram gpt_program(
    const GptConfig& config, heddle::Scalar type = heddle::Scalar::f64) {
  validate(config);
  return heddle::systems::transformer_program({.layers = config.layers,
                                               .sequences = config.sequences,
                                               .context = config.context,
                                               .width = config.width,
                                               .heads = config.heads,
                                               .kv_heads = config.heads_of_keys(),
                                               .vocabulary = config.vocabulary,
                                               .type = type});
}

/// Returns the tensors of gpt_program() that have the values of the GPT's parameters, or of their
/// gradients, in the order of the GptTable of the whole model. The columns of Q, K and V lie side
/// by side in the GPT; they are three tensors in the program.
template <class Real>
[[nodiscard]] std::map<std::string, std::vector<double>> gpt_parameters(
    const GptConfig& config, std::span<const Real> flat) {
  std::map<std::string, std::vector<double>> values;
  const auto width = static_cast<std::size_t>(config.width);
  for (const GptTensor& tensor : GptTable(config, 0, config.layers).tensors) {
    const std::span<const Real> of = flat.subspan(tensor.offset, tensor.size);
    const std::size_t at = tensor.name.find("attention.qkv");
    if (at == std::string::npos) {
      values[tensor.name] = {of.begin(), of.end()};
      continue;
    }
    const std::string block = tensor.name.substr(0, at + std::string("attention.").size());
    const std::string kind = tensor.name.ends_with("_bias") ? "_bias" : "";
    const std::size_t row = width + 2 * config.key_columns();
    for (std::size_t i = 0; i < of.size(); ++i) {
      const std::size_t column = i % row;
      const char* const which = column < width                          ? "q"
                                : column < width + config.key_columns() ? "k"
                                                                        : "v";
      values[block + which + kind].push_back(of[i]);
    }
  }
  return values;
}

/// Returns the inputs of gpt_program() for a microbatch: `tokens` has sequences x (context + 1).
[[nodiscard]] inline std::map<std::string, std::vector<double>> gpt_inputs(
    const GptConfig& config, std::span<const std::uint8_t> tokens) {
  const auto context = static_cast<std::size_t>(config.context);
  const auto words = static_cast<std::size_t>(config.vocabulary);
  std::map<std::string, std::vector<double>> values;
  std::vector<double>& mask = values["mask"];
  for (std::size_t query = 0; query < context; ++query)
    for (std::size_t key = 0; key < context; ++key) mask.push_back(key <= query ? 0 : -1e30);
  std::vector<double>& targets = values["targets"];
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i % (context + 1) < context) values["tokens"].push_back(tokens[i]);
    if (i % (context + 1) == 0) continue;
    targets.resize(targets.size() + words, 0.0);
    targets[targets.size() - words + tokens[i]] = 1;
  }
  return values;
}

}  // namespace examples
