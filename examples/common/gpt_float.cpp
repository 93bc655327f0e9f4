// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include "gpt_decoder_definitions.hpp"
#include "gpt_definitions.hpp"

template class examples::GptStage<float>;
template class examples::GptDecoder<float>;
