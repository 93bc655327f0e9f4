// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The data of a GPT in plain functions, and the GPT as a Chain of layers for a pipeline.

#include <vector>

#include <heddle/pipeline/chain.hpp>

#include "gpt.hpp"

namespace hd = heddle;

/// The data of a step: microbatches of `sequences` each, of which this replica has those from
/// `first` on; and the weights with which the model begins.
struct Batch {
  GptShape shape;
  int sequences, microbatches, first;
  std::vector<int> ids, next;
  std::vector<float> weights;
  const int* of(const std::vector<int>& data, hd::Item item) const {
    return data.data() + (first + static_cast<int>(+item)) * sequences * shape.tokens;
  }
};

/// The model as a chain of 2 + 2 * layers layers, which refer to `batch`.
hd::Chain<float> chain_of(const Batch& batch);
