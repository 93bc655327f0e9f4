// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/solver/coordinate.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate/costs.hpp>

#include "../common/columns.hpp"
#include "best.hpp"
#include "commands.hpp"

namespace tool {

using namespace heddle;

namespace {

/// The shortest orders so far.
struct Best {
  std::optional<Priced> priced;
  std::string name;
  double bound = 0;  ///< of all orders with their computations; 0 if unknown

  [[nodiscard]] double makespan() const { return priced->timeline.makespan(); }
};

/// Returns true if no rank keeps more than the memory of `s`.
bool fits(const Priced& priced, const Settings& s) {
  const double most = std::ranges::max(priced.activations);
  return (s.cap == 0 || most <= s.cap * (1 + 1e-12)) &&
         (s.cap_bytes == 0 || most_bytes(priced.timeline) <= s.cap_bytes);
}

/// Takes `orders` if they fit and are shorter.
bool offer(Best& best, const std::string& name, const Orders& orders, const Settings& s,
           double bound = 0) {
  Priced priced = price(orders, s);
  if (!fits(priced, s)) return false;
  if (!best.priced || priced.timeline.makespan() < best.makespan())
    best = {std::move(priced), name, bound};
  return true;
}

/// Returns true if the stages of a schedule all cost the same.
bool equal_stages(const Settings& s) {
  return std::max({s.forward.size(), s.backward_input.size(), s.backward_weight.size()}) == 1;
}

/// Returns the stages of a rank's share, of which each has the same costs.
double share_of(const Orders& orders) {
  return static_cast<double>(orders.ranks.size()) / stage_count(orders);
}

/// Searches for orders with the computations of `orders`, for at most about a second.
plan::Coordinated<Seconds> coordinated(const Orders& orders, const Settings& s, std::int64_t cap) {
  const double share = share_of(orders);
  const StageCosts costs{.forward = s.forward[0] * share,
                         .backward_input = s.backward_input[0] * share,
                         .backward_weight = s.backward_weight[0] * share,
                         .latency = s.latency,
                         .per_byte = s.bandwidth > 0 ? 1 / s.bandwidth : 0};
  std::size_t entries = 1;
  for (const auto& list : orders.ranks) entries += list.size();
  return plan::coordinate(orders, costs,
                          {.cap = cap,
                           .sizes = {.activation = s.activation},
                           .swaps = static_cast<std::int64_t>(2'000'000 / entries),
                           .branches = 100'000});
}

/// Offers the result of coordinate() for the computations of `orders`.
void search(Best& best, std::string_view name, const Orders& orders, const Settings& s) {
  const double share = share_of(orders);
  std::int64_t cap = 0;
  if (s.cap > 0) cap = static_cast<std::int64_t>(s.cap / share * (1 + 1e-12));
  if (s.cap_bytes > 0 && s.saved > 0) {
    const auto most = static_cast<std::int64_t>(static_cast<double>(s.cap_bytes) /
                                                (static_cast<double>(s.saved) * share));
    cap = cap == 0 ? most : std::min(cap, most);
  }
  if ((s.cap > 0 || s.cap_bytes > 0) && cap < 1) return;
  // Weights, gradients and messages need memory, too, so that fewer activations may fit.
  for (bool fitted = false; !fitted; --cap) {
    const auto found = coordinated(orders, s, cap);
    if (found.extra > 0) return;
    fitted = offer(best, text(found.rule, " of the work of ", name), found.orders, s, found.bound);
    cap = std::min(cap, found.live);
    if (cap <= 1) return;
  }
}

/// Prints what the step would take if one of its limits did not exist.
void explain(const CommandLine& command, const Settings& s) {
  const Orders orders = named_orders(command, s)[0];
  const Priced priced = price(orders, s);
  const double makespan = priced.timeline.makespan();
  std::vector<std::pair<std::string, double>> limits;
  Settings free = s;
  free.latency = 0;
  free.bandwidth = 0;
  limits.emplace_back("messages took no time", price(orders, free).timeline.makespan());
  if (!equal_stages(s)) {
    Settings even = s;
    for (auto* times : {&even.forward, &even.backward_input, &even.backward_weight}) {
      double sum = 0;
      for (const double time : *times) sum += time;
      for (double& time : *times) time = sum / static_cast<double>(times->size());
    }
    limits.emplace_back("all stages took equally long", price(orders, even).timeline.makespan());
  }
  limits.emplace_back("there were no warm-up, no drain and no gap",
                      std::ranges::max(priced.timeline.busy()));
  const bool reorders = equal_stages(s) && std::ranges::all_of(orders.ranks, [](const auto& list) {
                          return std::ranges::all_of(list, [](const Order& each) {
                            return each.kind <= Kind::backward && !each.fused;
                          });
                        });
  if (reorders) {
    const auto live = std::ranges::max(live_activations(orders));
    limits.emplace_back("the ranks took the best order that was found in this memory",
                        std::min(makespan, coordinated(orders, s, live).makespan));
    limits.emplace_back("memory had no limit and the ranks took the best order that was found",
                        std::min(makespan, coordinated(orders, s, 0).makespan));
  }
  std::vector<std::vector<std::string>> rows = {{"if", "makespan", "shorter by"},
                                                {"as it is", number(makespan), ""}};
  for (const auto& [name, time] : limits)
    rows.push_back({name, number(time), percent(1 - time / makespan)});
  print_columns(rows);
}

}  // namespace

Orders best_orders(const CommandLine& command, const Settings& s) {
  if (!equal_stages(s))
    throw command.error("'best' compares schedules with different numbers of stages",
                        "give one time for each of --F, --I and --W");
  Best best;
  for (const auto& entry : schedule::catalogue()) {
    if (!entry.synchronous || entry.branches) continue;
    try {
      const Orders orders = entry.orders(s.shape);
      offer(best, std::string(entry.name), orders, s);
    } catch (const infeasible&) {
      // There is no such schedule of this shape.
    }
  }
  for (const std::string_view name : {"1f1b", "zb-h1", "zb-v", "interleaved", "interleaved-zb1p"}) {
    try {
      search(best, name, schedule::find_schedule(name).orders(s.shape), s);
    } catch (const infeasible&) {
    }
  }
  if (!best.priced)
    throw infeasible({"schedule best", "no schedule fits the memory",
                      text("--cap ", s.cap, ", --cap-bytes ", s.cap_bytes),
                      "give more memory, or more ranks"});
  std::string line = text("best: ", best.name, ", ", number(best.makespan()));
  if (best.bound > 0 && best.bound < best.makespan() * (1 - 1e-9))
    line += text(", ", percent(best.makespan() / best.bound - 1), " above the lower bound ",
                 number(best.bound), " of its computations");
  else if (best.bound > 0)
    line += ", which is optimal for its computations";
  std::cout << line << '\n';
  return best.priced->orders;
}

void add_explain(CommandLine& program) {
  const auto settings = std::make_shared<Settings>();
  settings->names.resize(1);
  CommandLine& command = program.add_command(
      "explain", "Says what limits a schedule: messages, stages, warm-up, order or memory.",
      [settings](const CommandLine& line) {
        check_values(line, *settings);
        explain(line, *settings);
      });
  command.add_argument("NAME", &settings->names[0], "of the schedule, see schedule list");
  add_shape(command, *settings);
  add_prices(command, *settings);
}

}  // namespace tool
