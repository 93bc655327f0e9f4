// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// generation_schedule(): the step of a pipeline that generates text. Every group of requests
/// passes through all stages, and its tokens go back to the first stage, which needs them in the
/// next step. It needs neither Kokkos nor MPI.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace examples {

/// The roles of the buffers of drawn tokens: on the last rank, and on the first.
inline constexpr const char* drawn_role = "drawn";
inline constexpr const char* tokens_role = "tokens";

/// The sizes of a generation_schedule().
struct GenerationSizes {
  int stages = 1;
  int groups = 1;                ///< batches of requests that are in flight at once
  heddle::Bytes activation = 0;  ///< bytes of a batch between two stages
  heddle::Bytes tokens = 0;      ///< bytes of the tokens of a batch
};

/// Returns the Schedule of one step, with one stage per rank. F of group m on the first stage reads
/// the tokens that the last stage has drawn for the group in the previous step. This dependency is
/// a carried one, so the steps overlap: with at least as many groups as stages no stage waits, if
/// all take equally long. A stage awaits its next batch while it computes the present one.
[[nodiscard]] inline heddle::Schedule generation_schedule(const GenerationSizes& sizes) {
  using heddle::Kind;
  using heddle::Rank;
  namespace hs = heddle::schedule;
  const int stages = sizes.stages, groups = sizes.groups;
  heddle::expects(stages > 0 && groups > 0, [&] {
    return heddle::ErrorInfo{"generation_schedule", "a generation needs a stage and a group",
                             heddle::text(stages, " stages, ", groups, " groups"),
                             "use positive numbers"};
  });
  heddle::Builder builder(heddle::text("generation P=", stages, " M=", groups), stages);
  const auto buffer = [&](int rank, const char* role, heddle::Bytes bytes, bool transient) {
    const auto parts = static_cast<std::uint32_t>(groups);
    return builder.add_buffer({.rank = Rank{rank},
                               .parts = parts,
                               .stage = heddle::Stage{static_cast<std::uint32_t>(rank)},
                               .label = builder.label(role),
                               .transient = transient,
                               .bytes = bytes * parts});
  };
  const heddle::BufferId tokens = buffer(0, tokens_role, sizes.tokens, false);
  std::vector<heddle::BufferId> inputs = {tokens}, outputs;
  for (int s = 0; s < stages; ++s) {
    if (s > 0) inputs.push_back(buffer(s, heddle::role::input, sizes.activation, true));
    if (s + 1 < stages) outputs.push_back(buffer(s, heddle::role::output, sizes.activation, true));
  }
  outputs.push_back(stages == 1 ? tokens : buffer(stages - 1, drawn_role, sizes.tokens, true));
  const auto move = [&](int from, int to, std::uint32_t m, heddle::BufferId source,
                        heddle::BufferId target) {
    builder.add({.kind = Kind::move,
                 .queue = builder.queue(Rank{from}, Rank{to}),
                 .stage = heddle::Stage{static_cast<std::uint32_t>(from)},
                 .item = heddle::Item{m}},
                {hs::read(source, m), hs::write(target, m)});
  };
  // By diagonals, so that a rank posts the receive of its next batch before it computes this one.
  for (int diagonal = 0; diagonal < groups + stages - 1; ++diagonal)
    for (int s = 0; s < stages; ++s) {
      if (diagonal < s || diagonal - s >= groups) continue;
      const auto m = static_cast<std::uint32_t>(diagonal - s);
      const auto at = static_cast<std::size_t>(s);
      const heddle::ActionSpec forward{.kind = Kind::forward,
                                       .queue = builder.local(Rank{s}),
                                       .stage = heddle::Stage{static_cast<std::uint32_t>(s)},
                                       .item = heddle::Item{m}};
      if (stages == 1)
        builder.add(forward, {hs::update(tokens, m)});
      else
        builder.add(forward, {hs::read(inputs[at], m), hs::write(outputs[at], m)});
      if (stages == 1) continue;
      if (s + 1 < stages)
        move(s, s + 1, m, outputs[at], inputs[at + 1]);
      else
        move(s, 0, m, outputs[at], tokens);
    }
  return std::move(builder).build();
}

}  // namespace examples
