// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// sign_score(): the score of a network whose samples are divided among ranks, see
/// plan::GradientSigns.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/block_counts.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/reduce_scatter.hpp>
#include <heddle/collective/sum_in_place.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/gradient_signs.hpp>

namespace heddle::inline v0 {

/// The score of the samples of all ranks.
struct SignScore {
  std::int64_t score = 0;    ///< the sum over the parameters of |sum of signs|
  std::int64_t samples = 0;  ///< the samples of all ranks
  friend bool operator==(const SignScore&, const SignScore&) = default;
};

/// Returns the score of the samples of all ranks of `comm`, the same on each of them. It equals the
/// score of one GradientSigns that has all samples, for any number of ranks and any division.
///
/// The sums are merged by one reduce_scatter() of 4 bytes a parameter, and each rank adds the
/// absolute values of its block. Then 16 bytes are summed. An all_reduce() of the sums would send
/// about twice as much. CallOptions::counts divides the parameters.
/// @throws contract_error if there are 2^31 samples or more in all, and the errors of
///         reduce_scatter() and sum_in_place().
[[nodiscard]] inline SignScore sign_score(const plan::GradientSigns& signs,
                                          const Communicator& comm,
                                          const CallOptions& options = {}) {
  using Space = Kokkos::DefaultHostExecutionSpace;
  using Sums =
      Kokkos::View<std::int32_t*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  std::vector<std::int32_t> sums(signs.sums().begin(), signs.sums().end());
  constexpr const char* where = "heddle::collective::sign_score";
  impl::BlockCounts blocks;
  check_together(
      comm, where,
      [&] {
        blocks = {where, sums.size(), static_cast<std::size_t>(comm.size()), options.counts};
      },
      [&] {
        return CollectiveCall{where, {{"parameters", text(sums.size())}}};
      });
  std::vector<std::int32_t> own(blocks.count(+comm.rank()));
  reduce_scatter(Space{}, Sums(sums.data(), sums.size()), Sums(own.data(), own.size()), Sum{}, comm,
                 options);
  std::int64_t both[] = {plan::GradientSigns::absolute_sum(own), signs.samples()};
  sum_in_place(both, 2, Scalar::i64, comm);
  expects(both[1] <= std::numeric_limits<std::int32_t>::max(), [&] {
    return ErrorInfo{where, "a sum has 32 bits", text(both[1], " samples in all")};
  });
  return {both[0], both[1]};
}

}  // namespace heddle::inline v0
