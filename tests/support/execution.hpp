// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Runs a Schedule over threads with the handler of the oracle, and says where the two differ.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>
#include <heddle/schedule/internal/is_tier_move.hpp>

#include "support/interpreter.hpp"

namespace heddle::test {

/// The oracle's meaning of the actions, as an executor's handler that keeps a log.
class OracleHandler {
 public:
  OracleHandler(Rank rank, Log& log) : m_rank(rank), m_log(&log) {}

  void operator()(const Task& task) {
    std::vector<Operand> operands;
    for (const BoundUse& use : task.uses()) operands.push_back({use.data, use.bytes, use.access});
    const Scalar type =
        task.uses().empty() ? Scalar::byte : task.schedule()[task.uses()[0].buffer].type;
    (*m_log)[log_key(m_step, m_rank, task.id())] = perform(task.action(), type, operands);
  }
  void next_step() { ++m_step; }

 private:
  Rank m_rank;
  Log* m_log;
  std::size_t m_step = 0;
};

/// How a step is performed: by step(), by advance() until it is done, or by both in turns.
enum class Steps : std::uint8_t { whole, polled, half_polled };

/// The mover of each rank, if it has one.
using MoverOf = std::function<MoverRef(Rank)>;

/// Executes `schedule` on as many threads as it has ranks: `steps` steps, drained at the end only.
inline Log run_on_threads(const Schedule& schedule, Storage& storage, std::size_t steps,
                          const ExecuteOptions& options, Steps how = Steps::whole,
                          const MoverOf& mover_of = {}) {
  std::vector<Log> logs(static_cast<std::size_t>(schedule.ranks()));
  std::vector<heddle::impl::ProgressCounter> progress(logs.size());
  run_threads(schedule.ranks(), [&](ThreadTransport& transport) {
    Program program = slice(
        schedule, transport.rank(), [&](BufferId id, const Buffer&) { return storage.begin(id); },
        [&](Rank rank) { return &progress[+rank]; });
    OracleHandler handler(transport.rank(), logs[+transport.rank()]);
    ExecuteOptions mine = options;
    if (mover_of) mine.mover = mover_of(transport.rank());
    Executor<ThreadTransport> executor(std::move(program), transport, mine);
    for (std::size_t step = 0; step < steps; ++step) {
      if (how == Steps::whole) {
        executor.step(handler);
      } else {
        executor.begin();
        int polls = 0;
        while (!executor.advance(handler) && (how == Steps::polled || ++polls < 3))
          std::this_thread::yield();
        if (how == Steps::half_polled) executor.finish(handler);
      }
      handler.next_step();
    }
    executor.drain();
  });
  Log all;
  for (const Log& log : logs) all.insert(log.begin(), log.end());
  return all;
}

/// Where an execution differs from the oracle; empty where it does not. Compared are what every
/// action read, at every step, and at the end every part that anything has written. What movers
/// move is not in the log of the execution.
[[nodiscard]] inline std::string difference_from_oracle(const Schedule& schedule, std::size_t steps,
                                                        const ExecuteOptions& options = {},
                                                        Steps how = Steps::whole,
                                                        const MoverOf& mover_of = {}) {
  Storage serial(schedule, std::byte{0x5a});
  Storage parallel(schedule, std::byte{0xa5});
  Log expected = interpret(schedule, serial, steps);
  const std::vector<bool> lanes = heddle::impl::mover_lanes(schedule);
  if (mover_of)
    std::erase_if(expected, [&](const auto& entry) {
      return lanes[+schedule[ActionId{entry.first.second}].queue];
    });
  const Log found = run_on_threads(schedule, parallel, steps, options, how, mover_of);
  if (found.size() != expected.size())
    return text(schedule.name(), ": ", found.size(), " actions ran, not ", expected.size());
  for (const auto& [key, hash] : expected) {
    const auto entry = found.find(key);
    if (entry == found.end() || entry->second != hash)
      return text(schedule.name(), ": ",
                  heddle::schedule::action_text(schedule, ActionId{key.second}), " of rank ",
                  key.first & 0xffffffffu, ", step ", key.first >> 32,
                  entry == found.end() ? " did not run" : " read other values");
  }
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    for (const Use& use : schedule.uses(ActionId{i})) {
      if (!use.writes()) continue;
      for (std::uint32_t part = use.first; part < use.first + use.count; ++part)
        if (!std::ranges::equal(serial.part(schedule, use.buffer, part),
                                parallel.part(schedule, use.buffer, part)))
          return text(schedule.name(), ": part ", part, " of buffer ", use.buffer,
                      " ends otherwise");
    }
  }
  return {};
}

/// `schedule` with memory behind every buffer: `bytes` a part, and elements that can be added.
[[nodiscard]] inline Schedule with_memory(const Schedule& schedule, Bytes bytes, Scalar type) {
  return schedule.with_sizes([&](Buffer& buffer) {
    buffer.type = type;
    buffer.bytes = bytes * buffer.parts;
    buffer.ends.reset();
  });
}

}  // namespace heddle::test
