// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ExchangeHandler: what the actions of a BlockExchange's Schedule do.

#include <cstddef>

#include <Kokkos_Core.hpp>

#include <heddle/collective/impl/joiner.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/kernel/pack.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/tensor/impl/box_transport.hpp>
#include <heddle/tensor/impl/merge_by.hpp>

namespace heddle::inline v0::impl {

/// The handler of a Schedule by to_schedule(BlockExchange): casts pack and unpack, as the transport
/// says of boxes that are a message, moves on one rank copy, combines merge. Kernels run in the
/// instance that it is given, and are waited for.
template <class Exec, class MemorySpace, class T>
class ExchangeHandler {
 public:
  ExchangeHandler(const Exec& exec, const schedule::BlockExchange& exchange,
                  const BoxTransport<MemorySpace>& transport, Merge merge)
      : m_exec(exec), m_exchange(&exchange), m_transport(&transport), m_merge(merge) {}

  void operator()(const Task& task) const {
    const BoundUse& first = task.uses()[0];
    const BoundUse& second = task.uses()[1];
    if (task.kind() == Kind::cast) {
      if (first.access == Access::write)
        pack(+task.item(), second.data, first.data);
      else
        unpack(+task.item(), first.data, second.data);
    } else if (task.kind() == Kind::move) {
      copy_in<MemorySpace>(m_exec, first.data, second.data, first.bytes);
    } else if constexpr (Mergeable<T>) {
      Joiner<Exec, MemorySpace, T, MergeBy>(m_exec, MergeBy{m_merge})(task);
    }
  }

  /// Copies the part at `packed` to where piece `piece` lies around `base`.
  void unpack(std::size_t piece, const std::byte* packed, std::byte* base) const {
    if (const auto* const message = m_transport->find(packed))
      message->unpack(m_exec, base);
    else
      kernel::unpack(m_exec, m_exchange->pieces[piece].blocks, packed, base);
    wait();
  }

 private:
  void pack(std::size_t piece, const std::byte* base, std::byte* packed) const {
    if (const auto* const message = m_transport->find(packed))
      message->pack(m_exec, base);
    else
      kernel::pack(m_exec, m_exchange->pieces[piece].blocks, base, packed);
    wait();
  }
  void wait() const {
    if constexpr (!kernel::runs_on_host<Exec>) m_exec.fence("heddle::tensor::copy");
  }

  Exec m_exec;
  const schedule::BlockExchange* m_exchange;
  const BoxTransport<MemorySpace>* m_transport;
  Merge m_merge;
};

}  // namespace heddle::inline v0::impl
