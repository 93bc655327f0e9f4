// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/stage_storage.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/trace/memory_report.hpp>
#include <heddle/trace/report.hpp>

#include "answer.hpp"
#include "check.hpp"

namespace tool {

using namespace heddle;

namespace {

/// Costs and sizes of one microbatch on the share of a rank, as the page asks for them.
struct Setting {
  double forward, input, weight, latency, bandwidth;
  Bytes activation, saved, parameters;
};

/// The numbers behind `"key":` in a JSON text: one, or those of a list.
std::vector<double> numbers_of(std::string_view json, std::string_view key) {
  const std::string name = text('"', key, "\":");
  const std::size_t at = json.find(name);
  if (at == std::string_view::npos) return {};
  std::vector<double> values;
  const std::string rest(json.substr(at + name.size(), json.find_first_of("]}", at) - at));
  const char* next = rest.c_str();
  const bool list = *next == '[';
  for (next += list;; ++next) {
    char* end = nullptr;
    values.push_back(std::strtod(next, &end));
    next = end;
    if (!list || *next != ',') return values;
  }
}

void compare(const std::string& request, std::string_view key, const std::vector<double>& answered,
             const std::vector<double>& expected) {
  expects(answered == expected, [&] {
    std::string first = text(answered.size(), " numbers, expected ", expected.size());
    for (std::size_t i = 0; i < answered.size() && i < expected.size(); ++i)
      if (answered[i] != expected[i]) {
        first = text("number ", i, " is ", answered[i], ", expected ", expected[i]);
        break;
      }
    return ErrorInfo{"explorer check", text("'", key, "' of ", request, " is another"), first};
  });
}

/// Compares one schedule. @returns false if there is no schedule of this shape.
bool compare(const schedule::NamedSchedule& entry, int ranks, int microbatches, const Setting& s,
             Explorer& explorer) {
  const std::string request =
      text("do=draw&schedule=", entry.name, "&ranks=", ranks, "&microbatches=", microbatches,
           "&F=", s.forward, "&I=", s.input, "&W=", s.weight, "&latency=", s.latency,
           "&bandwidth=", s.bandwidth, "&activation=", s.activation, "&saved=", s.saved,
           "&parameters=", s.parameters);
  std::string json;
  std::string refused, refused_by_library;
  try {
    json = explorer.answer(request);
  } catch (const error& wrong) {
    refused = wrong.what();
  }
  Orders orders;
  try {
    orders = entry.orders({.ranks = ranks, .microbatches = microbatches});
  } catch (const error& wrong) {
    refused_by_library = wrong.what();
  }
  expects(refused == refused_by_library, [&] {
    return ErrorInfo{"explorer check", text(request, " is refused for another reason"),
                     text("'", refused, "', expected '", refused_by_library, "'")};
  });
  if (!refused.empty()) return false;

  std::size_t stages = 0;
  for (const auto& list : orders.ranks)
    for (const Order& order : list) stages = std::max(stages, +order.stage + 1);
  const double share = ranks / static_cast<double>(stages);
  const auto part = [share](Bytes bytes) {
    return static_cast<Bytes>(static_cast<double>(bytes) * share);
  };
  const Schedule schedule =
      weave(orders,
            {.activation = s.activation, .saved = part(s.saved), .parameters = part(s.parameters)});
  const Timeline timeline =
      simulate(schedule, StageCosts{.forward = s.forward * share,
                                    .backward_input = s.input * share,
                                    .backward_weight = s.weight * share,
                                    .latency = s.latency,
                                    .per_byte = s.bandwidth > 0 ? 1 / s.bandwidth : 0});
  const auto one = [](auto value) { return std::vector{static_cast<double>(value)}; };
  std::map<std::string_view, std::vector<double>> expected = {
      {"ranks", one(ranks)},
      {"stages", one(stages)},
      {"actions", one(schedule.size())},
      {"makespan", one(timeline.makespan())},
      {"bubble", one(timeline.bubble_ratio())},
      {"busy", timeline.busy()}};
  std::size_t messages = 0;
  for (const Action& action : schedule.actions())
    messages += action.kind == Kind::move && !schedule[action.queue].local();
  expected["messages"] = one(messages);
  expected["bytes"] = one(messages * s.activation);
  std::vector<double> live;
  Bytes most = 0;
  for (int rank = 0; rank < ranks; ++rank)
    live.push_back(share *
                   static_cast<double>(schedule::peak(timeline, Rank{rank}, role::saved).parts));
  expected["activations"] = live;
  if (s.activation > 0) {
    for (const MemoryUse& use : schedule::memory_use(timeline))
      most = std::max(most, schedule::peak(use.all).bytes);
    expected["most"] = one(most);
  }
  std::vector<double> warm_up;
  for (const auto& rank : trace::time_use(timeline).ranks) warm_up.push_back(rank.warm_up);
  expected["warm-up"] = warm_up;
  for (const auto& [key, values] : expected) compare(request, key, numbers_of(json, key), values);
  std::vector<double> times;
  for (const Span& span : timeline.spans())
    times.insert(times.end(), {span.start, span.end, span.arrival});
  compare(request, "times", explorer.times(), times);
  return true;
}

}  // namespace

void check_numbers(int step) {
  expects(step >= 1, [&] {
    return ErrorInfo{"explorer check", "--step is a number of at least 1", text(step)};
  });
  constexpr Setting settings[] = {{1, 1, 1, 0, 0, 0, 0, 0},
                                  {0.7, 1.3, 0.45, 0.2, 2500, 1000, 5000, 3000}};
  std::size_t compared = 0, refused = 0;
  Explorer explorer;
  for (const auto& entry : schedule::catalogue())
    for (const Setting& setting : settings)
      for (int ranks = 2; ranks <= 16; ranks += step)
        for (int microbatches = 1; microbatches <= 64; microbatches += step)
          ++(compare(entry, ranks, microbatches, setting, explorer) ? compared : refused);
  std::cout << text("explorer: ", compared, " drawings have the library's numbers, ", refused,
                    " shapes are refused as by the library\n");
}

}  // namespace tool
