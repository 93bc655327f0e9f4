// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of chain.hpp.

#include <heddle/core/linkage.hpp>
#include <heddle/pipeline/chain.hpp>

namespace heddle::inline v0 {

#if !HEDDLE_FULL_HEADER_ONLY
template class ChainStage<float>;
#endif

}  // namespace heddle::inline v0
