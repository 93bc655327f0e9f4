// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// meaning(): what a Schedule leaves in its persistent storage, as terms instead of numbers. Passes
/// that change when and where things are done, but not what, leave the same.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/schedule.hpp>

namespace heddle::test {

/// A number for the term in every part of every persistent buffer after `steps` steps. A term is
/// made of the action that wrote the part, the role it wrote, and the terms that it read. Moves and
/// casts hand a term on; a group leaves one term of all members in each of them.
inline std::vector<std::uint64_t> meaning(const Schedule& schedule, int steps = 2) {
  const auto mix = [](std::uint64_t state, std::uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15u;
    return state ^ state >> 29;
  };
  std::vector<std::vector<std::uint64_t>> terms;
  for (std::size_t b = 0; b < schedule.buffers().size(); ++b) {
    const Buffer& buffer = schedule[BufferId{b}];
    std::vector<std::uint64_t> parts;
    for (std::uint32_t part = 0; part < buffer.parts; ++part)
      parts.push_back(buffer.transient ? 0 : mix(mix(fnv1a("initial"), b), part));
    terms.push_back(std::move(parts));
  }
  const auto at = [&](const Use& use, std::uint32_t part) -> std::uint64_t& {
    return terms[+use.buffer][use.first + part];
  };
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Action& action = schedule[ActionId{i}];
      const auto uses = schedule.uses(ActionId{i});
      if (action.kind == Kind::move || action.kind == Kind::cast) {
        for (std::uint32_t part = 0; part < uses[0].count; ++part)
          at(uses[1], part) = at(uses[0], part);
        continue;
      }
      if (action.kind == Kind::group) {
        for (std::uint32_t part = 0; part < uses[0].count; ++part) {
          std::uint64_t sum = fnv1a("sum");
          for (const Use& member : uses) sum = mix(sum, at(member, part));
          for (const Use& member : uses) at(member, part) = sum;
        }
        continue;
      }
      std::uint64_t term = fnv1a(to_string(action.kind));
      term = mix(mix(term, +action.stage), +action.item);
      for (const Use& use : uses)
        for (std::uint32_t part = 0; use.reads() && part < use.count; ++part)
          term = mix(term, at(use, part));
      std::map<LabelId, std::uint64_t> of_role;
      for (const Use& use : uses)
        for (std::uint32_t part = 0; use.writes() && part < use.count; ++part) {
          const LabelId label = schedule[use.buffer].label;
          at(use, part) = mix(mix(term, fnv1a(schedule[label])), of_role[label]++);
        }
    }
  }
  std::vector<std::uint64_t> result;
  for (std::size_t b = 0; b < schedule.buffers().size(); ++b)
    if (!schedule[BufferId{b}].transient)
      result.insert(result.end(), terms[b].begin(), terms[b].end());
  return result;
}

}  // namespace heddle::test
