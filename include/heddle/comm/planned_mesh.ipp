// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of planned_mesh.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <tuple>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/comm/planned_mesh.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0 {

template <class Number>
Communicator PlannedMesh::line(Number&& number) const {
  int color = static_cast<int>(+rank()), key = 0;
  if (m_stage) {
    const PlanStage& stage = m_plan.stages[*m_stage];
    const int mine = number(m_place);
    for (std::size_t i = stage.ranks.size(); i-- > 0;) {
      if (number(position(stage, i)) != mine) continue;
      color = std::min(color, static_cast<int>(+stage.ranks[i]));
      if (stage.ranks[i] == rank()) key = static_cast<int>(i);
    }
  }
  return m_all.split(color, key);
}

HEDDLE_FULL_INLINE std::shared_ptr<const PlannedLines> PlannedMesh::make_lines() const {
  // A line is named by its lowest rank, which is in no other line of this kind.
  return std::make_shared<const PlannedLines>(PlannedLines{
      line([](const Position&) { return 0; }), line([](const Position& at) { return at.tensor; }),
      line([&](const Position& at) { return at.sequence + degree() * at.group; }),
      line([&](const Position& at) { return at.tensor + degree() * at.group; })});
}

HEDDLE_FULL_INLINE PlannedMesh::PlannedMesh(MPI_Comm comm, MpiOptions transport)
    : m_all(comm),
      m_lines(make_lines()),
      m_transport(std::make_unique<MpiTransport>(m_all.get(), transport)) {}

HEDDLE_FULL_INLINE PlannedMesh::PlannedMesh(MPI_Comm comm, Plan plan, PlannedMeshOptions options)
    : m_all(comm) {
  impl::check_together(
      m_all, where,
      [&] {
        expects(options.ranks == 0 || options.ranks == size(), [&] {
          return ErrorInfo{where, "the plan is for another number of ranks",
                           text("PlannedMeshOptions::ranks = ", options.ranks,
                                ", the communicator has ", size()),
                           text("start it with as many ranks, or set the option to ", size())};
        });
      },
      [] {
        return impl::CollectiveCall{where, {}};
      },
      ContractLevel::communication, 0);
  agree(plan);
  check_ranks(plan, options.ranks);
  take_place(std::move(plan));
  m_lines = make_lines();
  m_transport = std::make_unique<MpiTransport>(m_all.get(), options.transport);
}

HEDDLE_FULL_INLINE void PlannedMesh::begin_plan(Plan plan) {
  agree(plan);
  check_ranks(plan, size());
  if (plan == m_plan) return;
  // The communicators of this rank, and how its stage shares state, depend on these alone.
  const auto present = [&] {
    return std::tuple(m_stage ? m_plan.stages[*m_stage] : PlanStage{}, m_plan.sharding,
                      m_plan.shard_node, m_plan.shard_pair);
  };
  const auto former = present();
  take_place(std::move(plan));
  // All ranks of a stage decide alike. All ranks of the mesh make communicators together.
  auto lines = make_lines();
  if (present() != former) m_lines = std::move(lines);
}

HEDDLE_FULL_INLINE std::ostream& operator<<(std::ostream& out, const PlannedMesh& places) {
  out << places.m_all << ": ";
  if (!places.m_stage) return out << "not in the plan";
  return out << "stage " << *places.m_stage << ", group " << places.m_place.group << ", samples "
             << places.m_samples.begin << '-' << places.m_samples.end - 1;
}

HEDDLE_FULL_INLINE PlannedMesh::Position PlannedMesh::position(const PlanStage& stage,
                                                               std::size_t i) noexcept {
  const int each = stage.tensor * stage.sequence, at = static_cast<int>(i);
  return {at / each, at % each / stage.tensor, at % stage.tensor};
}

HEDDLE_FULL_INLINE void PlannedMesh::take_place(Plan plan) {
  m_plan = std::move(plan);
  m_stage.reset();
  m_place = {};
  m_samples = {};
  for (std::size_t s = 0; s < m_plan.stages.size(); ++s) {
    const PlanStage& stage = m_plan.stages[s];
    const auto found = std::find(stage.ranks.begin(), stage.ranks.end(), rank());
    if (found == stage.ranks.end()) continue;
    m_stage = s;
    m_place = position(stage, static_cast<std::size_t>(found - stage.ranks.begin()));
    for (int g = 0; g <= m_place.group; ++g)
      m_samples = {m_samples.end, m_samples.end + stage.samples[static_cast<std::size_t>(g)]};
  }
}

HEDDLE_FULL_INLINE void PlannedMesh::check_ranks(const Plan& plan, int ranks) const {
  std::size_t highest = 0;
  for (const PlanStage& stage : plan.stages)
    for (const Rank each : stage.ranks) highest = std::max(highest, +each);
  if (ranks == 0) ranks = static_cast<int>(std::min(highest, most_ranks)) + 1;
  heddle::check(plan, plan.stages.empty() ? 0 : plan.stages.back().layers.last, ranks);
  expects(ranks == size(), [&] {
    return ErrorInfo{
        where, "the plan is for another number of ranks",
        text("the plan needs ", ranks, ", the communicator has ", size()),
        text("start it with mpiexec -n ", ranks, ", or set PlannedMeshOptions::ranks to ", size(),
             " if the plan leaves out the last ranks")};
  });
}

HEDDLE_FULL_INLINE void PlannedMesh::agree(const Plan& plan) const {
  const std::uint64_t mine = hash(plan);
  std::uint64_t first = mine;
  check(MPI_Bcast(&first, 1, MPI_UINT64_T, 0, m_all.get()), where);
  int differs = mine == first ? size() : static_cast<int>(+rank());
  check(MPI_Allreduce(MPI_IN_PLACE, &differs, 1, MPI_INT, MPI_MIN, m_all.get()), where);
  expects(differs == size(), [&] {
    return ErrorInfo{where, "the ranks do not have the same plan",
                     text("rank ", differs, " differs from rank 0"),
                     "read the same file on every rank, or send rank 0's plan to the others"};
  });
}

}  // namespace heddle::inline v0
