// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// among(): makes a tensor of some ranks known to a larger communicator.

#include <optional>
#include <utility>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/tensor/sharded.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Returns the layout, among the ranks of `all`, of the tensor that some ranks pass. The other
/// ranks pass null.
[[nodiscard]] Layout layout_among(const Communicator& all, const AnySharded* tensor);

}  // namespace impl

/// Returns `tensor`, which belongs to another communicator, as a tensor of `all`. Elements and
/// Views are the same; its ranks have the numbers that they have in `all`. This redistributes
/// between communicators that overlap, are nested or have no rank in common:
///
///     const auto from = hd::among(world, a), to = hd::among(world, b);
///     hd::redistribute(exec, from, to);
///
/// All ranks of `all` must call it. The ranks of the tensor's communicator pass the tensor, and the
/// others pass none. Some short messages tell all ranks the layout, so keep the result if it is
/// needed again. `all` must outlive the result; the tensor and its communicator need not.
/// @throws contract_error on all ranks if no rank passes the tensor, if `all` lacks a rank of its
///         communicator, or if the ranks that pass a tensor are not exactly the ranks of one
///         communicator.
template <class Data, class Space, class Order>
[[nodiscard]] Sharded<Data, Space, Order> among(
    const Communicator& all, const std::optional<Sharded<Data, Space, Order>>& tensor) {
  Layout there = impl::layout_among(all, tensor ? &*tensor : nullptr);
  if (!tensor) return {all, std::move(there)};
  return {all, std::move(there), tensor->parts()};
}

/// Returns a tensor that every rank of `all` holds as a tensor of `all`.
template <class Data, class Space, class Order>
[[nodiscard]] Sharded<Data, Space, Order> among(const Communicator& all,
                                                const Sharded<Data, Space, Order>& tensor) {
  return among(all, std::optional(tensor));
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_TENSOR
#include <heddle/tensor/among.ipp>
#endif
