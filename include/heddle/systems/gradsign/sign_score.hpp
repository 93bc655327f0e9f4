// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// sign_score(): the score of a network whose samples are divided among ranks, see
/// systems::GradientSigns.

#include <cstdint>

#include <heddle/collective/call_options.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/systems/gradsign/gradient_signs.hpp>

namespace heddle::inline v0::systems {

/// The score of the samples of all ranks.
struct SignScore {
  std::int64_t score = 0;    ///< the sum over the parameters of |sum of signs|
  std::int64_t samples = 0;  ///< the samples of all ranks
  friend bool operator==(const SignScore&, const SignScore&) = default;
};

namespace impl {

/// sign_score() of ranks that check it together at `level`.
[[nodiscard]] SignScore sign_score(const GradientSigns& signs, const Communicator& comm,
                                   const CallOptions& options, ContractLevel level);

}  // namespace impl

/// Returns the score of the samples of all ranks of `comm`, the same on each of them. It equals the
/// score of one GradientSigns that has all samples, for any number of ranks and any division.
///
/// The sums are merged by one reduce_scatter() of 4 bytes a parameter, and each rank adds the
/// absolute values of its block. Then 16 bytes are summed. An all_reduce() of the sums would send
/// about twice as much. CallOptions::counts divides the parameters.
/// @throws contract_error if there are 2^31 samples or more in all, and the errors of
///         reduce_scatter() and sum_in_place().
[[nodiscard]] inline SignScore sign_score(const GradientSigns& signs, const Communicator& comm,
                                          const CallOptions& options = {}) {
  return impl::sign_score(signs, comm, options, contract_level);
}

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_FULL_SYSTEMS
#include <heddle/systems/gradsign/sign_score.ipp>
#endif
