// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ParameterStep: what a rank does with the parameters of one of its stages, as schedule files of
/// torch.distributed.pipelining name it.

#include <cstddef>
#include <cstdint>
#include <ostream>

#include <heddle/core/index.hpp>

namespace heddle::inline v0::schedule {

/// What is done with the parameters of a stage. Without sharded parameters (FSDP) only reduce_grad
/// has an effect: it scales the gradients.
enum class ParameterAction : std::uint8_t {
  unshard,     ///< UNSHARD: gathers the parameters on the rank
  reshard,     ///< RESHARD: releases those of other ranks
  reduce_grad  ///< REDUCE_GRAD: sums the gradients over the ranks that share the stage, and scales
               ///< them by the number of microbatches
};

/// The action as schedule files name it.
[[nodiscard]] constexpr const char* to_string(ParameterAction action) noexcept {
  constexpr const char* names[] = {"UNSHARD", "RESHARD", "REDUCE_GRAD"};
  return names[static_cast<int>(action)];
}

/// One such action, printed `2UNSHARD`, and its place in the list of its rank.
struct ParameterStep {
  ParameterAction action = ParameterAction::unshard;  ///< what is done
  Stage stage;                                        ///< whose parameters
  std::size_t before = 0;  ///< number of entries of the rank's list that come before it

  friend constexpr bool operator==(const ParameterStep&, const ParameterStep&) = default;
  /// `2UNSHARD`
  friend std::ostream& operator<<(std::ostream& out, const ParameterStep& step) {
    return out << step.stage << to_string(step.action);
  }
};

}  // namespace heddle::inline v0::schedule
