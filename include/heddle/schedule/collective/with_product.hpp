// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// with_product(): a collective and the matrix product that computes its data, or uses it, as in a
/// layer with weights on several ranks. overlap() makes them run at the same time.

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns the Schedule of `collective` with one product on every rank, which is an F of stage 0:
/// gemm then reduce-scatter or all-reduce, all-gather then gemm, or all-to-all then gemm. If the
/// collective merges, the product computes its data: it reads a buffer of role "operand" and writes
/// all of "data". Otherwise the product uses the data: it reads all of "data", or of "output" after
/// an all-to-all, and writes a buffer of role "result".
///
/// `options.element` is a row of the collective's data in bytes, and `row` the corresponding row of
/// the operand or result in bytes. The operand or result buffers are numbered by rank after all
/// other buffers, and cut into the same rows. The handler supplies the other operand, the weights.
///
/// @throws infeasible if the algorithm does not perform the collective, or if no product goes with
/// it.
/// @throws contract_error if `row` is not whole elements, or if `options.apart` is set.
[[nodiscard]] Schedule with_product(Collective collective, Algorithm algorithm,
                                    const CollectiveOptions& options, Bytes row);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/with_product.ipp>
#endif
