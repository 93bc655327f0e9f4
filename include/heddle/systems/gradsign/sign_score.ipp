// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of sign_score.hpp.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/internal/block_counts.hpp>
#include <heddle/collective/internal/merging_in.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/reduce_scatter.hpp>
#include <heddle/collective/sum_in_place.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/systems/gradsign/gradient_signs.hpp>
#include <heddle/systems/gradsign/sign_score.hpp>

namespace heddle::inline v0::systems::impl {

HEDDLE_FULL_INLINE SignScore sign_score(const GradientSigns& signs, const Communicator& comm,
                                        const CallOptions& options, ContractLevel level) {
  using Sums =
      Kokkos::View<std::int32_t*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  std::vector<std::int32_t> sums(signs.sums().begin(), signs.sums().end());
  constexpr const char* where = "heddle::collective::sign_score";
  heddle::impl::BlockCounts blocks;
  heddle::impl::check_together(
      comm, where,
      [&] {
        blocks = {where, sums.size(), static_cast<std::size_t>(comm.size()), options.counts};
      },
      [&] {
        return heddle::impl::CollectiveCall{where, {{"parameters", text(sums.size())}}};
      },
      level);
  std::vector<std::int32_t> own(blocks.count(+comm.rank()));
  const Kokkos::DefaultHostExecutionSpace space;
  heddle::impl::ReduceScatterCall(
      {heddle::impl::instance<Sums>(space, Sum{}), comm, options, level},
      Sums(sums.data(), sums.size()), Sums(own.data(), own.size()))
      .perform();
  std::int64_t both[] = {systems::GradientSigns::absolute_sum(own), signs.samples()};
  sum_in_place(both, 2, Scalar::i64, comm);
  expects(both[1] <= std::numeric_limits<std::int32_t>::max(), [&] {
    return ErrorInfo{where, "a sum has 32 bits", text(both[1], " samples in all")};
  });
  return {both[0], both[1]};
}

}  // namespace heddle::inline v0::systems::impl
