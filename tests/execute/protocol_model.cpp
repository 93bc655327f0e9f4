// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// timeout: 600

// The executor's protocol as a SPIN model: each rank posts messages at their places in the list,
// waits for them where slice() says, and hears aborts in waits. For small Schedules, SPIN visits
// all interleavings of ranks and messages, with an abort at every place. The test is skipped
// without spin (Debian: apt-get install spin) or a C compiler.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/cases.hpp"
#include "support/spin.hpp"

namespace test_protocol_model {

using namespace heddle;

namespace {

/// What is wrong in a model.
enum class Fault { none, wait_missing, abort_unsent, abort_unheard, waits_swapped };

struct ModelOptions {
  bool buffers = false;       ///< a send may end before its receive is posted
  bool aborts = false;        ///< a rank fails at any place, or none does
  Fault fault = Fault::none;  ///< of rank 0
  std::size_t which = 0;      ///< the number of the missing wait among those of rank 0
  int passes = 2;             ///< over the list
};

/// Writes the model of a Schedule in Promela. A message of channel c is complete at its source when
/// `sent[c]` counts it, and at its destination when `got[c]` does.
class Model {
 public:
  Model(const Schedule& schedule, const ModelOptions& options)
      : m_schedule(schedule), m_options(options) {
    for (int r = 0; r < schedule.ranks(); ++r)
      m_programs.push_back(slice(schedule, Rank{r}, [](BufferId, const Buffer&) {
        return static_cast<std::byte*>(nullptr);
      }));
  }

  [[nodiscard]] std::string text() {
    std::string ranks;
    for (const Program& program : m_programs) ranks += rank(program);
    const std::size_t channels = std::max<std::size_t>(1, m_channels.size());
    std::string model = heddle::text("byte posted[", channels, "], taken[", channels, "], sent[",
                                     channels, "], got[", channels, "];\nbool heard[",
                                     m_programs.size(), "];\nbyte failing = 255;\nbyte at = 0;\n");
    for (std::size_t c = 0; c < m_channels.size(); ++c) {
      // A rank may see the end of its send later than the other rank that of its receive.
      model += heddle::text("active proctype channel", c, "() {\nend: do\n", "  :: atomic { got[",
                            c, "] < posted[", c, "] && got[", c, "] < taken[", c, "] -> got[", c,
                            "]++ }\n  :: atomic { sent[", c, "] < ",
                            m_options.buffers ? "posted[" : "got[", c, "] -> sent[", c, "]++ }\n");
      model += "  od\n}\n";
    }
    return model + ranks;
  }

  /// Returns the number of waits of rank 0.
  [[nodiscard]] std::size_t waits() const { return m_programs[0].waits.size(); }

 private:
  using Channel = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  /// A message that the rank has posted: its channel, which end, its number, and what it touches.
  struct Posted {
    std::size_t channel;
    bool sends;
    std::uint64_t number;
    Use use;
  };

  std::size_t channel(const Program& program, const Program::Port& port) {
    const Channel key = port.sends ? Channel{program.rank.value, port.peer.value, port.lane.value}
                                   : Channel{port.peer.value, program.rank.value, port.lane.value};
    return m_channels.try_emplace(key, m_channels.size()).first->second;
  }
  [[nodiscard]] static std::string done(std::size_t channel, bool sends) {
    return heddle::text(sends ? "sent[" : "got[", channel, ']');
  }
  [[nodiscard]] static bool conflict(const Use& a, const Use& b) {
    return a.buffer == b.buffer && (a.writes() || b.writes()) && a.first < b.first + b.count &&
           b.first < a.first + a.count;
  }

  /// Blocks until so many messages are complete, or an abort is heard.
  [[nodiscard]] std::string wait(std::size_t rank, std::size_t channel, bool sends,
                                 std::uint64_t messages) const {
    const bool deaf = rank == 0 && m_options.fault == Fault::abort_unheard;
    return heddle::text("  if :: ", done(channel, sends), " >= ", messages, " -> skip",
                        deaf ? "" : heddle::text(" :: heard[", rank, "] -> goto over"), " fi;\n");
  }

  std::string rank(const Program& program) {
    const std::size_t me = +program.rank;
    const bool faulty = me == 0;
    std::vector<Posted> posted;
    std::vector<std::uint64_t> count(program.ports.size(), 0), base(count), before(count);
    std::string body = heddle::text("active proctype rank", me, "() {\n");
    std::size_t place = 0;
    for (int pass = 0; pass < m_options.passes; ++pass) {
      before = base;
      base = count;
      for (std::size_t i = 0; i < program.size(); ++i, ++place) {
        const Program::Step& step = program.steps[i];
        if (m_options.aborts)
          body += heddle::text("  if :: atomic { failing == 255 -> failing = ", me,
                               "; at = ", place, " }; goto fail :: skip fi;\n");
        std::size_t number = step.first_wait;
        for (const Program::Wait& each : program.waits_of(i)) {
          const bool missing =
              faulty && m_options.fault == Fault::wait_missing && number++ == m_options.which;
          const Program::Port& port = program.ports[each.port];
          const std::uint64_t needed =
              each.carried ? std::min(before[each.port] + each.messages, base[each.port])
                           : base[each.port] + each.messages;
          if (!missing && needed > 0) body += wait(me, channel(program, port), port.sends, needed);
        }
        std::string checks;
        const auto uses = m_schedule.uses(step.action);
        const std::size_t first = step.does == Program::Step::Does::receive ? 1 : 0;
        const std::size_t last = step.does == Program::Step::Does::send ? 1 : uses.size();
        for (std::size_t u = first; u < last; ++u)
          for (const Posted& each : posted)
            if (conflict(each.use, uses[u]))
              checks += heddle::text("assert(", done(each.channel, each.sends), " >= ", each.number,
                                     ");\n");
        if (!step.moves()) {
          if (!checks.empty()) body += "  atomic { " + checks + "}\n";
          continue;
        }
        const Program::Port& port = program.ports[step.port];
        const std::size_t to = channel(program, port);
        // A rank that waits for a message before it posts it.
        if (faulty && m_options.fault == Fault::waits_swapped)
          body += wait(me, to, port.sends, count[step.port] + 1);
        body +=
            heddle::text("  atomic { ", checks, port.sends ? "posted[" : "taken[", to, "]++ }\n");
        posted.push_back({to, port.sends, ++count[step.port], uses[first]});
      }
    }
    for (std::size_t p = 0; p < program.ports.size(); ++p)
      if (count[p] > 0)
        body += wait(me, channel(program, program.ports[p]), program.ports[p].sends, count[p]);
    body += "  goto over;\nfail: skip;\n";
    for (std::size_t other = 0; other < m_programs.size(); ++other)
      if (other != me && m_options.fault != Fault::abort_unsent)
        body += heddle::text("  heard[", other, "] = true;\n");
    return body + "over: skip\n}\n";
  }

  const Schedule& m_schedule;
  ModelOptions m_options;
  std::vector<Program> m_programs;
  std::map<Channel, std::size_t> m_channels;
};

/// Returns what SPIN found in a model: an empty string, or its report.
std::string found(const std::string& model) { return test::SpinModel(model).found(); }

Schedule small(const char* name, int ranks, int microbatches) {
  const auto& entry = schedule::find_schedule(name);
  return schedule::fold(weave(entry.orders({.ranks = ranks, .microbatches = microbatches})), 0);
}
Schedule ring(int ranks) {
  return schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                              {.ranks = ranks, .bytes = Bytes{8} * static_cast<Bytes>(ranks)});
}

}  // namespace

TEST_CASE("no interleaving of the executor's protocol hangs or touches a buffer in flight") {
  if (!test::SpinModel::possible()) SKIP(test::SpinModel::impossible);
  const bool all = test::cases(1, 100) == 100;
  std::vector<Schedule> schedules = {small("1f1b", 2, 2), small("stream", 3, 2), ring(2)};
  if (all) {
    schedules.push_back(small("gpipe", 2, 3));
    schedules.push_back(small("zb-h1", 2, 2));
    schedules.push_back(small("1f1b", 3, 2));
    schedules.push_back(small("stream", 4, 2));
    schedules.push_back(ring(3));
  }
  for (const Schedule& schedule : schedules)
    for (const bool buffers : {false, true}) {
      INFO(schedule.name() << (buffers ? ", buffers" : ""));
      CHECK(found(Model(schedule, {.buffers = buffers, .aborts = true}).text()) == "");
    }
}

TEST_CASE("faults of the protocol are found in its model") {
  if (!test::SpinModel::possible()) SKIP(test::SpinModel::impossible);
  const Schedule schedule = small("1f1b", 2, 2);
  const auto report = [&](Fault fault, bool aborts, std::size_t which = 0) {
    const ModelOptions options{
        .buffers = false, .aborts = aborts, .fault = fault, .which = which, .passes = 2};
    return found(Model(schedule, options).text());
  };
  CHECK(report(Fault::waits_swapped, false).find("invalid end state") != std::string::npos);
  CHECK(report(Fault::abort_unsent, true).find("invalid end state") != std::string::npos);
  CHECK(report(Fault::abort_unheard, true).find("invalid end state") != std::string::npos);
  const std::size_t waits = Model(schedule, {}).waits();
  CHECK(waits >= 2);
  for (std::size_t w = 0; w < waits; ++w) {
    INFO("wait " << w);
    CHECK(report(Fault::wait_missing, false, w).find("assertion violated") != std::string::npos);
  }
}

}  // namespace test_protocol_model
