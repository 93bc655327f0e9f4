// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The oracle of every execution: a Schedule run from top to bottom in one thread, over memory of
/// its own. Shares no code with execute/ but the meaning of the actions, in `perform`.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/schedule.hpp>

namespace heddle::test {

/// A range of memory and how an action touches it.
struct Operand {
  std::byte* data;
  Bytes bytes;
  Access access;
};

/// What an action computes on one rank: every byte it writes depends on its (kind, stage, item), on
/// every byte it reads and on their order. Returns the hash of that. Moves copy; combines add.
inline std::uint64_t perform(const Action& action, Scalar type, std::span<const Operand> operands) {
  std::uint64_t state = fnv1a("action");
  const auto mix = [&state](std::uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15u;
    state ^= state >> 29;
  };
  mix(static_cast<std::uint64_t>(action.kind) << 56 ^ +action.stage << 28 ^ +action.item);
  for (const Operand& operand : operands)
    if (operand.access != Access::write)
      for (Bytes i = 0; i < operand.bytes; ++i) mix(static_cast<std::uint64_t>(operand.data[i]));
  if (action.kind == Kind::move) {
    if (operands[0].bytes != 0) std::memcpy(operands[1].data, operands[0].data, operands[0].bytes);
    return state;
  }
  if (action.kind == Kind::combine) {
    const Operand& out = operands[operands[0].access == Access::read ? 1 : 0];
    const auto add = [&]<class T>(T) {
      for (Bytes i = 0; i + sizeof(T) <= out.bytes; i += sizeof(T)) {
        T first, second;
        std::memcpy(&first, operands[1].data + i, sizeof(T));
        std::memcpy(&second, operands[0].data + i, sizeof(T));
        first += second;
        std::memcpy(out.data + i, &first, sizeof(T));
      }
    };
    type == Scalar::f64 ? add(double{}) : add(std::uint64_t{});
    return state;
  }
  std::uint64_t index = 0;
  for (const Operand& operand : operands)
    if (operand.access != Access::read)
      for (Bytes i = 0; i < operand.bytes; ++i)
        operand.data[i] = static_cast<std::byte>(state >> (index++ % 57));
  return state;
}

/// The memory of all buffers. Persistent buffers begin with values of their own, the same in every
/// Storage; transient ones with `garbage`, so that a read of something unwritten shows.
class Storage {
 public:
  Storage(const Schedule& schedule, std::byte garbage) {
    for (std::size_t b = 0; b < schedule.buffers().size(); ++b) {
      const Buffer& buffer = schedule.buffers()[b];
      // Elements need alignment: vectors of 8-byte words.
      auto& words = m_memory.emplace_back((buffer.bytes + 7) / 8);
      std::byte* const data = begin(BufferId{b});
      if (buffer.bytes == 0) continue;
      const Random random(b, "initial");
      for (std::size_t w = 0; w < words.size(); ++w) {
        const double number = random.uniform(w) - 0.5;
        const std::uint64_t whole = random.bits(w);
        if (buffer.type == Scalar::f64)
          std::memcpy(&words[w], &number, sizeof number);
        else
          words[w] = whole;
      }
      if (buffer.transient)
        std::memset(data, std::to_integer<int>(garbage), static_cast<std::size_t>(buffer.bytes));
    }
  }

  [[nodiscard]] std::byte* begin(BufferId id) {
    return reinterpret_cast<std::byte*>(m_memory[+id].data());
  }
  [[nodiscard]] std::span<const std::byte> part(const Schedule& schedule, BufferId id,
                                                std::uint32_t number) {
    const Buffer& buffer = schedule[id];
    const Bytes from = heddle::schedule::part_offset(buffer, number);
    return {begin(id) + from,
            static_cast<std::size_t>(heddle::schedule::part_offset(buffer, number + 1) - from)};
  }

 private:
  std::vector<std::vector<std::uint64_t>> m_memory;
};

/// The hashes of all actions, by (step, action, rank).
using Log = std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t>;

/// The key of a log entry.
inline std::pair<std::uint64_t, std::uint32_t> log_key(std::size_t step, Rank rank, ActionId id) {
  return {(step << 32) | rank.value, id.value};
}

/// Runs the whole list `steps` times, serially. Moves between ranks are not logged.
inline Log interpret(const Schedule& schedule, Storage& storage, std::size_t steps) {
  Log log;
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const ActionId id{i};
      const Action& action = schedule[id];
      const Queue& queue = schedule[action.queue];
      const bool travels = action.kind == Kind::move && !queue.local();
      // A group takes place on every rank that it touches, on each with that rank's operands.
      std::map<Rank, std::vector<Operand>> places;
      if (!travels) places[queue.from];
      for (const Use& use : schedule.uses(id)) {
        const Buffer& buffer = schedule[use.buffer];
        const Bytes offset = heddle::schedule::part_offset(buffer, use.first);
        const Bytes bytes = heddle::schedule::part_offset(buffer, use.first + use.count) - offset;
        places[action.kind == Kind::group ? buffer.rank : queue.from].push_back(
            {storage.begin(use.buffer) + offset, bytes, use.access()});
      }
      for (const auto& [rank, operands] : places) {
        const Scalar type =
            schedule.uses(id).empty() ? Scalar::byte : schedule[schedule.uses(id)[0].buffer].type;
        const std::uint64_t hash = perform(action, type, operands);
        if (!travels) log[log_key(step, rank, id)] = hash;
      }
    }
  }
  return log;
}

}  // namespace heddle::test
