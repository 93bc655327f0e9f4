// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/comm.hpp>
#include <heddle/sequence.hpp>

#include "attention_costs.hpp"
#include "space.hpp"

namespace examples {

namespace {

/// On this rank.
template <class Real>
heddle::Seconds product_of(const heddle::schedule::AttentionForm& form) {
  using Exec = Space::execution_space;
  using Matrix = heddle::kernel::Matrix<Real, Exec>;
  const heddle::SequenceLine<Real, Exec> line;
  const heddle::SequenceShape shape{
      1,
      std::min<std::int64_t>(form.tokens, 256),
      {static_cast<std::size_t>(form.heads), static_cast<std::size_t>(form.kv_heads),
       static_cast<std::size_t>(form.head_width)}};
  const std::size_t rows = line.rows(shape), columns = shape.heads.query_columns();
  const Kokkos::View<Real*, typename Exec::memory_space> memory(
      "examples::attention_product",
      rows * (shape.qkv_columns() + columns) + line.saved_size(shape));
  Real* const output = memory.data() + rows * shape.qkv_columns();
  const Exec exec;
  heddle::Seconds best = std::numeric_limits<heddle::Seconds>::infinity();
  for (int run = 0; run < 5; ++run) {  // the first one warms up
    exec.fence("examples::attention_product");
    const Kokkos::Timer timer;
    heddle::sequence_attention_forward(
        line, exec, shape, Matrix(memory.data(), rows, shape.qkv_columns()),
        heddle::kernel::Vector<Real, Exec>(output + rows * columns, line.saved_size(shape)),
        Matrix(output, rows, columns));
    exec.fence("examples::attention_product");
    best = std::min(best, timer.seconds());
  }
  const auto context = static_cast<double>(shape.context);
  return best / (2 * context * (context + 1) / 2);
}

}  // namespace

heddle::schedule::AttentionForm attention_form(const Settings& s, int ranks, std::int64_t tokens) {
  const GptConfig& model = s.training.model;
  return {.ranks = ranks,
          .order = make_sequence(s).order,
          .backward = true,
          .tokens = tokens,
          .heads = model.heads / s.tensor,
          .kv_heads = model.heads_of_keys() / s.tensor,
          .head_width = model.width / model.heads,
          .type = s.precision == "double" ? heddle::scalar_of<double> : heddle::scalar_of<float>};
}

heddle::Machine sequence_machine(const Settings& s, MPI_Comm comm) {
  heddle::DeviceMesh mesh(
      comm, {{"pipe", s.pipe}, {"data", s.data}, {"sequence", s.sequence}, {"tensor", s.tensor}});
  if (s.costs == "nominal")
    return heddle::Machine::uniform(s.sequence, {.name = "rank"}, {5e-6, 10e9});
  heddle::DeviceMesh line(mesh["sequence"].get(), {{"sequence", s.sequence}});
  return heddle::measure_links(line);
}

heddle::Seconds attention_product(const Settings& s, MPI_Comm comm) {
  const auto form = attention_form(s, 1, s.training.model.context);
  if (s.costs == "nominal") return 2.0 * form.heads * form.head_width * 1e-12;
  double product = s.precision == "double" ? product_of<double>(form) : product_of<float>(form);
  heddle::check(MPI_Allreduce(MPI_IN_PLACE, &product, 1, MPI_DOUBLE, MPI_MAX, comm),
                "attention_product");
  return product;
}

}  // namespace examples
