// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of weight_pipeline.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/generator/impl/pipeline_shape.hpp>
#include <heddle/schedule/generator/weight_pipeline.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Throws contract_error if a number is below 1, and infeasible if the groups are not equal.
inline void check_weight_pipeline(const char* where,
                                  const schedule::WeightPipelineOptions& options) {
  schedule::impl::check(where, options.ranks, 1, options.rounds);
  expects(options.groups >= 1, [&] {
    return ErrorInfo{where, "there must be at least one group", text("groups = ", options.groups),
                     "give the number of groups, such as nodes, or 1"};
  });
  if (options.ranks % options.groups != 0) {
    int fits = std::min(options.groups, options.ranks);
    while (options.ranks % fits != 0) --fits;
    throw infeasible({where, "the ranks cannot be divided into equal groups",
                      text("ranks = ", options.ranks, ", groups = ", options.groups),
                      text("the nearest smaller number of groups is ", fits)});
  }
}

/// The state of one weight_pipeline() call.
class WeightPipeline {
 public:
  explicit WeightPipeline(const schedule::WeightPipelineOptions& options)
      : m_options(options),
        m_ranks(options.ranks),
        m_each(options.ranks / options.groups),
        m_builder(text("TawPipe P=", options.ranks, " G=", options.groups, " A=", options.rounds),
                  options.ranks) {
    for (int s = 0; s < m_ranks; ++s) {
      const int rank = holder(s);
      m_weights.push_back(add(rank, s, role::weights, 1, sizes().parameters, false));
      m_gradients.push_back(add(rank, s, role::gradients, 1, sizes().parameters, false));
    }
    for (int r = 0; r < m_ranks; ++r) {
      m_slots.push_back(add(r, 0, schedule::travelling::weights, slots, sizes().parameters));
      m_own.push_back(add(r, 0, schedule::travelling::gradients, slots, sizes().parameters));
      const int senders = std::max(1, m_each - 1 + options.groups - 1);
      m_arrived.push_back(add(r, 0, schedule::travelling::arrived, senders, sizes().parameters));
      for (int s = 0; s < m_ranks; ++s) {
        m_outputs.push_back(add(r, s, role::output, 1, sizes().activation));
        m_saved.push_back(add(r, s, role::saved, 1, sizes().saved));
        m_input_grads.push_back(add(r, s, role::input_grad, 1, sizes().activation));
      }
    }
  }

  [[nodiscard]] Schedule run() && {
    for (int pass = 0; pass < passes(); ++pass)
      if (pass == 0 || stage_of(pass) != stage_of(pass - 1)) m_fetched.push_back(stage_of(pass));
    std::vector<std::size_t> used(static_cast<std::size_t>(m_options.groups), 0);
    // A group needs two more turns for the sums of its last backward pass.
    for (int turn = 0; turn < passes() + 2 + m_options.groups - 1; ++turn)
      for (int group = 0; group < m_options.groups; ++group) {
        const int pass = turn - group;
        if (pass < 0 || pass >= passes() + 2) continue;
        std::size_t& fetch = used[static_cast<std::size_t>(group)];
        if (pass < passes()) {
          if (pass == 0) {
            receive(group, 0);
            receive(group, 1);
            spread(group, 0);
          } else if (stage_of(pass) != stage_of(pass - 1)) {
            ++fetch;
          }
          if (pass == 0 || stage_of(pass) != stage_of(pass - 1)) {
            receive(group, fetch + 2);
            spread(group, fetch + 1);
          }
          compute(group, pass, fetch);
        }
        if (is_backward(pass - 2)) add_to_holder(group, pass - 2);
        if (is_backward(pass - 1)) add_group(group, pass - 1);
        if (is_backward(pass)) send_gradients(group, pass);
      }
    for (int s = 0; s < m_ranks; ++s)
      m_builder.add({Kind::update, m_builder.local(Rank{holder(s)}), Stage{s}},
                    {schedule::use(Access::update, m_gradients[at(s)], 0),
                     schedule::use(Access::update, m_weights[at(s)], 0)});
    return std::move(m_builder).build();
  }

 private:
  static constexpr int slots = 3;

  [[nodiscard]] static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  [[nodiscard]] const StageSizes& sizes() const { return m_options.sizes; }
  BufferId add(int rank, int stage, const char* label, int parts, Bytes each,
               bool transient = true) {
    return m_builder.add_buffer({.rank = Rank{rank},
                                 .parts = static_cast<std::uint32_t>(parts),
                                 .stage = Stage{stage},
                                 .label = m_builder.label(label),
                                 .type = sizes().type,
                                 .transient = transient,
                                 .bytes = each * static_cast<Bytes>(parts)});
  }

  /// The passes of a rank: forwards from stage 0 on, then backwards, in each round.
  [[nodiscard]] int passes() const { return 2 * m_ranks * m_options.rounds; }
  [[nodiscard]] int stage_of(int pass) const {
    const int in_round = pass % (2 * m_ranks);
    return in_round < m_ranks ? in_round : 2 * m_ranks - 1 - in_round;
  }
  [[nodiscard]] bool is_backward(int pass) const {
    return 0 <= pass && pass < passes() && pass % (2 * m_ranks) >= m_ranks;
  }
  /// The number of backward passes before `pass` gives the slot of its gradients.
  [[nodiscard]] std::uint32_t gradient_slot(int pass) const {
    return static_cast<std::uint32_t>(
        (pass / (2 * m_ranks) * m_ranks + pass % (2 * m_ranks) - m_ranks) % slots);
  }

  [[nodiscard]] int holder(int stage) const {
    return static_cast<int>(+schedule::weight_holder(m_options, Stage{stage}));
  }
  [[nodiscard]] int group_of(int rank) const { return rank / m_each; }
  /// The holder of the stage, or the rank of the group that receives its weights.
  [[nodiscard]] int root(int group, int stage) const {
    return group * m_each + holder(stage) % m_each;
  }

  void move(int from, int to, int stage, Use read, Use write, std::uint8_t flags = 0) {
    m_builder.add({Kind::move, m_builder.queue(Rank{from}, Rank{to}), Stage{stage}, Item{}, flags},
                  {read, write});
  }
  [[nodiscard]] static std::uint32_t slot(std::size_t fetch) {
    return static_cast<std::uint32_t>(fetch % slots);
  }
  /// The weights of the stage of a fetch, on a rank.
  [[nodiscard]] Use weights_on(int rank, std::size_t fetch) const {
    const int stage = m_fetched[fetch];
    return rank == holder(stage) ? schedule::read(m_weights[at(stage)])
                                 : schedule::read(m_slots[at(rank)], slot(fetch));
  }

  /// Sends the weights from the holder to the receiver of another group.
  void receive(int group, std::size_t fetch) {
    if (fetch >= m_fetched.size()) return;
    const int stage = m_fetched[fetch], to = root(group, stage);
    if (to != holder(stage))
      move(holder(stage), to, stage, weights_on(holder(stage), fetch),
           schedule::write(m_slots[at(to)], slot(fetch)));
  }
  /// Sends the weights from the holder or the receiver to the other ranks of its group.
  void spread(int group, std::size_t fetch) {
    if (fetch >= m_fetched.size()) return;
    const int stage = m_fetched[fetch], from = root(group, stage);
    for (int rank = group * m_each; rank < (group + 1) * m_each; ++rank)
      if (rank != from)
        move(from, rank, stage, weights_on(from, fetch),
             schedule::write(m_slots[at(rank)], slot(fetch)));
  }

  void compute(int group, int pass, std::size_t fetch) {
    const int stage = stage_of(pass), round = pass / (2 * m_ranks);
    for (int rank = group * m_each; rank < (group + 1) * m_each; ++rank) {
      const std::size_t place = at(rank) * at(m_ranks) + at(stage);
      std::vector<Use> uses;
      if (stage > 0) uses.push_back(schedule::read(m_outputs[place - 1]));
      const bool last = stage + 1 == m_ranks;
      if (is_backward(pass)) {
        uses.push_back(schedule::read(m_saved[place]));
        if (!last) uses.push_back(schedule::read(m_input_grads[place + 1]));
        uses.push_back(weights_on(rank, fetch));
        if (stage > 0) uses.push_back(schedule::write(m_input_grads[place]));
        uses.push_back(schedule::write(m_own[at(rank)], gradient_slot(pass)));
      } else {
        if (!last) uses.push_back(schedule::write(m_outputs[place]));
        uses.push_back(schedule::write(m_saved[place]));
        uses.push_back(weights_on(rank, fetch));
      }
      m_builder.add({is_backward(pass) ? Kind::backward : Kind::forward,
                     m_builder.local(Rank{rank}), Stage{stage}, Item{round * m_ranks + rank}},
                    uses);
    }
  }

  void sum(int rank, int stage, Use read, Use into) {
    m_builder.add({Kind::combine, m_builder.local(Rank{rank}, Lane{1}), Stage{stage}},
                  {read, into});
  }
  /// Sends the gradients of a group to its holder or receiver.
  void send_gradients(int group, int pass) {
    const int stage = stage_of(pass), to = root(group, stage);
    std::uint32_t sender = 0;
    for (int rank = group * m_each; rank < (group + 1) * m_each; ++rank)
      if (rank != to)
        move(rank, to, stage, schedule::read(m_own[at(rank)], gradient_slot(pass)),
             schedule::write(m_arrived[at(to)], sender++), flag::gradient);
  }
  /// Adds the gradients of a group, in the order of its ranks. A receiver sends the sum on.
  void add_group(int group, int pass) {
    const int stage = stage_of(pass), to = root(group, stage);
    const std::uint32_t own = gradient_slot(pass);
    for (std::uint32_t sender = 0; sender + 1 < static_cast<std::uint32_t>(m_each); ++sender)
      sum(to, stage, schedule::read(m_arrived[at(to)], sender),
          schedule::use(Access::update, m_own[at(to)], own));
    if (to == holder(stage))
      sum(to, stage, schedule::read(m_own[at(to)], own),
          schedule::use(Access::update, m_gradients[at(stage)], 0));
    else
      move(to, holder(stage), stage, schedule::read(m_own[at(to)], own),
           schedule::write(m_arrived[at(holder(stage))], part_of(group, stage)), flag::gradient);
  }
  void add_to_holder(int group, int pass) {
    const int stage = stage_of(pass), rank = holder(stage);
    if (root(group, stage) != rank)
      sum(rank, stage, schedule::read(m_arrived[at(rank)], part_of(group, stage)),
          schedule::use(Access::update, m_gradients[at(stage)], 0));
  }
  /// The part of the holder's arrived gradients for another group.
  [[nodiscard]] std::uint32_t part_of(int group, int stage) const {
    const int own = group_of(holder(stage));
    return static_cast<std::uint32_t>(m_each - 1 + group - (group > own ? 1 : 0));
  }

  schedule::WeightPipelineOptions m_options;
  int m_ranks, m_each;
  Builder m_builder;
  std::vector<BufferId> m_weights, m_gradients;             ///< by stage
  std::vector<BufferId> m_slots, m_own, m_arrived;          ///< by rank
  std::vector<BufferId> m_outputs, m_saved, m_input_grads;  ///< by rank and stage
  std::vector<int> m_fetched;                               ///< the stage of each fetch
};

}  // namespace impl

namespace schedule {

HEDDLE_INLINE Rank weight_holder(const WeightPipelineOptions& options, Stage stage) {
  constexpr const char* where = "heddle::schedule::weight_holder";
  heddle::impl::check_weight_pipeline(where, options);
  const auto s = static_cast<int>(+stage);
  expects(s >= 0 && s < options.ranks, [&] {
    return ErrorInfo{where, "there is no such stage",
                     text("stage = ", s, ", ranks = ", options.ranks),
                     "give a stage below the number of ranks"};
  });
  return Rank{s % options.groups * (options.ranks / options.groups) + s / options.groups};
}

HEDDLE_INLINE Schedule weight_pipeline(const WeightPipelineOptions& options) {
  heddle::impl::check_weight_pipeline("heddle::schedule::weight_pipeline", options);
  return heddle::impl::WeightPipeline(options).run();
}

HEDDLE_INLINE WeightPipelineMessages
weight_pipeline_messages(const WeightPipelineOptions& options) {
  heddle::impl::check_weight_pipeline("heddle::schedule::weight_pipeline_messages", options);
  const std::int64_t ranks = options.ranks, groups = options.groups, rounds = options.rounds;
  const std::int64_t each = (2 * ranks - 2) * rounds + 1 + rounds * ranks;
  return {(groups - 1) * each, (ranks - groups) * each};
}

}  // namespace schedule

}  // namespace heddle::inline v0
