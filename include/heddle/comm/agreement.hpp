// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// check_agreement(): checks that all ranks make the same collective call, at the contract level
/// "communication". A mismatch then throws an error that names the rank, instead of giving wrong
/// data or a hang.

#include <concepts>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// A call in the form in which the ranks compare it: its name, and as text everything that must be
/// equal on all ranks. Terms are compared by position, so a call must list them in the same order
/// on every rank. Texts must not contain line breaks.
struct CollectiveCall {
  /// One thing that must be equal on all ranks.
  struct Term {
    std::string name;   ///< "count"
    std::string value;  ///< "17"
  };
  std::string name;         ///< "heddle::all_reduce"
  std::vector<Term> terms;  ///< {{"count", "17"}, {"type", "f64"}}
};

namespace impl {
/// Compares the calls of the ranks of `comm`. All ranks take part.
void compare(const Communicator& comm, const CollectiveCall& call, Seconds watchdog,
             std::function<void()> further);
}  // namespace impl

/// At ContractLevel::communication, compares the calls that `describe()` returns on the ranks of
/// `comm`. All ranks must take part. At any other level the function does nothing and does not call
/// `describe`.
///
/// `further()` is called while a rank waits, to make progress in operations for which other ranks
/// may be waiting.
///
/// Rank 0 receives the calls of all other ranks and sends them the result, in 2 (ranks - 1) short
/// messages. All ranks throw the same error. The call that most ranks make is assumed to be the
/// intended one; in a tie, the call of the lowest rank.
/// @throws contract_error that names the first rank whose call differs, and the difference: the
///         function if the order of calls differs, else each differing term with both values.
/// @throws communication_error that names a rank which makes no call within `watchdog` seconds (0:
///         no limit). If that rank is rank 0, the limit is twice as long.
///
/// After an error `comm` may contain messages that no rank receives. If the program continues, call
/// release() on it.
template <std::invocable Describe>
requires std::convertible_to<std::invoke_result_t<Describe>, CollectiveCall>
void check_agreement(const Communicator& comm, Describe&& describe,
                     ContractLevel level = contract_level, Seconds watchdog = 120,
                     std::function<void()> further = {}) {
  if (level != ContractLevel::communication || comm.size() == 1) return;
  impl::compare(comm, describe(), watchdog, std::move(further));
}

}  // namespace heddle::inline v0

#if HEDDLE_FULL_HEADER_ONLY
#include <heddle/comm/agreement.ipp>
#endif
