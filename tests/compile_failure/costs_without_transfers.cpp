// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: no matching function

/// @file
/// Costs price actions and transfers: a type without transfer() must not compile.

#include <heddle/simulate.hpp>

struct MyCosts {
  using Time = double;
  double time(const heddle::Schedule&, heddle::ActionId) const { return 1; }
#ifdef HEDDLE_OK
  heddle::Transfer<double> transfer(const heddle::Schedule&, heddle::ActionId) const { return {}; }
#endif
};

double use(const heddle::Schedule& schedule) {
  return heddle::simulate(schedule, MyCosts{}).makespan();
}
