// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of reverse_program.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/hap/impl/names.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/reverse_program.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// Returns true if an operation has a gradient for its input `i`.
inline bool has_gradient(const Operation& operation, std::size_t i) {
  const std::string& f = operation.function;
  switch (operation.kind) {
    case OperationKind::gather:
    case OperationKind::scatter_add: return i == 0;
    case OperationKind::elementwise:
      return f != "equal" && f != "stop_gradient" && (f != "relu_gradient" || i == 0) &&
             (f != "power" || operation.factor != 0);
    case OperationKind::matmul:
    case OperationKind::reduce:
    case OperationKind::reshape: break;
  }
  return true;
}

/// Writes the operations of reverse() behind those of a program.
class Reverser {
 public:
  Reverser(const TensorProgram& program, std::string_view output, const ReverseOptions& options)
      : m_order(check(program)),
        m_out(program),
        m_options(options),
        m_parts(program.tensors.size()),
        m_left(program.tensors.size(), 0),
        m_needed(program.tensors.size(), false) {
    const std::size_t last = m_out.tensor(output);
    expects(std::ranges::any_of(program.operations,
                                [&](const Operation& o) { return o.output == output; }),
            [&] {
              return ErrorInfo{where, "gradients are those of a tensor that is computed",
                               text("tensor '", output, "', ", m_out.tensors[last].role),
                               "name the output of an operation"};
            });
    find_needed(last);
    const std::string seed = std::string(output) + m_options.suffix;
    define({seed, m_out.tensors[last].dims, TensorRole::input, m_out.tensors[last].type});
    m_parts[last] = {seed};
  }

  TensorProgram run() {
    for (auto o = m_order.rbegin(); o != m_order.rend(); ++o) {
      const Operation operation = m_out.operations[*o];
      const std::size_t y = m_out.tensor(operation.output);
      if (m_parts[y].empty()) continue;
      const std::string g = m_parts[y].front();
      for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
        const std::size_t t = m_out.tensor(operation.inputs[i]);
        if (m_needed[t] && has_gradient(operation, i)) gradient(operation, i, t, g);
      }
    }
    for (const std::string& name : m_wanted) finish(name);
    return std::move(m_out);
  }

 private:
  static constexpr const char* where = "heddle::systems::reverse";
  using Names = std::vector<std::string>;

  /// Finds the tensors that depend on `wanted`, and counts for each how many of its uses lead to
  /// the output.
  void find_needed(std::size_t last) {
    std::vector<bool> leads(m_out.tensors.size(), false);
    leads[last] = true;
    for (auto o = m_order.rbegin(); o != m_order.rend(); ++o) {
      const Operation& operation = m_out.operations[*o];
      if (!leads[m_out.tensor(operation.output)]) continue;
      for (std::size_t i = 0; i < operation.inputs.size(); ++i)
        if (has_gradient(operation, i)) leads[m_out.tensor(operation.inputs[i])] = true;
    }
    m_wanted = m_options.wanted;
    for (const std::string& name : m_wanted)
      expects(leads[m_out.tensor(name)] && m_out.tensor(name) != last, [&] {
        return ErrorInfo{where, "the output does not depend on a tensor, so it has no gradient",
                         text("output '", m_out.tensors[last].name, "', tensor '", name, "'"),
                         "take it out of `wanted`"};
      });
    for (std::size_t t = 0; m_options.wanted.empty() && t < leads.size(); ++t)
      if (leads[t] && m_out.tensors[t].role == TensorRole::parameter)
        m_wanted.push_back(m_out.tensors[t].name);
    expects(!m_wanted.empty(), [&] {
      return ErrorInfo{where, "the output depends on no parameter",
                       text("output '", m_out.tensors[last].name, "'"),
                       "name the tensors whose gradients are wanted"};
    });
    for (const std::string& name : m_wanted) m_needed[m_out.tensor(name)] = true;
    for (const std::size_t o : m_order) {
      const Operation& operation = m_out.operations[o];
      const std::size_t y = m_out.tensor(operation.output);
      for (std::size_t i = 0; i < operation.inputs.size(); ++i)
        if (has_gradient(operation, i) && m_needed[m_out.tensor(operation.inputs[i])])
          m_needed[y] = true;
    }
    for (const Operation& operation : m_out.operations) {
      if (!leads[m_out.tensor(operation.output)]) continue;
      for (std::size_t i = 0; i < operation.inputs.size(); ++i)
        if (has_gradient(operation, i)) ++m_left[m_out.tensor(operation.inputs[i])];
    }
    for (std::size_t t = 0; t < leads.size(); ++t) m_needed[t] = m_needed[t] && leads[t];
  }

  void define(ProgramTensor tensor) {
    expects(
        std::ranges::find(m_out.tensors, tensor.name, &ProgramTensor::name) == m_out.tensors.end(),
        [&] {
          return ErrorInfo{where, "the program already has a tensor with the name of a new one",
                           text("tensor '", tensor.name, "'"),
                           "rename it, or choose another suffix"};
        });
    m_out.tensors.push_back(std::move(tensor));
  }
  [[nodiscard]] const Names& dims(const std::string& name) const {
    return m_out.tensors[m_out.tensor(name)].dims;
  }
  /// Adds an operation that computes a new tensor; returns its name.
  std::string add(OperationKind kind, Names inputs, std::string name, Names of,
                  std::string function = {}, double factor = 1) {
    const Scalar type = m_out.tensors[m_out.tensor(inputs.front())].type;
    define({name, std::move(of), TensorRole::intermediate, type});
    m_out.operations.push_back({kind, std::move(inputs), name, std::move(function), factor});
    return name;
  }

  /// Names of the part of the gradient of tensor t that one operation gives.
  [[nodiscard]] std::string part_name(std::size_t t) const {
    const std::string whole = m_out.tensors[t].name + m_options.suffix;
    return m_parts[t].empty() && m_left[t] == 1 ? whole : text(whole, '.', m_parts[t].size());
  }
  [[nodiscard]] std::string step_name(std::size_t t, std::size_t step) const {
    return text(m_out.tensors[t].name, m_options.suffix, '.', m_parts[t].size(), '.', step);
  }

  /// Adds `f` of the inputs, summed over the dimensions that tensor t lacks, as a part of t's
  /// gradient. `all` has the dimensions of f.
  std::string element(std::size_t t, const Names& all, Names inputs, const std::string& function,
                      double factor = 1) {
    const Names wanted = m_out.tensors[t].dims;
    if (without(all, wanted).empty())
      return add(OperationKind::elementwise, std::move(inputs), part_name(t), wanted, function,
                 factor);
    if (function != "identity")
      inputs = {add(OperationKind::elementwise, std::move(inputs), step_name(t, 0), all, function,
                    factor)};
    return add(OperationKind::reduce, std::move(inputs), part_name(t), wanted, "sum");
  }
  /// Adds sum(a * b) over the dimensions that are not in `of`.
  std::string product(const std::string& a, const std::string& b, const std::string& name,
                      const Names& of) {
    const bool sums = !without(dims(a), of).empty() || !without(dims(b), of).empty();
    return add(sums ? OperationKind::matmul : OperationKind::elementwise, {a, b}, name, of,
               sums ? "" : "multiply");
  }
  /// Adds a gradient of t that is `g` itself.
  std::string same(std::size_t t, const std::string& g) {
    const Names all = dims(g);
    return all == m_out.tensors[t].dims ? g : element(t, all, {g}, "identity");
  }

  /// Adds what an operation gives to the gradient of its input i, tensor t.
  void gradient(const Operation& operation, std::size_t i, std::size_t t, const std::string& g) {
    std::string part;
    const Names of = m_out.tensors[t].dims;
    switch (operation.kind) {
      case OperationKind::matmul: {
        const std::string& other = operation.inputs[1 - i];
        const Names lost = without(without(of, dims(g)), dims(other));
        part = product(g, other, lost.empty() ? part_name(t) : step_name(t, 0), without(of, lost));
        // Dimensions of this input alone, over which the matmul sums.
        if (!lost.empty())
          part = add(OperationKind::elementwise, {part}, part_name(t), of, "identity");
        break;
      }
      case OperationKind::reduce:
        part = operation.function == "sum" ? same(t, g) : of_maximum(operation, t, g);
        break;
      case OperationKind::reshape: part = add(OperationKind::reshape, {g}, part_name(t), of); break;
      case OperationKind::gather:
        part = add(OperationKind::scatter_add, {g, operation.inputs[1]}, part_name(t), of);
        break;
      case OperationKind::scatter_add:
        part = add(OperationKind::gather, {g, operation.inputs[1]}, part_name(t), of);
        break;
      case OperationKind::elementwise: part = of_element(operation, i, t, g); break;
    }
    m_parts[t].push_back(std::move(part));
    if (m_parts[t].size() < m_left[t]) return;
    // The last part is known: one tensor remains.
    Names parts = std::move(m_parts[t]);
    for (std::size_t p = 1; p < parts.size(); ++p) {
      const std::string whole = m_out.tensors[t].name + m_options.suffix;
      const bool last = p + 1 == parts.size();
      parts[0] = add(OperationKind::elementwise, {parts[0], parts[p]},
                     last ? whole : text(whole, ".sum.", p), of, "add");
    }
    m_parts[t] = {parts[0]};
  }

  std::string of_maximum(const Operation& operation, std::size_t t, const std::string& g) {
    constexpr auto element_of = OperationKind::elementwise;
    const std::string& x = operation.inputs[0];
    const Names of = m_out.tensors[t].dims;
    const std::string equal = add(element_of, {x, operation.output}, step_name(t, 0), of, "equal");
    const std::string count = add(OperationKind::reduce, {equal}, step_name(t, 1), dims(g), "sum");
    const std::string share = add(element_of, {g, count}, step_name(t, 2), dims(g), "divide");
    return add(element_of, {equal, share}, part_name(t), of, "multiply");
  }

  std::string of_element(const Operation& operation, std::size_t i, std::size_t t,
                         const std::string& g) {
    constexpr auto element_of = OperationKind::elementwise;
    const std::string& f = operation.function;
    const std::string& y = operation.output;
    const std::string& x = operation.inputs[0];
    const std::string& other = operation.inputs.back();
    const Names all = dims(y), of = m_out.tensors[t].dims;
    if (f == "relu") return element(t, all, {g, x}, "relu_gradient");
    if (f == "tanh") return element(t, all, {g, y}, "tanh_gradient");
    if (f == "exp") return product(g, y, part_name(t), of);
    if (f == "log") return element(t, all, {g, x}, "divide");
    if (f == "negate" || (f == "subtract" && i == 1)) return element(t, all, {g}, "negate");
    if (f == "scale") return element(t, all, {g}, "scale", operation.factor);
    if (f == "step" && i == 1) return element(t, all, {g}, "scale", -operation.factor);
    if (f == "multiply") return product(g, operation.inputs[1 - i], part_name(t), of);
    if (f == "power") {
      const std::string slope =
          add(element_of, {x}, step_name(t, 0), of, "power", operation.factor - 1);
      const std::string scaled =
          add(element_of, {slope}, step_name(t, 1), of, "scale", operation.factor);
      return product(g, scaled, part_name(t), of);
    }
    if (f == "divide" && i == 0) return element(t, all, {g, other}, "divide");
    if (f == "divide") {
      const std::string sum = product(g, y, step_name(t, 0), of);
      const std::string part = add(element_of, {sum, other}, step_name(t, 1), of, "divide");
      return add(element_of, {part}, part_name(t), of, "negate");
    }
    if (f == "relu_gradient") return element(t, all, {g, other}, f);
    if (f == "tanh_gradient" && i == 0) return element(t, all, {g, other}, f);
    if (f == "tanh_gradient") {
      const std::string sum = product(g, x, step_name(t, 0), of);
      const std::string part = add(element_of, {sum, other}, step_name(t, 1), of, "multiply");
      return add(element_of, {part}, part_name(t), of, "scale", -2);
    }
    return same(t, g);  // identity, shift, add, and the first input of subtract and step
  }

  /// Gives a wanted gradient its name, and makes it an output or the update of its parameter.
  void finish(const std::string& name) {
    const std::string wanted = name + m_options.suffix;
    const std::string found = m_parts[m_out.tensor(name)].front();
    const ProgramTensor of = m_out.tensors[m_out.tensor(name)];
    if (found != wanted) add(OperationKind::elementwise, {found}, wanted, of.dims, "identity");
    if (!m_options.step || of.role != TensorRole::parameter) {
      m_out.tensors[m_out.tensor(wanted)].role = TensorRole::output;
      return;
    }
    const std::string next = add(OperationKind::elementwise, {name, wanted}, name + "_next",
                                 of.dims, "step", *m_options.step);
    ProgramTensor& updated = m_out.tensors[m_out.tensor(next)];
    updated.role = TensorRole::output;
    updated.updates = name;
  }

  std::vector<std::size_t> m_order;
  TensorProgram m_out;
  const ReverseOptions& m_options;
  Names m_wanted = {};
  std::vector<Names> m_parts;       ///< by tensor: names of the parts of its gradient
  std::vector<std::size_t> m_left;  ///< by tensor: how many parts its gradient has
  std::vector<bool> m_needed;       ///< by tensor: whether its gradient is computed
};

}  // namespace impl

HEDDLE_INLINE TensorProgram reverse(const TensorProgram& program, std::string_view output,
                                    const ReverseOptions& options) {
  expects(!options.step || std::isfinite(*options.step), [&] {
    return ErrorInfo{"heddle::systems::reverse", "the learning rate must be finite",
                     text("ReverseOptions::step = ", *options.step)};
  });
  return impl::Reverser(program, output, options).run();
}

}  // namespace heddle::inline v0::systems
