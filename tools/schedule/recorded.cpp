// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <heddle/core/file.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/pattern/equations.hpp>
#include <heddle/pattern/farm.hpp>
#include <heddle/pattern/fixed_point.hpp>
#include <heddle/pattern/fork_join.hpp>
#include <heddle/pattern/race.hpp>
#include <heddle/trace/svg.hpp>

#include "commands.hpp"

namespace tool {

using namespace heddle;

namespace {

constexpr int threads = 4;

void pause_for(double milliseconds) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

double uniform(std::uint64_t i) { return Random(4, "recorded").uniform(i); }

/// Items that take 5 to 15 ms.
Trail farm_trail() {
  Trail trail;
  std::vector<std::uint64_t> items(24);
  for (std::size_t i = 0; i < items.size(); ++i) items[i] = i;
  static_cast<void>(
      pattern::farm({.workers = threads, .trail = &trail}, items, [](std::uint64_t item) {
        pause_for(5 + 10 * uniform(item));
        return item;
      }));
  return trail;
}

/// Walkers that look for something every 2 ms.
Trail race_trail() {
  Trail trail;
  static_cast<void>(pattern::race({.walkers = threads, .trail = &trail},
                                  [](pattern::Walker& walker) -> std::optional<int> {
                                    for (int step = 1; !walker.stop_requested(); ++step) {
                                      pause_for(2);
                                      walker.work();
                                      if (walker.number() == 2 && step == 15) return step;
                                    }
                                    return std::nullopt;
                                  }));
  return trail;
}

/// A prefix, three paths, of which one forks again, and a conclusion.
Trail fork_join_trail() {
  Trail trail;
  pattern::fork_join({.threads = threads, .trail = &trail}, [](pattern::Fork& fork) {
    pause_for(8);
    const auto end = [](const std::vector<int>& values) { return static_cast<int>(values.size()); };
    const std::vector<int> paths{20, 10, 14};
    const int joined = fork.map(
        paths,
        [&](pattern::Fork& inner, int path) {
          pause_for(path);
          if (path != 10) return path;
          const std::vector<int> steps{9, 12};
          return inner.map(
              steps,
              [](pattern::Fork&, int step) {
                pause_for(step);
                return step;
              },
              end);
        },
        end);
    pause_for(6);
    return joined;
  });
  return trail;
}

/// A chain of 16 equations of 1 ms, in which each sweep makes two values final.
Trail fixed_point_trail() {
  Trail trail;
  const auto rule = [](int i, const pattern::ValuesBefore<int>& before) {
    pause_for(1);
    return i < 2 ? 1 : before[i - 2] + 1;
  };
  const Equations<int, decltype(rule)> equations(16, 0, rule);
  static_cast<void>(pattern::fixed_point(equations, {.threads = threads, .trail = &trail}));
  return trail;
}

void record(const std::filesystem::path& folder) {
  std::error_code ignored;  // write_file says it better
  std::filesystem::create_directories(folder, ignored);
  const auto draw = [&](const std::string& name, const Trail& trail) {
    write_file(folder / (name + ".svg"), trace::to_svg(trail.timeline(name), {.title = name}));
  };
  draw("farm", farm_trail());
  draw("race", race_trail());
  draw("fork-join", fork_join_trail());
  draw("fixed-point", fixed_point_trail());
}

}  // namespace

void add_record(CommandLine& program) {
  const auto folder = std::make_shared<std::string>();
  program
      .add_command("record", "Runs patterns on 4 threads and draws what they did.",
                   [folder](const CommandLine&) { record(*folder); })
      .add_argument("FOLDER", folder.get(),
                    "for farm.svg, race.svg, fork-join.svg, fixed-point.svg");
}

}  // namespace tool
