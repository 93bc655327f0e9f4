// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// changed(): a Schedule with one random change, which a proof must find unless it is harmless.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/schedule.hpp>

namespace heddle::test {

/// A change of one action: dropped; swapped with another one; with a use of other parts or of
/// another buffer; done twice; with updates that forget the values before; of another microbatch or
/// stage.
enum class Change { drop, swap, redirect, duplicate, overwrite, relabel };

/// The number of kinds of changes.
inline constexpr std::uint64_t changes = 6;

/// Returns the schedule with a random change of this kind. Nothing if the Builder rejects it.
[[nodiscard]] inline std::optional<Schedule> changed(const Schedule& schedule, Change change,
                                                     Random& random, std::uint64_t& index) {
  const auto below = [&](std::size_t bound) {
    return static_cast<std::size_t>(random.below(index++, bound));
  };
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < schedule.size(); ++i) list.push_back(i);
  const std::size_t chosen = below(list.size()), other = below(list.size());
  if (change == Change::drop) list.erase(list.begin() + static_cast<std::ptrdiff_t>(chosen));
  if (change == Change::swap) std::swap(list[chosen], list[other]);
  if (change == Change::duplicate)
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(std::max(chosen, other)), chosen);
  Builder builder = Builder::like(schedule, [](const Buffer& buffer) { return buffer; });
  try {
    for (const std::size_t i : list) {
      const ActionId id{i};
      const Action& action = schedule[id];
      std::vector<Use> uses(schedule.uses(id).begin(), schedule.uses(id).end());
      ActionSpec spec{action.kind, action.queue, action.stage, action.item};  // without fusion
      if (i == chosen && change == Change::redirect) {
        Use& use = uses[below(uses.size())];
        const Buffer& buffer = schedule[use.buffer];
        if (below(2) == 0) {  // another part, or another buffer of the rank
          use.first = static_cast<std::uint32_t>(below(buffer.parts - use.count + 1));
        } else {
          const BufferId to{below(schedule.buffers().size())};
          if (schedule[to].rank == buffer.rank && schedule[to].parts >= use.first + use.count)
            use.buffer = to;
        }
      }
      if (i == chosen && change == Change::overwrite && action.kind <= Kind::backward)
        for (Use& use : uses)
          if (use.access() == Access::update)
            use = schedule::write(use.buffer, use.first, use.count);
      if (i == chosen && change == Change::relabel)
        (below(2) == 0 ? spec.item.value : spec.stage.value) ^= 1;
      builder.add(spec, uses);
    }
    return std::move(builder).build();
  } catch (const contract_error&) {
    return std::nullopt;
  }
}

}  // namespace heddle::test
