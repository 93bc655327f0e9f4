// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CallBase: what all collective calls have.

#include <cstddef>
#include <type_traits>
#include <typeinfo>

#include <Kokkos_Core.hpp>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/block_counts.hpp>
#include <heddle/collective/impl/copy_past_caches.hpp>
#include <heddle/collective/impl/joiner.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0 {
namespace impl {

/// A call that blocks refers to its arguments, because every copy of a View or an instance takes a
/// lock.
struct Lent {
  template <class T>
  using of = const T&;
};
/// A call that outlives its caller's scope copies its arguments.
struct Kept {
  template <class T>
  using of = T;
};

/// The base of every call; `Exec` and `View` are Lent or Kept. A derived call defines
/// - `exchange()`: communicates what check() needs to know of other ranks;
/// - `check()`: throws if the arguments are invalid, and does not communicate;
/// - `views()`: returns its CallViews, which check() prepares: they are packed before the call and
///   unpacked after it if their elements do not lie in the order of their indices;
/// - `size()`: returns the collective and its bytes;
/// - `key()`: returns the key of its Schedule; `memory()`: the memory to which the Schedule is
///   bound. If `apart()`, its inputs lie apart; else `before()` copies them to where the Schedule
///   begins. `after()` copies the results;
/// - `ended()`: completes its Views, whoever has performed the call;
/// - `knows()`: returns whether MPI can perform it; `library(request)`: calls MPI, and blocks if
///   `request` is null.
template <class Exec, class View, class R>
struct CallBase {
  using Space = std::remove_cvref_t<Exec>;
  using Element = typename std::remove_cvref_t<View>::non_const_value_type;
  using MemorySpace = typename std::remove_cvref_t<View>::memory_space;
  static_assert(Kokkos::is_execution_space_v<Space>,
                "heddle: the first argument of a collective is an execution space instance");
  static_assert(Kokkos::SpaceAccessibility<Space, MemorySpace>::accessible,
                "heddle: kernels of the execution space cannot reach the View's memory");

  Exec exec;
  R reduction;
  const Communicator* comm;
  std::conditional_t<std::is_reference_v<Exec>, const CallOptions&, CallOptions> options;
  /// The errors that a codec with error feedback has accumulated in a prepared call.
  Kokkos::View<std::byte*, MemorySpace> kept = {};

  /// Makes room for what a codec will lose, which is nothing so far.
  void keep(const Schedule& schedule) {
    Bytes bytes = 0;
    for (const Buffer& buffer : schedule.buffers())
      if (buffer.rank == comm->rank()) bytes += kept_bytes(schedule, buffer);
    kept = decltype(kept)("heddle::collective::residual", bytes);
  }

  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(comm->size()); }
  [[nodiscard]] std::size_t rank() const { return +comm->rank(); }

  /// The key of a Schedule of this size.
  [[nodiscard]] PerformerKey key(const CallSize& size, Rank root = {}) const {
    constexpr Scalar type = scalar_of<Element>;
    return {.collective = size.collective,
            .bytes = size.bytes,
            .type = type,
            .element = type == Scalar::byte ? sizeof(Element) : 0,
            .root = root,
            .path = options.path,
            .space = typeid(MemorySpace)};
  }

  /// Returns the key of a call with these blocks.
  [[nodiscard]] PerformerKey key(const CallSize& size, const BlockCounts& blocks,
                                 Rank root = {}) const {
    PerformerKey made = key(size, root);
    if (!blocks.even()) made.blocks = blocks.bytes(sizeof(Element));
    return made;
  }

  void exchange() const {}
  void before() const {}
  void after() const {}
  void ended() const {}
  [[nodiscard]] CallMemory apart() const { return {}; }

  /// Copies `count` elements, and waits for it.
  void copy(const std::byte* from, std::byte* into, std::size_t count) const {
    constexpr Bytes much = Bytes{4} << 20;  // more than stays in a cache until it is used
    const Bytes bytes = count * sizeof(Element);
    if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible)
      if (bytes >= much) return copy_past_caches(from, into, bytes);
    copy_in<MemorySpace>(exec, from, into, bytes);
  }

  void expect_no_counts(const char* where) const {
    expects(options.counts.empty(), [&] {
      return ErrorInfo{where, "this call has no blocks, so CallOptions::counts must be empty",
                       text(options.counts.size(), " counts")};
    });
  }
  void expect_root(const char* where, Rank root) const {
    expects(+root < ranks(), [&] {
      return ErrorInfo{where, "no such root", text("rank ", root, " of ", ranks())};
    });
  }
};

}  // namespace impl
}  // namespace heddle::inline v0
