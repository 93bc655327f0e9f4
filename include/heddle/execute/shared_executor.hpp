// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SharedExecutor: a Schedule of ranks that share memory, over data that the caller has. For
/// collectives that read the peer in place; models of many stages use a Runner.

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/units.hpp>
#include <heddle/execute/combine.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/impl/shared_storage.hpp>
#include <heddle/execute/shared_blocks.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// Performs the actions of collectives of sums in host memory: copies of moves within a rank or a
/// domain, and combines.
inline void perform_on_host(const Task& task) {
  if (task.kind() != Kind::move) return combine_on_host(task);
  const BoundUse& from = task.uses()[0];
  if (from.bytes != 0) std::memcpy(task.uses()[1].data, from.data, from.bytes);
}

/// Runs a Schedule that share_memory() has made again and again over one transport, to which it
/// refers. All ranks construct it and step in the same order. Transient buffers and what the ranks
/// see of each other's progress lie in a block that it shares once; persistent buffers lie where
/// the caller says:
///
///     const SharedBlocks x = transport.share(bytes);
///     SharedExecutor sum(transport, share_memory(ring, transport.domains()),
///                        [&](BufferId, const Buffer& data) { return x.of[+data.rank]; });
///     sum.step(&perform_on_host);
template <SharesMemory T>
class SharedExecutor {
 public:
  /// `bind(id, buffer)` returns where a persistent buffer begins, in this rank's addresses: one of
  /// its own, or one of a rank of its domain, where its actions touch that in place. (None do after
  /// copy_out().)
  /// @throws contract_error where the schedule has other domains of memory than the transport.
  template <class Bind>
  requires std::is_invocable_r_v<std::byte*, Bind&, BufferId, const Buffer&> SharedExecutor(
      T& transport, const Schedule& schedule, Bind&& bind, ExecuteOptions options = {})
      : m_shared("heddle::SharedExecutor", transport, schedule, transient(schedule)),
        m_executor(slice(
                       schedule, transport.rank(),
                       [&](BufferId id, const Buffer& buffer) -> std::byte* {
                         return buffer.transient ? m_shared.begin(id, buffer) : bind(id, buffer);
                       },
                       [&](Rank rank) { return m_shared.progress(rank); }),
                   transport, std::move(options)) {}

  /// One pass over the list, to its end: afterwards this rank's data is whole, and nobody reads it
  /// any more. @throws what Executor::step() does.
  void step(Handler handler) {
    m_executor.step(handler);
    m_executor.drain();
  }

  /// What performs it: to step in pieces, or in other memory of the same sizes.
  [[nodiscard]] Executor<T>& executor() noexcept { return m_executor; }
  /// The Schedule that it runs.
  [[nodiscard]] const Schedule& schedule() const noexcept { return m_executor.program().schedule; }
  /// Memory that this rank shares for transient buffers and progress.
  [[nodiscard]] Bytes allocated() const noexcept { return m_shared.bytes(); }

 private:
  [[nodiscard]] static std::vector<bool> transient(const Schedule& schedule) {
    std::vector<bool> found;
    for (const Buffer& buffer : schedule.buffers()) found.push_back(buffer.transient);
    return found;
  }

  impl::SharedStorage m_shared;
  Executor<T> m_executor;
};

}  // namespace heddle::inline v0
