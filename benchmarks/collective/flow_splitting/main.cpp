// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core
// test: yes

/// @file
/// Flows of an all-to-all split exactly over uplinks, against spraying every message over all of
/// them and against hashing whole flows (ECMP): counted and simulated, by no clock. What it prints
/// is judged by benchmarks/bars.csv.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../../support.hpp"
#include "cases.hpp"

namespace {

using namespace uplinks;

constexpr const char* name = "collective/flow_splitting";

hd::Bytes bytes_moved(const hd::Schedule& schedule) {
  hd::Bytes sum = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    sum += schedule.bytes(schedule.uses(hd::ActionId{i})[1]);
  return sum;
}

void measure() {
  std::size_t wrong = 0;
  for (const SplitRule rule : rules) wrong += cases - exact_cases(rule);
  double over_spraying = 0;
  std::vector<double> hashed;
  for (const int hosts : {1, 2, 3}) {
    const AllToAll each(hosts);
    const hd::Schedule sprayed = each.sprayed();
    const hd::Seconds ideal = each.run(sprayed);
    const hd::Seconds hash = each.hashed();
    for (const SplitRule rule : rules) {
      const hd::Schedule split = each.split(rule);
      bench::require_equal("what messages carry", bytes_moved(split), bytes_moved(sprayed));
      const hd::Seconds time = each.run(split);
      over_spraying = std::max(over_spraying, time / ideal);
      hashed.push_back(hash / time);
    }
  }
  const double least = std::ranges::min(hashed);
  bench::print_value(name, "not_exact", bench::summarise({static_cast<double>(wrong)}), "cases");
  bench::print_value(name, "over_spraying", bench::summarise({over_spraying}), "x");
  bench::print_value(name, "ecmp_over_split", bench::summarise({least}), "x");
  // For the test that this is, too, which does not read the bars: limits of its own.
  if (wrong > 0 || over_spraying > 1.02 || least < 1.5)
    throw hd::contract_error({name, "a limit does not hold", "see the values above"});
}

}  // namespace

int main() { return bench::status_of(name, &measure); }
