// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/solver/coordinate.hpp>
#include <heddle/schedule.hpp>

#include "../common/columns.hpp"
#include "../common/progress.hpp"
#include "best.hpp"
#include "commands.hpp"

namespace tool {

using namespace heddle;

namespace {

/// Returns true if the ranks of both have the same computations.
bool same_work(const Orders& a, const Orders& b) {
  const auto sorted = [](const Orders& orders) {
    auto lists = orders.ranks;
    for (auto& list : lists)
      std::ranges::sort(list, {}, [](const Order& each) {
        return std::tuple(each.kind, each.stage, each.item, each.fused);
      });
    return lists;
  };
  return a.graph == b.graph && sorted(a) == sorted(b);
}

/// Returns the shortest orders with the computations of `orders` in which no rank keeps more.
Orders refined(const Orders& orders, const Settings& s) {
  auto found = coordinated(orders, s, {.caps = schedule::live_activations(orders)});
  if (!(price(found.orders, s).timeline.makespan() < price(orders, s).timeline.makespan()))
    return orders;
  found.orders.name = text(orders.name, ", refined (", found.rule, ")");
  return std::move(found.orders);
}

/// Prints what the step would take if one of its limits did not exist.
void explain(const Orders& orders, const Settings& s) {
  ProgressLine line("searching");
  const Priced priced = price(orders, s);
  const double makespan = priced.timeline.makespan();
  std::vector<std::pair<std::string, double>> limits;
  Settings free = s;
  free.latency = 0;
  free.bandwidth = 0;
  limits.emplace_back("messages took no time", price(orders, free).timeline.makespan());
  if (!s.equal_stages()) {
    Settings even = s;
    for (auto* times :
         {&even.forward, &even.backward_input, &even.backward_weight, &even.backward}) {
      double sum = 0;
      for (const double time : *times) sum += time;
      for (double& time : *times) time = sum / static_cast<double>(times->size());
    }
    limits.emplace_back("all stages took equally long", price(orders, even).timeline.makespan());
  }
  limits.emplace_back("there were no warm-up, no drain and no gap",
                      std::ranges::max(priced.timeline.busy()));
  const bool reorders = s.equal_stages() && std::ranges::all_of(orders.ranks, [](const auto& list) {
                          return std::ranges::all_of(list, [](const Order& each) {
                            return each.kind <= Kind::backward && !each.fused;
                          });
                        });
  if (reorders) {
    const auto reordered = [&](std::int64_t cap) {
      const Priced found = price(coordinated(orders, s, {.cap = cap}).orders, s);
      return std::min(makespan, found.timeline.makespan());
    };
    limits.emplace_back("the ranks took the best order that was found in this memory",
                        reordered(std::ranges::max(schedule::live_activations(orders))));
    limits.emplace_back("memory had no limit and the ranks took the best order that was found",
                        reordered(0));
  }
  std::vector<std::vector<std::string>> rows = {{"if", "makespan", "shorter by"},
                                                {"as it is", time_of(makespan, s), ""}};
  for (const auto& [name, time] : limits)
    rows.push_back({name, time_of(time, s), percent(1 - time / makespan)});
  line.print_above([&] { print_columns(rows); });
}

}  // namespace

std::vector<Candidate> candidates(const Settings& s) {
  std::vector<Candidate> all;
  // The searches come first: if a schedule of the catalogue is as short, they know a bound.
  for (const std::string_view name : searched_work) try {
      const Orders orders = schedule::find_schedule(name).orders(s.shape);
      if (auto found = search_orders(name, orders, s, s.limit)) all.push_back(*std::move(found));
    } catch (const infeasible&) {
      // There is no such schedule of this shape.
    }
  const std::size_t searches = all.size();
  for (const auto& entry : schedule::catalogue()) try {
      if (!entry.synchronous || entry.branches) continue;
      all.push_back(candidate(std::string(entry.name), entry.orders(s.shape), s, s.limit));
      for (std::size_t i = 0; i < searches; ++i)
        if (all.back().fits && same_work(all[i].priced.orders, all.back().priced.orders))
          all.back().bound = all[i].bound;
    } catch (const infeasible&) {
      // As above.
    }
  return all;
}

const Candidate& shortest(const std::vector<Candidate>& all, const Settings& s) {
  const Candidate* best = nullptr;
  for (const Candidate& each : all)
    if (each.fits &&
        (best == nullptr || each.priced.timeline.makespan() < best->priced.timeline.makespan()))
      best = &each;
  if (best == nullptr)
    throw infeasible({"best", "no schedule of this shape fits the memory",
                      text("--cap ", s.limit.activations, ", --cap-bytes ", s.limit.bytes),
                      "give more memory, or more ranks"});
  return *best;
}

std::string with_gap(const Candidate& candidate, const Settings& s) {
  return with_gap(candidate, time_of(candidate.bound, s));
}

Orders orders_of(const schedule::NamedSchedule* entry, const Settings& s) {
  if (entry != nullptr)
    return s.refine ? refined(entry->orders(s.shape), s) : entry->orders(s.shape);
  const auto all = candidates(s);
  const Candidate& best = shortest(all, s);
  Orders orders = best.priced.orders;
  orders.name = text("best (", with_gap(best, s), ")");
  return orders;
}

void add_explain(CommandLine& program) {
  const auto settings = std::make_shared<Settings>();
  settings->names.resize(1);
  CommandLine& command = program.add_command(
      "explain", "Says what limits a schedule: messages, stages, warm-up, order or memory.",
      [settings](const CommandLine& line) {
        check_values(line, *settings);
        settings->seconds = line.has_units();
        explain(orders_of(named_schedules(line, *settings)[0], *settings), *settings);
      });
  command.add_argument("NAME", &settings->names[0], "of the schedule, see schedule list, or best");
  add_shape(command, *settings);
  add_prices(command, *settings);
}

}  // namespace tool
