// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A profile, a machine, a plan and a program that use every member, and the functions of their
/// files.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/json.hpp>
#include <heddle/machine/join.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/program_file.hpp>

namespace heddle::test {

inline systems::TensorProgram example_program() {
  using enum systems::TensorRole;
  using enum systems::OperationKind;
  return {.name = "a \"program\" of all kinds",
          .dimensions = {{"b", 4}, {"i", 6}, {"o", 24}, {"big", 1'000'000'000'000}},
          .tensors = {{"x", {"b", "i"}, input, Scalar::bf16},
                      {"w", {"i", "o"}, parameter},
                      {"ids", {"b"}, input, Scalar::i32},
                      {"y", {"b", "o"}, intermediate, Scalar::f64},
                      {"scaled", {"b", "o"}},
                      {"sum", {"o"}, output},
                      {"flat", {"o"}},
                      {"folded", {"b", "i"}, output},
                      {"rows", {"b", "o"}, output},
                      {"added", {"i", "o"}},
                      {"next", {"i", "o"}, output, Scalar::f32, "w"}},
          .operations = {{matmul, {"x", "w"}, "y"},
                         {elementwise, {"y"}, "scaled", "scale", -0.1},
                         {reduce, {"scaled"}, "sum", "max"},
                         {reduce, {"scaled"}, "flat", "sum"},
                         {reshape, {"flat"}, "folded"},
                         {gather, {"w", "ids"}, "rows"},
                         {scatter_add, {"scaled", "ids"}, "added"},
                         {elementwise, {"w", "added"}, "next", "step", 1e-3}}};
}
inline heddle::plan::Profile example_profile() {
  return {.model = "a \"model\" of 3 layers",
          .input = 4096,
          .layers = {{.name = "embedding",
                      .output = 1'000'000'007,
                      .saved = 31,
                      .delta = 7,
                      .parameters = 0xffff'ffff'ffff'fff0,
                      .measured = {{"a100", 1, 4, {0.1, 1e-300, 2.0 / 3, 0}},
                                   {"a100", 2, 1, {5e-324, 3, 1, 0.5}},
                                   {"v100", 1, 8, {10, 16, 3, 1e300}}},
                      .keys = 8193,
                      .queries = 12289},
                     {.name = "block", .measured = {{"a100", 1, 1, {1, 0, 0, 0}}}},
                     {.name = "head", .measured = {{"a100", 1, 1, {1e-3, 2e-3, 0, 0}}}}},
          .reference = "a100"};
}

inline Machine example_machine() {
  Machine near = Machine::hierarchical(
      std::vector<Device>(
          4, {.name = "a100",
              .units = 108,
              .memories = {{.name = "HBM", .capacity = 40'000'000'000},
                           {.name = "host", .capacity = 1 << 30, .link = {1e-5, 16e9}}}}),
      {{.name = "node", .ranks = 2, .link = {1e-6, 2e11}, .ports = {2.5e10, 2.4e10}},
       {.name = "site", .ranks = 4, .link = {3e-6, 2.5e10}}});
  near.set_ports(0, 1, {1e9, 2e9, 3});
  near.set_link(0, 3, {1.0 / 3, 7e9});
  near.share("mirror", 1e9, {{3, 0}, {0, 3}});
  const Machine far = Machine::uniform(3, {"v100", 0.4}, {2e-6, 1e10});
  return join({near, far}, {20e-3, 1.25e8}, Shared{"line", 1.25e8});
}

inline Plan example_plan() {
  return {.stages = {{.layers = {0, 1}, .ranks = {0, 1, 2}, .samples = {3, 3, 2}},
                     {.layers = {1, 2},
                      .ranks = {6, 5, 3, 4},
                      .samples = {8},
                      .tensor = 2,
                      .sequence = 2,
                      .recompute = true},
                     {.layers = {2, 3}, .ranks = {7}, .samples = {8}}},
          .microbatches = 4,
          .schedule = "gpipe",
          .casts = {Codec{.type = Scalar::i8, .block = 64, .feedback = true}, {}},
          .sharding = "three-level",
          .shard_node = 4,
          .shard_pair = 2,
          .attention = SequenceMethod::ulysses,
          .buckets = 2};
}

/// The functions of one kind of file.
template <class T>
struct FilesOf;
template <>
struct FilesOf<heddle::plan::Profile> {
  static constexpr const char* member = "profile";
  static heddle::plan::Profile example() { return example_profile(); }
  static std::string text(const heddle::plan::Profile& value) { return json::profile_text(value); }
  static heddle::plan::Profile parse(std::string_view content) {
    return json::parse_profile(content, "p.json");
  }
  static heddle::plan::Profile read(const std::string& path) { return json::read_profile(path); }
  static void write(const std::string& path, const heddle::plan::Profile& v) {
    json::write_profile(path, v);
  }
};
template <>
struct FilesOf<Machine> {
  static constexpr const char* member = "machine";
  static Machine example() { return example_machine(); }
  static std::string text(const Machine& value) { return json::machine_text(value); }
  static Machine parse(std::string_view content) { return json::parse_machine(content, "p.json"); }
  static Machine read(const std::string& path) { return json::read_machine(path); }
  static void write(const std::string& path, const Machine& v) { json::write_machine(path, v); }
};
template <>
struct FilesOf<Plan> {
  static constexpr const char* member = "plan";
  static Plan example() { return example_plan(); }
  static std::string text(const Plan& value) { return json::plan_text(value); }
  static Plan parse(std::string_view content) { return json::parse_plan(content, "p.json"); }
  static Plan read(const std::string& path) { return json::read_plan(path); }
  static void write(const std::string& path, const Plan& v) { json::write_plan(path, v); }
};

template <>
struct FilesOf<systems::TensorProgram> {
  static constexpr const char* member = "program";
  static systems::TensorProgram example() { return example_program(); }
  static std::string text(const systems::TensorProgram& value) {
    return systems::program_text(value);
  }
  static systems::TensorProgram parse(std::string_view content) {
    return systems::parse_program(content, "p.json");
  }
  static systems::TensorProgram read(const std::string& path) {
    return systems::read_program(path);
  }
  static void write(const std::string& path, const systems::TensorProgram& v) {
    systems::write_program(path, v);
  }
};

/// Returns `text` without blanks outside of quotes.
inline std::string squeezed(std::string_view text) {
  std::string result;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && (i == 0 || text[i - 1] != '\\')) quoted = !quoted;
    if (quoted || (text[i] != ' ' && text[i] != '\n')) result += text[i];
  }
  return result;
}

/// Returns the text of a file without its checksum.
inline std::string without_checksum(std::string text) {
  const std::size_t begin = text.find("\"checksum\"");
  return text.erase(begin, text.find(',', begin) + 1 - begin);
}

/// Returns `text` with the first `from` replaced by `to`.
inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  return at == std::string::npos ? "no such text" : text.replace(at, from.size(), to);
}

}  // namespace heddle::test
