// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Nano-batches: cuts the operations of a layer along the batch into pieces, so that pieces that
/// use different resources of one device run at the same time. The method is that of NanoFlow (Zhu
/// et al., OSDI 2025). See search_nano_plan() for the choice of the pieces.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/order/stage_shares.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::systems {

/// An operation of a layer, such as a matrix product, attention or an all-reduce. Sample s of its
/// output depends on sample s of its inputs only.
struct NanoOperation {
  std::string name;                        ///< shown to people
  std::uint32_t resource = 0;              ///< the resource that it saturates; has a queue
  std::vector<std::uint32_t> inputs = {};  ///< earlier operations whose output it reads
  Seconds batch = 0;                       ///< time of all samples, alone on the whole device
  Seconds piece = 0;  ///< time of every piece besides, such as that of loading the weights
};

/// A layer of operations on one device whose units are shared by the operations that run at the
/// same time. `performance[resource][units - 1]` is the interference table: the speed of an
/// operation with so many units, relative to the whole device.
struct NanoLayer {
  std::string name = "layer";                         ///< shown to people
  std::int64_t samples = 0;                           ///< the samples of the batch
  int units = 0;                                      ///< the units of the device
  std::vector<NanoOperation> operations = {};         ///< each after its inputs
  std::vector<std::vector<double>> performance = {};  ///< by resource and units
  Bytes sample_bytes = 0;  ///< bytes of a sample of every input and output; 0: without memory

  /// Checks all numbers. @throws contract_error if there is no sample, unit or operation, if an
  ///         operation has an input that does not come before it or a resource without a table, if
  ///         a time is negative or not finite, or if a table does not have one speed above 0 and at
  ///         most 1 for every number of units. The error names the operation or the resource.
  void check() const;
};

/// Returns a row of NanoLayer::performance: the speed for 1 to `units` units, by straight lines
/// between (0, 0), the points (share of the units, speed) in ascending order, and (1, 1).
/// @throws contract_error if there is no unit, or if the points do not ascend within (0, 1).
[[nodiscard]] std::vector<double> performance_between(
    int units, const std::vector<std::pair<double, double>>& points);

/// One piece of an operation, and the units with which it runs.
struct NanoPiece {
  std::uint32_t operation = 0;  ///< the operation
  std::uint32_t piece = 0;      ///< its share of the batch, see NanoPlan::pieces
  std::uint16_t units = 1;      ///< the units of the device that it occupies

  friend bool operator==(const NanoPiece&, const NanoPiece&) = default;
};

/// How a layer runs: the pieces of each operation, and their order.
struct NanoPlan {
  /// The samples of the pieces of each operation: stage o of these shares is operation o.
  StageShares pieces = {};
  /// All pieces. Each one comes after the pieces that it depends on. Pieces of the same resource
  /// run in this order.
  std::vector<NanoPiece> order = {};
};

/// Returns the plan that does not overlap: every operation in `pieces` shares of the batch, one
/// operation after another, each with all units. `pieces` are the samples of the shares.
/// @throws contract_error as NanoLayer::check() does.
[[nodiscard]] NanoPlan serial_nano_plan(const NanoLayer& layer, std::vector<std::int64_t> pieces);

/// Returns the Schedule of a plan on one rank. Each resource is a local queue (the lane is the
/// resource). Piece p of operation o is the forward pass of stage o for item p, with its units. It
/// first reads its samples of the inputs, in the order of NanoOperation::inputs, and then writes
/// its samples of the output. An operation without inputs reads the buffer "input".
///
/// The parts of all buffers are granules: the samples between two boundaries of any operation.
/// Therefore a piece depends on a piece of an input exactly if their ranges of samples overlap.
/// @throws contract_error as NanoLayer::check() and StageShares::check() do; if the shares are not
///         those of the layer's operations and samples; if the order lacks a piece, has one twice,
///         or has one before a piece that it depends on; or if a piece has no units, or more than
///         the device.
[[nodiscard]] Schedule nano_schedule(const NanoLayer& layer, const NanoPlan& plan);

/// Costs with interference. A piece of n samples takes D / P(units): D = batch n / samples + piece
/// is its time alone, and P is the performance of its resource.
class InterferenceCosts {
 public:
  using Time = Seconds;  ///< the type of costs

  /// Constructs the costs of the Schedules that nano_schedule() returns for `layer`.
  /// @throws contract_error as NanoLayer::check() does.
  explicit InterferenceCosts(NanoLayer layer);

  /// Does nothing, because the constructor has checked all costs.
  void check() const {}
  /// Returns the Machine, which counts the units of its only device.
  [[nodiscard]] const Machine& machine() const noexcept { return m_machine; }
  /// Returns the time of a piece. Other actions take no time.
  /// @throws contract_error if the schedule has an operation or units that the layer does not have.
  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const;
  /// Returns zero: moves take no time.
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule&, ActionId) const { return {}; }
  /// Returns zero: moves take no time.
  [[nodiscard]] Seconds occupancy(const Schedule&, ActionId, const Shared&) const { return 0; }

 private:
  NanoLayer m_layer;
  Machine m_machine;
};

/// Returns the Schedule of one device as streams: every local queue of the timeline's schedule
/// becomes a rank, and all ranks share memory. The actions stand in the order of their start. The
/// units become parts of a buffer "units" of which an action updates as many as it occupies, so
/// that the sum of the units stays within the device without a count at run time.
/// @throws contract_error if the schedule has several ranks, moves or fused pairs, or if its
///         actions occupy more than `units` units at any time.
[[nodiscard]] Schedule in_streams(const Timeline& timeline, int units);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/nanoflow/nano_batches.ipp>
#endif
