// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ProgramRun: executes a systems::ShardedProgram on the ranks of a communicator.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/systems/hap/impl/program_operation.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/tensor/redistribute.hpp>
#include <heddle/tensor/sharded.hpp>

namespace heddle::inline v0::systems {

/// Executes a sharded program. Each rank computes its blocks with simple loops in `Space`, so that
/// results can be compared with those of other programs; it is not tuned. Collectives are
/// redistribute() and all_reduce().
///
///     const systems::HapResult found = systems::hap(program, machine);
///     ProgramRun<double> run(comm, program, found.program);
///     run.set("x", x);  // all elements, on every rank
///     run.set("w", w);
///     run.run();
///     const std::vector<double> y = run.whole("y");
///
/// The communicator must outlive the object.
template <std::floating_point T, class Space = Kokkos::DefaultExecutionSpace>
class ProgramRun {
 public:
  /// The elements of a rank's part of a tensor in row-major order.
  using View = Kokkos::View<T*, Kokkos::LayoutRight, typename Space::memory_space>;

  /// Constructs a run without values. All ranks of `comm` must pass the same programs.
  /// @throws contract_error as systems::check(), and if the communicator has another number of
  ///         ranks than the program.
  ProgramRun(const Communicator& comm, TensorProgram program, ShardedProgram sharded)
      : m_comm(&comm), m_program(std::move(program)), m_sharded(std::move(sharded)) {
    check(m_program, m_sharded);
    expects(m_sharded.ranks == comm.size(), [&] {
      return ErrorInfo{where, "the communicator has another number of ranks than the program",
                       text(comm.size(), " ranks, expected ", m_sharded.ranks),
                       "plan for this number of ranks, or split the communicator"};
    });
    m_values.resize(m_program.tensors.size());
  }

  /// Sets an input or a parameter. `whole` has all elements in row-major order and is the same on
  /// every rank; the rank keeps its part. If the tensor is an index of a gather or scatter_add, its
  /// elements must be whole numbers of the selected dimension.
  /// @throws contract_error if it is not an input or a parameter, has another number of elements,
  ///         or has an index outside of the selected dimension.
  void set(std::string_view name, std::span<const T> whole) {
    const std::size_t t = m_program.tensor(name);
    const ProgramTensor& tensor = m_program.tensors[t];
    const auto elements = static_cast<std::size_t>(m_program.elements(tensor));
    expects((tensor.role == systems::TensorRole::input ||
             tensor.role == systems::TensorRole::parameter) &&
                whole.size() == elements,
            [&] {
              return ErrorInfo{where, "values are set of inputs and parameters, all elements",
                               text("tensor '", name, "', ", tensor.role, ", ", whole.size(),
                                    " values, expected ", elements)};
            });
    check_indices(name, whole);
    for (const ShardInstruction& instruction : m_sharded.instructions)
      if (instruction.kind == systems::ShardInstructionKind::place && instruction.tensor == name)
        m_values[t] = {{instruction.to, part(tensor, instruction.to, whole)}};
  }

  /// Executes all instructions. Collective over the communicator.
  /// @throws contract_error if an input or a parameter was not set.
  void run() {
    run([](const ShardInstruction&) {});
  }
  /// Executes all instructions, and calls `done(instruction)` after each. When a computation is
  /// done, its result is in memory.
  template <std::invocable<const ShardInstruction&> Done>
  void run(Done&& done) {
    for (const ShardInstruction& instruction : m_sharded.instructions) {
      const std::size_t t = m_program.tensor(instruction.tensor);
      if (instruction.kind == systems::ShardInstructionKind::place)
        expects(!m_values[t].empty(), [&] {
          return ErrorInfo{where, "a tensor has no values",
                           text("tensor '", instruction.tensor, "', ", m_program.tensors[t].role),
                           "call set() before run()"};
        });
      else if (instruction.kind == systems::ShardInstructionKind::compute)
        put(t, instruction.to, computed(instruction));
      else
        put(t, instruction.to, converted(t, instruction.from, instruction.to));
      done(instruction);
    }
  }

  /// Replaces parameters by the outputs that update them, for the next step. Sends no message.
  /// @throws contract_error if run() was not called before.
  void advance() {
    for (std::size_t t = 0; t < m_values.size(); ++t) {
      const std::string& updated = m_program.tensors[t].updates;
      if (updated.empty()) continue;
      auto& of_parameter = m_values[m_program.tensor(updated)];
      if (of_parameter.empty()) continue;
      const TensorForm form = placed(updated);
      of_parameter = {{form, local(m_program.tensors[t].name, form)}};
    }
  }

  /// Returns this rank's part of a tensor in a form.
  /// @throws contract_error if the tensor is not available in this form.
  [[nodiscard]] const View& local(std::string_view name, const TensorForm& form) const {
    const std::size_t t = m_program.tensor(name);
    const auto found = std::ranges::find(m_values[t], form, &std::pair<TensorForm, View>::first);
    expects(found != m_values[t].end(), [&] {
      return ErrorInfo{where, "the tensor is not available in this form",
                       text("tensor '", name, "', ", form), "run() the program first"};
    });
    return found->second;
  }

  /// Returns all elements of a tensor in row-major order, on every rank. Collective over the
  /// communicator. @throws contract_error if the tensor is not available in any form.
  [[nodiscard]] std::vector<T> whole(std::string_view name) {
    const std::size_t t = m_program.tensor(name);
    expects(!m_values[t].empty(), [&] {
      return ErrorInfo{where, "the tensor has no values", text("tensor '", name, "'"),
                       "run() the program first"};
    });
    const auto& [form, view] = m_values[t].back();
    const View all = form == TensorForm{} ? view : converted(t, form, {});
    std::vector<T> out(all.size());
    Kokkos::deep_copy(Kokkos::View<T*, Kokkos::HostSpace>(out.data(), out.size()), all);
    return out;
  }

 private:
  static constexpr const char* where = "heddle::systems::ProgramRun";
  using Values = std::vector<std::pair<TensorForm, View>>;
  using Box = Sharded<T*****, Space>;

  [[nodiscard]] TensorForm placed(std::string_view name) const {
    const auto found = std::ranges::find_if(m_sharded.instructions, [&](const auto& instruction) {
      return instruction.kind == systems::ShardInstructionKind::place && instruction.tensor == name;
    });
    return found->to;
  }

  void check_indices(std::string_view name, std::span<const T> whole) const {
    for (const Operation& operation : m_program.operations) {
      const bool gather = operation.kind == systems::OperationKind::gather;
      if (!gather && operation.kind != systems::OperationKind::scatter_add) continue;
      if (operation.inputs[1] != name) continue;
      const auto& table = gather ? operation.inputs[0] : operation.output;
      const auto& rows = gather ? operation.output : operation.inputs[0];
      const std::int64_t size = m_program.size_of(impl::selected_dimension(m_program, table, rows));
      for (const T value : whole)
        expects(value >= T(0) && value < static_cast<T>(size) &&
                    static_cast<T>(static_cast<std::int64_t>(value)) == value,
                [&] {
                  return ErrorInfo{where, "an index is not a row of the table",
                                   text("tensor '", name, "', value ", value, ", table '", table,
                                        "' of ", size, " rows")};
                });
    }
  }

  [[nodiscard]] impl::LocalBlocks blocks() const { return {m_program, m_sharded, +m_comm->rank()}; }

  /// This rank's part of all elements.
  [[nodiscard]] View part(const ProgramTensor& tensor, const TensorForm& form,
                          std::span<const T> whole) const {
    const impl::LocalBlocks here = blocks();
    std::int64_t before = 1, size = 1, after = 1;
    bool behind = false;
    for (const std::string& dim : tensor.dims) {
      if (form.dim == dim)
        behind = true;
      else
        (behind ? after : before) *= m_program.size_of(dim);
    }
    if (behind) size = m_program.size_of(form.dim);
    const std::int64_t first = behind ? here.first(form.dim) : 0;
    const std::int64_t count = behind ? here.count(form.dim) : 1;
    std::vector<T> mine;
    for (std::int64_t b = 0; b < before; ++b) {
      const auto begin = whole.begin() + (b * size + first) * after;
      mine.insert(mine.end(), begin, begin + count * after);
    }
    View view("heddle::program", mine.size());
    Kokkos::deep_copy(view, Kokkos::View<const T*, Kokkos::HostSpace>(mine.data(), mine.size()));
    return view;
  }

  void put(std::size_t t, const TensorForm& form, View view) {
    Values& values = m_values[t];
    const auto found = std::ranges::find(values, form, &Values::value_type::first);
    if (found != values.end())
      found->second = std::move(view);
    else
      values.emplace_back(form, std::move(view));
  }

  [[nodiscard]] View computed(const ShardInstruction& instruction) const {
    const Operation& operation = m_program.operations[instruction.operation];
    std::vector<View> inputs;
    for (std::size_t i = 0; i < operation.inputs.size(); ++i)
      inputs.push_back(local(operation.inputs[i], instruction.rule.inputs[i]));
    return impl::compute_operation<T, Space>(blocks(), operation, instruction.rule, inputs);
  }

  /// The tensor as five dimensions, of which the second and the fourth may be divided.
  [[nodiscard]] View converted(std::size_t t, const TensorForm& from, const TensorForm& to) const {
    const ProgramTensor& tensor = m_program.tensors[t];
    const View& source = local(tensor.name, from);
    const impl::LocalBlocks here = blocks();
    if (from.kind == systems::TensorForm::Kind::partial &&
        to.kind == systems::TensorForm::Kind::replicated) {
      View sum("heddle::program", source.size());
      Kokkos::deep_copy(sum, source);
      all_reduce(typename Space::execution_space(), sum, Sum{}, *m_comm);
      return sum;
    }
    std::vector<std::int64_t> sizes(5, 1);
    std::vector<Placement> placements[2];
    std::size_t at = 0;
    for (const std::string& dim : tensor.dims) {
      const bool divided[] = {dim == from.dim, dim == to.dim};
      if (!divided[0] && !divided[1]) {
        sizes[at] *= m_program.size_of(dim);
        continue;
      }
      sizes[++at] = m_program.size_of(dim);
      for (int side = 0; side < 2; ++side)
        if (divided[side])
          placements[side] = {Shard{static_cast<int>(at), ShardOrder::weighted(here.all(dim))}};
      ++at;
    }
    const TensorForm* const forms[] = {&from, &to};
    for (int side = 0; side < 2; ++side)
      if (placements[side].empty())
        placements[side] = {forms[side]->kind == systems::TensorForm::Kind::partial
                                ? Placement(Partial{})
                                : Placement(Replicate{})};
    const Layout layout(MeshShape{{"ranks", m_comm->size()}}, std::move(sizes), placements[0]);
    const std::vector<std::int64_t> extents = layout.extents(m_comm->rank());
    const auto extent = [&](std::size_t d) { return static_cast<std::size_t>(extents[d]); };
    const typename Box::View box(source.data(), extent(0), extent(1), extent(2), extent(3),
                                 extent(4));
    const Box result =
        redistribute(Box(*m_comm, layout, box), layout.with(placements[1]).placements());
    View out("heddle::program", result.parts().size());
    Kokkos::deep_copy(out, View(result.parts().data(), result.parts().size()));
    return out;
  }

  const Communicator* m_comm;
  TensorProgram m_program;
  ShardedProgram m_sharded;
  std::vector<Values> m_values;  ///< by tensor: the forms that are available
};

}  // namespace heddle::inline v0::systems
