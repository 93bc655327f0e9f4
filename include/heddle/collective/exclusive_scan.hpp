// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// exclusive_scan(): every rank gets the merge of the Views of all lower ranks.

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/perform_as.hpp>
#include <heddle/collective/impl/scan_call.hpp>
#include <heddle/collective/internal/merging_in.hpp>
#include <heddle/collective/reduction.hpp>
#include <heddle/collective/transferable_view.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0 {

/// Merges `view` over all lower ranks, element by element and in place. Rank r of `comm` gets the
/// merge of ranks 0, 1, ..., r - 1, in this order. Rank 0 gets the identity of the reduction, as
/// its init() sets it. See CallOptions for the order of elements.
///
/// The call waits for the work of `space` first, and returns when this rank's result is complete.
/// Kernels that merge run in `space`. All ranks must call it with Views of the same size.
///
/// `exclusive_scan<Request>(...)` starts the call, and `exclusive_scan<Prepared>(...)` returns a
/// call that can be performed repeatedly; see all_reduce().
/// Throws the errors of CallOptions.
template <impl::CallForm Form = void, class Exec, TransferableView View,
          Reduction<typename View::non_const_value_type> R>
Form exclusive_scan(const Exec& space, const View& view, const R& reduction,
                    const Communicator& comm, const CallOptions& options = {}) {
  return impl::perform_as<Form>(
      impl::ScanCall(schedule::Collective::exclusive_scan,
                     {impl::instance<View>(space, reduction), comm, options}, view));
}

}  // namespace heddle::inline v0
