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

/// Of every collective call; the same on all ranks but for `path` and `execute`.
///
/// Every call takes the elements of a View in the order of their indices, the last index fastest,
/// whatever its layout; ranks may give Views of different layouts and shapes. One View after
/// another therefore means one along the first index after another, and blocks cut the first index,
/// as in a Sharded: blocks of a matrix are rows. A View whose elements lie in this order in memory,
/// without gaps, travels as it lies: LayoutRight, or one dimension. Any other one, such as
/// LayoutLeft of several dimensions, a row of it or columns of LayoutRight, is packed into memory
/// of the call before it and unpacked after it: one copy of what the call reads there, and one of
/// what it writes. `same_layout` saves both.
///
/// Every call throws, beside what its own page says,
/// - contract_error for options that do not fit it: counts that are not its blocks', same_layout of
///   a View with gaps, a cost table of other ranks, a codec for what is not float or double, with
///   error feedback in a call that is not prepared, with agreement where a call only reads its
///   input, or with domains of other ranks, a progress thread below MPI_THREAD_MULTIPLE; where
///   ranks give different parts of a SharedView; and at the contract level "communication" where
///   they make different calls;
/// - infeasible for an algorithm that does not perform the collective among so many ranks, or does
///   not keep the order of a merge that does not commute: star, binomial_tree and hierarchies of
///   them over groups of ranks that follow one another do, and perform a reduce_scatter then, too;
///   of scans all do;
/// - communication_error where another rank fails, or does not come within the watchdog's time, or
///   MPI reports an error: the communicator is spent then;
/// - what a reduction throws, on the rank where it does; std::system_error where a progress thread
///   cannot start.
/// Where a call is begun as a Request, what comes to light later is thrown by that; where it is
/// prepared, by its performance.
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
  /// Of memory that a rank shares for the calls of a communicator, at most. What takes more, or
  /// more than the host has, goes by messages.
  Bytes shared_bytes = Bytes{256} << 20;
  /// Whether a thread of its own furthers a Request, instead of its test() and wait(). Needs MPI at
  /// MPI_THREAD_MULTIPLE, and an algorithm of ours.
  bool progress_thread = false;
  /// Of messages, where the View's memory is a device's.
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
