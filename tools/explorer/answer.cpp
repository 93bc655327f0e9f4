// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/schedule/generator/flexpipe.hpp>
#include <heddle/schedule/order/blocked_order.hpp>
#include <heddle/schedule/order/torch_csv.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/order/why_not_torch.hpp>
#include <heddle/trace/perfetto.hpp>
#include <heddle/trace/report.hpp>
#include <heddle/trace/svg.hpp>

#include "answer.hpp"
#include "json.hpp"
#include "plan_files.hpp"
#include "request.hpp"
#include "search.hpp"

namespace tool {

using namespace heddle;

namespace {

constexpr int most_actions = 1'000'000;  // of a drawing

/// The names of the settings of a shape that the schedule uses, separated by blanks.
std::string heeded(const schedule::NamedSchedule& entry) {
  using schedule::ShapeOption;
  std::string names;
  for (const auto& [name, option] : {std::pair{"stages-per-rank", ShapeOption::stages_per_rank},
                                     {"group", ShapeOption::group},
                                     {"pairs", ShapeOption::pairs},
                                     {"most-live", ShapeOption::most_live}})
    if (entry.uses(option)) names += text(names.empty() ? "" : " ", name);
  return names;
}

std::string catalogue() {
  Json list('[');
  for (const auto& entry : schedule::catalogue())
    list.add(Json('{')
                 .add("name", entry.name)
                 .add("call", entry.call)
                 .add("about", entry.about)
                 .add("heeds", heeded(entry))
                 .add("synchronous", entry.synchronous)
                 .add("branches", entry.branches));
  return list.close();
}

Prices read_prices(const Request& request) {
  Prices prices;
  request.read("F", prices.forward);
  request.read("I", prices.backward_input);
  request.read("W", prices.backward_weight);
  request.read("B", prices.backward);
  request.read("FB", prices.forward_backward);
  request.read("latency", prices.latency);
  request.read("bandwidth", prices.bandwidth);
  request.read("depth", prices.depth);
  request.read("activation", prices.activation);
  request.read("saved", prices.saved);
  request.read("parameters", prices.parameters);
  return prices;
}

schedule::PipelineShape read_shape(const Request& request) {
  schedule::PipelineShape shape;
  request.read("ranks", shape.ranks);
  request.read("microbatches", shape.microbatches);
  request.read("stages-per-rank", shape.stages_per_rank);
  request.read("group", shape.group);
  request.read("pairs", shape.pairs);
  request.read("most-live", shape.most_live);
  return shape;
}

Orders catalogue_orders(const schedule::NamedSchedule& entry,
                        const schedule::PipelineShape& shape) {
  const double actions = size_of(entry, shape).actions;
  if (actions > most_actions)
    wrong("the schedule is too large for a picture",
          text("up to ", actions, " actions, expected at most ", most_actions),
          "take fewer ranks, microbatches or stages");
  return entry.orders(shape);
}

Orders file_orders(const Request& request, std::string_view csv) {
  schedule::CsvOptions options;
  options.name = request.has("name") ? std::string(request.text("name")) : "CSV";
  int branches = 1;
  request.read("branches", branches);
  request.read("old-dialect", options.old_dialect);
  request.read("vertical-sync", options.vertical_sync);
  if (branches != 1) {
    const auto ends = std::count(csv.begin(), csv.end(), '\n');
    options.graph = schedule::branch_graph(static_cast<int>(ends) + !csv.ends_with('\n'), branches);
  }
  request.read("replicas", options.graph.replicas);
  return schedule::read_lowered(csv, options).orders;
}

int microbatches_of(const Orders& orders) {
  std::size_t items = 0;
  for (const auto& list : orders.ranks)
    for (const Order& order : list) items = std::max(items, +order.item + 1);
  return static_cast<int>(items);
}

/// Multiplies the times of each stage by its factor, if the request has factors.
void scale_stages(Prices& prices, const Request& request, const Orders& orders) {
  std::vector<double> factors;
  request.read("factors", factors);
  if (factors.empty()) return;
  const int stages = stage_count(orders);
  if (factors.size() != static_cast<std::size_t>(stages))
    wrong("factors needs one for each stage",
          text(factors.size(), " factors for ", stages, " stages"));
  const double share = static_cast<double>(orders.ranks.size()) / stages;
  for (std::vector<double>* times :
       {&prices.forward, &prices.backward_input, &prices.backward_weight}) {
    if (times->size() != 1) wrong("factors are for one time of F, I and W each");
    const double time = times->front() * share;
    times->clear();
    for (const double factor : factors) times->push_back(time * factor);
  }
}

/// Returns true if backwards are split.
bool has_halves(const Orders& orders) {
  return std::ranges::any_of(orders.ranks, [](const auto& list) {
    return std::ranges::count(list, Kind::backward_weight, &Order::kind);
  });
}

/// The idle times of the ranks by their reason.
Json idle_json(const trace::TimeUse& use) {
  Json idle('{');
  for (const auto& [name, member] : {std::pair{"warm-up", &trace::TimeUse::RankTime::warm_up},
                                     {"receive", &trace::TimeUse::RankTime::receive},
                                     {"send", &trace::TimeUse::RankTime::send},
                                     {"other", &trace::TimeUse::RankTime::other},
                                     {"drain", &trace::TimeUse::RankTime::drain},
                                     {"tail", &trace::TimeUse::RankTime::tail}}) {
    std::vector<double> times;
    for (const auto& rank : use.ranks) times.push_back(rank.*member);
    idle.add(name, times);
  }
  return idle;
}

}  // namespace

void Explorer::keep(const Timeline& timeline) {
  const Schedule& schedule = timeline.schedule();
  m_drawn.clear();
  m_times.clear();
  m_drawn.reserve(schedule.size());
  m_times.reserve(3 * schedule.size());
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    const Queue& queue = schedule[action.queue];
    m_drawn.push_back({static_cast<std::int32_t>(action.kind), action.flags,
                       static_cast<std::int32_t>(+queue.from), static_cast<std::int32_t>(+queue.to),
                       static_cast<std::int32_t>(+action.stage),
                       static_cast<std::int32_t>(+action.item), static_cast<std::int32_t>(i), 0});
    const Span& span = timeline.spans()[i];
    m_times.insert(m_times.end(), {span.start, span.end, span.arrival});
  }
}

const Priced& Explorer::priced() const {
  if (!m_priced) wrong("no schedule is drawn", "", "ask with do=draw first");
  return *m_priced;
}

Json Explorer::report(bool sized) {
  const Timeline& timeline = priced().timeline;
  keep(timeline);
  std::vector<std::size_t> begins = {0};
  m_live.clear();
  const auto keep_curve = [&](const MemoryCurve<Seconds>& curve, auto held) {
    for (const auto& step : curve)
      m_live.insert(m_live.end(), {step.at, static_cast<double>(step.holds.*held)});
    begins.push_back(m_live.size() / 2);
  };
  if (sized)
    for (const auto& use : schedule::memory_use(timeline)) keep_curve(use.all, &Footprint::bytes);
  else
    for (const auto& curve : m_priced->live) keep_curve(curve, &Footprint::parts);
  const int ranks = m_priced->schedule.ranks();
  Json out('{');
  out.add("name", m_priced->schedule.name())
      .add("ranks", ranks)
      .add("stages", m_priced->stages)
      .add("microbatches", microbatches_of(m_priced->orders))
      .add("actions", m_drawn.size())
      .add("begin", timeline.begin())
      .add("makespan", timeline.makespan())
      .add("bubble", timeline.bubble_ratio())
      .add("activations", m_priced->activations)
      .add("messages", m_priced->messages)
      .add("share", static_cast<double>(ranks) / m_priced->stages)
      .add("pairs", has_pairs(m_priced->orders))
      .add("split", has_halves(m_priced->orders))
      .add("busy", timeline.busy())
      .add("idle", idle_json(trace::time_use(timeline)))
      .add("live", begins)
      .add("sized", sized)
      .add("torch", schedule::why_not_torch(m_priced->orders));
  if (sized) out.add("most", most_bytes(timeline));
  out.add("text", Json('{')
                      .add("makespan", number(timeline.makespan()))
                      .add("bubble", percent(timeline.bubble_ratio()))
                      .add("activations", of_ranks(m_priced->activations)));
  return out;
}

std::string Explorer::draw(std::string_view text_of_request, std::string_view file) {
  const Request request(text_of_request);
  Prices prices = read_prices(request);
  if (const auto fault = fault_of(prices)) wrong(fault->what, fault->why, fault->fix);
  std::optional<double> theory;
  Orders orders;
  if (request.has("schedule")) {
    const schedule::NamedSchedule& entry = schedule::find_schedule(request.text("schedule"));
    const schedule::PipelineShape shape = read_shape(request);
    orders = catalogue_orders(entry, shape);
    if (!request.has("factors")) theory = closed_form(entry, shape, prices);
  } else {
    orders = file_orders(request, file);
  }
  scale_stages(prices, request, orders);
  if (const auto fault = fault_of(prices, orders, "")) wrong(fault->what, fault->why, fault->fix);
  std::optional<Candidate> found;
  if (request.has("search")) {
    found = searched(request, orders, prices);
    theory.reset();
    m_priced = std::move(found->priced);
  } else {
    m_priced = price(std::move(orders), prices);
  }
  Json out = report(prices.sized());
  out.add("bytes", m_priced->messages * prices.activation);
  if (theory) out.add("theory", *theory);
  if (found) out.add("found", found->name).add("bound", found->bound);
  return out.close();
}

std::string Explorer::action(std::string_view text_of_request) const {
  const Request request(text_of_request);
  const Schedule& schedule = priced().schedule;
  const Timeline& timeline = priced().timeline;
  int number = -1;
  request.read("action", number);
  if (number < 0 || static_cast<std::size_t>(number) >= schedule.size())
    wrong("there is no such action", text(number, " of ", schedule.size()));
  const ActionId id{static_cast<std::size_t>(number)};
  const Span& span = timeline[id];
  Json after('[');
  const auto waits = [&](ActionId other, int mine, int end, bool queue) {
    const Span& earlier = timeline[other];
    const bool moves = schedule[other].kind == Kind::move;
    after.add(Json('{')
                  .add("action", +other)
                  .add("name", schedule::action_text(schedule, other))
                  .add("time", moves && end == 0 ? earlier.end : earlier.arrival)
                  .add("mine", mine)
                  .add("queue", queue));
  };
  for (std::size_t i = static_cast<std::size_t>(number); i-- > 0;)
    if (schedule[ActionId{i}].queue == schedule[id].queue) {
      waits(ActionId{i}, 0, 0, true);
      break;
    }
  for (const After& other : schedule.after(id))
    waits(ActionId{std::size_t{other.action}}, static_cast<int>(other.mine),
          static_cast<int>(other.end), false);
  std::vector<std::string> uses;
  Bytes bytes = 0;
  for (const Use& use : schedule.uses(id)) {
    const Buffer& buffer = schedule[use.buffer];
    constexpr std::array<const char*, 4> access = {"", "read", "write", "update"};
    uses.push_back(text(access[use.mode], " ", schedule[buffer.label], " of stage ", buffer.stage,
                        "[", use.first, "] on rank ", buffer.rank));
    if (schedule[id].kind == Kind::move && uses.size() == 1) bytes = schedule.bytes(use);
  }
  return Json('{')
      .add("action", number)
      .add("name", schedule::action_text(schedule, id))
      .add("start", span.start)
      .add("end", span.end)
      .add("arrival", span.arrival)
      .add("bytes", bytes)
      .add("uses", uses)
      .add("after", after)
      .close();
}

std::string Explorer::answer(std::string_view text_of_request, std::string_view file) {
  const Request request(text_of_request);
  const std::string_view asked = request.text("do");
  if (asked == "catalogue") return catalogue();
  if (asked == "draw") return draw(text_of_request, file);
  if (asked == "read") return read_about(request, file);
  if (asked == "plan") return plan(text_of_request, file);
  if (asked == "action") return action(text_of_request);
  if (asked == "csv") return schedule::to_csv(priced().orders);
  if (asked == "svg")
    return trace::to_svg(priced().timeline, {.unit = "", .memory = request.text("memory") == "1"});
  if (asked == "perfetto") {
    double second = 1;
    request.read("second", second);
    Timeline timeline = priced().timeline;
    for (Span& span : timeline.spans())
      span = {span.start * second, span.end * second, span.arrival * second};
    const std::array named = {trace::NamedTimeline{"", timeline}};
    return trace::to_perfetto(named);
  }
  if (asked == "trace") return trace(file);
  if (asked == "analyse") return analyse();
  wrong("no such request", text("do=", asked));
}

std::string answer_or_error(Explorer& explorer, std::string_view request, std::string_view file,
                            bool& threw) {
  threw = false;
  Json wrong('{');
  const auto cell = [&](std::size_t line, std::size_t number, const std::string& grid) {
    wrong.add("line", line).add("cell", number).add("grid", grid);
  };
  try {
    return explorer.answer(request, file);
  } catch (const schedule::wrong_cell& error) {
    wrong.add("error", error.what());
    cell(error.line(), error.cell(), error.grid());
  } catch (const blocked_order& error) {
    wrong.add("error", error.what());
    cell(+error.fault().rank + 1, 0, error.grid());
  } catch (const infeasible& error) {
    wrong.add("error", error.what()).add("infeasible", true);
  } catch (const std::exception& error) {
    wrong.add("error", error.what());
  }
  threw = true;
  return wrong.close();
}

}  // namespace tool
