// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// with_product(): a collective and the matrix product that makes its data, or uses it: what a
/// layer does whose weights lie on several ranks. overlap() makes them run at the same time.

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// The Schedule of `collective` with one product on every rank, an F of stage 0: gemm and
/// reduce-scatter or all-reduce, all-gather and gemm, all-to-all and gemm. What is merged is made
/// by the product, which reads a buffer of role "operand" and writes all of "data"; what is
/// gathered or exchanged is used by it: it reads all of "data", or "output", and writes "result".
///
/// `options.element` is a row of what the collective carries, in bytes, and `row` the row of the
/// operand or result that belongs to it; those buffers, numbered by rank behind all others, are cut
/// in the same rows. The other operand of the product, the weights, is the handler's.
///
/// @throws infeasible where there is no such collective, or nothing is the product's to make or to
///         use; contract_error for rows that are not whole elements.
[[nodiscard]] Schedule with_product(Collective collective, Algorithm algorithm,
                                    const CollectiveOptions& options, Bytes row);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/with_product.ipp>
#endif
