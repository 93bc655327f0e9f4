// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PlannedMesh: the ranks of a communicator as a Plan divides them, with the communicators of every
/// stage's groups, and a transport over all ranks.

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <optional>

#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/stage_shares.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0 {

/// The options of a PlannedMesh.
struct PlannedMeshOptions {
  /// The ranks of the communicator. 0: up to the highest rank of the plan. If the plan leaves out
  /// the last ranks, give their number here and to plan::schedule().
  int ranks = 0;
  MpiOptions transport = {};  ///< the options of the transport
};

/// The communicators of the ranks that share a stage of a plan with this rank. A rank without a
/// stage is alone in each of them.
struct PlannedLines {
  Communicator stage;     ///< all ranks of the stage
  Communicator data;      ///< the ranks that hold the same part of the weights
  Communicator tensor;    ///< the ranks of this group that divide layers
  Communicator sequence;  ///< the ranks of this group that divide sequences
};

/// The ranks of a communicator with the places that a Plan gives them. Rank r of the communicator
/// is rank r of the plan. Every stage has its own degrees, so its ranks have lines of their own:
/// the ranks that divide a layer, those that divide a sequence, and those that hold the same
/// weights. A rank that the plan leaves out is alone in its lines. It takes part in collective
/// calls over all ranks only.
///
/// begin_plan() gives the ranks other places, for example between two steps of an AdaptiveRunner.
/// The transport stays the same.
///
/// Construction and destruction are collective. A PlannedMesh can be moved, but not copied.
class PlannedMesh {
 public:
  /// Constructs a mesh without a plan: every rank is alone until begin_plan().
  explicit PlannedMesh(MPI_Comm comm, MpiOptions transport = {});
  /// Constructs the communicators of a plan. All ranks must give the same plan.
  /// @throws contract_error on every rank if check(const Plan&) rejects the plan, if the plan is
  ///         for another number of ranks, or if the ranks do not have the same plan.
  PlannedMesh(MPI_Comm comm, Plan plan, PlannedMeshOptions options = {});

  /// Gives the ranks the places of another plan, which may leave ranks out. A stage that both plans
  /// have alike keeps its communicators. The others last as long as somebody holds their lines().
  /// All ranks must call it with the same plan.
  /// @throws contract_error on every rank if check(const Plan&) rejects the plan, or if the ranks
  ///         do not have the same plan. The mesh then keeps its plan.
  void begin_plan(Plan plan);

  /// Returns the plan. It has no stages before the first one begins.
  [[nodiscard]] const Plan& plan() const noexcept { return m_plan; }
  /// Returns this process's rank.
  [[nodiscard]] Rank rank() const noexcept { return m_all.rank(); }
  /// Returns the number of all ranks, also of those that the plan leaves out.
  [[nodiscard]] int size() const noexcept { return m_all.size(); }

  /// Returns the number of this rank's stage, or nothing if the plan leaves this rank out.
  [[nodiscard]] std::optional<std::size_t> stage() const noexcept { return m_stage; }
  /// Returns the number of this rank's group in its stage. It is 0 for a rank without a stage.
  [[nodiscard]] std::size_t group() const noexcept {
    return static_cast<std::size_t>(m_place.group);
  }
  /// Returns the samples of a microbatch that this rank's group computes, as a range of all samples
  /// of the microbatch. The range is empty for a rank without a stage.
  [[nodiscard]] SampleRange samples() const noexcept { return m_samples; }

  /// Returns the ranks of this rank's stage, in the order of the plan.
  [[nodiscard]] const Communicator& stage_ranks() const noexcept { return m_lines->stage; }
  /// Returns the ranks of this stage that hold the same part of its weights, in the order of the
  /// plan. They sum their gradients. Without a sequence degree they are one rank of every group.
  [[nodiscard]] const Communicator& data() const noexcept { return m_lines->data; }
  /// Returns the ranks of this group that divide layers: a TensorLine is made from them.
  [[nodiscard]] const Communicator& tensor() const noexcept { return m_lines->tensor; }
  /// Returns the ranks of this group that divide sequences.
  [[nodiscard]] const Communicator& sequence() const noexcept { return m_lines->sequence; }

  /// Returns the four communicators above as one object. After begin_plan() it is a new object,
  /// unless this rank's stage is the same in both plans.
  [[nodiscard]] std::shared_ptr<const PlannedLines> lines() const noexcept { return m_lines; }

  /// Returns all ranks.
  [[nodiscard]] const Communicator& all() const noexcept { return m_all; }
  /// Returns the transport for messages between all ranks. Only one user at a time may use it, such
  /// as an Executor or measure_links().
  [[nodiscard]] MpiTransport& transport() noexcept { return *m_transport; }

  /// Prints the place of this rank, such as "rank 2 of 4: stage 1, group 0, samples 0-7".
  friend std::ostream& operator<<(std::ostream& out, const PlannedMesh& places);

 private:
  static constexpr const char* where = "heddle::PlannedMesh";

  /// A rank's place in its stage.
  struct Position {
    int group = 0, sequence = 0, tensor = 0;
  };

  /// Returns an upper bound of all numbers in a Position, so that two of them make one number.
  [[nodiscard]] int degree() const noexcept { return m_all.size(); }

  /// Returns the ranks of this rank's stage for which `number` is the same as here.
  template <class Number>
  [[nodiscard]] Communicator line(Number&& number) const;
  /// Returns the communicators of the present place.
  [[nodiscard]] std::shared_ptr<const PlannedLines> make_lines() const;

  [[nodiscard]] static Position position(const PlanStage& stage, std::size_t i) noexcept;

  /// Takes the place that a plan has for this rank.
  void take_place(Plan plan);

  /// Throws if the plan is invalid or has another number of ranks. 0: up to its highest rank.
  void check_ranks(const Plan& plan, int ranks) const;

  /// Compares the plans of all ranks with that of rank 0.
  void agree(const Plan& plan) const;

  /// More ranks than any communicator has.
  static constexpr std::size_t most_ranks = std::size_t{1} << 22;

  Plan m_plan;
  Communicator m_all;
  std::optional<std::size_t> m_stage;
  Position m_place;
  SampleRange m_samples;
  std::shared_ptr<const PlannedLines> m_lines;
  std::unique_ptr<MpiTransport> m_transport;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/planned_mesh.ipp>
#endif
