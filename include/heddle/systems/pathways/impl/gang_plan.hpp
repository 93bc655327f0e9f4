// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GangPlan: the Schedule by which a value of an island changes its layout, and its errors travel
/// with it.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/redistribution/redistribution.hpp>
#include <heddle/systems/pathways/impl/gang_value.hpp>

namespace heddle::inline v0::systems::impl {

/// The bytes in which a rank tells why its part of a value does not exist; all zero if it does.
inline constexpr Bytes gang_status_bytes = 256;

/// The Schedule of a change of layout. Before the elements, every rank that sends some also sends a
/// status to the same rank. Transfers of equal layouts share one plan.
struct GangPlan {
  Layout source, target;
  const GangType* type;
  bool to_client;  ///< all ranks of the source report to the target, also those that send nothing
  schedule::BlockExchange exchange = {};
  Merge merge = Merge::sum;
  Schedule schedule = {};
  std::vector<Rank> senders = {};  ///< the ranks that have elements, or a status
  std::vector<bool> takes_part;    ///< by rank: it has an action of the schedule

  GangPlan(Layout from, Layout to, const GangType& of, int ranks, bool reports)
      : source(std::move(from)), target(std::move(to)), type(&of), to_client(reports) {
    senders = source.ranks();
    auto plan = schedule::redistribution(source, target, ranks, type->element);
    merge = source.partial().value_or(Merge::sum);
    std::set<std::pair<Rank, Rank>> pairs;
    plan.exchange.for_each_message([&](Rank a, Rank b, Bytes) { pairs.emplace(a, b); });
    if (to_client || plan.exchange.steps.size() > 1) add_all(pairs, source.ranks(), target.ranks());
    schedule = with_status(to_schedule(plan, type->scalar), pairs);
    exchange = std::move(plan.exchange);
    find_ranks();
  }
  /// The plan without elements in which all of these ranks tell each other their status.
  GangPlan(const GangEntry& entry, int ranks)
      : source(entry.output), target(entry.output), type(entry.output_type), to_client(false) {
    senders = entry.ranks;
    std::set<std::pair<Rank, Rank>> pairs;
    add_all(pairs, entry.ranks, entry.ranks);
    schedule = with_status(Builder("gate", ranks).build(), pairs);
    find_ranks();
  }

  /// Returns true if `rank` may have to send something.
  [[nodiscard]] bool sends(Rank rank) const {
    return std::find(senders.begin(), senders.end(), rank) != senders.end();
  }

 private:
  void find_ranks() {
    takes_part.assign(static_cast<std::size_t>(schedule.ranks()), false);
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Queue& queue = schedule[schedule[ActionId{i}].queue];
      takes_part[+queue.from] = true;
      takes_part[+queue.to] = true;
    }
  }

  using Pairs = std::set<std::pair<Rank, Rank>>;
  static void add_all(Pairs& pairs, const std::vector<Rank>& from, const std::vector<Rank>& to) {
    for (const Rank a : from)
      for (const Rank b : to)
        if (a != b) pairs.emplace(a, b);
  }

  [[nodiscard]] static Schedule with_status(const Schedule& elements, const Pairs& pairs) {
    Builder builder = Builder::like(elements, [](const Buffer& buffer) { return buffer; });
    const auto add = [&](Rank rank, const char* label, bool transient) {
      return builder.add_buffer({.rank = rank,
                                 .stage = Stage{+rank},
                                 .label = builder.label(label),
                                 .transient = transient,
                                 .bytes = gang_status_bytes});
    };
    std::vector<std::pair<Rank, BufferId>> status;
    for (const auto& [from, to] : pairs) {
      if (status.empty() || status.back().first != from)
        status.emplace_back(from, add(from, "status", false));
      const BufferId told = add(to, "told", true);
      builder.add({.kind = Kind::move, .queue = builder.queue(from, to), .stage = Stage{+from}},
                  {schedule::read(status.back().second), schedule::write(told)});
    }
    for (std::size_t i = 0; i < elements.size(); ++i)
      builder.add(elements, ActionId{i}, elements.uses(ActionId{i}));
    return std::move(builder).build();
  }
};

/// The plans of an island, which are made once for a pair of layouts.
class GangPlans {
 public:
  explicit GangPlans(int ranks) : m_ranks(ranks) {}

  /// Returns the plan for tensors of a type.
  [[nodiscard]] std::shared_ptr<const GangPlan> find(const Layout& from, const Layout& to,
                                                     const GangType& type, bool to_client) {
    for (const auto& known : m_plans)
      if (known->type == &type && known->to_client == to_client && known->source == from &&
          known->target == to)
        return known;
    m_plans.push_back(std::make_shared<GangPlan>(from, to, type, m_ranks, to_client));
    return m_plans.back();
  }
  /// Returns the plan in which the ranks of a function tell each other their status.
  [[nodiscard]] std::shared_ptr<const GangPlan> gate(const GangEntry& function) {
    auto& known = m_gates[function.ranks];
    if (known == nullptr) known = std::make_shared<GangPlan>(function, m_ranks);
    return known;
  }

 private:
  int m_ranks;
  std::vector<std::shared_ptr<const GangPlan>> m_plans;
  std::map<std::vector<Rank>, std::shared_ptr<const GangPlan>> m_gates;
};

}  // namespace heddle::inline v0::systems::impl
