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
#include <unistd.h>
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
  double seconds = 0, memory = static_cast<double>(plan::PlanBudget{}.bytes) / 1e9;
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

/// Returns a number with three digits and the largest of the units in which it is at least 1.
std::string with_unit(double value, std::vector<std::pair<double, const char*>> units) {
  const auto unit = std::ranges::find_if(
      units, [&](const auto& each) { return value >= each.first || &each == &units.back(); });
  std::ostringstream out;
  out << std::setprecision(3) << value / unit->first << ' ' << unit->second;
  return out.str();
}
std::string time_text(Seconds time) {
  return with_unit(time, {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}});
}
std::string bytes_text(double bytes) {
  return with_unit(bytes, {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "KB"}, {1, "B"}});
}

/// Draws the progress of a search in one line of the terminal, if the standard error is one.
class ProgressLine {
 public:
  ProgressLine() : m_drawn(::isatty(STDERR_FILENO) == 1) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (m_drawn) std::cerr << clear << std::flush;
  }

  void draw(const plan::PlanProgress& progress) const {
    if (!m_drawn) return;
    std::cerr << clear << progress.planner << ": " << progress.candidates << " candidates";
    if (std::isfinite(progress.best)) std::cerr << ", best " << time_text(progress.best);
    std::cerr << std::flush;
  }

 private:
  static constexpr const char* clear = "\r\033[K";
  bool m_drawn;
};

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

/// Returns the content of a file, or of the standard input if the name is `-`.
std::string content_of(const std::string& name) {
  return read_file(name == "-" ? "/dev/stdin" : name);
}

void search(const CommandLine& command, const Search& s) {
  if (s.batch < 1)
    throw command.error("--batch is missing", "say the samples of a step, for example --batch 64");
  if (command.given("seconds") && !(s.seconds > 0))
    throw command.error("--seconds is not above 0",
                        "leave it out to search without a limit of time");
  if (!(s.memory > 0)) throw command.error("--memory is not above 0", "it is in gigabytes");
  if (s.profile == "-" && s.machine == "-")
    throw command.error("the standard input is one file", "name a file for PROFILE or MACHINE");
  std::vector<plan::NamedPlanner> asked = systems::planners();
  std::vector<std::string_view> names;
  for (const plan::NamedPlanner& planner : asked) names.push_back(planner.name);
  for (const std::string& name : s.planners)
    if (std::ranges::find(names, name) == names.end())
      throw command.no_such("planner", name, names);
  if (!s.planners.empty()) asked = plan::select_planners(asked, s.planners);
  const ProgressLine line;
  plan::PlanOptions options{.batch = static_cast<std::int64_t>(s.batch),
                            .schedule = s.schedule,
                            .state_per_parameter = s.state,
                            .budget = {.bytes = static_cast<Bytes>(s.memory * 1e9)},
                            .progress = [&](const plan::PlanProgress& progress) {
                              line.draw(progress);
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
  const plan::Profile profile = json::parse_profile(content_of(s.profile), s.profile);
  const Machine machine = json::parse_machine(content_of(s.machine), s.machine);
  for (int degree = 2; degree <= machine.ranks(); ++degree)
    if (machine.ranks() % degree == 0 && static_cast<std::uint64_t>(degree) <= s.sequence)
      options.sequence_degrees.push_back(degree);
  const plan::PlanSearch found = plan::search(profile, machine, options, asked);
  // A plan on the standard output stands there alone.
  std::ostream& out = s.output == "-" ? std::cerr : std::cout;
  out << found << "\n\n" << std::flush;
  try {
    static_cast<void>(found.best());
  } catch (const infeasible& none) {
    throw no_answer(none.what());
  }
  const plan::PricedPlan& best = found.best_priced();
  out << best.found.planner << ": " << time_text(best.simulated) << " a step, "
      << with_unit(static_cast<double>(s.batch) / best.simulated, {{1, "samples a second"}}) << "; "
      << fullest(best.memory, machine) << '\n'
      << *best.found.plan << '\n';
  if (s.output == "-")
    std::cout << json::plan_text(*best.found.plan);
  else if (!s.output.empty())
    json::write_plan(s.output, *best.found.plan);
}

}  // namespace

void add_search(CommandLine& program) {
  const auto s = std::make_shared<Search>();
  CommandLine& command = program.add_command(
      "search", "Asks the planners for plans, and writes the best one. Status 3: no plan fits.",
      [s](const CommandLine& line) { search(line, *s); });
  command.add_file("PROFILE", s->profile, "the profile of the model; - is the standard input");
  command.add_file("MACHINE", s->machine, "the machine; - is the standard input");
  command.add_option("batch", &s->batch, "samples of a step");
  command.add_option("planner", &s->planners, "asks this planner, and others that are given so");
  command.add_option("seconds", &s->seconds,
                     "ends the search after this time, with the best plans");
  command.add_option("memory", &s->memory, "gigabytes of the tables of a planner, at most");
  command.add_option("schedule", &s->schedule, "the schedule of the plans, see schedule list");
  command.add_option("cast", &s->cast,
                     "a format that planners may choose for messages between sites, such as f16 or "
                     "i8/64");
  command.add_option("sequence", &s->sequence,
                     "the most ranks that may divide each sequence; the profile needs the bytes of "
                     "keys");
  command.add_file("--output", s->output,
                   "a file for the plan of the least simulated time; - is the standard output");
  command.add_option("state", &s->state,
                     "bytes that a rank keeps for each byte of its weights: weights, gradients and "
                     "what the optimiser remembers");
}

}  // namespace tool
