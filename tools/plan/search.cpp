// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>
#include <heddle/json.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/systems/planners.hpp>

#include "../common/progress.hpp"
#include "../common/streams.hpp"
#include "commands.hpp"

namespace tool {

using namespace heddle;

namespace {

/// What the search is told.
struct Search {
  std::string profile = {}, machine = {}, output = {}, cast = {}, schedule = "1f1b";
  std::vector<std::string> planners = {};
  std::uint64_t batch = 0, sequence = 1;
  double state = plan::PlanOptions{}.state_per_parameter;
  double seconds = 0;
  Bytes memory = plan::PlanBudget{}.bytes;
};

/// Returns the format of the option --cast: `f16`, or `i8/64` with a scale for 64 elements.
Codec codec_of(const CommandLine& command, const std::string& word) {
  using enum Scalar;
  const std::size_t slash = std::min(word.find('/'), word.size());
  Codec codec;
  std::vector<std::string> names;
  bool found = false;
  for (const Scalar type : {f16, bf16, f8e4m3, f8e5m2, i8}) {
    names.push_back(text(type));
    if (word.substr(0, slash) != names.back()) continue;
    codec.type = type;
    found = true;
  }
  if (!found) throw command.no_such("format", word, {names.begin(), names.end()});
  if (slash < word.size()) {
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data() + slash + 1, end, codec.block);
    if (error != std::errc{} || rest != end)
      throw command.error(text("'", word, "' is no format"), "write for example i8/64");
  }
  check(codec);
  return codec;
}

/// Returns what a planner has done so far.
std::string progress_text(const plan::PlanProgress& progress) {
  std::string words = text(progress.planner, ": ", progress.candidates, " candidates");
  if (std::isfinite(progress.best)) words += text(", best ", time_text(progress.best));
  return words;
}

/// Returns the bytes of the rank that has least left, beside its capacity if that is known.
std::string fullest(const std::vector<Bytes>& memory, const Machine& machine) {
  std::size_t most = 0;
  const auto capacity = [&](std::size_t r) -> double {
    const std::vector<Memory>& memories = machine.device(Rank{r}).memories;
    return memories.empty() ? 0 : static_cast<double>(memories[0].capacity);
  };
  const auto share = [&](std::size_t r) {
    const double room = capacity(r);
    return std::pair(room > 0 ? static_cast<double>(memory[r]) / room : 0, memory[r]);
  };
  for (std::size_t r = 1; r < memory.size(); ++r)
    if (share(r) > share(most)) most = r;
  const double room = capacity(most);
  return text("rank ", most, " needs ", bytes_text(static_cast<double>(memory[most])),
              room > 0 ? text(" of ", bytes_text(room)) : std::string());
}

void search(const CommandLine& command, const Search& s) {
  if (s.batch < 1)
    throw command.error("--batch is 0", "say the samples of a step, for example --batch 64");
  if (command.given("seconds") && !(s.seconds > 0))
    throw command.error("--seconds is not above 0",
                        "leave it out to search without a limit of time");
  if (s.memory == 0) throw command.error("--memory is not above 0", "write for example 500MB");
  std::vector<plan::NamedPlanner> asked = systems::planners();
  std::vector<std::string_view> names;
  for (const plan::NamedPlanner& planner : asked) names.push_back(planner.name);
  for (const std::string& name : s.planners)
    if (std::ranges::find(names, name) == names.end())
      throw command.no_such("planner", name, names);
  if (!s.planners.empty()) asked = plan::select_planners(asked, s.planners);
  ProgressLine line("reading files");
  plan::PlanOptions options{.batch = static_cast<std::int64_t>(s.batch),
                            .schedule = s.schedule,
                            .state_per_parameter = s.state,
                            .budget = {.bytes = s.memory},
                            .progress = [&](const plan::PlanProgress& progress) {
                              line.say(progress_text(progress));
                              return true;
                            }};
  if (command.given("seconds")) {
    options.budget.seconds = s.seconds;
    options.budget.steps = std::numeric_limits<std::uint64_t>::max();
  }
  if (!s.cast.empty()) options.codecs = {std::nullopt, codec_of(command, s.cast)};
  try {
    static_cast<void>(schedule::find_schedule(s.schedule));
  } catch (const contract_error& unknown) {
    throw command.error(unknown.complaint().what, unknown.complaint().fix);
  }
  const plan::Profile profile = json::read_profile(s.profile);
  const Machine machine = json::read_machine(s.machine);
  for (int degree = 2; degree <= machine.ranks(); ++degree)
    if (machine.ranks() % degree == 0 && static_cast<std::uint64_t>(degree) <= s.sequence)
      options.sequence_degrees.push_back(degree);
  const plan::PlanSearch found = plan::search(profile, machine, options, asked);
  WordsBeside words(s.output == "-");
  line.print_above([&] { std::cout << found << "\n\n" << std::flush; });
  try {
    static_cast<void>(found.best());
  } catch (const infeasible& none) {
    throw no_answer(none.what());
  }
  const plan::PricedPlan& best = found.best_priced();
  line.print_above([&] {
    std::cout << best.found.planner << ": " << time_text(best.simulated) << " a step, "
              << std::setprecision(3) << static_cast<double>(s.batch) / best.simulated
              << " samples a second; " << fullest(best.memory, machine) << '\n'
              << std::setprecision(6) << *best.found.plan << '\n';
  });
  words.end();
  if (!s.output.empty()) write_output(s.output, json::plan_text(*best.found.plan));
}

}  // namespace

void add_search(CommandLine& program) {
  const auto s = std::make_shared<Search>();
  CommandLine& command = program.add_command(
      "search", "Asks the planners for plans, and writes the best one. Status 3: no plan fits.",
      [s](const CommandLine& line) { search(line, *s); });
  command.add_input("PROFILE", &s->profile, "the profile of the model");
  command.add_input("MACHINE", &s->machine, "the machine");
  command.add_option("batch", &s->batch, "samples of a step", true);
  command.add_option("planner", &s->planners, "asks this planner, and others that are given so");
  command.add_seconds("seconds", s->seconds,
                      "ends the search after this time, with the best plans");
  command.add_bytes("memory", s->memory, "bytes of the tables of a planner, at most");
  command.add_option("schedule", &s->schedule, "the schedule of the plans, see schedule list");
  command.add_option("cast", &s->cast,
                     "a format that planners may choose for messages between sites, such as f16 or "
                     "i8/64");
  command.add_option("sequence", &s->sequence,
                     "the most ranks that may divide each sequence; the profile needs the bytes of "
                     "keys");
  command.add_output("--output", s->output, "a file for the plan of the least simulated time");
  command.add_option("state", &s->state,
                     "bytes that a rank keeps for each byte of its weights: weights, gradients and "
                     "what the optimiser remembers");
}

}  // namespace tool
