// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// prediction_hash(): a number by which ranks compare what they predict times from.

#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/sequence_choice.hpp>

namespace heddle::inline v0::impl {

/// Returns a hash of the speeds, links and shared resources of `machine`, which covers messages of
/// the lanes 0 to 3, and of the costs of `work`. Names do not count.
[[nodiscard]] std::uint64_t prediction_hash(const Machine& machine,
                                            const plan::AttentionWork& work);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SEQUENCE
#include <heddle/sequence/impl/prediction_hash.ipp>
#endif
