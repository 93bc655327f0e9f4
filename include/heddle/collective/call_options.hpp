// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CallOptions: the algorithm, encoding, memory and waiting of a collective call.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <heddle/comm/device_path.hpp>
#include <heddle/core/codec.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/group_level.hpp>

namespace heddle::inline v0 {

namespace plan {

class CostTable;

}  // namespace plan

/// The options of a collective call. They are the same on all ranks, except `path` and `wait`.
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
/// - contract_error if options do not fit the call: `wait` that is invalid and that the call
///   needs, counts that differ from its blocks, same_layout of a View with gaps, a cost table for
///   other ranks, a codec for elements that are not float or double, a codec with error feedback in
///   a call that is not prepared, a codec with agreement in a call that only reads its input,
///   shared-memory domains of other ranks, a progress thread below MPI_THREAD_MULTIPLE, different
///   parts of a SharedView on different ranks, or an empty communicator. At the contract level
///   "communication" also if ranks make different calls, or if another rank throws because of its
///   own arguments. Below that level, other ranks wait for a rank that throws: in an algorithm of
///   Heddle's or with watch_library until the watchdog ends the call, else for ever;
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
  /// The algorithm, which Heddle runs as a Schedule. If it is not set, `costs` decides. Without
  /// `costs`, the MPI library's own call is used if the library supports the reduction and the
  /// element type; otherwise Heddle chooses an algorithm. Reductions that are not commutative use a
  /// binomial tree, whatever the costs; if the root is not rank 0, an all-reduce is used. Scans
  /// keep the order with any algorithm.
  std::optional<schedule::Algorithm> algorithm = {};
  /// The number of messages into which `algorithm` divides a block, to send them as a pipeline.
  int chunks = 1;
  /// The groups of the hierarchical algorithm, innermost first; see schedule::level_of().
  std::vector<schedule::GroupLevel> levels = {};
  /// The table with which the fastest algorithm for each size is chosen, including the library's
  /// own call. It must be measured for as many ranks as the communicator has, by tools/measure or
  /// by the caller. The communicator shares the table with the caller for as long as it keeps what
  /// the table has chosen.
  std::shared_ptr<const plan::CostTable> costs = {};
  /// The number of elements in each rank's block, if the blocks are not even. n rows of m columns
  /// are n m elements. For all_to_all: the elements that this rank sends to each rank. If empty, n
  /// elements are divided into P blocks, and the first n % P blocks have one element more.
  std::vector<std::size_t> counts = {};
  /// States that the Views of all ranks have equal extents and strides and no gaps; the order of
  /// elements may be any, such as LayoutLeft. An all_reduce, reduce, broadcast or scan then sends
  /// the elements in memory order and packs no View. The contract level "communication" checks
  /// this. Below that level, results are wrong if the layouts differ. Other calls ignore the
  /// option, because they divide Views by the first index.
  bool same_layout = false;
  /// The compressed format of messages between ranks, see cast_at_cut(). The elements must be float
  /// or double, and the algorithm must be one of Heddle's. A received message is decoded and added
  /// in one pass. Error feedback needs a prepared call, because it keeps rounding errors from one
  /// call to the next.
  std::optional<Codec> codec = {};
  /// A number for each rank, for example the number of its host. Only messages between ranks with
  /// different numbers are encoded. If empty, all messages are encoded. With Codec::agree, a sum is
  /// the same on all ranks if the algorithm is hierarchical and each innermost group has one
  /// number, except in the cases that cast_at_cut() names. With other algorithms the ranks may have
  /// different sums.
  std::vector<std::uint32_t> codec_domains = {};
  /// If true, ranks of the same host read each other's memory directly instead of sending messages.
  /// This holds for blocking calls of at least 32 KiB in host memory, with an algorithm of Heddle's
  /// and without a codec. On a SharedView all such calls do so; if no algorithm is set, each rank
  /// then reads directly from every other rank.
  bool shared_memory = true;
  /// The maximum memory that a rank shares for the calls of a communicator. A call uses messages if
  /// it needs more, or if the host has not enough.
  Bytes shared_bytes = Bytes{256} << 20;
  /// If true, a separate thread makes the progress of a Request, instead of its test() and wait().
  /// This needs MPI_THREAD_MULTIPLE and an algorithm of Heddle's.
  bool progress_thread = false;
  /// How messages leave the memory of a device.
  DevicePath path = DevicePath::automatic;
  /// If true, a blocking call of the MPI library is polled, so that the watchdog can end it. The
  /// error names the call and the ranks that do not take part in it. If false, the call waits
  /// inside MPI for as long as it takes, and is half a microsecond faster. If one rank never makes
  /// the call, the others wait there for ever, and ranks that wait for them elsewhere report only
  /// that they do not answer. Set it to find such a call, for example one in Stage::update(). The
  /// value must be the same on all ranks, because MPI does not match the two kinds of calls.
  bool watch_library = false;
  /// How a call waits for other ranks, and for how long. Algorithms of Heddle's also use it to
  /// report aborts. Nothing is recorded. The first call of a kind allocates what the communicator
  /// keeps for later calls; no watchdog covers the part of this set-up inside MPI.
  ExecuteOptions wait = {};
};

}  // namespace heddle::inline v0
