// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShardRef: this rank's part of a Sharded of any type, as exchanges see it; and the Instance that
/// performs them.

#include <cstddef>
#include <cstdint>

#include <Kokkos_Core.hpp>

#include <heddle/collective/internal/instance_in.hpp>
#include <heddle/collective/internal/merging_in.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/placement.hpp>
#include <heddle/tensor/internal/exchange_performer.hpp>
#include <heddle/tensor/internal/merge_by.hpp>
#include <heddle/tensor/sharded.hpp>

namespace heddle::inline v0::impl {

/// A reference to a Sharded of any type.
struct ShardRef {
  template <class Data, class Space, class Order>
  ShardRef(const Sharded<Data, Space, Order>& sharded)  // NOLINT(google-explicit-constructor)
      : tensor(&sharded),
        data(begin_of(sharded.parts())),
        element(sizeof(typename Sharded<Data, Space, Order>::Element)),
        bytes(sharded.parts().size() * element),
        type(scalar_of<typename Sharded<Data, Space, Order>::Element>),
        space(&exchange_space<memory_of<typename Sharded<Data, Space, Order>::View>>) {}

  const AnySharded* tensor;
  std::byte* data;  ///< the first element of this rank's part, which has no gaps
  Bytes element;    ///< the bytes of an element
  Bytes bytes;      ///< the bytes of this rank's part
  Scalar type;      ///< the type of an element
  const ExchangeSpace* space;
};

/// Returns the Instance for exchanges of a `Tensor`, which merges elements if they can be merged.
template <class Tensor, class Exec>
[[nodiscard]] auto exchange_instance(const Exec& exec, Merge merge = Merge::sum) {
  using View = typename Tensor::View;
  if constexpr (Mergeable<typename Tensor::Element>)
    return instance<View>(exec, MergeBy{merge});
  else
    return instance<View>(exec);
}

}  // namespace heddle::inline v0::impl

/// The usual numbers in host memory.
#define HEDDLE_MERGINGS_BY(Extern)                    \
  HEDDLE_MERGING(Extern, float, impl::MergeBy)        \
  HEDDLE_MERGING(Extern, double, impl::MergeBy)       \
  HEDDLE_MERGING(Extern, std::int32_t, impl::MergeBy) \
  HEDDLE_MERGING(Extern, std::int64_t, impl::MergeBy)

#if HEDDLE_DEFINES_TENSOR
#include <heddle/tensor/impl/shard_ref.ipp>
#else
HEDDLE_MERGINGS_BY(extern)
#endif
