// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// compute_operation(): computes an operation of a systems::TensorProgram on one rank's parts.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/systems/hap/impl/program_kernels.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>

namespace heddle::inline v0::systems::impl {

/// The blocks of one rank.
class LocalBlocks {
 public:
  LocalBlocks(const TensorProgram& program, const ShardedProgram& sharded, std::size_t rank)
      : m_program(&program), m_sharded(&sharded), m_rank(rank) {}

  [[nodiscard]] const TensorProgram& program() const { return *m_program; }
  [[nodiscard]] const std::vector<std::int64_t>& all(std::string_view dim) const {
    return m_sharded->blocks[m_program->dimension(dim)];
  }
  [[nodiscard]] std::int64_t first(std::string_view dim) const {
    const auto begin = all(dim).begin();
    return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(m_rank), std::int64_t{0});
  }
  [[nodiscard]] std::int64_t count(std::string_view dim) const { return all(dim)[m_rank]; }
  /// The indices of a dimension that the rank has if the tensor has this form.
  [[nodiscard]] std::int64_t extent(const std::string& dim, const TensorForm& form) const {
    return form.kind == systems::TensorForm::Kind::sharded && form.dim == dim
               ? count(dim)
               : m_program->size_of(dim);
  }

 private:
  const TensorProgram* m_program;
  const ShardedProgram* m_sharded;
  std::size_t m_rank;
};

/// One operand: where its elements are.
class Operand {
 public:
  Operand(const LocalBlocks& here, std::string_view tensor, const TensorForm& form)
      : m_here(&here),
        m_form(form),
        m_dims(&here.program().tensors[here.program().tensor(tensor)].dims) {}

  [[nodiscard]] const std::vector<std::string>& dims() const { return *m_dims; }
  [[nodiscard]] bool has(std::string_view dim) const {
    return std::ranges::find(*m_dims, dim) != m_dims->end();
  }
  [[nodiscard]] std::int64_t extent(const std::string& dim) const {
    return m_here->extent(dim, m_form);
  }
  /// The stride of a dimension; 0 if the operand lacks it.
  [[nodiscard]] std::int64_t stride(std::string_view dim) const {
    if (!has(dim)) return 0;
    std::int64_t product = 1;
    for (std::size_t d = m_dims->size(); (*m_dims)[--d] != dim;) product *= extent((*m_dims)[d]);
    return product;
  }
  [[nodiscard]] std::int64_t elements() const {
    std::int64_t product = 1;
    for (const std::string& dim : *m_dims) product *= extent(dim);
    return product;
  }
  /// The first index that the rank has of a dimension.
  [[nodiscard]] std::int64_t first(const std::string& dim) const {
    return m_form.kind == systems::TensorForm::Kind::sharded && m_form.dim == dim
               ? m_here->first(dim)
               : 0;
  }

 private:
  const LocalBlocks* m_here;
  TensorForm m_form;
  const std::vector<std::string>* m_dims;
};

/// Returns the dimension of a table that indices select: the one that its rows lack.
[[nodiscard]] inline const std::string& selected_dimension(const TensorProgram& program,
                                                           std::string_view table,
                                                           std::string_view rows) {
  const auto& of_table = program.tensors[program.tensor(table)].dims;
  const auto& of_rows = program.tensors[program.tensor(rows)].dims;
  return *std::ranges::find_if(of_table, [&](const std::string& dim) {
    return std::ranges::find(of_rows, dim) == of_rows.end();
  });
}

/// Returns this rank's part of the output of an operation by a rule. Waits for the result.
template <class T, class Space, class View>
[[nodiscard]] View compute_operation(const LocalBlocks& here, const Operation& operation,
                                     const ShardRule& rule, const std::vector<View>& inputs) {
  using Exec = typename Space::execution_space;
  const Operand out(here, operation.output, rule.output);
  const Operand a(here, operation.inputs.front(), rule.inputs.front());
  const Operand b(here, operation.inputs.back(), rule.inputs.back());
  const View result("heddle::program", static_cast<std::size_t>(out.elements()));
  const T* const first = inputs.front().data();
  const T* const second = inputs.back().data();
  T* const to = result.data();
  const auto launch = [&](const auto& kernel) {
    const Exec space;
    Kokkos::parallel_for("heddle::program",
                         Kokkos::RangePolicy<Exec, std::int64_t>(space, 0, out.elements()), kernel);
    space.fence("heddle::program");
  };
  Nest outer;
  for (const std::string& dim : out.dims())
    outer.add(out.extent(dim), a.stride(dim), b.stride(dim));

  switch (operation.kind) {
    case OperationKind::matmul:
    case OperationKind::reduce: {
      Nest inner;
      for (const Operand* operand : {&a, &b})
        for (const std::string& dim : operand->dims())
          if (!out.has(dim) && (operand == &a || !a.has(dim)))
            inner.add(operand->extent(dim), a.stride(dim), b.stride(dim));
      const bool matmul = operation.kind == OperationKind::matmul;
      launch(SumKernel<T>{outer, inner, first, matmul ? second : nullptr, to,
                          operation.function == "max"});
      break;
    }
    case OperationKind::elementwise:
      launch(ElementKernel<T>{outer, first, second, to, element_function(operation.function),
                              static_cast<T>(operation.factor)});
      break;
    case OperationKind::reshape: Kokkos::deep_copy(result, inputs.front()); break;
    case OperationKind::gather: {
      const std::string& row =
          selected_dimension(here.program(), operation.inputs[0], operation.output);
      launch(GatherKernel<T>{outer, a.stride(row), a.first(row), a.extent(row), first, second, to});
      break;
    }
    case OperationKind::scatter_add: {
      const std::string& row =
          selected_dimension(here.program(), operation.output, operation.inputs[0]);
      Nest rows, inner;
      for (const std::string& dim : out.dims())
        rows.add(out.extent(dim), a.stride(dim), dim == row ? 1 : 0);
      for (const std::string& dim : b.dims())
        inner.add(b.extent(dim), a.stride(dim), b.stride(dim));
      launch(ScatterKernel<T>{rows, inner, out.first(row), first, second, to});
      break;
    }
  }
  return result;
}

}  // namespace heddle::inline v0::systems::impl
