// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of profile.hpp, compiled in heddle::json.

#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <heddle/core/file.hpp>
#include <heddle/json/internal/document.ipp>
#include <heddle/json/profile.hpp>
#include <heddle/plan/profile.hpp>

namespace heddle::inline v0::json {

namespace impl {

inline constexpr FileKind profile_file{"profile", "heddle::json::read_profile"};

[[nodiscard]] inline plan::LayerMeasurement read_measurement(const JsonValue& value) {
  value.only(
      {"device", "tensor", "samples", "forward", "backward_input", "backward_weight", "update"});
  plan::LayerMeasurement m;
  m.device = value.member("device").string();
  if (const auto tensor = value.optional("tensor")) m.tensor = tensor->count(1);
  if (const auto samples = value.optional("samples"))
    m.samples = static_cast<std::int64_t>(samples->whole(1, 1'000'000'000'000));
  m.times.forward = value.member("forward").number(true);
  m.times.backward_input = value.member("backward_input").number();
  m.times.backward_weight = value.member("backward_weight").number();
  if (const auto update = value.optional("update")) m.times.update = update->number();
  return m;
}

[[nodiscard]] inline plan::ProfiledLayer read_layer(const JsonValue& value) {
  value.only({"name", "output", "saved", "delta", "parameters", "keys", "queries", "measured"});
  plan::ProfiledLayer layer;
  if (const auto name = value.optional("name")) layer.name = name->string();
  for (const auto& [name, bytes] : {std::pair{"output", &layer.output},
                                    {"saved", &layer.saved},
                                    {"delta", &layer.delta},
                                    {"parameters", &layer.parameters},
                                    {"keys", &layer.keys},
                                    {"queries", &layer.queries}})
    if (const auto member = value.optional(name)) *bytes = member->bytes();
  for (const JsonValue& each : value.member("measured").elements())
    layer.measured.push_back(read_measurement(each));
  return layer;
}

[[nodiscard]] inline Json json_of(const plan::ProfiledLayer& layer) {
  Json measured = Json::array();
  for (const plan::LayerMeasurement& m : layer.measured)
    measured.push_back({{"device", m.device},
                        {"tensor", m.tensor},
                        {"samples", m.samples},
                        {"forward", m.times.forward},
                        {"backward_input", m.times.backward_input},
                        {"backward_weight", m.times.backward_weight},
                        {"update", m.times.update}});
  return {{"name", layer.name},
          {"output", layer.output},
          {"saved", layer.saved},
          {"delta", layer.delta},
          {"parameters", layer.parameters},
          {"keys", layer.keys},
          {"queries", layer.queries},
          {"measured", measured}};
}

}  // namespace impl

plan::Profile parse_profile(std::string_view content, const std::string& name) {
  const impl::JsonDocument document(impl::profile_file, content, name);
  const impl::JsonValue value = document.value();
  value.only({"model", "input", "reference", "layers"});
  plan::Profile profile;
  if (const auto model = value.optional("model")) profile.model = model->string();
  if (const auto input = value.optional("input")) profile.input = input->bytes();
  if (const auto reference = value.optional("reference")) profile.reference = reference->string();
  for (const impl::JsonValue& layer : value.member("layers").elements())
    profile.layers.push_back(impl::read_layer(layer));
  return document.checked([&] {
    check(profile);
    return std::move(profile);
  });
}

plan::Profile read_profile(const std::string& path) {
  return parse_profile(impl::content_of(impl::profile_file, path), path);
}

std::string profile_text(const plan::Profile& profile) {
  check(profile);
  impl::Json layers = impl::Json::array();
  for (const plan::ProfiledLayer& layer : profile.layers) layers.push_back(impl::json_of(layer));
  return impl::file_text(impl::profile_file, "heddle::json::write_profile",
                         {{"model", profile.model},
                          {"input", profile.input},
                          {"reference", profile.reference},
                          {"layers", layers}},
                         parse_profile);
}

void write_profile(const std::string& path, const plan::Profile& profile) {
  write_file(path, profile_text(profile));
}

}  // namespace heddle::inline v0::json
