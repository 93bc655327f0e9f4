// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of plan.hpp, compiled in heddle::json.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/json/internal/document.ipp>
#include <heddle/json/plan.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/sequence_method.hpp>

namespace heddle::inline v0::json {

namespace impl {

inline constexpr FileKind plan_file{"plan", "heddle::json::read_plan"};

[[nodiscard]] inline Scalar read_scalar(const JsonValue& value) {
  using enum Scalar;
  const std::string name = value.string();
  std::string all;
  for (const Scalar scalar : {i32, i64, f32, f64, f16, bf16, f8e4m3, f8e5m2, i8}) {
    if (name == text(scalar)) return scalar;
    all += text(all.empty() ? "" : ", ", scalar);
  }
  value.wrong("one of " + all);
}

[[nodiscard]] inline SequenceMethod read_attention(const JsonValue& value) {
  using enum SequenceMethod;
  const std::string name = value.string();
  for (const SequenceMethod method : {ring, rsa, ulysses})
    if (name == text(method)) return method;
  value.wrong("one of ring, rsa, ulysses");
}

[[nodiscard]] inline std::optional<Codec> read_cast(const JsonValue& value) {
  if (value.null()) return {};
  value.only({"type", "block", "feedback", "agree"});
  Codec codec;
  codec.type = read_scalar(value.member("type"));
  if (const auto block = value.optional("block"))
    codec.block =
        static_cast<std::uint32_t>(block->whole(0, std::numeric_limits<std::uint32_t>::max()));
  if (const auto feedback = value.optional("feedback")) codec.feedback = feedback->boolean();
  if (const auto agree = value.optional("agree")) codec.agree = agree->boolean();
  return codec;
}

[[nodiscard]] inline PlanStage read_stage(const JsonValue& value) {
  value.only({"layers", "ranks", "samples", "tensor", "sequence", "recompute"});
  PlanStage stage;
  const JsonValue layers = value.member("layers");
  const std::vector<JsonValue> ends = layers.elements();
  if (ends.size() != 2) layers.wrong("two numbers, the first layer and one past the last");
  stage.layers = {ends[0].count(0), ends[1].count(0)};
  for (const JsonValue& rank : value.member("ranks").elements())
    stage.ranks.push_back(Rank{rank.count(0, heddle::impl::most_rank)});
  for (const JsonValue& samples : value.member("samples").elements())
    stage.samples.push_back(static_cast<std::int64_t>(samples.whole(1, 1'000'000'000'000)));
  if (const auto tensor = value.optional("tensor")) stage.tensor = tensor->count(1);
  if (const auto sequence = value.optional("sequence")) stage.sequence = sequence->count(1);
  if (const auto recompute = value.optional("recompute")) stage.recompute = recompute->boolean();
  return stage;
}

/// Checks a plan alone: for as many layers and ranks as it names.
inline void check_alone(const Plan& plan) {
  heddle::impl::check_alone(plan, plan.stages.empty() ? 0 : plan.stages.back().layers.last);
}

[[nodiscard]] inline Json json_of(const PlanStage& stage) {
  Json ranks = Json::array();
  for (const Rank rank : stage.ranks) ranks.push_back(+rank);
  return {{"layers", Json::array({stage.layers.first, stage.layers.last})},
          {"ranks", ranks},
          {"samples", stage.samples},
          {"tensor", stage.tensor},
          {"sequence", stage.sequence},
          {"recompute", stage.recompute}};
}

[[nodiscard]] inline Json json_of(const std::optional<Codec>& cast) {
  if (!cast) return nullptr;
  return {{"type", text(cast->type)},
          {"block", cast->block},
          {"feedback", cast->feedback},
          {"agree", cast->agree}};
}

/// Returns the checksum of a plan without its prediction, by which a prediction names its plan.
[[nodiscard]] inline std::string checksum_of_plan(Json plan) {
  plan.erase("prediction");
  return checksum_of(plan);
}

[[nodiscard]] inline PlanPrediction read_prediction(const JsonValue& value, const Json& plan) {
  value.only({"of", "step", "memory"});
  const JsonValue of = value.member("of");
  if (const std::string is = checksum_of_plan(plan); of.string() != is)
    of.mismatch("the prediction is of another plan",
                text("the plan is ", is, ", the prediction is of ", of.string()),
                "remove 'prediction', and 'checksum' if the file has one");
  PlanPrediction prediction{.step = value.member("step").number()};
  if (const auto memory = value.optional("memory"))
    for (const JsonValue& bytes : memory->elements()) prediction.memory.push_back(bytes.bytes());
  return prediction;
}

}  // namespace impl

Plan parse_plan(std::string_view content, const std::string& name) {
  const impl::JsonDocument document(impl::plan_file, content, name);
  const impl::JsonValue value = document.value();
  value.only({"stages", "microbatches", "schedule", "casts", "sharding", "shard_node", "shard_pair",
              "attention", "buckets", "prediction"});
  Plan plan;
  for (const impl::JsonValue& stage : value.member("stages").elements())
    plan.stages.push_back(impl::read_stage(stage));
  if (const auto microbatches = value.optional("microbatches"))
    plan.microbatches = microbatches->count(1);
  if (const auto schedule = value.optional("schedule")) plan.schedule = schedule->string();
  if (const auto casts = value.optional("casts"))
    for (const impl::JsonValue& cast : casts->elements())
      plan.casts.push_back(impl::read_cast(cast));
  if (const auto sharding = value.optional("sharding")) plan.sharding = sharding->string();
  if (const auto node = value.optional("shard_node")) plan.shard_node = node->count(0);
  if (const auto pair = value.optional("shard_pair")) plan.shard_pair = pair->count(0);
  if (const auto attention = value.optional("attention"))
    plan.attention = impl::read_attention(*attention);
  if (const auto buckets = value.optional("buckets")) plan.buckets = buckets->count(1);
  if (const auto prediction = value.optional("prediction"))
    plan.prediction = impl::read_prediction(*prediction, value.json());
  return document.checked([&] {
    impl::check_alone(plan);
    return std::move(plan);
  });
}

Plan read_plan(const std::string& path) {
  return parse_plan(impl::content_of(impl::plan_file, path), path);
}

std::string plan_text(const Plan& plan) {
  impl::check_alone(plan);
  impl::Json stages = impl::Json::array(), casts = impl::Json::array();
  for (const PlanStage& stage : plan.stages) stages.push_back(impl::json_of(stage));
  for (const std::optional<Codec>& cast : plan.casts) casts.push_back(impl::json_of(cast));
  impl::Json value = {{"stages", stages},
                      {"microbatches", plan.microbatches},
                      {"schedule", plan.schedule},
                      {"casts", casts},
                      {"sharding", plan.sharding},
                      {"shard_node", plan.shard_node},
                      {"shard_pair", plan.shard_pair},
                      {"attention", text(plan.attention)},
                      {"buckets", plan.buckets}};
  constexpr const char* writer = "heddle::json::write_plan";
  if (plan.prediction)
    value["prediction"] = {{"of", impl::in_utf8(writer, [&] { return impl::checksum_of(value); })},
                           {"step", plan.prediction->step},
                           {"memory", plan.prediction->memory}};
  return impl::file_text(impl::plan_file, writer, std::move(value), parse_plan);
}

void write_plan(const std::string& path, const Plan& plan) { write_file(path, plan_text(plan)); }

}  // namespace heddle::inline v0::json
