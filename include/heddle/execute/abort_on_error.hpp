// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// abort_on_error(): runs a call that may throw on one rank while the other ranks wait for its
/// messages, and tells them if it throws.

#include <concepts>
#include <exception>
#include <string>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/execute/transport.hpp>

namespace heddle::inline v0 {

/// The ranks that throw the errors contract_error and infeasible of a call.
enum class ContractErrors : bool {
  of_one_rank,    ///< perhaps only this rank, so the other ranks are told
  of_every_rank,  ///< every rank, from the same arguments, so nobody need be told
};

/// Returns what `call` returns. If it throws, calls `report` with the text of the error, and throws
/// the error again. An error that every rank throws is not reported, see ContractErrors. `report`
/// must not throw.
template <std::invocable Call, std::invocable<const char*> Report>
decltype(auto) report_on_error(Call&& call, Report&& report,
                               ContractErrors errors = ContractErrors::of_one_rank) {
  try {
    return std::forward<Call>(call)();
  } catch (const std::exception& error) {
    const bool known = dynamic_cast<const contract_error*>(&error) != nullptr ||
                       dynamic_cast<const infeasible*>(&error) != nullptr;
    if (!known || errors == ContractErrors::of_one_rank) report(error.what());
    throw;
  } catch (...) {
    report("unknown exception");
    throw;
  }
}

/// Tells the other ranks of `transport` that this rank failed while `doing`, for `reason`, unless
/// another rank failed first. It throws nothing, because the error of its caller is the one to
/// report.
template <Transport T>
void tell_failure(T& transport, const char* doing, const char* reason) noexcept {
  try {
    if (!transport.aborted()) transport.abort({transport.rank(), doing, reason});
  } catch (...) {  // see above
  }
}

/// Returns what `call` returns. If it throws, the other ranks of `transport` are told that this
/// rank failed while `doing`: they throw a communication_error with these words instead of waiting
/// for messages that never come. The transport cannot be used again after such an error. An error
/// that every rank throws is not told, see ContractErrors; the transport is as before then.
template <Transport T, std::invocable Call>
decltype(auto) abort_on_error(T& transport, const char* doing, Call&& call,
                              ContractErrors errors = ContractErrors::of_one_rank) {
  return report_on_error(
      std::forward<Call>(call), [&](const char* reason) { tell_failure(transport, doing, reason); },
      errors);
}

}  // namespace heddle::inline v0
