// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The values and functions of an island, without the types of their elements.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/internal/joiner.hpp>
#include <heddle/collective/internal/views.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/kernel/pack.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/tensor/internal/merge_by.hpp>
#include <heddle/tensor/sharded.hpp>

namespace heddle::inline v0::systems::impl {

/// The operations of an island on tensors of one type: it allocates them, and performs the actions
/// that change their layout.
struct GangType {
  std::type_index id;
  Bytes element;
  Scalar scalar;
  std::shared_ptr<void> (*allocate)(const Communicator&, const Layout&);
  std::byte* (*data)(const void* tensor);
  void (*perform)(const schedule::BlockExchange&, Merge, const Task&);
};

/// Performs an action of to_schedule(BlockExchange) on tensors in host memory.
template <class Tensor>
void perform_exchange(const schedule::BlockExchange& exchange, Merge merge, const Task& task) {
  using MemorySpace = typename Tensor::View::memory_space;
  using Exec = typename MemorySpace::execution_space;
  using Element = typename Tensor::Element;
  static_assert(
      Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible,
      "heddle::systems::Island: tensors of an island lie in memory that the host can access");
  const Exec exec;
  const BoundUse& first = task.uses()[0];
  const BoundUse& second = task.uses()[1];
  if (task.kind() == Kind::cast) {
    const auto& blocks = exchange.pieces[+task.item()].blocks;
    if (first.access == Access::write)
      kernel::pack(exec, blocks, second.data, first.data);
    else
      kernel::unpack(exec, blocks, first.data, second.data);
    if constexpr (!kernel::runs_on_host<Exec>) exec.fence("heddle::pattern::island");
  } else if (task.kind() == Kind::move) {
    heddle::impl::copy_in<MemorySpace>(exec, first.data, second.data, first.bytes);
  } else if constexpr (heddle::impl::Mergeable<Element>) {
    heddle::impl::Joiner<Exec, MemorySpace, Element, heddle::impl::MergeBy>(
        exec, heddle::impl::MergeBy{merge})(task);
  }
}

/// Returns the operations on tensors of a type.
template <class Tensor>
[[nodiscard]] const GangType& gang_type() {
  static const GangType type{
      typeid(Tensor),
      sizeof(typename Tensor::Element),
      scalar_of<typename Tensor::Element>,
      [](const Communicator& comm, const Layout& layout) -> std::shared_ptr<void> {
        return std::make_shared<Tensor>(comm, layout);
      },
      [](const void* tensor) {
        return heddle::impl::begin_of(static_cast<const Tensor*>(tensor)->parts());
      },
      &perform_exchange<Tensor>};
  return type;
}

/// Returns a layout with the mesh, ranks and placements of another one.
[[nodiscard]] Layout with_sizes(const Layout& layout, std::vector<std::int64_t> sizes);

/// Returns the layout of a tensor of these sizes that lies on one rank.
[[nodiscard]] Layout on_one_rank(const std::vector<std::int64_t>& sizes, Rank rank);

/// A value of an island on this rank.
struct GangValue {
  const GangType* type;
  Layout layout;
  std::uint64_t key = 0;              ///< its number in the record, the same on all ranks
  std::string role = {};              ///< its label in the record
  std::shared_ptr<void> tensor = {};  ///< null on a rank without elements
  std::byte* data = nullptr;          ///< the begin of the elements
  std::string error = {};             ///< why this rank's part does not exist
  bool sized = true;                  ///< false until the sizes of the layout are known

  /// Allocates this rank's part.
  void allocate(const Communicator& comm);
  /// Sets the tensor that this rank has.
  void hold(std::shared_ptr<void> made);
};

/// A function of an island, or an input, which has no `run`.
struct GangEntry {
  std::string name;
  std::vector<Layout> inputs;
  std::vector<const GangType*> input_types;
  Layout output;
  const GangType* output_type;
  std::function<void(std::span<const void* const>, void*)> run;
  bool communicates = false;
  /// Finds the sizes of the result from the arguments. If it is set, the sizes of all layouts above
  /// are open.
  std::function<std::vector<std::int64_t>(std::span<const void* const>)> measure = {};
  std::vector<Rank> ranks = {};  ///< the ranks with a part of an input or of the output, ascending

  [[nodiscard]] bool runs_on(Rank rank) const;
  /// Finds the ranks.
  void find_ranks();
};

}  // namespace heddle::inline v0::systems::impl

#if HEDDLE_DEFINES_FULL_SYSTEMS
#include <heddle/systems/pathways/impl/gang_value.ipp>
#endif
