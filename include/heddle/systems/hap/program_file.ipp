// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of program_file.hpp, compiled in heddle::json.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/json/internal/document.ipp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/program_file.hpp>

namespace heddle::inline v0::systems {

namespace impl {

inline constexpr json::impl::FileKind program_file{"program", "heddle::systems::read_program"};

/// Returns the enumerator of these that prints as the value.
template <class Enum, std::size_t count>
[[nodiscard]] Enum read_name(const json::impl::JsonValue& value,
                             const std::array<Enum, count>& enumerators) {
  const std::string name = value.string();
  std::string all;
  for (const Enum each : enumerators) {
    if (name == text(each)) return each;
    all += text(all.empty() ? "" : ", ", each);
  }
  value.wrong("one of " + all);
}

[[nodiscard]] inline std::vector<std::string> read_names(const json::impl::JsonValue& value) {
  std::vector<std::string> names;
  for (const json::impl::JsonValue& each : value.elements()) names.push_back(each.string());
  return names;
}

[[nodiscard]] inline ProgramTensor read_tensor(const json::impl::JsonValue& value) {
  using enum Scalar;
  using enum TensorRole;
  value.only({"name", "dims", "role", "type", "updates"});
  ProgramTensor tensor{.name = value.member("name").string(),
                       .dims = read_names(value.member("dims"))};
  if (const auto role = value.optional("role"))
    tensor.role = read_name(*role, std::array{input, parameter, intermediate, output});
  if (const auto type = value.optional("type"))
    tensor.type = read_name(*type, std::array{i32, i64, f32, f64, f16, bf16, f8e4m3, f8e5m2, i8});
  if (const auto updates = value.optional("updates")) tensor.updates = updates->string();
  return tensor;
}

[[nodiscard]] inline Operation read_operation(const json::impl::JsonValue& value) {
  using enum OperationKind;
  value.only({"kind", "inputs", "output", "function", "factor"});
  Operation operation;
  operation.kind = read_name(value.member("kind"),
                             std::array{matmul, elementwise, reduce, reshape, gather, scatter_add});
  operation.inputs = read_names(value.member("inputs"));
  operation.output = value.member("output").string();
  if (const auto function = value.optional("function")) operation.function = function->string();
  if (const auto factor = value.optional("factor")) operation.factor = factor->real();
  return operation;
}

}  // namespace impl

TensorProgram parse_program(std::string_view content, const std::string& name) {
  const json::impl::JsonDocument document(impl::program_file, content, name);
  const json::impl::JsonValue value = document.value();
  value.only({"name", "dimensions", "tensors", "operations"});
  TensorProgram program;
  if (const auto called = value.optional("name")) program.name = called->string();
  for (const json::impl::JsonValue& each : value.member("dimensions").elements()) {
    each.only({"name", "size"});
    program.dimensions.push_back(
        {each.member("name").string(),
         static_cast<std::int64_t>(each.member("size").whole(1, 1'000'000'000'000))});
  }
  for (const json::impl::JsonValue& each : value.member("tensors").elements())
    program.tensors.push_back(impl::read_tensor(each));
  for (const json::impl::JsonValue& each : value.member("operations").elements())
    program.operations.push_back(impl::read_operation(each));
  return document.checked([&] {
    check(program);
    return std::move(program);
  });
}

TensorProgram read_program(const std::string& path) {
  return parse_program(json::impl::content_of(impl::program_file, path), path);
}

std::string program_text(const TensorProgram& program) {
  check(program);
  json::impl::Json dimensions = json::impl::Json::array(), tensors = dimensions,
                   operations = dimensions;
  for (const Dimension& dimension : program.dimensions)
    dimensions.push_back({{"name", dimension.name}, {"size", dimension.size}});
  for (const ProgramTensor& tensor : program.tensors)
    tensors.push_back({{"name", tensor.name},
                       {"dims", tensor.dims},
                       {"role", text(tensor.role)},
                       {"type", text(tensor.type)},
                       {"updates", tensor.updates}});
  for (const Operation& operation : program.operations) {
    expects(std::isfinite(operation.factor), [&] {
      return ErrorInfo{"heddle::systems::write_program", "a factor is not finite",
                       text("operation for '", operation.output, "', factor ", operation.factor)};
    });
    operations.push_back({{"kind", text(operation.kind)},
                          {"inputs", operation.inputs},
                          {"output", operation.output},
                          {"function", operation.function},
                          {"factor", operation.factor}});
  }
  return json::impl::file_text(impl::program_file, "heddle::systems::write_program",
                               {{"name", program.name},
                                {"dimensions", dimensions},
                                {"tensors", tensors},
                                {"operations", operations}},
                               parse_program);
}

void write_program(const std::string& path, const TensorProgram& program) {
  write_file(path, program_text(program));
}

}  // namespace heddle::inline v0::systems
