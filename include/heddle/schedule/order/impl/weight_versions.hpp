// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Which version of its weights a stage uses for which microbatch, where the orders hold updates
/// (PipeDream's weight stashing), and in which part of the buffer each version lies.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::impl {

/// The weights of one stage over a step. Version 0 is there when the step begins; update u makes
/// version u + 1. The last version lies in part 0 again, where the next step looks for it.
struct WeightVersions {
  static constexpr std::uint32_t unknown = 0xffffffffu;

  std::vector<std::uint32_t> used;  ///< by a microbatch: the version that its F and B read
  std::vector<std::uint32_t> part;  ///< of a version
  std::uint32_t parts = 1;          ///< of the buffer

  [[nodiscard]] std::uint32_t part_for(Item item) const {
    return part.size() == 1 ? 0 : part[used[+item]];
  }
};

/// Follows one stage through its rank's list. A microbatch uses the newest version, or with
/// vertical sync the one that it used at the stage before (`upstream`, null at the first stage). A
/// version keeps its part until the backward pass of the last microbatch that uses it, so that a
/// stage which has k microbatches under way keeps k versions.
/// @throws contract_error where a microbatch ends after the last update, or wants a version that
///         the stage has not made yet.
inline WeightVersions weight_versions(std::span<const Order> list, Stage stage, std::size_t items,
                                      const WeightVersions* upstream, const std::string& where) {
  constexpr auto unknown = WeightVersions::unknown;
  WeightVersions result{std::vector(items, unknown), {0}, 1};
  if (upstream != nullptr) result.used = upstream->used;
  std::size_t updates = 0;
  for (const Order& order : list) updates += order.stage == stage && order.kind == Kind::update;
  if (updates == 0) {
    std::fill(result.used.begin(), result.used.end(), 0);
    return result;
  }
  result.part.assign(updates + 1, unknown);
  result.part[0] = 0;
  std::vector<std::uint32_t> users(updates + 1, 0);  // microbatches that still need a version
  if (upstream != nullptr)
    for (const std::uint32_t version : result.used)
      users[std::min<std::size_t>(version, updates)] += 1;
  std::vector<bool> taken = {true};  // by part
  std::uint32_t newest = 0;
  const auto release = [&](std::uint32_t version) {
    if (users[version] == 0 && version != newest) taken[result.part[version]] = false;
  };
  for (const Order& order : list) {
    if (order.stage != stage) continue;
    std::uint32_t& used = result.used[+order.item];
    if (order.kind == Kind::forward) {
      expects(upstream == nullptr || used <= newest, [&] {
        return Complaint{where, "vertical sync wants weights that do not exist yet",
                         text(order, " uses version ", used, ", the newest is ", newest)};
      });
      if (upstream == nullptr) {
        used = newest;
        ++users[newest];
      }
    } else if (order.kind == Kind::backward || order.kind == Kind::backward_weight) {
      if (used != unknown && used <= newest && users[used] > 0 && --users[used] == 0) release(used);
    } else if (order.kind == Kind::update) {
      const std::uint32_t before = newest++;
      std::uint32_t slot = result.part[before];
      if (newest == updates) {
        expects(std::all_of(users.begin(), users.end(), [](auto n) { return n == 0; }), [&] {
          return Complaint{where, "a microbatch is under way at the last update",
                           text(order, " is the last update of its stage"),
                           "end the list of a stage with an update"};
        });
        slot = 0;
      } else if (users[before] > 0) {
        slot = static_cast<std::uint32_t>(std::find(taken.begin(), taken.end(), false) -
                                          taken.begin());
        if (slot == taken.size()) taken.push_back(false);
      }
      if (slot != result.part[before]) release(before);
      taken[slot] = true;
      result.part[newest] = slot;
    }
  }
  result.parts = static_cast<std::uint32_t>(taken.size());
  return result;
}

}  // namespace heddle::inline v0::impl
