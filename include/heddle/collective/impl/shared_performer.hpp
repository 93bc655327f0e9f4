// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Performers of collectives among ranks of which some share a host: they read each other's memory
/// in place. For calls that block.

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include <mpi.h>

#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/impl/shared_views.hpp>
#include <heddle/comm/shared_transport.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/shared_blocks.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The performers of a communicator's calls that block. Such calls follow one another on all ranks
/// alike, so all ranks find, make and forget the same ones.
class SharedLine {
 public:
  SharedLine(MPI_Comm comm, const SharedOptions& options);

  /// Returns true if any ranks share memory.
  [[nodiscard]] bool shares() const noexcept { return m_shares; }

  /// Memory of every rank's for a SharedView. All ranks call it, and wait for each other as long as
  /// the line's options say.
  [[nodiscard]] SharedBlocks share(Bytes bytes);
  /// Returns the SharedViews that all ranks see.
  [[nodiscard]] const SharedViews& views() const noexcept { return m_views; }

  /// Returns the bytes that stored performers share, on the rank that shares the most for each.
  [[nodiscard]] Bytes bytes() const;

  /// Returns the Schedule of a performer for `key`.
  [[nodiscard]] Schedule schedule_of(const PerformerKey& key) const;

  /// A performer for `key`; null where it would take more than `bound`, with all that is kept, or
  /// than the host has. Where one is made, `meet()` comes first, which returns when all ranks have
  /// called it, and they wait for each other as long as `watchdog` says.
  Performer* find(const PerformerKey& key, const CallMemory& memory, Seconds watchdog, Bytes bound,
                  FunctionRef<void()> meet);

 private:
  struct Kept {
    PerformerKey key;
    Bytes bound;
    Bytes bytes = 0;                            ///< the size of its window
    std::shared_ptr<Performer> performer = {};  ///< none: it would take more than the bound
  };

  /// Returns the result of `share`, which waits for the other ranks for at most `watchdog`. If it
  /// fails permanently, the other ranks are told.
  template <class Share>
  std::invoke_result_t<Share&> together(Seconds watchdog, Share&& share);

  /// Makes the one for `key` the latest. Returns false where there is none for `bound`.
  bool latest(const PerformerKey& key, Bytes bound);

  /// Room for it make those that have not been used for longest.
  void make(const PerformerKey& key, const CallMemory& memory, Seconds watchdog, Bytes bound);

  /// Performers that are kept, each with a window of its own.
  static constexpr std::size_t most = 32;

  Seconds m_watchdog;  ///< for sharing outside of calls
  SharedTransport m_transport;
  bool m_shares;
  bool m_all_share;
  SharedViews m_views;
  std::vector<Kept> m_kept;  ///< refer to the transport and the views
};

/// The holder of a communicator's SharedLine, which may not exist yet.
class SharedPlace {
 public:
  explicit SharedPlace(MPI_Comm comm);
  SharedPlace(const SharedPlace&) = delete;
  SharedPlace& operator=(const SharedPlace&) = delete;
  ~SharedPlace();

  /// Made after `meet()`, which returns when all ranks have called it, and with `options` for good.
  SharedLine& line(FunctionRef<void()> meet, const SharedOptions& options = {});

  /// The memory that all ranks see; null where none was ever shared.
  [[nodiscard]] const SharedViews* views() const noexcept {
    return m_line == nullptr ? nullptr : &m_line->views();
  }

 private:
  MPI_Comm m_comm;
  std::unique_ptr<SharedLine> m_line;
};

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/impl/shared_performer.ipp>
#endif
