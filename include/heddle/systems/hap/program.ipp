// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of program.hpp.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/hap/impl/names.hpp>
#include <heddle/systems/hap/program.hpp>

namespace heddle::inline v0::systems {

namespace impl {

inline constexpr std::array<std::string_view, 10> one_operand = {
    "identity", "negate", "relu", "tanh", "exp", "scale", "log", "power", "shift", "stop_gradient"};
inline constexpr std::array<std::string_view, 8> two_operands = {
    "add", "subtract", "multiply", "divide", "equal", "relu_gradient", "tanh_gradient", "step"};

inline std::string list_of(const std::vector<std::string>& names) {
  std::string out = "[";
  for (const std::string& name : names) {
    if (out.size() > 1) out += ", ";
    out += name;
  }
  return out + "]";
}

/// Returns true if rows have the dimensions of the indices and those of the table but one.
inline bool joins(const std::vector<std::string>& rows, const std::vector<std::string>& indices,
                  const std::vector<std::string>& table) {
  return without(table, rows).size() == 1 && without(indices, rows).empty() &&
         without(without(rows, indices), table).empty() &&
         rows.size() + 1 == indices.size() + table.size();
}

inline std::string words(const TensorProgram& program, const Operation& operation) {
  std::string out = text(operation.output, " = ", operation.kind);
  if (!operation.function.empty()) out += " " + operation.function;
  for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
    out += (i == 0 ? " " : ", ") + operation.inputs[i];
    for (const ProgramTensor& tensor : program.tensors)
      if (tensor.name == operation.inputs[i]) out += list_of(tensor.dims);
  }
  return out;
}

/// Says whether the operands of an operation fit; if not, what they should be.
inline std::string misfit(const TensorProgram& program, const Operation& operation) {
  const auto dims = [&](const std::string& name) -> const std::vector<std::string>& {
    return program.tensors[program.tensor(name)].dims;
  };
  const std::vector<std::string>& out = dims(operation.output);
  const std::size_t count = operation.inputs.size();
  const bool two = operation.kind == OperationKind::matmul ||
                   operation.kind == OperationKind::gather ||
                   operation.kind == OperationKind::scatter_add;
  std::size_t wanted = two ? 2 : 1;
  if (operation.kind == OperationKind::elementwise) {
    wanted = elementwise_inputs(operation.function);
    if (wanted == 0)
      return text("a known function; there is none named '", operation.function, "'");
  } else if (operation.kind == OperationKind::reduce) {
    if (operation.function != "sum" && operation.function != "max") return "function sum or max";
  }
  if (count != wanted) return text(wanted, wanted == 1 ? " input" : " inputs");
  const std::vector<std::string>& first = dims(operation.inputs[0]);
  const std::vector<std::string>& second = dims(operation.inputs[count - 1]);
  switch (operation.kind) {
    case OperationKind::matmul:
      if (!without(without(out, first), second).empty())
        return "an output with dimensions of the inputs only";
      break;
    case OperationKind::elementwise:
      if (!without(first, out).empty() || !without(second, out).empty())
        return "an output with all dimensions of the inputs";
      break;
    case OperationKind::reduce:
      if (!without(out, first).empty()) return "an output with dimensions of the input only";
      break;
    case OperationKind::reshape: {
      const double before = program.elements(program.tensors[program.tensor(operation.inputs[0])]);
      const double after = program.elements(program.tensors[program.tensor(operation.output)]);
      if (before != after) return text("as many elements, ", before, " and not ", after);
      break;
    }
    case OperationKind::gather:
      if (!joins(out, second, first))
        return "an output with the dimensions of the indices, and those of the table but one";
      break;
    case OperationKind::scatter_add:
      if (!joins(first, second, out))
        return "rows with the dimensions of the indices, and those of the output but one";
      break;
  }
  return {};
}

inline void check_names(const TensorProgram& program) {
  constexpr const char* where = "heddle::systems::check(TensorProgram)";
  for (std::size_t d = 0; d < program.dimensions.size(); ++d) {
    const Dimension& dimension = program.dimensions[d];
    for (std::size_t e = 0; e < d; ++e)
      expects(program.dimensions[e].name != dimension.name, [&] {
        return ErrorInfo{where, text("dimension '", dimension.name, "' is defined twice"),
                         text("sizes ", program.dimensions[e].size, " and ", dimension.size),
                         "give one of them another name, or define it once"};
      });
    expects(!dimension.name.empty() && dimension.size >= 1, [&] {
      return ErrorInfo{where, "a dimension needs a name and a size of at least 1",
                       text("dimension ", d, ", '", dimension.name, "', size ", dimension.size)};
    });
  }
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const ProgramTensor& tensor = program.tensors[t];
    bool unique = !tensor.name.empty();
    for (std::size_t u = 0; u < t; ++u) unique = unique && program.tensors[u].name != tensor.name;
    expects(unique, [&] {
      return ErrorInfo{where, "a tensor needs a name of its own",
                       text("tensor ", t, ", '", tensor.name, "'"), "give it another name"};
    });
    heddle::impl::expect_enumerator(where, "ProgramTensor::role", tensor.role, TensorRole::output);
    heddle::impl::expect_enumerator(where, "ProgramTensor::type", tensor.type, Scalar::i8);
    expects(tensor.dims.size() <= 8, [&] {
      return ErrorInfo{where, "a tensor has more than 8 dimensions",
                       text("tensor '", tensor.name, "', ", tensor.dims.size(), " dimensions"),
                       "join dimensions that are never divided"};
    });
    for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
      (void)program.dimension(tensor.dims[d]);
      expects(std::count(tensor.dims.begin(), tensor.dims.end(), tensor.dims[d]) == 1, [&] {
        return ErrorInfo{where, "a tensor has a dimension twice",
                         text("tensor '", tensor.name, "', dimension '", tensor.dims[d], "'"),
                         "define a second dimension of the same size"};
      });
    }
    if (tensor.updates.empty()) continue;
    const ProgramTensor& updated = program.tensors[program.tensor(tensor.updates)];
    expects(tensor.role == TensorRole::output && updated.role == TensorRole::parameter &&
                updated.dims == tensor.dims,
            [&] {
              return ErrorInfo{
                  where, "only an output updates, and only a parameter of its shape",
                  text("tensor '", tensor.name, "', ", tensor.role, list_of(tensor.dims),
                       ", updates '", updated.name, "', ", updated.role, list_of(updated.dims)),
                  "change the role, or leave `updates` empty"};
            });
  }
}

HEDDLE_INLINE void check_kind(const char* where, const Operation& operation) {
  heddle::impl::expect_enumerator(where, "Operation::kind", operation.kind,
                                  OperationKind::scatter_add);
  expects(!operation.inputs.empty() && !std::isnan(operation.factor), [&] {
    return ErrorInfo{where, "an operation has inputs, and its factor is a number",
                     text(operation.kind, " of '", operation.output, "' has ",
                          operation.inputs.size(), " inputs, factor = ", operation.factor)};
  });
}

}  // namespace impl

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, TensorRole role) {
  constexpr const char* names[] = {"input", "parameter", "intermediate", "output"};
  return out << heddle::impl::enumerator_name(names, role);
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, OperationKind kind) {
  constexpr const char* names[] = {"matmul",  "elementwise", "reduce",
                                   "reshape", "gather",      "scatter_add"};
  return out << heddle::impl::enumerator_name(names, kind);
}

HEDDLE_INLINE std::size_t elementwise_inputs(std::string_view name) noexcept {
  if (std::ranges::find(impl::one_operand, name) != impl::one_operand.end()) return 1;
  return std::ranges::find(impl::two_operands, name) != impl::two_operands.end() ? 2 : 0;
}

HEDDLE_INLINE std::size_t TensorProgram::tensor(std::string_view wanted) const {
  const auto found = std::ranges::find(tensors, wanted, &ProgramTensor::name);
  expects(found != tensors.end(), [&] {
    return ErrorInfo{"heddle::systems::TensorProgram", text("tensor '", wanted, "' is undefined"),
                     text("program '", name, "' has ", tensors.size(), " tensors"),
                     "add it to `tensors`"};
  });
  return static_cast<std::size_t>(found - tensors.begin());
}

HEDDLE_INLINE std::size_t TensorProgram::dimension(std::string_view wanted) const {
  const auto found = std::ranges::find(dimensions, wanted, &Dimension::name);
  expects(found != dimensions.end(), [&] {
    return ErrorInfo{"heddle::systems::TensorProgram",
                     text("dimension '", wanted, "' is undefined"),
                     text("program '", name, "' has ", dimensions.size(), " dimensions"),
                     "add it to `dimensions`"};
  });
  return static_cast<std::size_t>(found - dimensions.begin());
}

HEDDLE_INLINE std::int64_t TensorProgram::size_of(std::string_view wanted) const {
  return dimensions[dimension(wanted)].size;
}

HEDDLE_INLINE std::vector<std::int64_t> TensorProgram::sizes(const ProgramTensor& of) const {
  std::vector<std::int64_t> out;
  for (const std::string& dim : of.dims) out.push_back(size_of(dim));
  return out;
}

HEDDLE_INLINE double TensorProgram::elements(const ProgramTensor& of) const {
  double product = 1;
  for (const std::string& dim : of.dims) product *= static_cast<double>(size_of(dim));
  return product;
}

HEDDLE_INLINE double TensorProgram::bytes(const ProgramTensor& of) const {
  heddle::impl::expect_enumerator("heddle::systems::TensorProgram::bytes", "ProgramTensor::type",
                                  of.type, Scalar::i8);
  return elements(of) * static_cast<double>(heddle::size_of(of.type));
}

HEDDLE_INLINE double TensorProgram::flops(const Operation& operation) const {
  impl::check_kind("heddle::systems::TensorProgram::flops", operation);
  const ProgramTensor& out = tensors[tensor(operation.output)];
  switch (operation.kind) {
    case OperationKind::matmul: {
      std::vector<std::string> dims = out.dims;
      for (const std::string& input : operation.inputs)
        for (const std::string& dim : tensors[tensor(input)].dims)
          if (!impl::has(dims, dim)) dims.push_back(dim);
      return 2 * elements({.dims = dims});
    }
    case OperationKind::elementwise: return elements(out);
    case OperationKind::reduce:
    case OperationKind::scatter_add: return elements(tensors[tensor(operation.inputs.at(0))]);
    case OperationKind::reshape:
    case OperationKind::gather: break;
  }
  return 0;
}

HEDDLE_INLINE double TensorProgram::flops() const {
  double sum = 0;
  for (const Operation& operation : operations) sum += flops(operation);
  return sum;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const TensorProgram& program) {
  out << "program " << program.name << '\n';
  for (const Dimension& dimension : program.dimensions)
    out << "dimension " << dimension.name << " of " << dimension.size << '\n';
  for (const ProgramTensor& tensor : program.tensors) {
    out << tensor.role << ' ' << tensor.name << impl::list_of(tensor.dims) << " of " << tensor.type;
    if (!tensor.updates.empty()) out << ", updates " << tensor.updates;
    out << '\n';
  }
  for (const Operation& operation : program.operations)
    out << impl::words(program, operation) << '\n';
  return out;
}

HEDDLE_INLINE std::vector<std::size_t> check(const TensorProgram& program) {
  constexpr const char* where = "heddle::systems::check(TensorProgram)";
  impl::check_names(program);
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::vector<std::size_t> producer(program.tensors.size(), none);
  for (std::size_t o = 0; o < program.operations.size(); ++o) {
    const Operation& operation = program.operations[o];
    for (const std::string& input : operation.inputs) (void)program.tensor(input);
    const std::size_t output = program.tensor(operation.output);
    impl::check_kind(where, operation);
    const std::string wanted = impl::misfit(program, operation);
    expects(wanted.empty(), [&] {
      return ErrorInfo{where, "the operands do not fit the operation",
                       text("operation ", o, ", ", impl::words(program, operation), ", output ",
                            impl::list_of(program.tensors[output].dims)),
                       text("expected ", wanted)};
    });
    const TensorRole role = program.tensors[output].role;
    expects(role == TensorRole::intermediate || role == TensorRole::output, [&] {
      return ErrorInfo{where, text("an operation computes an ", role),
                       text("operation ", o, ", ", impl::words(program, operation)),
                       "give the tensor the role intermediate or output"};
    });
    expects(producer[output] == none, [&] {
      return ErrorInfo{
          where, "two operations compute one tensor",
          text("tensor '", operation.output, "', operations ", producer[output], " and ", o),
          "give each operation an output of its own"};
    });
    producer[output] = o;
  }
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const ProgramTensor& tensor = program.tensors[t];
    expects(producer[t] != none || tensor.role == TensorRole::input ||
                tensor.role == TensorRole::parameter,
            [&] {
              return ErrorInfo{where, "no operation computes a tensor",
                               text("tensor '", tensor.name, "', ", tensor.role),
                               "add the operation, or give it the role input or parameter"};
            });
  }
  std::vector<std::size_t> order;
  std::vector<bool> done(program.operations.size(), false);
  while (order.size() < program.operations.size()) {
    std::size_t next = none;
    for (std::size_t o = 0; o < done.size() && next == none; ++o) {
      if (done[o]) continue;
      const bool ready = std::ranges::all_of(program.operations[o].inputs, [&](const auto& input) {
        const std::size_t from = producer[program.tensor(input)];
        return from == none || done[from];
      });
      if (ready) next = o;
    }
    expects(next != none, [&] {
      const auto stuck =
          static_cast<std::size_t>(std::find(done.begin(), done.end(), false) - done.begin());
      return ErrorInfo{
          where, "operations need each other's outputs in a cycle",
          text("operation ", stuck, ", ", impl::words(program, program.operations[stuck]),
               ", is in the cycle or needs a tensor of it"),
          "let one operation of the cycle read a tensor of the step before, an input"};
    });
    done[next] = true;
    order.push_back(next);
  }
  return order;
}

}  // namespace heddle::inline v0::systems
