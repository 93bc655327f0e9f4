// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include <mpi.h>

#include <heddle/comm.hpp>
#include <heddle/core/checkpoint.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/sequence_choice.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>
#include <heddle/systems/flexsp/sequence_costs.hpp>

#include "attention_costs.hpp"
#include "gpt_flex.hpp"
#include "plan_groups.hpp"

namespace examples {

namespace {

/// The seconds in which `ranks` ranks train one sequence of `tokens` tokens: attention by the
/// method of such a group, and the products of all other layers.
heddle::Seconds predicted(const Settings& s, int ranks, std::int64_t tokens,
                          const heddle::Machine& machine, heddle::Seconds product) {
  const GptConfig& model = s.training.model;
  const auto form = attention_form(s, ranks, tokens);
  const auto method = flex_method(ranks, form.kv_heads);
  const int ways = method == heddle::SequenceMethod::ring && ranks > 1 ? s.ways : 1;
  const auto candidates = heddle::plan::sequence_choice(form, machine, {.product = product});
  const auto found = std::ranges::find_if(candidates, [&](const auto& each) {
    return each.refused.empty() && each.method == method && each.ways == ways;
  });
  // A product of a pair over all heads has 2 * heads * head width floating-point operations; a
  // token has 24 width^2 in a block and 2 width * vocabulary at the end, and twice as many
  // backward.
  const double w = model.width;
  const double flop = product / (2.0 * form.heads * form.head_width);
  const double dense = 3 * (24 * w * w * model.layers + 2 * w * model.vocabulary) / s.tensor;
  return model.layers * (found == candidates.end() ? 0 : found->time) +
         flop * dense * static_cast<double>(tokens) / ranks;
}

/// The costs of all degrees that the ranks of a sequence can have. Those of rank 0 count.
heddle::systems::SequenceCosts predict_costs(const Settings& s, MPI_Comm comm) {
  using heddle::systems::DegreeCost;
  const heddle::Machine machine = sequence_machine(s, comm);
  const heddle::Seconds product = attention_product(s, comm);
  heddle::systems::SequenceCosts costs{s.sequence, s.capacity, {}};
  const std::int64_t context = s.training.model.context;
  int widest = 1;
  for (int degree = 1; degree <= s.sequence; degree *= 2) {
    widest = degree;
    std::vector<heddle::systems::DegreeSample> samples;
    for (const std::int64_t part : {4, 2, 1}) {
      const std::int64_t tokens = std::max<std::int64_t>(context / part, 1);
      samples.push_back({{tokens}, predicted(s, degree, tokens, machine, product)});
    }
    costs.degrees.push_back(heddle::systems::fit_degree_cost(degree, samples));
  }
  std::vector<double> numbers;
  for (const DegreeCost& each : costs.degrees)
    numbers.insert(numbers.end(), {each.fixed, each.per_token, each.per_square});
  heddle::check(MPI_Bcast(numbers.data(), static_cast<int>(numbers.size()), MPI_DOUBLE, 0, comm),
                "plan_groups");
  for (std::size_t d = 0; d < costs.degrees.size(); ++d)
    costs.degrees[d] = {costs.degrees[d].degree, numbers[3 * d], numbers[3 * d + 1],
                        numbers[3 * d + 2]};
  if (s.capacity == 0) costs.tokens_per_rank = (context + widest - 1) / widest;
  return costs;
}

/// The step that training goes on with. A file that cannot be read is named when it is resumed.
int first_step(const Settings& s, int rank, MPI_Comm comm) {
  int step = 0;
  if (rank == 0 && !s.resume.empty()) try {
      step =
          static_cast<int>(heddle::Checkpoint::load(s.resume).get<std::int64_t>("step", 1).front());
    } catch (const std::exception&) {
    }
  heddle::check(MPI_Bcast(&step, 1, MPI_INT, 0, comm), "plan_groups");
  return step;
}

/// The time of all steps if every group has `degree` ranks; none if such a group cannot hold each
/// sequence.
std::optional<heddle::Seconds> time_of_degree(const Settings& s,
                                              const heddle::systems::SequenceCosts& costs,
                                              int begin, int steps, int degree) {
  try {
    return FlexPlans(s.training, s.data, costs, begin, steps, degree).time();
  } catch (const heddle::infeasible&) {
    return {};
  }
}

}  // namespace

void plan_groups(Settings& s, MPI_Comm comm) {
  if (!s.flexible() || s.steps < 1) return;  // train() says what is wrong with the steps
  validate(s.training.model);
  int rank = 0;
  heddle::check(MPI_Comm_rank(comm, &rank), "plan_groups");
  const int begin = first_step(s, rank, comm);
  const heddle::systems::SequenceCosts costs = predict_costs(s, comm);
  const int steps = s.end > 0 ? std::max(s.end - begin, 1) : s.steps;
  const auto plans = std::make_shared<const FlexPlans>(s.training, s.data, costs, begin, steps);
  if (rank == 0) {
    std::cout << "plan of the first step: " << plans->of(begin, 0) << "\ngroups of all steps:";
    const char* separator = " ";
    for (const auto& [degree, count] : plans->groups()) {
      std::cout << separator << count << " of " << degree << (degree == 1 ? " rank" : " ranks");
      separator = ", ";
    }
    std::cout << "\npredicted for all steps: " << plans->time() << " s";
    for (const auto& each : costs.degrees)
      if (const auto time = time_of_degree(s, costs, begin, steps, each.degree))
        std::cout << "; groups of " << each.degree << ": " << *time << " s";
    std::cout << '\n';
  }
  s.plans = plans;
}

}  // namespace examples
