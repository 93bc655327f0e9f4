// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// check_agreement: do all ranks make the same call? For collective calls at the contract level
/// "communication", where a mismatch is an error that names the rank instead of wrong data or a
/// hang.

#include <concepts>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/impl/agreement.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// A call as the ranks compare it: its name, and all that must be the same everywhere, as text.
/// Terms are compared by place, so one call gives them in one order. No text holds a line break.
struct CollectiveCall {
  /// One of the things to agree about.
  struct Term {
    std::string name;   ///< "count"
    std::string value;  ///< "17"
  };
  std::string name;         ///< "heddle::all_reduce"
  std::vector<Term> terms;  ///< {{"count", "17"}, {"type", "f64"}}
};

/// At ContractLevel::communication: compares the calls that `describe()` returns on the ranks of
/// `comm`, which all take part. At any other level nothing happens, nor is `describe` called.
///
/// `further()` is called while a rank waits, for what others may be waiting for meanwhile.
///
/// Rank 0 hears of every other rank and tells it the verdict: 2 (ranks - 1) short messages, and all
/// ranks throw the same. The call that most ranks make is taken for the one that was meant; of
/// several, the one of the lowest rank.
/// @throws contract_error naming the first rank whose call differs, and what differs: which
///         function, where the orders of calls do, or each term with both values;
///         communication_error naming a rank that makes no call within `watchdog` seconds (0: for
///         ever), or rank 0, within twice as many. After either `comm` is spent: messages may be
///         left in it that nobody takes, so release() it where the program goes on.
template <std::invocable Describe>
requires std::convertible_to<std::invoke_result_t<Describe>, CollectiveCall>
void check_agreement(const Communicator& comm, Describe&& describe,
                     ContractLevel level = contract_level, Seconds watchdog = 120,
                     std::function<void()> further = {}) {
  if (level != ContractLevel::communication || comm.size() == 1) return;
  const CollectiveCall call = describe();
  std::string mine = call.name;
  for (const CollectiveCall::Term& term : call.terms) mine += "\n" + term.name + " " + term.value;
  impl::Agreement(comm, call.name, watchdog, std::move(further))(std::move(mine));
}

}  // namespace heddle::inline v0
