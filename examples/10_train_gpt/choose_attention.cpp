// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <array>
#include <iostream>
#include <vector>

#include <mpi.h>

#include <heddle/comm.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/sequence_choice.hpp>

#include "choose_attention.hpp"

namespace examples {

namespace {

/// Attention of one sequence with the heads of a rank that --tensor leaves.
heddle::schedule::AttentionForm form(const Settings& s) {
  const GptConfig& model = s.training.model;
  return {.ranks = s.sequence,
          .order = make_sequence(s).order,
          .backward = true,
          .tokens = model.context,
          .heads = model.heads / s.tensor,
          .kv_heads = model.heads_of_keys() / s.tensor,
          .head_width = model.width / model.heads,
          .type = s.precision == "double" ? heddle::scalar_of<double> : heddle::scalar_of<float>};
}

}  // namespace

void choose_attention(Settings& s, MPI_Comm comm) {
  if (s.attention != "automatic") return;
  validate(s.training.model);
  heddle::DeviceMesh mesh(
      comm, {{"pipe", s.pipe}, {"data", s.data}, {"sequence", s.sequence}, {"tensor", s.tensor}});
  heddle::DeviceMesh line(mesh["sequence"].get(), {{"sequence", s.sequence}});
  const heddle::Machine machine = heddle::measure_links(line);
  std::vector<heddle::plan::SequenceCandidate> candidates = heddle::plan::sequence_choice(
      form(s), machine, {.sequences = static_cast<std::size_t>(s.training.model.sequences)});
  // In the mesh of train() the ranks of a heads axis are neighbours.
  std::erase_if(candidates, [&](const heddle::plan::SequenceCandidate& each) {
    return !each.refused.empty() || each.near != heddle::plan::NearAxis::heads ||
           (s.heads_axis != 0 && each.heads != s.heads_axis);
  });
  heddle::expects(!candidates.empty(), [&] {
    return heddle::ErrorInfo{
        "command line", "no attention suits the heads and the axes",
        heddle::text("--sequence ", s.sequence, " --heads-axis ", s.heads_axis),
        "leave --heads-axis out, or choose --attention ring"};
  });
  if (mesh.rank() == 0) std::cout << heddle::plan::to_table(candidates);
  // Lines have measured for themselves: all take what the first one has found.
  std::array<int, 3> chosen = {static_cast<int>(candidates.front().method),
                               candidates.front().heads, candidates.front().ways};
  heddle::check(MPI_Bcast(chosen.data(), 3, MPI_INT, 0, mesh.all().get()), "choose_attention");
  s.attention = heddle::text(static_cast<heddle::SequenceMethod>(chosen[0]));
  s.heads_axis = chosen[1];
  s.ways = chosen[2];
}

}  // namespace examples
