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
#include <vector>

#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>
#include <heddle/json.hpp>
#include <heddle/plan.hpp>
#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/program_file.hpp>
#include <heddle/systems/hap/reverse_program.hpp>
#include <heddle/systems/hap/shard_ratios.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/systems/hap/transformer_program.hpp>
#include <heddle/systems/planners.hpp>
#include <heddle/systems/rhino/rhino.hpp>
#include <heddle/systems/rhino/rhino_plan.hpp>

#include "../common/columns.hpp"
#include "../common/progress.hpp"
#include "../common/streams.hpp"
#include "commands.hpp"

namespace tool {

using namespace heddle;

namespace {

/// What the command is told.
struct Settings {
  std::string model = {}, machine = {}, planner = {}, dimension = {};
  double flops = 1e12, state = systems::HapOptions{}.state_per_parameter;
  std::uint64_t batch = 0, level = 1, microbatches = 8;
  bool all = false;
};

std::string seconds(double value) { return value < 1e300 ? text(value, " s") : "not possible"; }

/// Prints what Rhino chose, and from what.
void explain_rhino(const systems::TensorProgram& program, const Machine& machine,
                   const Settings& s) {
  const systems::RhinoPlan found =
      systems::rhino(program, machine,
                     {.level = static_cast<int>(s.level),
                      .flops = s.flops,
                      .batch = s.dimension,
                      .microbatches = {static_cast<int>(s.microbatches)}});
  std::cout << found.stages << (found.stages == 1 ? " stage, " : " stages, ") << found.microbatches
            << (found.microbatches == 1 ? " microbatch, axes of" : " microbatches, axes of");
  for (const int ways : found.ways) std::cout << ' ' << ways;
  std::cout << " ranks\nstep " << seconds(found.cost) << ", computation " << seconds(found.compute)
            << ", collectives " << seconds(found.communication) << ", memory " << found.bytes / 1e9
            << " GB, " << (found.optimal ? "optimal for these axes" : "perhaps not optimal") << "\n"
            << found.evaluations << " strategies and pairs priced in " << found.attempts
            << " attempts\n\n";
  std::vector<std::vector<std::string>> rows = {{"axis", "cone or tensor", "strategy", "chosen",
                                                 "own", "changes of form", "more than chosen",
                                                 "memory"}};
  for (const systems::RhinoGroup& group : found.groups) {
    const systems::RhinoCandidate& chosen = group.candidates[group.chosen];
    for (std::size_t c = 0; c < group.candidates.size(); ++c) {
      if (!s.all && c != group.chosen) continue;
      const systems::RhinoCandidate& each = group.candidates[c];
      rows.push_back({text(group.axis), group.name, each.strategy, c == group.chosen ? "yes" : "",
                      seconds(each.own), seconds(each.changes),
                      seconds(each.own + each.changes - chosen.own - chosen.changes),
                      text(each.bytes / 1e9, " GB")});
    }
  }
  print_columns(rows);
  if (found.stages == 1) return;
  std::cout << "\nbytes over the cuts between stages " << found.cut_bytes << '\n';
  rows = {{"stage", "operation"}};
  for (int stage = 0; stage < found.stages; ++stage)
    for (std::size_t o = 0; o < found.operations.size(); ++o)
      if (found.operations[o].stage == stage)
        rows.push_back({text(stage), program.operations[o].output});
  print_columns(rows);
}

/// Prints HAP's instructions with their times, the blocks of the ranks, and the dual prices of its
/// linear program.
void explain_hap(const systems::TensorProgram& program, const Machine& machine, const Settings& s) {
  const systems::HapOptions options{.flops = s.flops, .state_per_parameter = s.state};
  const systems::HapResult found = systems::hap(program, machine, options);
  std::vector<std::vector<std::string>> rows = {{"instruction", "tensor", "form", "time"}};
  for (std::size_t i = 0; i < found.program.instructions.size(); ++i) {
    const systems::ShardInstruction& now = found.program.instructions[i];
    rows.push_back(
        {text(now.kind), now.tensor, text(now.to), seconds(found.price.instructions[i])});
  }
  print_columns(rows);
  rows = {{"", "dimension", "indices of each rank"}};
  for (std::size_t d = 0; d < program.dimensions.size(); ++d) {
    std::string blocks;
    for (const std::int64_t block : found.program.blocks[d]) blocks += text(block, ' ');
    if (!blocks.empty()) rows.push_back({"", program.dimensions[d].name, blocks});
  }
  std::cout << '\n';
  print_columns(rows);
  std::cout << "\ntime " << found.price.time() << " s, computation " << found.price.computation
            << " s, communication " << found.price.communication << " s, at most "
            << found.price.peak << " bytes a rank, " << found.candidates << " property sets in "
            << found.rounds << " searches\n\n";
  const systems::RatioProblem<double> problem =
      systems::hap_ratios(program, found.program, machine, found.groups, found.shares, options);
  if (problem.limits.empty()) {
    std::cout << "no capacity of memory is known, so no limit has a price\n";
    return;
  }
  const systems::RatioSolution<double> shares = systems::solve_ratios(problem);
  rows = {{"limit", "bytes", "seconds gained by a GB more"}};
  for (std::size_t l = 0; l < problem.limits.size(); ++l)
    rows.push_back({problem.limits[l].name, text(problem.limits[l].bound),
                    text(std::max(0.0, -shares.prices[l] * 1e9))});
  print_columns(rows);
}

/// Prints the best time of a planner for each value of an axis, the other axes being free.
void explain_axes(const CommandLine& command, const std::string& content, const Settings& s) {
  if (s.batch < 1)
    throw command.error("--batch is missing", "say the samples of a step, for example --batch 64");
  const std::string name = s.planner.empty() ? "Frontier 3D" : s.planner;
  std::vector<std::string_view> names;
  for (const plan::NamedPlanner& planner : systems::planners()) names.push_back(planner.name);
  if (std::ranges::find(names, name) == names.end()) throw command.no_such("planner", name, names);
  const plan::Profile profile = json::parse_profile(content, s.model);
  const Machine machine = json::read_machine(s.machine);
  const plan::PlanOptions free{.batch = static_cast<std::int64_t>(s.batch)};
  const plan::PlanProblem problem(profile, machine, free);
  std::vector<std::vector<std::string>> rows = {
      {"axis", "value", "best step by the formula", "simulated"}};
  ProgressLine line;
  const auto add = [&](const char* axis, int value, const plan::PlanOptions& options) {
    line.say(text(name, ", ", axis, ' ', value));
    const plan::PlanProblem fixed(profile, machine, options);
    const plan::FoundPlan found = plan::find_planner(systems::planners(), name).search(fixed);
    rows.push_back({axis, text(value), found.plan ? seconds(found.formula) : found.infeasible,
                    found.plan ? seconds(simulated_step(*found.plan, fixed)) : "-"});
  };
  for (const int degree : problem.options().tensor_degrees) {
    plan::PlanOptions options = free;
    options.tensor_degrees = {degree};
    add("tensor", degree, options);
  }
  for (const int count : problem.options().microbatches) {
    plan::PlanOptions options = free;
    options.microbatches = {count};
    add("microbatches", count, options);
  }
  line.print_above([&] {
    std::cout << name << ": the best plan for each value of an axis, the others being free\n\n";
    print_columns(rows);
  });
}

/// The planners of programs. The first one is the usual one.
const std::vector<std::string_view> program_planners = {"Rhino", "HAP"};

/// Throws what `command` says of a name that is not empty and not among program_planners.
void check_planner(const CommandLine& command, const std::string& name) {
  if (!name.empty() && std::ranges::find(program_planners, name) == program_planners.end())
    throw command.no_such("planner of programs", name, program_planners);
}

/// Prints what the chosen planner makes of a program.
void explain_program(const systems::TensorProgram& program, const Settings& s) {
  const Machine machine = json::read_machine(s.machine);
  if (s.planner == "HAP")
    explain_hap(program, machine, s);
  else
    explain_rhino(program, machine, s);
}

void explain(const CommandLine& command, const Settings& s) {
  const std::string content = read_file(s.model);
  // Other wrong files are found when they are parsed.
  if (content.find("\"heddle-program\"") == std::string::npos)
    return explain_axes(command, content, s);
  check_planner(command, s.planner);
  explain_program(systems::parse_program(content, s.model), s);
}

/// The sizes of a transformer, and what is asked about its program.
struct TransformerSettings : Settings {
  std::uint64_t layers = 1, sequences = 8, context = 64, width = 64, heads = 4, kv_heads = 0,
                hidden = 0, words = 0;
  std::string output = {};
  bool gradients = false;
};

/// Prints a generated program, and what the planners make of it if there is a machine.
void show_transformer(const CommandLine& command, const TransformerSettings& s) {
  check_planner(command, s.planner);
  const auto whole = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  systems::TensorProgram program = systems::transformer_program({.layers = whole(s.layers),
                                                                 .sequences = whole(s.sequences),
                                                                 .context = whole(s.context),
                                                                 .width = whole(s.width),
                                                                 .heads = whole(s.heads),
                                                                 .kv_heads = whole(s.kv_heads),
                                                                 .hidden = whole(s.hidden),
                                                                 .vocabulary = whole(s.words)});
  if (s.gradients) program = systems::reverse(program, s.words > 0 ? "loss" : "output");
  WordsBeside words(s.output == "-");
  std::cout << program << '\n';
  if (!s.output.empty() && s.output != "-") {
    systems::write_program(s.output, program);
    std::cout << "\nwrote " << s.output << '\n';
  }
  Settings one = s;
  for (const std::string_view name : program_planners) {
    if (s.machine.empty() || (!s.planner.empty() && s.planner != name)) continue;
    one.planner = name;
    std::cout << '\n' << name << ":\n";
    explain_program(program, one);
  }
  words.end();
  if (s.output == "-") write_output(s.output, systems::program_text(program));
}

/// Adds the options of the planners of programs.
void add_program_options(CommandLine& command, Settings& s) {
  command.add_option("flops", &s.flops, "for a program: flops per second of a device of speed 1");
  command.add_option("state", &s.state,
                     "for HAP: bytes that a rank keeps for each byte of its parameters");
  command.add_option("level", &s.level, "for Rhino: the effort, 1 or 2");
  command.add_option("samples", &s.dimension,
                     "for Rhino: the dimension of samples, to try pipelines");
  command.add_option("microbatches", &s.microbatches, "for Rhino: microbatches of a pipeline");
  command.add_flag("all", s.all, "for Rhino: prints all candidates, not the chosen ones only");
}

}  // namespace

void add_explain(CommandLine& program) {
  const auto s = std::make_shared<Settings>();
  CommandLine& command = program.add_command(
      "explain", "Says why a planner decides as it does, and what the alternatives cost.",
      [s](const CommandLine& line) { explain(line, *s); });
  command.add_input("MODEL", &s->model, "a tensor program, or the profile of a model");
  command.add_input("MACHINE", &s->machine, "the machine");
  command.add_option("planner", &s->planner,
                     "for a program Rhino (usual) or HAP; for a profile one of the planners");
  add_program_options(command, *s);
  command.add_option("batch", &s->batch, "for a profile: samples of a step");
}

void add_program(CommandLine& program) {
  const auto s = std::make_shared<TransformerSettings>();
  CommandLine& command = program.add_command(
      "program", "Prints the tensor program of a transformer, and what planners make of it.",
      [s](const CommandLine& line) { show_transformer(line, *s); });
  command.add_option("layers", &s->layers, "blocks of attention and MLP");
  command.add_option("sequences", &s->sequences, "sequences of a step");
  command.add_option("context", &s->context, "positions of a sequence");
  command.add_option("width", &s->width, "elements of a position between blocks");
  command.add_option("heads", &s->heads, "heads of attention");
  command.add_option("kv-heads", &s->kv_heads, "heads of keys and values; 0: as many as heads");
  command.add_option("hidden", &s->hidden, "width inside the MLP; 0: 4 times the width");
  command.add_option("vocabulary", &s->words,
                     "words, for a whole GPT with its loss; 0: the blocks only");
  command.add_flag("gradients", s->gradients, "adds the backward pass");
  command.add_output("--output", s->output, "writes the program to this file");
  command.add_input("--machine", &s->machine, "a machine, for which planners divide the program",
                    false);
  command.add_option("planner", &s->planner, "Rhino or HAP only; usual: both");
  add_program_options(command, *s);
}

}  // namespace tool
