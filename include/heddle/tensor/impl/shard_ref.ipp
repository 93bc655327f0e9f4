// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Instantiations of MergingIn for the host, which a header-only program makes itself.

#include <heddle/core/linkage.hpp>
#include <heddle/tensor/impl/shard_ref.hpp>

#if !HEDDLE_FULL_HEADER_ONLY
HEDDLE_MERGINGS_BY()
#endif
