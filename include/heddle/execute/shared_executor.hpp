// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SharedExecutor: runs a Schedule of ranks that share memory, over data of the caller. It is for
/// collectives that read the peer's memory in place. Models of many stages use a Runner.

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/impl/shared_storage.hpp>
#include <heddle/execute/shared_blocks.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// Performs the actions of collectives of sums in host memory: moves within a rank or a domain, as
/// copies, and combines.
void perform_on_host(const Task& task);

namespace impl {

/// Returns for each buffer whether it is transient.
[[nodiscard]] std::vector<bool> transient_buffers(const Schedule& schedule);

}  // namespace impl

/// Runs a Schedule that share_memory() has made again and again over one transport, to which it
/// refers. All ranks construct it and step in the same order. Transient buffers and the progress of
/// the ranks lie in a block that it shares once. The caller provides the persistent buffers:
///
///     const SharedBlocks x = transport.share(bytes);
///     SharedExecutor sum(transport, share_memory(ring, transport.domains()),
///                        [&](BufferId, const Buffer& data) { return x.of[+data.rank]; });
///     sum.step(&perform_on_host);
template <SharesMemory T>
class SharedExecutor {
 public:
  /// `bind(id, buffer)` returns where a persistent buffer begins, in this rank's addresses. The
  /// buffer is one of this rank, or one of a rank of its domain that the actions of this rank touch
  /// in place. (After copy_out() there are none.)
  /// @throws contract_error if the schedule has other domains of memory than the transport.
  template <class Bind>
  requires std::is_invocable_r_v<std::byte*, Bind&, BufferId, const Buffer&> SharedExecutor(
      T& transport, const Schedule& schedule, Bind&& bind, ExecuteOptions options = {})
      : m_shared("heddle::SharedExecutor", transport, schedule, impl::transient_buffers(schedule)),
        m_executor(slice(
                       schedule, transport.rank(),
                       [&](BufferId id, const Buffer& buffer) -> std::byte* {
                         return buffer.transient ? m_shared.begin(id, buffer) : bind(id, buffer);
                       },
                       [&](Rank rank) { return m_shared.progress(rank); }),
                   transport, std::move(options)) {}

  /// Makes one pass over the list, to its end. Afterwards this rank's data is complete, and no
  /// other rank reads it. Throws the errors of Executor::step().
  void step(Handler handler) {
    m_executor.step(handler);
    m_executor.drain();
  }

  /// Returns the executor, to step in pieces, or in other memory of the same sizes.
  [[nodiscard]] Executor<T>& executor() noexcept { return m_executor; }
  /// Returns the Schedule that it runs.
  [[nodiscard]] const Schedule& schedule() const noexcept { return m_executor.program().schedule; }
  /// Returns the bytes that this rank shares for transient buffers and progress.
  [[nodiscard]] Bytes allocated() const noexcept { return m_shared.bytes(); }

 private:
  impl::SharedStorage m_shared;
  Executor<T> m_executor;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/shared_executor.ipp>
#endif
