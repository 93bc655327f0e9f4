// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <array>
#include <iostream>
#include <vector>

#include <mpi.h>

#include <heddle/comm.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/sequence_choice.hpp>

#include "attention_costs.hpp"
#include "choose_attention.hpp"

namespace examples {

void choose_attention(Settings& s, MPI_Comm comm) {
  if (s.attention != "automatic") return;
  validate(s.training.model);
  const heddle::Machine machine = sequence_machine(s, comm);
  const heddle::Seconds product = attention_product(s, comm);
  std::vector<heddle::plan::SequenceCandidate> candidates = heddle::plan::sequence_choice(
      attention_form(s, s.sequence, s.training.model.context), machine,
      {.sequences = static_cast<std::size_t>(s.training.model.sequences), .product = product});
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
  int rank = 0;
  heddle::check(MPI_Comm_rank(comm, &rank), "choose_attention");
  if (rank == 0)
    std::cout << "attention: " << product * 1e9
              << " ns for a product of a (query, key) pair over all heads, " << s.costs << "\n"
              << heddle::plan::to_table(candidates);
  // Lines have measured for themselves: all take what the first one has found.
  std::array<int, 3> chosen = {static_cast<int>(candidates.front().method),
                               candidates.front().heads, candidates.front().ways};
  heddle::check(MPI_Bcast(chosen.data(), 3, MPI_INT, 0, comm), "choose_attention");
  s.attention = heddle::text(static_cast<heddle::SequenceMethod>(chosen[0]));
  s.heads_axis = chosen[1];
  s.ways = chosen[2];
}

}  // namespace examples
