// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// How a collective call is performed. For calls that want something else than the defaults.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <heddle/comm/device_transport.hpp>
#include <heddle/core/codec.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/plan/cost_table.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/hierarchical.hpp>

namespace heddle::inline v0 {

/// The options of a collective call. They are the same on all ranks, except `path` and `execute`.
///
/// Every call takes the elements of a View in the order of their indices, the last index fastest,
/// whatever its layout. Ranks may pass Views of different layouts and shapes. Views of several
/// ranks are concatenated along the first index, and blocks divide the first index, as in a
/// Sharded: the blocks of a matrix are rows. A View whose elements lie in this order in memory,
/// without gaps, is sent from its own memory: LayoutRight, or one dimension. Any other View is
/// packed before the call and unpacked after it, for example LayoutLeft of several dimensions, a
/// row of it, or columns of LayoutRight. This costs one copy of the data that the call reads, and
/// one of the data that it writes. `same_layout` saves both.
///
/// Every call throws, beside the errors of its own page,
/// - contract_error if options do not fit the call: counts that differ from its blocks, same_layout
///   of a View with gaps, a cost table for other ranks, a codec for elements that are not float or
///   double, a codec with error feedback in a call that is not prepared, a codec with agreement in
///   a call that only reads its input, shared-memory domains of other ranks, a progress thread
///   below MPI_THREAD_MULTIPLE, or different parts of a SharedView on different ranks. At the
///   contract level "communication" also if ranks make different calls;
/// - infeasible if the algorithm cannot perform the collective with this number of ranks, or does
///   not keep the order of a reduction that is not commutative. star, binomial_tree and hierarchies
///   of them over consecutive ranks keep it, also for a reduce_scatter; for scans all do;
/// - communication_error if another rank fails or exceeds the watchdog's time, or if MPI reports an
///   error: the communicator cannot be used afterwards;
/// - the exceptions of a reduction, on the rank where it throws; std::system_error if a progress
///   thread cannot start.
/// If the call is a Request, the Request throws the errors that occur after it has begun. If the
/// call is prepared, its performance throws them.
struct CallOptions {
  /// One of ours, as a Schedule. None: what `costs` say, or without them the MPI library's own call
  /// where it knows the reduction and the elements, else one of ours. Merges that do not commute
  /// go along a binomial tree, whatever the costs; to another root than 0 by way of an all-reduce.
  /// Scans keep the order by any algorithm.
  std::optional<schedule::Algorithm> algorithm = {};
  /// Messages that a block travels in, one behind the other, by the algorithm above.
  int chunks = 1;
  /// The groups of the hierarchical algorithm, innermost first; see schedule::level_of().
  std::vector<schedule::GroupLevel> levels = {};
  /// Chooses the fastest for each size, the library's own call included. A table of as many ranks,
  /// measured by tools/measure or by the caller; it stays as it is for as long as the communicator
  /// lives, which remembers what was chosen.
  const CostTable* costs = nullptr;
  /// Elements of each rank's block, where they are not even: n rows of m columns are n m elements;
  /// of all_to_all: of the block that this rank sends to each. Empty: n elements in P blocks, the
  /// first n % P of which have one more.
  std::vector<std::size_t> counts = {};
  /// Whether all ranks give Views of equal extents and strides, without gaps: in any order, such as
  /// LayoutLeft. The elements of an all_reduce, reduce, broadcast or scan then travel as they lie,
  /// and no View is packed. Compared at the contract level "communication"; below it, the values
  /// are wrong if layouts differ. The other calls cut Views, and do as without it.
  bool same_layout = false;
  /// The form in which messages between ranks travel, of elements of float or double, by an
  /// algorithm of ours: see cast_at_cut(). A sum is decoded and merged in one pass. With error
  /// feedback only of calls that are prepared, which keep what it adds to the next one.
  std::optional<Codec> codec = {};
  /// A number for each rank, such as its host's: only messages between ranks of different numbers
  /// are encoded. Empty: all are. With Codec::agree a sum is then the same on all ranks over levels
  /// whose innermost groups have a number each, but for what cast_at_cut() excepts; by other
  /// algorithms it may differ between any two.
  std::vector<std::uint32_t> codec_domains = {};
  /// Whether ranks of one host read each other's memory in place, in calls that block, of 32 KiB
  /// and more of host memory, by an algorithm of ours without a codec. Messages otherwise. On a
  /// SharedView they all do, where no algorithm is named straight from each rank to each.
  bool shared_memory = true;
  /// The most memory that a rank shares for the calls of a communicator. A call that needs more, or
  /// more than the host has, uses messages.
  Bytes shared_bytes = Bytes{256} << 20;
  /// Whether a thread of its own furthers a Request, instead of its test() and wait(). Needs MPI at
  /// MPI_THREAD_MULTIPLE, and an algorithm of ours.
  bool progress_thread = false;
  /// How messages leave the memory of a device.
  DevicePath path = DevicePath::automatic;
  /// Whether a call that blocks and is the library's own is polled, so that the watchdog ends it;
  /// otherwise it waits as MPI does, for as long as it takes, and is half a microsecond faster. The
  /// same on all ranks: MPI does not match the two.
  bool watch_library = false;
  /// How a call waits for other ranks, and for how long, and by algorithms of ours whom it tells of
  /// aborts; nothing is recorded. The first call of a kind sets up what the communicator keeps for
  /// it; MPI's own part of that knows no watchdog.
  ExecuteOptions execute = {};
};

}  // namespace heddle::inline v0
