// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>
#include <heddle/json.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/systems/pipedream/graph_profile.hpp>
#include <heddle/systems/planners.hpp>
#include <heddle/trace.hpp>

#include "../common/columns.hpp"
#include "../common/size_check.hpp"
#include "../common/streams.hpp"
#include "../common/timeline_output.hpp"
#include "commands.hpp"
#include "measured.hpp"

namespace tool {

using namespace heddle;

namespace {

/// What the commands are told.
struct Settings {
  std::string profile = {}, machine = {}, plan = {}, output = {};
  std::vector<std::string> plans = {};
  std::string text = {}, model = {}, device = systems::GraphProfileOptions{}.device;
  std::uint64_t samples = 1;
  double state = plan::PlanOptions{}.state_per_parameter;
  int columns = 100;
  std::string svg = {}, perfetto = {};
};

std::string seconds(double value) { return text(value, " s"); }

/// Returns the problem of a plan that exists: its batch and its schedule.
plan::PlanOptions options_of(const Plan& plan, const Settings& s) {
  return {.batch = plan.batch(), .schedule = plan.schedule, .state_per_parameter = s.state};
}

/// Reads a plan, and checks it for a profile and a machine.
Plan checked_plan(const std::string& name, const plan::Profile& profile, const Machine& machine) {
  Plan plan = json::read_plan(name);
  try {
    check(plan, static_cast<int>(profile.layers.size()), machine.ranks());
  } catch (const contract_error& error) {
    const ErrorInfo& info = error.complaint();
    throw contract_error({text("'", name, "'"), info.what, info.why, info.fix});
  }
  return plan;
}

void show(const CommandLine& command, const Settings& s) {
  const bool draws = !s.profile.empty();
  if (draws && s.machine.empty())
    throw command.error("MACHINE is missing", "a plan is drawn for a profile and a machine");
  if (!draws && !(s.svg.empty() && s.perfetto.empty()))
    throw command.error("a picture needs times", "give a PROFILE and a MACHINE");
  if (s.columns < 1) throw command.error("a drawing needs at least one column");
  if (!draws) {
    const Plan plan = json::read_plan(s.plan);
    std::cout << plan << "\nhash " << std::hex << hash(plan) << '\n';
    return;
  }
  const plan::Profile profile = json::read_profile(s.profile);
  const Machine machine = json::read_machine(s.machine);
  const Plan plan = checked_plan(s.plan, profile, machine);
  WordsBeside words(s.svg == "-" || s.perfetto == "-");
  std::cout << plan << "\nhash " << std::hex << hash(plan) << std::dec << "\n\n";
  const plan::PlanProblem problem(profile, machine, options_of(plan, s));
  check_size(schedule::find_schedule(plan.schedule),
             {.ranks = static_cast<int>(plan.stages.size()) * plan.bucket_count(),
              .microbatches = plan.microbatches,
              .stages_per_rank = 1},
             "plan", "plan check prices plans of any number of microbatches");
  const Timeline timeline = simulated_timeline(plan, problem);
  std::cout << to_grid(timeline, s.columns);
  words.end();
  if (!s.svg.empty()) write_output(s.svg, trace::to_svg(timeline));
  if (!s.perfetto.empty()) write_timeline(s.perfetto, timeline);
}

void check_plan(const Settings& s) {
  const plan::Profile profile = json::read_profile(s.profile);
  const Machine machine = json::read_machine(s.machine);
  const Plan plan = checked_plan(s.plan, profile, machine);
  const plan::PlanProblem problem(profile, machine, options_of(plan, s));
  const std::vector<plan::StagePrice> prices = stage_prices(plan, problem);
  const std::vector<Bytes> memory = plan_memory(plan, problem);
  std::vector<std::vector<std::string>> rows = {{"stage", "forward", "backward", "update",
                                                 "gradient sum", "send forward", "send backward",
                                                 "memory of the fullest rank"}};
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const plan::StagePrice& price = prices[i];
    Bytes most = 0;
    for (const Rank rank : plan.stages[i].ranks) most = std::max(most, memory[+rank]);
    rows.push_back({text(i), seconds(price.forward), seconds(price.backward), seconds(price.update),
                    seconds(price.gradient_sum), seconds(price.send_forward),
                    seconds(price.send_backward), bytes_text(static_cast<double>(most))});
  }
  std::cout << plan << "\n\n";
  print_columns(rows);
  std::cout << "\nsimulated step " << seconds(simulated_step(plan, problem)) << '\n';
  if (const auto shortage = memory_shortage(plan, problem))
    throw infeasible({text("'", s.plan, "'"), "the plan does not fit in memory",
                      text("rank ", shortage->rank, " needs ", shortage->needed, " bytes and has ",
                           shortage->capacity),
                      "recompute, use more stages, or smaller microbatches"});
}

/// Returns the time of a plan by a planner's formula, or "-" if the planner cannot price it.
std::string formula_of(const plan::NamedPlanner& planner, const Plan& plan,
                       const plan::PlanProblem& problem) {
  try {
    return seconds(planner.formula(plan, problem));
  } catch (const error&) {
    return "-";
  }
}

void compare(const Settings& s) {
  const plan::Profile profile = json::read_profile(s.profile);
  const Machine machine = json::read_machine(s.machine);
  std::vector<std::vector<std::string>> rows = {{"plan"}};
  for (const plan::NamedPlanner& planner : systems::planners()) rows[0].emplace_back(planner.name);
  rows[0].insert(rows[0].end(),
                 {"simulated", "seconds a sample", "memory of the fullest rank", "fits"});
  for (const std::string& name : s.plans) {
    const Plan plan = checked_plan(name, profile, machine);
    const plan::PlanProblem problem(profile, machine, options_of(plan, s));
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{name});
    for (const plan::NamedPlanner& planner : systems::planners())
      row.push_back(formula_of(planner, plan, problem));
    const double simulated = simulated_step(plan, problem);
    const std::vector<Bytes> memory = plan_memory(plan, problem);
    const auto shortage = memory_shortage(plan, problem);
    row.insert(row.end(),
               {seconds(simulated), seconds(simulated / static_cast<double>(plan.batch())),
                bytes_text(static_cast<double>(std::ranges::max(memory))),
                shortage ? text("no: rank ", shortage->rank) : std::string("yes")});
  }
  print_columns(rows);
}

/// Compares each trace with the prediction that the plan, the profile and the machine give.
void compare_with_runs(const Settings& s) {
  const plan::Profile profile = json::read_profile(s.profile);
  const Machine machine = json::read_machine(s.machine);
  const Plan plan = checked_plan(s.plan, profile, machine);
  Schedule made = plan::schedule(plan, profile, {.ranks = machine.ranks()});
  // Stages that are sharded sum their gradients themselves; otherwise a ring of messages does.
  if (plan.sharding.empty()) made = schedule::expand(made, schedule::CollectiveForm{});
  const Timeline predicted = simulate(made, plan::costs(plan, profile, machine));
  std::vector<double> sizes;
  std::vector<std::vector<std::string>> rows = {{"run", "predicted", "measured", "error"}};
  const auto percent = [](const trace::PlanError& error) {
    return text(error.step() < 0 ? "" : "+", 100 * error.step(), " %");
  };
  if (plan.prediction) rows[0].insert(rows[0].end(), {"the plan predicted", "error"});
  for (const std::string& name : s.plans) {
    const Timeline measured = measured_timeline(name, predicted.schedule());
    const trace::PlanError error = trace::plan_error(predicted, measured);
    if (s.plans.size() == 1) std::cout << error << '\n';
    sizes.push_back(std::abs(error.step()));
    rows.push_back({name, seconds(error.predicted), seconds(error.measured), percent(error)});
    if (!plan.prediction) continue;
    const trace::PlanError planned = trace::plan_error(*plan.prediction, measured);
    rows.back().insert(rows.back().end(), {seconds(planned.predicted), percent(planned)});
  }
  print_columns(rows);
  std::ranges::sort(sizes);
  const std::size_t n = sizes.size();
  std::cout << "\nsize of the error: median " << 50 * (sizes[(n - 1) / 2] + sizes[n / 2])
            << " %, least " << 100 * sizes.front() << " %, greatest " << 100 * sizes.back()
            << " %\n";
}

void import_profile(const CommandLine& command, const Settings& s) {
  if (s.samples < 1)
    throw command.error("--samples is 0", "say the samples of the microbatch that was measured");
  if (s.device.empty()) throw command.error("--device is empty", "name the kind of device");
  const plan::Profile profile = systems::read_graph_profile(
      read_file(s.text), {.name = s.text,
                          .model = s.model.empty() ? s.text : s.model,
                          .device = s.device,
                          .samples = static_cast<std::int64_t>(s.samples)});
  WordsBeside words(s.output == "-");
  std::cout << profile << '\n';
  words.end();
  if (!s.output.empty()) write_output(s.output, json::profile_text(profile));
}

void add_state(CommandLine& command, Settings& s) {
  command.add_option("state", &s.state,
                     "bytes that a rank keeps for each byte of its weights: weights, gradients and "
                     "what the optimiser remembers");
}

}  // namespace

std::string planner_list() {
  std::string all = "Planners:";
  for (const plan::NamedPlanner& planner : systems::planners())
    all += text("\n  ", planner.name, ": ", planner.about);
  return all;
}

void add_show(CommandLine& program) {
  const auto s = std::make_shared<Settings>();
  CommandLine& command = program.add_command(
      "show", "Prints a plan; for a profile and a machine also its simulated step.",
      [s](const CommandLine& line) { show(line, *s); });
  command.add_input("PLAN", &s->plan, "the plan");
  command.add_input("PROFILE", &s->profile, "the profile of the model", false);
  command.add_input("MACHINE", &s->machine, "the machine", false);
  command.add_option("columns", &s->columns, "of the drawing in the terminal");
  command.add_output("--svg", s->svg, "a file for a picture");
  command.add_output("--perfetto", s->perfetto, "a file for Perfetto or chrome://tracing");
}

void add_check(CommandLine& program) {
  const auto s = std::make_shared<Settings>();
  CommandLine& command =
      program.add_command("check", "Says what is wrong with a plan, or what its stages cost.",
                          [s](const CommandLine&) { check_plan(*s); });
  command.add_input("PLAN", &s->plan, "the plan");
  command.add_input("PROFILE", &s->profile, "the profile of the model");
  command.add_input("MACHINE", &s->machine, "the machine");
  add_state(command, *s);
}

void add_compare(CommandLine& program) {
  const auto s = std::make_shared<Settings>();
  CommandLine& command = program.add_command(
      "compare", "Prices plans by the formulas of all planners and by the simulator.",
      [s](const CommandLine&) { compare(*s); });
  command.add_input("PROFILE", &s->profile, "the profile of the model");
  command.add_input("MACHINE", &s->machine, "the machine");
  command.add_input("PLAN", &s->plans, "the plans");
  add_state(command, *s);
}

void add_error(CommandLine& program) {
  const auto s = std::make_shared<Settings>();
  CommandLine& command = program.add_command(
      "error",
      "Says how far measured steps are from what a plan's files predict, and from what the plan "
      "itself says.",
      [s](const CommandLine&) { compare_with_runs(*s); });
  command.add_input("PLAN", &s->plan, "the plan that ran");
  command.add_input("PROFILE", &s->profile, "the profile of the model");
  command.add_input("MACHINE", &s->machine, "the machine");
  command.add_input("MEASURED", &s->plans,
                    "traces of steps, such as train_gpt --plan PLAN --trace MEASURED writes");
}

void add_import(CommandLine& program) {
  const auto s = std::make_shared<Settings>();
  CommandLine& command = program.add_command(
      "import", "Makes a profile of a text profile of the planners DAPPLE and PipeDream.",
      [s](const CommandLine& line) { import_profile(line, *s); });
  command.add_input("FILE", &s->text, "the text profile: nodes, then edges that begin with a tab");
  command.add_output("--output", s->output, "a file for the profile");
  command.add_option("samples", &s->samples, "samples of the microbatch that was measured");
  command.add_option("device", &s->device, "the kind of device; others are relative to it");
  command.add_option("model", &s->model, "the name of the model; without one that of FILE");
}

}  // namespace tool
