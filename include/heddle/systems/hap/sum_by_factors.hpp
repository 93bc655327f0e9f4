// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// sum_by_factors(): sums a gradient x^T dy over ranks by gathering its factors x and dy.
/// systems::prefers_factors() tells if this is faster than to sum the products.

#include <Kokkos_Core.hpp>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance_in.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/kernel/linalg.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// Gathers the rows of `x` and `dy`, which the ranks check together at `level`.
void gather_factors(const heddle::impl::CallArguments& with, const heddle::impl::ViewRef& x,
                    const heddle::impl::ViewRef& dy, const heddle::impl::ViewRef& gradient);

}  // namespace impl

/// Computes x^T dy, a matrix of inputs x outputs, from the rows of all ranks of `comm`, and writes
/// it to `gradient` on every rank. `x` (rows x inputs) and `dy` (rows x outputs) have room for the
/// rows of all ranks. Each rank fills in its own rows before the call, and the call fills in the
/// others. CallOptions::counts has the number of rows of each rank. If it is empty, the rows are
/// divided evenly, and the first ranks have one row more if needed.
///
/// Every rank sends its rows to all others, (inputs + outputs) elements per row, and multiplies all
/// rows. The result has the rounding error of one gemm() with these arguments, whatever the number
/// of ranks. The call runs all_gather() and then queues gemm() in the given instance.
/// @throws contract_error if the shapes do not fit each other or the counts, if `gradient` shares
///         memory with `x` or `dy`, and the errors of all_gather().
template <kernel::ExecutionSpace Exec, kernel::MatrixOn<Exec> Factor, kernel::MatrixOn<Exec> Sum>
void sum_by_factors(const Exec& space, const Factor& x, const Factor& dy, const Sum& gradient,
                    const Communicator& comm, const CallOptions& options = {}) {
  impl::gather_factors({heddle::impl::instance<Factor>(space), comm, options}, x, dy, gradient);
  kernel::gemm(space, kernel::Transpose::yes, kernel::Transpose::no, 1, x, dy, 0, gradient);
}

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_FULL_SYSTEMS
#include <heddle/systems/hap/sum_by_factors.ipp>
#endif
