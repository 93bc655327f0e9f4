// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SpaceMover: a mover that copies between Kokkos memory spaces, such as host memory and the memory
/// of a GPU, in an execution space instance of its own.

#include <cstddef>
#include <optional>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/mover.hpp>
#include <heddle/memory/execution_events.hpp>

namespace heddle::inline v0 {

namespace impl {

/// A mark of ExecutionEvents that is known to be complete only after a fence of its instance.
template <class Mark>
concept FencedMark = requires(Mark mark) {
  mark.exec;
};

}  // namespace impl

/// A Mover between `Near`, the memory space of tier 0, and `Far`, that of all other tiers. Copies
/// are queued in one instance of `Exec`, so they run in the order of their starts. If the copies
/// are to run beside kernels, kernels use other instances:
///
///     const auto instances = Kokkos::Experimental::partition_space(Exec(), 1, 1);
///     SpaceMover<Exec> mover(instances[1]);  // host memory and that of Exec
///
/// On host execution spaces a copy is complete when `start` returns. A GPU copies beside the host
/// only if the host memory is pinned, such as Kokkos::SharedHostPinnedSpace.
template <class Exec, class Near = typename Exec::memory_space, class Far = Kokkos::HostSpace>
class SpaceMover {
  static_assert(Kokkos::is_execution_space_v<Exec> && Kokkos::is_memory_space_v<Near> &&
                    Kokkos::is_memory_space_v<Far>,
                "heddle::SpaceMover: name an execution space and two memory spaces");
  using Events = memory::ExecutionEvents<Exec>;
  using Mark = typename Events::Mark;

 public:
  /// Refers to a copy until `test` has returned true or `cancel` was called.
  class Request {
   public:
    /// Refers to no copy, and is complete.
    Request() = default;

   private:
    friend class SpaceMover;
    explicit Request(Mark mark) : m_mark(std::move(mark)) {}
    std::optional<Mark> m_mark;  ///< the end of the copy
  };

  /// Constructs a mover that copies in `exec`.
  explicit SpaceMover(Exec exec = Exec()) : m_exec(std::move(exec)) {}

  /// Queues a copy; see Mover. @throws contract_error if an end has no memory.
  [[nodiscard]] Request start(Lane /*lane*/, const MoveEnd& from, const MoveEnd& to, Bytes bytes) {
    if (bytes == 0) return {};
    for (const MoveEnd& end : {from, to})
      expects(end.data != nullptr, [&] {
        return ErrorInfo{"heddle::SpaceMover", "a buffer has no memory",
                         text("buffer ", end.buffer, " in tier ", end.tier),
                         "bind memory to the buffers of all tiers"};
      });
    const Tier near{0};
    if (from.tier == near)
      to.tier == near ? copy<Near, Near>(from, to, bytes) : copy<Near, Far>(from, to, bytes);
    else
      to.tier == near ? copy<Far, Near>(from, to, bytes) : copy<Far, Far>(from, to, bytes);
    return Request(Events::record(m_exec));
  }

  /// Returns true if the copy is complete. If the device has no events that Heddle knows, the call
  /// waits for the copy. @throws communication_error if the device reports an error.
  [[nodiscard]] bool test(Request& request) {
    if (!request.m_mark) return true;
    if constexpr (impl::FencedMark<Mark>)
      Events::wait(*request.m_mark);
    else if (!Events::done(*request.m_mark))
      return false;
    request.m_mark.reset();
    return true;
  }

  /// Waits for an unfinished copy, because a device does not cancel copies.
  void cancel(Request& request) {
    if (request.m_mark) Events::wait(*request.m_mark);
    request.m_mark.reset();
  }

  /// Returns false: all buffers have memory.
  [[nodiscard]] bool holds(BufferId) const noexcept { return false; }

 private:
  template <class From, class To>
  void copy(const MoveEnd& from, const MoveEnd& to, Bytes bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    Kokkos::deep_copy(
        m_exec, Kokkos::View<std::byte*, To, Kokkos::MemoryUnmanaged>(to.data, size),
        Kokkos::View<const std::byte*, From, Kokkos::MemoryUnmanaged>(from.data, size));
  }

  Exec m_exec;
};

}  // namespace heddle::inline v0
