// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/parameter_sharding.hpp>
#include <heddle/tensor/shard_place.hpp>

#include "plan_training.hpp"

namespace examples {

namespace {

/// Throws contract_error if an option was given with another value than the plan has. `planned` has
/// a value for each stage; an option stands for all of them.
template <class Value>
void expect_same(const Settings& s, const char* name, const Value& given,
                 const std::vector<Value>& planned) {
  if (!s.has(name)) return;
  const bool same = std::ranges::all_of(planned, [&](const Value& each) { return each == given; });
  heddle::expects(same, [&] {
    std::string values;
    for (const Value& each : planned) values += heddle::text(values.empty() ? "" : ", ", each);
    return heddle::ErrorInfo{
        "command line", heddle::text("--", name, " contradicts the plan"),
        heddle::text("--", name, ' ', given, ", '", s.plan, "' has ", values,
                     planned.size() > 1 ? " in its stages" : ""),
        heddle::text("leave --", name, " out, or give a plan that agrees with it")};
  });
}

}  // namespace

void expect_planned(const Settings& s) {
  const bool automatic = s.plan == "auto";
  std::vector<const char*> refused = {"heads-axis", "stages-per-rank", "group"};
  if (automatic) refused.insert(refused.end(), {"pipe", "data", "schedule"});
  for (const char* const name : refused)
    heddle::expects(!s.has(name), [&] {
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
  heddle::expects(!automatic || s.training.sizes.empty(), [&] {
    return heddle::ErrorInfo{
        "command line", "a plan has microbatches of one size",
        heddle::text("--batch ", s.batch, " --microbatches ", s.training.microbatches),
        "give a --batch that --microbatches divides"};
  });
  heddle::expects(s.steps >= 1, [&] {
    return heddle::ErrorInfo{"command line", "--steps must be at least 1", heddle::text(s.steps)};
  });
}

void expect_agreement(const Settings& s, const heddle::Plan& plan) {
  const auto of_stages = [&](auto&& value) {
    std::vector<int> values;
    for (const heddle::PlanStage& stage : plan.stages)
      values.push_back(static_cast<int>(value(stage)));
    return values;
  };
  expect_same(s, "microbatches", s.training.microbatches, {plan.microbatches});
  expect_same<std::int64_t>(s, "batch", s.batch, {plan.batch()});
  expect_same<std::int64_t>(s, "sequences", s.training.model.sequences,
                            {plan.microbatch_samples()});
  expect_same(s, "schedule", s.schedule, {plan.schedule});
  expect_same(s, "pipe", s.pipe, {static_cast<int>(plan.stages.size())});
  expect_same(s, "data", s.data, of_stages([](const auto& stage) { return stage.groups(); }));
  expect_same(s, "tensor", s.tensor, of_stages([](const auto& stage) { return stage.tensor; }));
  expect_same(s, "sequence", s.sequence,
              of_stages([](const auto& stage) { return stage.sequence; }));
  expect_same(s, "attention", s.attention, {heddle::text(plan.attention)});
}

std::vector<int> tensor_degrees(const Settings& s, int ranks) {
  const GptConfig& model = s.training.model;
  const int by_heads = s.attention == "ulysses" && s.has("sequence") ? s.sequence : 1;
  std::vector<int> all;
  for (int degree = 1; degree <= ranks; ++degree)
    if (ranks % degree == 0 && model.heads % degree == 0 && model.heads_of_keys() % degree == 0 &&
        model.context % degree == 0 && by_heads * degree <= model.heads_of_keys())
      all.push_back(degree);
  // The copies of a tied matrix are divided alike, so one degree is for all stages.
  if (!s.has("tensor") && model.tied) return {1};
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

std::vector<int> sequence_degrees(const Settings& s, int ranks) {
  if (s.has("sequence")) return {s.sequence};
  const int heads = s.training.model.heads_of_keys() / tensor_degrees(s, ranks).back();
  std::vector<int> all;
  for (int degree = 1; degree <= ranks; ++degree)
    if (ranks % degree == 0 && degree <= s.training.model.context &&
        (degree <= heads || s.attention != "ulysses"))
      all.push_back(degree);
  return all;
}

void divide_parameters(heddle::Plan& plan, const Settings& s) {
  if (!s.shard.empty() && plan.sharding.empty()) {
    plan.sharding = s.shard;
    plan.shard_node = s.node;
    plan.shard_pair = s.pair;
    plan.prediction.reset();  // it was predicted without
  }
  expect_same(s, "shard", s.shard, {plan.sharding});
  expect_same(s, "node", s.node, {plan.shard_node});
  expect_same(s, "pair", s.pair, {plan.shard_pair});
  if (plan.sharding.empty()) return;
  const heddle::ParameterSharding found = heddle::ParameterSharding::find(plan.sharding);
  for (const heddle::PlanStage& stage : plan.stages) {
    const int ranks = static_cast<int>(stage.ranks.size()) / stage.tensor;
    // All ranks check the groups of all stages, so that no rank waits for one that has failed.
    static_cast<void>(heddle::ShardPlace({}, ranks, plan.shard_node == 0 ? ranks : plan.shard_node,
                                         std::max(plan.shard_pair, 1)));
    // What ranks that divide a layer have in common would be rounded by each in its own way.
    heddle::expects(stage.tensor == 1 || !(found.weight_codec || found.gradient_codec), [&] {
      return heddle::ErrorInfo{
          "train_gpt", "a sharding that encodes its messages needs whole layers",
          heddle::text("sharding ", plan.sharding, ", tensor degree ", stage.tensor),
          "use zero1, zero2 or zero3"};
    });
  }
}

void expect_close(const char* what, double difference, double tolerance, const std::string& where) {
  if (difference <= tolerance) return;
  throw heddle::contract_error(
      {"check", what, heddle::text(where, " ", difference, " > ", tolerance)});
}

}  // namespace examples
