// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/tensor/parameter_sharding.hpp>

#include "plan_training.hpp"

namespace examples {

void expect_planned(const Settings& s) {
  for (const char* const name : {"pipe", "data", "tensor", "sequence", "heads-axis", "node", "pair",
                                 "schedule", "stages-per-rank", "group"})
    heddle::expects(!s.has(name) || (s.plan == "auto" && std::string_view(name) == "tensor"), [&] {
      return heddle::ErrorInfo{"command line",
                               heddle::text("--", name, " cannot be used with --plan"),
                               {},
                               "leave it out: the plan says how ranks divide the model"};
    });
  heddle::expects(s.attention == "ring" || s.attention == "rsa" || s.attention == "ulysses", [&] {
    return heddle::ErrorInfo{"command line",
                             "a plan does not say which axes divide the ranks of a sequence",
                             heddle::text("--attention ", s.attention), "use ring, rsa or ulysses"};
  });
  heddle::expects(s.plan != "auto" || s.training.sizes.empty(), [&] {
    return heddle::ErrorInfo{
        "command line", "a plan has microbatches of one size",
        heddle::text("--batch ", s.batch, " --microbatches ", s.training.microbatches),
        "give a --batch that --microbatches divides"};
  });
  heddle::expects(s.steps >= 1, [&] {
    return heddle::ErrorInfo{"command line", "--steps must be at least 1", heddle::text(s.steps)};
  });
}

std::vector<int> tensor_degrees(const Settings& s, int ranks) {
  const GptConfig& model = s.training.model;
  std::vector<int> all;
  for (int degree = 1; degree <= ranks; ++degree)
    if (ranks % degree == 0 && model.heads % degree == 0 && model.heads_of_keys() % degree == 0 &&
        model.context % degree == 0)
      all.push_back(degree);
  if (!s.has("tensor") || s.tensor == 0) return all;
  heddle::expects(std::ranges::find(all, s.tensor) != all.end(), [&] {
    return heddle::ErrorInfo{
        "command line", "a plan cannot have this tensor degree",
        heddle::text("--tensor ", s.tensor, ", ", ranks, " ranks, ", model.heads, " heads, ",
                     model.heads_of_keys(), " K,V heads, context ", model.context),
        "give a --tensor that divides all of them, or leave it out to search all degrees"};
  });
  return {s.tensor};
}

void divide_parameters(heddle::Plan& plan, const Settings& s) {
  heddle::expects(s.shard.empty() || plan.sharding.empty() || s.shard == plan.sharding, [&] {
    return heddle::ErrorInfo{"command line", "the plan has another sharding",
                             heddle::text("--shard ", s.shard, ", the plan has ", plan.sharding),
                             "leave --shard out, or remove \"sharding\" from the plan"};
  });
  if (!s.shard.empty()) plan.sharding = s.shard;
  if (plan.sharding.empty()) return;
  const heddle::ParameterSharding found = heddle::find_sharding(plan.sharding);
  const auto whole = [](heddle::ShardLevel level) {
    return level == heddle::ShardLevel::rank || level == heddle::ShardLevel::world;
  };
  heddle::expects(whole(found.weights) && whole(found.gradients) && !found.backward, [&] {
    return heddle::ErrorInfo{"train_gpt",
                             "a plan does not say which ranks of a stage are pairs and nodes",
                             heddle::text("sharding ", plan.sharding), "use zero1, zero2 or zero3"};
  });
}

void expect_close(const char* what, double difference, double tolerance, const std::string& where) {
  if (difference <= tolerance) return;
  throw heddle::contract_error(
      {"check", what, heddle::text(where, " ", difference, " > ", tolerance)});
}

}  // namespace examples
