// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of local_steps.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/systems/co2/local_steps.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// Divides the actions of a collective into groups of moves that need no move of their group. The
/// merges of what a group receives begin the next one, because they wait for its messages.
inline std::vector<std::vector<ActionId>> rounds_of(const Schedule& list) {
  std::vector<std::vector<ActionId>> rounds;
  std::set<std::pair<std::size_t, std::uint32_t>> received;
  bool has_moves = true;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const ActionId id{i};
    const bool moves = list[id].kind == Kind::move;
    bool begins = rounds.empty() || (!moves && has_moves);
    for (const Use& use : list.uses(id))
      for (std::uint32_t part = use.first; moves && use.reads() && part < use.first + use.count;
           ++part)
        begins = begins || received.contains({+use.buffer, part});
    if (begins) {
      rounds.emplace_back();
      received.clear();
      has_moves = false;
    }
    rounds.back().push_back(id);
    if (!moves) continue;
    has_moves = true;
    const Use& to = list.uses(id)[1];
    for (std::uint32_t part = to.first; part < to.first + to.count; ++part)
      received.insert({+to.buffer, part});
  }
  return rounds;
}

/// Returns the Schedule of one sum, whose blocks the ranks update between its halves. Its first
/// buffers are numbered by rank: those of role "data", then "outer", then "parameters".
inline Schedule divided_update(const LocalStepsOptions& options) {
  const auto p = static_cast<std::size_t>(options.ranks);
  const schedule::CollectiveForm sum{.collective = schedule::Collective::reduce_scatter,
                                     .algorithm = options.algorithm,
                                     .chunks = options.chunks};
  schedule::CollectiveForm gather = sum;
  gather.collective = schedule::Collective::all_gather;
  sum.expect_possible(static_cast<std::uint32_t>(options.ranks));
  gather.expect_possible(static_cast<std::uint32_t>(options.ranks));
  const std::size_t each = sum.parts(p) / p;  // parts of a block
  const Bytes element = size_of(options.type);
  expects(options.bytes % element == 0, [&] {
    return ErrorInfo{"heddle::systems::local_steps", "the bytes are not whole elements",
                     text(options.bytes, " bytes, elements of ", element)};
  });
  Builder builder(text("local steps P=", options.ranks), options.ranks);
  const auto add = [&](std::size_t rank, const char* label, std::vector<Bytes> sizes) {
    Buffer buffer{.rank = Rank{rank},
                  .label = builder.label(label),
                  .type = options.type,
                  .transient = false};
    heddle::impl::cut_in_parts(buffer, std::move(sizes));
    return builder.add_buffer(buffer);
  };
  std::vector<Bytes> parts;
  std::vector<Bytes> blocks;
  for (std::size_t r = 0; r < p; ++r) {
    blocks.push_back(even_share(options.bytes / element, p, r).count);
    for (std::size_t part = 0; part < each; ++part)
      parts.push_back(even_share(blocks[r], each, part).count * element);
  }
  std::vector<Use> members;
  for (std::size_t r = 0; r < p; ++r)
    members.push_back(schedule::update(add(r, "data", parts), 0, sum.parts(p)));
  std::vector<BufferId> outer;
  for (std::size_t r = 0; r < p; ++r) outer.push_back(add(r, "outer", {2 * blocks[r] * element}));
  for (std::size_t r = 0; r < p; ++r) add(r, "parameters", {options.bytes});
  sum(builder, members, Stage{0});
  for (std::size_t r = 0; r < p; ++r) {
    ActionSpec spec;
    spec.kind = Kind::update;
    spec.queue = builder.local(Rank{r}, Lane{1});  // as the merges of the sum
    builder.add(spec, {schedule::update(members[r].buffer, static_cast<std::uint32_t>(r * each),
                                        static_cast<std::uint32_t>(each)),
                       schedule::update(outer[r])});
  }
  gather(builder, members, Stage{0});
  return std::move(builder).build();
}

/// Appends rounds of local steps to a Builder.
class LocalStepsWriter {
 public:
  LocalStepsWriter(const Schedule& sum, const LocalStepsOptions& options)
      : m_sum(sum),
        m_sum_rounds(rounds_of(sum)),
        m_options(options),
        m_builder(Builder::like(sum, [](const Buffer& buffer) { return buffer; })) {}

  Schedule write() && {
    for (int round = 0; round < m_options.rounds; ++round) {
      const Item item{static_cast<std::size_t>(round)};
      if (m_options.delay == 0) {
        for (int k = 0; k < m_options.steps; ++k) step(round, k);
        on_ranks(Kind::update, item, [&](std::size_t r, std::vector<Use>& uses) {
          uses = {schedule::read(parameters(r)), data(r, Access::write)};
        });
        for (std::size_t j = 0; j < m_sum_rounds.size(); ++j) sum_round(j);
      } else {
        std::size_t done = 0;
        for (int k = 0; k < m_options.steps; ++k) {
          for (; done < m_sum_rounds.size() && place_of(done) <= k; ++done) sum_round(done);
          step(round, k);
        }
        for (; done < m_sum_rounds.size(); ++done) sum_round(done);
      }
      const Access data_access = m_options.delay == 0 ? Access::read : Access::update;
      on_ranks(Kind::update, item, [&](std::size_t r, std::vector<Use>& uses) {
        uses = {data(r, data_access), schedule::update(parameters(r))};
      });
    }
    return std::move(m_builder).build();
  }

 private:
  [[nodiscard]] BufferId parameters(std::size_t rank) const {
    return BufferId{2 * static_cast<std::size_t>(m_options.ranks) + rank};
  }
  /// Returns the local step before which round `j` of the sum begins. Merges without moves come
  /// behind all steps.
  [[nodiscard]] int place_of(std::size_t j) const {
    const bool ends_with_merges = m_sum[m_sum_rounds.back().back()].kind != Kind::move;
    const std::size_t rounds =
        std::max<std::size_t>(m_sum_rounds.size() - (ends_with_merges ? 1 : 0), 1);
    return static_cast<int>(j * static_cast<std::size_t>(m_options.steps) / rounds);
  }
  [[nodiscard]] Use data(std::size_t rank, Access access) const {
    const BufferId id{rank};
    return schedule::use(access, id, 0, m_sum[id].parts);
  }
  template <class Uses>
  void on_ranks(Kind kind, Item item, Uses&& uses_of) {
    std::vector<Use> uses;
    for (std::size_t r = 0; r < static_cast<std::size_t>(m_options.ranks); ++r) {
      uses_of(r, uses);
      ActionSpec spec;
      spec.kind = kind;
      spec.queue = m_builder.local(Rank{r});
      spec.item = item;
      m_builder.add(spec, uses);
    }
  }
  void step(int round, int k) {
    const Item item{static_cast<std::size_t>(round * m_options.steps + k)};
    on_ranks(Kind::user, item, [&](std::size_t r, std::vector<Use>& uses) {
      uses = {schedule::update(parameters(r))};
    });
  }
  void sum_round(std::size_t j) {
    for (const ActionId id : m_sum_rounds[j]) m_builder.add(m_sum, id, m_sum.uses(id));
  }

  const Schedule& m_sum;
  std::vector<std::vector<ActionId>> m_sum_rounds;
  const LocalStepsOptions& m_options;
  Builder m_builder;
};

}  // namespace impl

HEDDLE_INLINE Schedule local_steps(const LocalStepsOptions& options) {
  const bool valid = options.ranks >= 1 && options.steps >= 1 && options.rounds >= 1 &&
                     (options.delay == 0 || options.delay == 1);
  expects(valid, [&] {
    return ErrorInfo{"heddle::systems::local_steps", "the options of a round are not valid",
                     text("ranks = ", options.ranks, ", steps = ", options.steps,
                          ", delay = ", options.delay, ", rounds = ", options.rounds),
                     "use at least one rank, one step and one round, and a delay of 0 or 1"};
  });
  const Schedule sum = impl::divided_update(options);
  return impl::LocalStepsWriter(sum, options).write();
}

}  // namespace heddle::inline v0::systems
