// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// check_agreement(): checks that all ranks make the same collective call, at the contract level
/// "communication". A mismatch then throws an error that names the rank, instead of giving wrong
/// data or a hang. check_together() also checks the arguments that only one rank knows.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

namespace impl {

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

/// Returns the value of a term that has several: "8 64 512".
template <class Values>
[[nodiscard]] std::string listed(const Values& values) {
  std::string list;
  for (const auto& value : values) list += text(list.empty() ? "" : " ", value);
  return list;
}

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
/// @throws contract_error on every rank if the watchdog of a rank is below 0 or NaN. Where ranks do
///         not compare their calls, the watchdog is not looked at.
/// Throws what `describe()` throws, if it throws on this rank. All other ranks throw a
///         contract_error with this message and the number of the rank, or a communication_error if
///         the error is neither a contract_error nor infeasible.
///
/// After an error `comm` may contain messages that no rank receives. If the program continues, call
/// release() on it.
void check_agreement(const Communicator& comm, impl::FunctionRef<CollectiveCall()> describe,
                     ContractLevel level = contract_level, Seconds watchdog = 120,
                     std::function<void()> further = {});

/// Checks the collective call `where` on this rank, and compares it with those of other ranks.
/// First calls `check()`, which throws if the arguments of this rank are not valid. At
/// ContractLevel::communication, an error of one rank becomes an error of all ranks, and the calls
/// that `describe()` returns are compared; see check_agreement(). At the level "local", other ranks
/// do not learn of the error, and may wait for this rank. So a call that is not made often, such as
/// a constructor, passes ContractLevel::communication.
/// @throws contract_error if `comm` is empty, and the errors of `check()` and check_agreement().
void check_together(const Communicator& comm, std::string_view where,
                    impl::FunctionRef<void()> check, impl::FunctionRef<CollectiveCall()> describe,
                    ContractLevel level = contract_level, Seconds watchdog = 120,
                    std::function<void()> further = {});

}  // namespace impl

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/agreement.ipp>
#endif
