// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// TensorProgram: a small program of operations on tensors with named dimensions. Planners decide
/// how its tensors are divided over devices, and run_program() of tensor/ executes it.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::systems {

/// A dimension of the tensors of a program.
struct Dimension {
  std::string name = {};  ///< unique in the program
  std::int64_t size = 1;  ///< indices, at least 1

  friend bool operator==(const Dimension&, const Dimension&) = default;
};

/// The role of a tensor in a program.
enum class TensorRole : std::uint8_t {
  input,         ///< given at each step
  parameter,     ///< kept from step to step
  intermediate,  ///< computed by an operation and used by others
  output,        ///< computed by an operation, and a result of the program
};

/// Prints the name of the enumerator, such as "parameter".
std::ostream& operator<<(std::ostream& out, TensorRole role);

/// A tensor of a program.
struct ProgramTensor {
  std::string name = {};               ///< unique in the program
  std::vector<std::string> dims = {};  ///< names of at most 8 dimensions, the last is fastest
  TensorRole role = TensorRole::intermediate;  ///< what it is for the program
  Scalar type = Scalar::f32;                   ///< type of the elements, for bytes()
  /// The parameter whose value of the next step this output is. Empty: none. The two have the same
  /// dimensions, and every device must hold the same part of both.
  std::string updates = {};

  friend bool operator==(const ProgramTensor&, const ProgramTensor&) = default;
};

/// The kinds of operations.
enum class OperationKind : std::uint8_t {
  /// The product of two tensors, summed over all dimensions that the output does not have. So
  /// `y[b, o] = x[b, i] * w[i, o]` is a linear layer. Every dimension of the output is one of an
  /// input.
  matmul,
  /// A function of the elements of one or two tensors, by name. An input may lack dimensions of the
  /// output; its elements are then repeated. See elementwise_inputs().
  elementwise,
  /// The sum, or the maximum, over the dimensions that the output does not have.
  reduce,
  /// The same elements, in row-major order, under other dimensions with the same product of sizes.
  reshape,
  /// Rows of a table: the inputs are a table and indices. The output has the dimensions of the
  /// indices and those of the table but one, which the indices select. Indices are whole numbers.
  gather,
  /// The gradient of gather for the table: the inputs are rows and their indices, and rows with the
  /// same index are added. Indices that never occur give 0.
  scatter_add,
};

/// Prints the name of the enumerator, such as "matmul".
std::ostream& operator<<(std::ostream& out, OperationKind kind);

/// An operation of a program.
struct Operation {
  OperationKind kind = OperationKind::matmul;  ///< what it computes
  std::vector<std::string> inputs = {};        ///< names of tensors
  std::string output = {};                     ///< the tensor that it computes
  /// elementwise: the name of the function. reduce: "sum" or "max". Else empty.
  std::string function = {};
  /// elementwise "scale": the factor. "shift": the addend. "power": the exponent. "step": the
  /// learning rate. Else unused.
  double factor = 1;

  friend bool operator==(const Operation&, const Operation&) = default;
};

/// Returns the number of inputs of the elementwise function `name`, or 0 if there is none.
/// With one input: identity, negate, relu, tanh, exp, log, scale (x * factor), shift (x + factor),
/// power (x^factor) and stop_gradient (x; reverse() takes it for a constant). With two: add,
/// subtract, multiply, divide, equal (1 if x = y, else 0), relu_gradient (dy if x > 0, else 0;
/// inputs dy and x), tanh_gradient (dy (1 - y^2); inputs dy and y) and step (w - factor * gradient;
/// inputs w and gradient).
[[nodiscard]] std::size_t elementwise_inputs(std::string_view name) noexcept;

/// A program of operations on tensors. A value type: fill in the members, then check() it. Each
/// tensor is computed at most once, so the order of the operations does not matter.
///
///     systems::TensorProgram mlp;
///     mlp.dimensions = {{"b", 64}, {"i", 512}, {"o", 512}};
///     mlp.tensors = {{"x", {"b", "i"}, TensorRole::input},
///                    {"w", {"i", "o"}, TensorRole::parameter},
///                    {"y", {"b", "o"}, TensorRole::output}};
///     mlp.operations = {{OperationKind::matmul, {"x", "w"}, "y"}};
struct TensorProgram {
  std::string name = {};                    ///< shown to people
  std::vector<Dimension> dimensions = {};   ///< in any order
  std::vector<ProgramTensor> tensors = {};  ///< in any order
  std::vector<Operation> operations = {};   ///< in any order

  /// Returns the number of the tensor `name` in `tensors`. @throws contract_error if there is none.
  [[nodiscard]] std::size_t tensor(std::string_view name) const;
  /// Returns the number of the dimension `name` in `dimensions`. @throws contract_error if there is
  /// none.
  [[nodiscard]] std::size_t dimension(std::string_view name) const;
  /// Returns the size of the dimension `name`. @throws contract_error if there is none.
  [[nodiscard]] std::int64_t size_of(std::string_view name) const;
  /// Returns the sizes of the dimensions of a tensor. @throws contract_error as dimension().
  [[nodiscard]] std::vector<std::int64_t> sizes(const ProgramTensor& tensor) const;
  /// Returns the number of elements of a tensor, as a floating point number because it may be
  /// large. @throws contract_error as dimension().
  [[nodiscard]] double elements(const ProgramTensor& tensor) const;
  /// Returns the bytes of a tensor. @throws contract_error as dimension().
  [[nodiscard]] double bytes(const ProgramTensor& tensor) const;
  /// Returns the floating point operations of an operation: two for each product of a matmul, one
  /// for each element of an elementwise output, of the input of a reduce and of the rows of a
  /// scatter_add; none for reshape and gather. @throws contract_error if a tensor or a dimension is
  /// undefined.
  [[nodiscard]] double flops(const Operation& operation) const;
  /// Returns the sum of the flops of all operations. @throws contract_error as for one.
  [[nodiscard]] double flops() const;

  friend bool operator==(const TensorProgram&, const TensorProgram&) = default;
  /// Prints the dimensions, and the tensors and operations line by line.
  friend std::ostream& operator<<(std::ostream& out, const TensorProgram& program);
};

namespace impl {

/// Throws an error of the function `where` if the kind is unknown, if there is no input, or if the
/// factor is not a number.
void check_kind(const char* where, const Operation& operation);

}  // namespace impl

/// Checks a program and returns the numbers of its operations in an order in which each stands
/// behind those that it needs. Of several such orders, it is the one nearest to the given order.
/// @throws contract_error that names the first wrong entry and a remedy: a name that is empty or
///         defined twice, a dimension with two sizes or a size below 1, a tensor or dimension that
///         is undefined, a tensor with a dimension twice or with more than 8, a tensor that no
///         operation or two operations compute, an input or a parameter that is computed, operands
///         that do not fit the operation, an unknown function, an update of something else than a
///         parameter, or a cycle of operations.
std::vector<std::size_t> check(const TensorProgram& program);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/hap/program.ipp>
#endif
