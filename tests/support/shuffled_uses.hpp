// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// shuffled_uses(): a pass that puts the uses of the stages' actions in a random order.

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/internal/use_roles.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::test {

/// Returns `schedule` with the uses of every F, I, W, B and update in a random order, in which
/// those of the same role keep their order.
[[nodiscard]] inline Schedule shuffled_uses(const Schedule& schedule) {
  const impl::UseRoles roles(schedule);
  const Random random(51, "uses");
  std::uint64_t draws = 0;
  Builder builder = Builder::like(schedule, [](const Buffer& buffer) { return buffer; });
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const Kind kind = schedule[id].kind;
    std::vector<Use> uses(schedule.uses(id).begin(), schedule.uses(id).end());
    if (kind <= Kind::backward || kind == Kind::update) {
      std::vector<Role> order;
      for (const Use& use : uses) order.push_back(roles.of(kind, use));
      for (std::size_t u = order.size(); u-- > 1;)
        std::swap(order[u], order[random.bits(draws++) % (u + 1)]);
      std::array<std::vector<Use>, 16> by_role;
      for (std::size_t u = uses.size(); u-- > 0;)
        by_role[static_cast<std::size_t>(roles.of(kind, uses[u]))].push_back(uses[u]);
      for (std::size_t u = 0; u < order.size(); ++u) {
        auto& left = by_role[static_cast<std::size_t>(order[u])];
        uses[u] = left.back();
        left.pop_back();
      }
    }
    builder.add(schedule, id, uses);
  }
  return std::move(builder).build();
}

}  // namespace heddle::test
