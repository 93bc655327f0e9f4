// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of exchanged_steps.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/schedule/redistribution/exchanged_steps.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Schedule exchanged_steps(const BlockExchange& exchange, int steps,
                                       const Staleness& staleness) {
  constexpr const char* where = "heddle::schedule::exchanged_steps";
  expects(steps >= 0, [&] {
    return ErrorInfo{where, "the number of steps must be at least 0", text("steps = ", steps)};
  });
  impl::expect_valid(staleness, where);
  check(exchange);
  expects(exchange.steps.size() <= 1, [&] {
    return ErrorInfo{where, "the exchange must have one step", text("got ", exchange.steps.size())};
  });
  for (const BlockExchange::Step& only : exchange.steps)
    for (const BlockExchange::Delivery& delivery : only.deliveries)
      expects(delivery.parts == 1, [&] {
        return ErrorInfo{where, "the exchange must not merge data of several ranks",
                         text("a delivery merges ", delivery.parts, " parts, expected 1")};
      });
  struct Message {
    Rank from, to;
    std::uint32_t packed, arrived;  ///< first parts of the message in these buffers
  };
  const std::size_t ranks = exchange.to.size();
  const int slots = std::min(staleness.age, steps) + 1;
  std::vector<Message> messages;
  std::vector<std::vector<Bytes>> packed(ranks), arrived(ranks);
  exchange.for_each_message([&](Rank from, Rank to, Bytes bytes) {
    const auto next = [](const std::vector<Bytes>& parts) {
      return static_cast<std::uint32_t>(parts.size());
    };
    messages.push_back({from, to, next(packed[+from]), next(arrived[+to])});
    for (int slot = 0; slot < slots; ++slot) {
      packed[+from].push_back(bytes);
      arrived[+to].push_back(bytes);
    }
  });

  Builder builder(text(steps, " steps, ", staleness), static_cast<int>(ranks));
  std::vector<BufferId> field, sent, received;
  const auto add = [&](std::size_t rank, const char* label, std::vector<Bytes> parts,
                       bool transient = true) {
    Buffer buffer{.rank = Rank{rank},
                  .stage = Stage{rank},
                  .label = builder.label(label),
                  .transient = transient};
    heddle::impl::cut_in_parts(buffer, std::move(parts));
    return builder.add_buffer(buffer);
  };
  for (std::size_t r = 0; r < ranks; ++r) {
    field.push_back(add(r, "field", {exchange.to[r]}, false));
    sent.push_back(packed[r].empty() ? field[r] : add(r, "packed", std::move(packed[r])));
    received.push_back(arrived[r].empty() ? field[r] : add(r, "arrived", std::move(arrived[r])));
  }

  std::vector<Use> uses;
  for (int step = 0; step < steps; ++step) {
    for (std::size_t r = 0; r < ranks; ++r) {
      uses.assign(1, update(field[r]));
      if (step > 0) {
        const auto slot = static_cast<std::uint32_t>((step - 1 - staleness.of_call(step)) % slots);
        for (const Message& message : messages)
          if (+message.to == r) uses.push_back(read(received[r], message.arrived + slot));
      }
      builder.add({.kind = Kind::forward,
                   .queue = builder.local(Rank{r}),
                   .stage = Stage{r},
                   .item = Item{step}},
                  uses);
    }
    if (step + 1 == steps) break;
    const auto slot = static_cast<std::uint32_t>(step % slots);
    for (const Message& message : messages) {
      const Use pack = write(sent[+message.from], message.packed + slot);
      const ActionSpec spec{.stage = Stage{+message.from}, .item = Item{step}};
      ActionSpec packs = spec, moves = spec;
      packs.kind = Kind::cast;
      packs.queue = builder.local(message.from);
      builder.add(packs, {pack, read(field[+message.from])});
      moves.kind = Kind::move;
      moves.queue = builder.queue(message.from, message.to);
      builder.add(moves, {read(pack.buffer, pack.first),
                          write(received[+message.to], message.arrived + slot)});
    }
  }
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::schedule
