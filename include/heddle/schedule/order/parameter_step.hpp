// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ParameterStep: an operation of a rank on the parameters of one of its stages, named as in
/// schedule files of torch.distributed.pipelining.

#include <cstddef>
#include <cstdint>
#include <iosfwd>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::schedule {

/// An operation on the parameters of a stage, and its place in the list of its rank.
struct ParameterStep {
  /// An operation on the parameters of a stage. If the parameters are not sharded (FSDP), only
  /// reduce_grad has an effect: it scales the gradients.
  enum class Action : std::uint8_t {
    unshard,     ///< UNSHARD: gathers the parameters on the rank
    reshard,     ///< RESHARD: releases the parameters that belong to other ranks
    reduce_grad  ///< REDUCE_GRAD: sums the gradients over the ranks that share the stage, and
                 ///< scales them by the number of microbatches
  };

  Action action = Action::unshard;  ///< the operation
  Stage stage;                      ///< the stage that has the parameters
  std::size_t before = 0;  ///< the number of entries of the rank's list that come before it

  friend constexpr bool operator==(const ParameterStep&, const ParameterStep&) = default;
  /// Prints the step as in schedule files, `2UNSHARD`.
  friend std::ostream& operator<<(std::ostream& out, const ParameterStep& step);
};

/// Returns the name of the operation in schedule files.
[[nodiscard]] constexpr const char* to_string(ParameterStep::Action action) noexcept {
  constexpr const char* names[] = {"UNSHARD", "RESHARD", "REDUCE_GRAD"};
  return names[static_cast<int>(action)];
}

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/parameter_step.ipp>
#endif
