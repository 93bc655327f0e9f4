// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The profile of a transformer's layers, for the program `measure`.

#include <string>

#include <heddle/comm/communicator.hpp>
#include <heddle/pipeline/profile.hpp>

namespace tool {

/// The sizes of the transformer, and the largest microbatch that is measured.
struct LayerSizes {
  int layers = 4;               ///< transformer blocks
  int width = 64;               ///< elements per token
  int heads = 4;                ///< attention heads
  int context = 64;             ///< tokens of a sequence
  int samples = 4;              ///< sequences of the largest microbatch
  std::string device = "rank";  ///< the kind of the first rank
};

/// Measures the layers of the GPT of the examples, in float, with one sequence and with
/// LayerSizes::samples of them. Collective over `comm`.
/// @throws contract_error if the sizes make no model.
[[nodiscard]] heddle::LayerProfile profile_transformer(const heddle::Communicator& comm,
                                                       const LayerSizes& sizes);

}  // namespace tool
