// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <cstdint>

#include <mpi.h>

#include <heddle/comm.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/attention_state.hpp>

#include "attention_costs.hpp"
#include "gpt.hpp"

namespace examples {

heddle::schedule::AttentionForm attention_form(const Settings& s, int ranks, std::int64_t tokens) {
  const GptConfig& model = s.training.model;
  heddle::expects(s.tensor >= 1 && model.heads_of_keys() % s.tensor == 0, [&] {
    return heddle::ErrorInfo{
        "command line", "the K,V heads do not divide among the ranks of a divided layer",
        heddle::text(model.heads_of_keys(), " K,V heads, ", s.tensor, " ranks"),
        "use a --tensor that divides the K,V heads, or more K,V heads"};
  });
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
  const heddle::LinkOptions options;
  return heddle::measure_links(line, options);
}

heddle::Seconds attention_product(const Settings& s, MPI_Comm comm) {
  const auto form = attention_form(s, 1, s.training.model.context);
  if (s.costs == "nominal") return 2.0 * form.heads * form.head_width * 1e-12;
  const heddle::kernel::AttentionHeads heads{static_cast<std::size_t>(form.heads),
                                             static_cast<std::size_t>(form.kv_heads),
                                             static_cast<std::size_t>(form.head_width)};
  double product = s.precision == "double"
                       ? GptStage<double>::seconds_of_product(heads, form.tokens)
                       : GptStage<float>::seconds_of_product(heads, form.tokens);
  heddle::check(MPI_Allreduce(MPI_IN_PLACE, &product, 1, MPI_DOUBLE, MPI_MAX, comm),
                "attention_product");
  return product;
}

}  // namespace examples
