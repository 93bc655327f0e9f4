// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The parts of the file of emit_mpi() that the actions of a schedule do not change: its types and
/// its class Work.

#include <algorithm>
#include <string>

#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::systems::impl {

/// A kind of action with a function in the emitted program.
struct EmittedFunction {
  Kind kind;          ///< the kind
  const char* name;   ///< the function's name
  const char* about;  ///< the text of its comment
};
inline constexpr EmittedFunction emitted_functions[] = {
    {Kind::forward, "forward", "F: the forward pass of a stage"},
    {Kind::backward_input, "backward_input", "I: the gradients of the inputs of a stage"},
    {Kind::backward_weight, "backward_weight", "W: the gradients of the weights of a stage"},
    {Kind::backward, "backward", "B: both gradients of a stage at once"},
    {Kind::update, "update", "a step of the optimiser"}};

/// Returns the definitions of Access, Type, Span, Task and Buffer.
inline std::string emitted_types(int ranks) {
  std::string types;
  for (int t = 0; t <= static_cast<int>(Scalar::i8); ++t)
    types += text(t == 0 ? " " : ", ", static_cast<Scalar>(t));
  return text(
      "constexpr int ranks = ", ranks, ";\n\n",
      "/// How an action touches memory: `write` begins a new value, `update` changes the "
      "present one.\n"
      "enum class Access { read, write, update };\n\n"
      "/// The type of the elements of a buffer.\n"
      "enum class Type {",
      types,
      " };\n\n"
      "/// Memory that an action touches.\n"
      "struct Span {\n"
      "  const char* role;  ///< the role of its buffer\n"
      "  Access access;\n"
      "  Type type;\n"
      "  unsigned char* data;\n"
      "  std::size_t bytes;\n"
      "  std::size_t record;  ///< elements that a combine joins as one value; 0: one\n"
      "};\n\n"
      "/// One action.\n"
      "struct Task {\n"
      "  int stage;\n"
      "  int item;           ///< the microbatch\n"
      "  bool fused;         ///< may be computed together with the next action\n"
      "  bool again;         ///< repeats an earlier action, whose result was not kept\n"
      "  const Span* spans;  ///< the memory, in the order that the schedule states\n"
      "  int count;          ///< number of spans\n"
      "};\n\n"
      "/// A buffer of a rank.\n"
      "struct Buffer {\n"
      "  const char* role;\n"
      "  int stage;\n"
      "  Type type;\n"
      "  int parts;        ///< such as one for each microbatch\n"
      "  bool persistent;  ///< keeps its value between steps: fill it before the first one\n"
      "  std::size_t bytes;\n"
      "  unsigned char* data;\n"
      "};\n\n");
}

/// Returns the definition of the class Work. `name` is the namespace.
inline std::string emitted_work(const Schedule& schedule, const std::string& name) {
  std::string out;
  const auto has = [&](Kind kind) {
    return std::ranges::any_of(schedule.actions(),
                               [&](const Action& action) { return action.kind == kind; });
  };
  out += text(
      "/// What the actions compute. Derive from it.\n"
      "class Work {\n public:\n  virtual ~Work() = default;\n");
  for (const EmittedFunction& function : emitted_functions)
    out += text("  /// ", function.about,
                has(function.kind) ? ".\n" : ". This schedule does not call it.\n",
                "  virtual void ", function.name,
                has(function.kind) ? "(const Task& task) = 0;\n" : "(const Task&) {}\n");
  out += text(
      "  /// Adds the span that is only read to the other one.\n"
      "  virtual void combine(const Task& task) {\n"
      "    const int read = task.spans[0].access == Access::read ? 0 : 1;\n"
      "    const Span& from = task.spans[read];\n"
      "    const Span& into = task.spans[1 - read];\n"
      "    if (into.record != 0)\n"
      "      throw std::logic_error(\"",
      name,
      "::Work: combine() of records is not defined\");\n"
      "    switch (into.type) {\n"
      "      case Type::i32: return add<std::uint32_t>(from, into);  // wraps around\n"
      "      case Type::i64: return add<std::uint64_t>(from, into);\n"
      "      case Type::f32: return add<float>(from, into);\n"
      "      case Type::f64: return add<double>(from, into);\n"
      "      default: break;\n"
      "    }\n"
      "    throw std::logic_error(\"",
      name,
      "::Work: combine() of bytes is not defined\");\n"
      "  }\n\n"
      " private:\n"
      "  template <class T>\n"
      "  static void add(const Span& from, const Span& into) {\n"
      "    for (std::size_t at = 0; at + sizeof(T) <= into.bytes; at += sizeof(T)) {\n"
      "      T value, sum;\n"
      "      std::memcpy(&value, from.data + at, sizeof(T));\n"
      "      std::memcpy(&sum, into.data + at, sizeof(T));\n"
      "      sum += value;\n"
      "      std::memcpy(into.data + at, &sum, sizeof(T));\n"
      "    }\n"
      "  }\n"
      "};\n\n");
  return out;
}

}  // namespace heddle::inline v0::systems::impl
