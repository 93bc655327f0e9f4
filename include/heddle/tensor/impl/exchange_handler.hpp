// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ExchangeHandler: what the actions of a BlockExchange's Schedule do.

#include <cstddef>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/impl/joiner.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/kernel/pack.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/strided_block.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/tensor/impl/merge_by.hpp>

namespace heddle::inline v0::impl {

/// Copies the bytes of `blocks` around `base` to `packed`, or back, and waits for it.
template <bool packs, class Exec>
void copy_blocks(const Exec& exec, const std::vector<StridedBlock>& blocks, std::byte* base,
                 std::byte* packed) {
  for (const StridedBlock& block : blocks) {
    if constexpr (packs)
      kernel::pack(exec, block, base, packed);
    else
      kernel::unpack(exec, block, packed, base);
    packed += block.bytes();
  }
  if constexpr (!kernel::runs_on_host<Exec>) exec.fence("heddle::tensor::copy");
}

/// The handler of a Schedule by to_schedule(BlockExchange): casts pack and unpack, moves on one
/// rank copy, combines merge. Kernels run in the instance that it is given, and are waited for.
template <class Exec, class MemorySpace, class T>
class ExchangeHandler {
 public:
  ExchangeHandler(const Exec& exec, const schedule::BlockExchange& exchange, Merge merge)
      : m_exec(exec), m_exchange(&exchange), m_merge(merge) {}

  void operator()(const Task& task) const {
    const BoundUse& first = task.uses()[0];
    const BoundUse& second = task.uses()[1];
    if (task.kind() == Kind::cast) {
      const auto& blocks = m_exchange->pieces[+task.item()].blocks;
      if (first.access == Access::write)
        copy_blocks<true>(m_exec, blocks, second.data, first.data);
      else
        copy_blocks<false>(m_exec, blocks, second.data, first.data);
    } else if (task.kind() == Kind::move) {
      copy_in<MemorySpace>(m_exec, first.data, second.data, first.bytes);
    } else if constexpr (Mergeable<T>) {
      Joiner<Exec, MemorySpace, T, MergeBy>(m_exec, MergeBy{m_merge})(task);
    }
  }

 private:
  Exec m_exec;
  const schedule::BlockExchange* m_exchange;
  Merge m_merge;
};

}  // namespace heddle::inline v0::impl
