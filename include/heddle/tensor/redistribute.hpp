// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// redistribute(): moves the elements of a tensor from one layout to another.

#include <optional>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/layout/placement.hpp>
#include <heddle/tensor/impl/shard_ref.hpp>
#include <heddle/tensor/sharded.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The function below, for tensors of one type.
void redistribute(const Instance& by, const ShardRef& source, const ShardRef& target,
                  const ExecuteOptions& options, const std::optional<PathTable>& paths,
                  ContractLevel level = contract_level);

}  // namespace impl

/// Copies the elements of `source` to `target`, which has another layout. The halo of `target`
/// keeps its values. The plan is that of schedule::redistribution(), which sends the fewest bytes.
/// It is made once for a pair of layouts and kept with the communicator.
///
/// Contiguous data are sent and received without a copy, and other data are packed. With `paths`, a
/// table of measure_paths(), the table chooses how to send data that are not contiguous, unless
/// they are merged at the destination. Addends of a Partial tensor are merged in the order of their
/// coordinates on the mesh, so the result is the same on every rank.
///
/// The call waits for the work of `space` first. When it returns, this rank has its elements of
/// `target`, and its elements of `source` may be written again. All ranks of the communicator of
/// `source` must call it. The communicator of `target` must be the same, or have the same ranks in
/// the same order. The meshes of the layouts may contain any of these ranks. Use among() if the
/// communicators differ. The first call allocates what the communicator keeps for later calls.
/// @throws contract_error if the sizes of the tensors differ, if their communicators have different
///         ranks, if an axis would become Partial, if the tensors overlap in memory, or if the
///         table has a path that does not exist for this memory; at the contract level
///         "communication" also if the ranks pass different layouts, or if only some pass
///         overlapping tensors.
/// @throws communication_error if another rank fails or does not take part within the watchdog's
///         time. The communicator cannot be used afterwards.
template <class Exec, class Data, class Space, class Order>
requires Kokkos::is_execution_space_v<Exec>
void redistribute(const Exec& space, const Sharded<Data, Space, Order>& source,
                  const Sharded<Data, Space, Order>& target, const ExecuteOptions& options = {},
                  const std::optional<PathTable>& paths = {}) {
  using Tensor = Sharded<Data, Space, Order>;
  static_assert(Kokkos::SpaceAccessibility<Exec, typename Tensor::View::memory_space>::accessible,
                "heddle::redistribute: kernels of the execution space cannot reach the tensors");
  impl::redistribute(
      impl::exchange_instance<Tensor>(space, source.layout().partial().value_or(Merge::sum)),
      source, target, options, paths);
}

/// Returns a new tensor with the elements of `source` in the layout `target`.
/// Throws the errors of the function above.
template <class Exec, class Data, class Space, class Order>
requires Kokkos::is_execution_space_v<Exec>
[[nodiscard]] Sharded<Data, Space, Order> redistribute(const Exec& space,
                                                       const Sharded<Data, Space, Order>& source,
                                                       Layout target,
                                                       const ExecuteOptions& options = {},
                                                       const std::optional<PathTable>& paths = {}) {
  const Sharded<Data, Space, Order> result(source.comm(), std::move(target));
  redistribute(space, source, result, options, paths);
  return result;
}

/// Returns a new tensor with the elements of `source` on the same mesh, with one placement for each
/// axis: `redistribute(a, {Shard{1}, Replicate{}})`. Kernels run in the default instance of
/// `Space`.
/// Throws the errors of the function above.
template <class Data, class Space, class Order>
[[nodiscard]] Sharded<Data, Space, Order> redistribute(const Sharded<Data, Space, Order>& source,
                                                       std::vector<Placement> placements) {
  return redistribute(typename Space::execution_space(), source,
                      source.layout().with(std::move(placements)));
}
/// Returns a new tensor with the elements of `source` in any layout on the ranks of its
/// communicator. Kernels run in the default instance of `Space`.
/// Throws the errors of the function above.
template <class Data, class Space, class Order>
[[nodiscard]] Sharded<Data, Space, Order> redistribute(const Sharded<Data, Space, Order>& source,
                                                       Layout target) {
  return redistribute(typename Space::execution_space(), source, std::move(target));
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_TENSOR
#include <heddle/tensor/redistribute.ipp>
#endif
