// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// generate SOURCE EXPECTED [all]: writes one source with the emitted programs of many schedules,
/// and the file that its driver reads: every buffer before and after the steps, as our executor
/// leaves it, and the messages and bytes of every channel. With `all` there are more of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/layout.hpp>
#include <heddle/schedule.hpp>
#include <heddle/systems/mpirigen/emit_mpi.hpp>

#include "support/emittable.hpp"
#include "support/execution.hpp"
#include "support/interpreter.hpp"

namespace {

using namespace heddle;

constexpr std::size_t steps = 3;  // as in the driver

class Generator {
 public:
  Generator(const char* source, const char* expected)
      : m_source(source), m_expected(expected, std::ios::binary) {}

  void add(const Schedule& schedule) {
    const std::string name = text("program_", m_cases.size());
    m_source << systems::emit_mpi(schedule, {.name = name}) << '\n';
    m_cases.push_back({schedule.name(), schedule.ranks()});

    test::Storage before(schedule, std::byte{0x5a}), after(schedule, std::byte{0x5a}),
        serial(schedule, std::byte{0x5a});
    static_cast<void>(test::run_on_threads(schedule, after, steps, {}));
    static_cast<void>(test::interpret(schedule, serial, steps));
    number(schedule.buffers().size());
    for (std::size_t b = 0; b < schedule.buffers().size(); ++b) {
      const Buffer& buffer = schedule.buffers()[b];
      number(+buffer.rank);
      number(buffer.bytes);
      for (test::Storage* storage : {&before, &after})
        m_expected.write(reinterpret_cast<const char*>(storage->begin(BufferId{b})),
                         static_cast<std::streamsize>(buffer.bytes));
      if (!std::equal(after.begin(BufferId{b}), after.begin(BufferId{b}) + buffer.bytes,
                      serial.begin(BufferId{b}))) {
        std::cerr << schedule.name() << ": our executor differs from the serial list\n";
        std::exit(1);
      }
    }
    std::map<std::tuple<std::size_t, std::size_t, std::size_t>, std::pair<std::uint64_t, Bytes>>
        channels;
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Queue& queue = schedule[schedule[ActionId{i}].queue];
      if (schedule[ActionId{i}].kind != Kind::move || queue.local()) continue;
      auto& [messages, bytes] = channels[{+queue.from, +queue.to, +queue.lane}];
      ++messages;
      bytes += schedule.bytes(schedule.uses(ActionId{i})[0]);
    }
    number(channels.size());
    for (const auto& [channel, traffic] : channels) {
      number(std::get<0>(channel));
      number(std::get<1>(channel));
      number(std::get<2>(channel));
      number(traffic.first);
      number(traffic.second);
    }
  }

  void finish() {
    m_source << "#include \"driver.hpp\"\n\nint main(int argc, char** argv) {\n"
                "  const driver::Case cases[] = {\n";
    for (std::size_t c = 0; c < m_cases.size(); ++c) {
      const std::string name = text("program_", c);
      m_source << "      {\"" << m_cases[c].first << "\", " << m_cases[c].second
               << ",\n       driver::check<" << name << "::Program, driver::Meaning<" << name
               << "::Work, " << name << "::Task, " << name << "::Access>>},\n";
    }
    m_source
        << "  };\n  MPI_Init(&argc, &argv);\n"
           "  if (argc == 3) driver::performed = driver::steps - 1;  // for a test that must fail\n"
           "  const int status = argc >= 2 ? driver::run(argv[1], cases, sizeof cases / sizeof "
           "*cases) : 2;\n"
           "  MPI_Finalize();\n  return status;\n}\n";
    if (!m_source.flush() || !m_expected.flush()) {
      std::cerr << "a file cannot be written\n";
      std::exit(1);
    }
    std::cout << m_cases.size() << " programs\n";
  }

 private:
  void number(std::uint64_t value) {
    m_expected.write(reinterpret_cast<const char*>(&value), sizeof value);
  }

  std::ofstream m_source;
  std::ofstream m_expected;
  std::vector<std::pair<std::string, int>> m_cases;
};

/// The schedule of the catalogue on so many ranks, with an odd number of microbatches if it has
/// such a form. None if it has no form on these ranks.
std::optional<Schedule> of_catalogue(const schedule::NamedSchedule& entry, int ranks) {
  for (const int microbatches :
       {ranks + 1 + ranks % 2, ranks, ranks + 2, 2 * ranks, 2 * ranks + 2, 4 * ranks}) {
    try {
      return weave(entry.orders({.ranks = ranks, .microbatches = microbatches}));
    } catch (const infeasible&) {
    }
  }
  return {};
}

/// With memory, and without groups.
Schedule complete(const Schedule& schedule) {
  return schedule::expand(test::with_memory(schedule, 24, Scalar::i64), schedule::CollectiveForm{});
}

void add_pipelines(Generator& generator, bool all) {
  for (const schedule::NamedSchedule& entry : schedule::catalogue()) {
    int found = 0;
    for (const int ranks : {2, 3, 4}) {
      const auto schedule = of_catalogue(entry, ranks);
      if (!schedule) continue;
      ++found;
      const Schedule plain = complete(*schedule);
      // The storage of folded schedules is used again within the step.
      if (all || ranks != 3) generator.add(plain);
      if (all || ranks == 3) generator.add(schedule::fold(plain));
    }
    if (found == 0) {
      std::cerr << "no form of " << entry.name << '\n';
      std::exit(1);
    }
  }
  // Two replicas of two ranks.
  const MeshShape mesh{{"data", 2}, {"pipe", 2}};
  for (const schedule::NamedSchedule& entry : schedule::catalogue()) {
    if (!all && entry.name != "1f1b" && entry.name != "zb-h1" && entry.name != "chimera") continue;
    if (const auto schedule = of_catalogue(entry, 2))
      generator.add(complete(schedule::data_parallel(*schedule, mesh)));
  }
}

void add_collectives(Generator& generator, bool all) {
  std::set<schedule::Algorithm> algorithms;
  std::set<schedule::Collective> collectives;
  for (std::size_t c = 0; c < schedule::collective_count; ++c) {
    for (std::size_t a = 0; a < schedule::algorithm_count; ++a) {
      const auto collective = static_cast<schedule::Collective>(c);
      const auto algorithm = static_cast<schedule::Algorithm>(a);
      int found = 0;  // on 3 or 4 ranks, in turns
      for (const int ranks :
           {4 - static_cast<int>((a + c) % 2), 3 + static_cast<int>((a + c) % 2), 2}) {
        if (!all && found > 0) continue;
        schedule::CollectiveOptions options{
            .ranks = ranks, .type = Scalar::i64, .chunks = 1 + ranks % 2, .root = Rank{ranks - 1}};
        const int blocks = collective == schedule::Collective::all_to_all ? ranks * ranks : ranks;
        if (collective != schedule::Collective::barrier)
          for (int b = 0; b < blocks; ++b)
            options.blocks.push_back(static_cast<Bytes>(b * b % 4) * 24);
        if (algorithm == schedule::Algorithm::hierarchical)
          options.levels = {{ranks == 4 ? 2 : ranks, schedule::Algorithm::direct},
                            {ranks == 4 ? 2 : 1, schedule::Algorithm::ring}};
        if (!schedule::why_not(collective, algorithm, options).empty()) continue;
        ++found;
        algorithms.insert(algorithm);
        collectives.insert(collective);
        generator.add(schedule::collective(collective, algorithm, options));
      }
    }
  }
  if (algorithms.size() != schedule::algorithm_count ||
      collectives.size() != schedule::collective_count) {
    std::cerr << "only " << collectives.size() << " collectives and " << algorithms.size()
              << " algorithms have a form\n";
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const bool all = argc > 3;
  Generator generator(argv[1], argv[2]);
  add_pipelines(generator, all);
  add_collectives(generator, all);
  for (std::uint64_t seed = 0; seed < (all ? 100 : 8); ++seed)
    generator.add(test::emittable_random(seed, 2 + static_cast<int>(seed % 3), 60));
  generator.finish();
}
