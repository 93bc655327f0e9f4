// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The GPT of the examples as a stage in device memory, for scripts/gate.

#include <heddle/pipeline/stage.hpp>

#include "gpt_definitions.hpp"
#include "support.hpp"

template class examples::GptStage<float, gate::Exec>;
static_assert(heddle::PipelineStage<examples::GptStage<float, gate::Exec>>);
