// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "torch.hpp"

namespace tool {

using namespace heddle;

namespace {

bool reduces(const schedule::LoweredOrders& lowered) {
  return std::ranges::any_of(lowered.steps, [](const auto& steps) {
    return std::ranges::count(steps, schedule::ParameterStep::Action::reduce_grad,
                              &schedule::ParameterStep::action) > 0;
  });
}

void warn(const std::string& file, std::string_view what) {
  std::cerr << "schedule: warning: '" << file << "': " << what << '\n';
}

}  // namespace

std::string not_for_torch() {
  std::string lines = "torch.distributed.pipelining does not run files of these schedules:\n";
  for (const auto& entry : schedule::catalogue())
    if (const std::string why = schedule::why_not_torch(entry.orders({})); !why.empty())
      lines += text("  ", entry.name, ": ", why, '\n');
  return lines;
}

void warn_if_not_for_torch(const std::string& file, const Orders& orders) {
  if (const std::string why = schedule::why_not_torch(orders); !why.empty())
    warn(file, "torch.distributed.pipelining does not run it: " + why);
}

void warn_if_half_lowered(const std::string& file, const std::string& csv,
                          const schedule::LoweredOrders& lowered) {
  if (csv.find("SEND_") == std::string::npos || reduces(lowered) ||
      !schedule::why_not_torch(lowered.orders).empty())
    return;
  warn(file,
       "it has transfers and no REDUCE_GRAD, so that torch.distributed.pipelining does not scale "
       "its gradients; --csv FILE --transfers writes one with them");
}

std::string to_lowered_csv(const schedule::LoweredOrders& lowered, bool stagger) {
  std::vector<int> ahead;
  if (stagger)
    for (std::size_t rank = 0; rank < lowered.orders.ranks.size(); ++rank)
      ahead.push_back(rank == 0 ? 2 : 3);
  return schedule::to_csv(reduces(lowered) ? lowered : schedule::lower(lowered.orders, ahead),
                          schedule::Receives::late);
}

}  // namespace tool
