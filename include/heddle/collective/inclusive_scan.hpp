// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// inclusive_scan: every rank ends with the merge of the Views of all ranks up to it.

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/call.hpp>
#include <heddle/collective/impl/call_base.hpp>
#include <heddle/collective/impl/scan_call.hpp>
#include <heddle/collective/prepared.hpp>
#include <heddle/collective/reduction.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/collective/transferable_view.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0 {

/// Merges `view` over the ranks up to each, element by element and in place: rank r of `comm` ends
/// with the merge of ranks 0, 1, ..., r, in this order. Waits for the work of `space` first, and
/// returns when this rank's part is done; kernels that merge run in `space`. All ranks call it,
/// with Views of one size; see CallOptions for the order of elements.
/// @throws what CallOptions says.
template <class Exec, TransferableView View, Reduction<typename View::non_const_value_type> R>
void inclusive_scan(const Exec& space, const View& view, const R& reduction,
                    const Communicator& comm, const CallOptions& options = {}) {
  impl::perform([&](auto held) {
    return impl::scan_call<schedule::Collective::inclusive_scan>(held, space, view, reduction, comm,
                                                                 options);
  });
}

/// Begins an inclusive_scan(). The work of `space` is waited for here; see start_all_reduce().
/// @throws as inclusive_scan() does.
template <class Exec, TransferableView View, Reduction<typename View::non_const_value_type> R>
[[nodiscard]] Request start_inclusive_scan(const Exec& space, const View& view, const R& reduction,
                                           const Communicator& comm,
                                           const CallOptions& options = {}) {
  return impl::start(impl::scan_call<schedule::Collective::inclusive_scan>(
      impl::Kept{}, space, view, reduction, comm, options));
}

/// An inclusive_scan() of `view` that is performed again and again.
/// @throws as inclusive_scan() does.
template <class Exec, TransferableView View, Reduction<typename View::non_const_value_type> R>
[[nodiscard]] auto prepare_inclusive_scan(const Exec& space, const View& view, const R& reduction,
                                          const Communicator& comm,
                                          const CallOptions& options = {}) {
  return Prepared(impl::scan_call<schedule::Collective::inclusive_scan>(impl::Kept{}, space, view,
                                                                        reduction, comm, options));
}

}  // namespace heddle::inline v0
