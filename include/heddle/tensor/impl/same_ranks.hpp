// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// same_ranks(): may tensors of two communicators take part in one exchange?

#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::impl {

/// Returns true if both are the same ranks in the same order.
[[nodiscard]] bool same_ranks(const Communicator& a, const Communicator& b);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_TENSOR
#include <heddle/tensor/impl/same_ranks.ipp>
#endif
