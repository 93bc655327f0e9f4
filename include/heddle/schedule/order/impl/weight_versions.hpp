// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Finds the version of its weights that a stage uses for each microbatch if the orders contain
/// updates (PipeDream's weight stashing), and the part of the buffer that holds each version.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::impl {

/// The versions of the weights of one stage during a step. Version 0 exists when the step begins,
/// and update u makes version u + 1. The last version is in part 0 again, where the next step
/// expects it.
struct WeightVersions {
  static constexpr std::uint32_t unknown = 0xffffffffu;

  std::vector<std::uint32_t> used;  ///< by microbatch: the version that its F and B read
  std::vector<std::uint32_t> part;  ///< by version: its part of the buffer
  std::uint32_t parts = 1;          ///< the number of parts of the buffer

  [[nodiscard]] std::uint32_t part_for(Item item) const {
    return part.size() == 1 ? 0 : part[used[+item]];
  }
};

/// Returns the versions of one stage, found in the list of its rank. A microbatch uses the newest
/// version. With vertical sync it uses the version that it used at the stage before (`upstream`,
/// null at the first stage). A version keeps its part until the backward pass of the last
/// microbatch that uses it. So a stage with k microbatches in flight keeps k versions.
/// @throws contract_error if a microbatch ends after the last update, or needs a version that the
///         stage has not made yet.
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
  std::vector<bool> taken = {true};  // whether a part is in use
  std::uint32_t newest = 0;
  const auto release = [&](std::uint32_t version) {
    if (users[version] == 0 && version != newest) taken[result.part[version]] = false;
  };
  for (const Order& order : list) {
    if (order.stage != stage) continue;
    std::uint32_t& used = result.used[+order.item];
    if (order.kind == Kind::forward) {
      expects(upstream == nullptr || used <= newest, [&] {
        return ErrorInfo{where, "vertical sync needs weights that do not exist yet",
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
          return ErrorInfo{where, "a microbatch is in flight at the last update",
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
