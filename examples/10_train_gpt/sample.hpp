// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The text that train_gpt generates at its end.

#include <vector>

#include "gpt_training.hpp"

namespace examples {

/// Prints `tokens` bytes of text that the model with these parameters generates on this rank alone.
/// train.hpp has the definition.
template <class Real>
void print_sample(const GptTraining& training, int tokens, const std::vector<Real>& parameters);

extern template void print_sample<float>(const GptTraining&, int, const std::vector<float>&);
extern template void print_sample<double>(const GptTraining&, int, const std::vector<double>&);

}  // namespace examples
