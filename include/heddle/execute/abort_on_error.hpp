// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// abort_on_error(): runs a call that may throw on one rank while the other ranks wait for its
/// messages, and tells them if it throws.

#include <concepts>
#include <utility>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/transport_ref.hpp>

namespace heddle::inline v0 {

/// The ranks that throw the errors contract_error and infeasible of a call.
enum class ContractErrors : bool {
  of_one_rank,    ///< perhaps only this rank, so the other ranks are told
  of_every_rank,  ///< every rank, from the same arguments, so nobody need be told
};

namespace impl {

/// Calls `report` with the text of the exception that is being handled, as report_on_error() does,
/// and throws the exception again.
[[noreturn]] void report_and_rethrow(FunctionRef<void(const char*)> report, ContractErrors errors);

}  // namespace impl

/// Returns what `call` returns. If it throws, calls `report` with the text of the error, and throws
/// the error again. An error that every rank throws is not reported, see ContractErrors. `report`
/// must not throw.
template <std::invocable Call>
decltype(auto) report_on_error(Call&& call, impl::FunctionRef<void(const char*)> report,
                               ContractErrors errors = ContractErrors::of_one_rank) {
  try {
    return std::forward<Call>(call)();
  } catch (...) {
    impl::report_and_rethrow(report, errors);
  }
}

namespace impl {

/// Tells the other ranks of `transport` that this rank failed while `doing`, for `reason`, unless
/// another rank failed first. It throws nothing, because the error of its caller is the one to
/// report.
void tell_failure(const TransportRef& transport, const char* doing, const char* reason) noexcept;

}  // namespace impl

/// Returns what `call` returns. If it throws, the other ranks of `transport` are told that this
/// rank failed while `doing`: they throw a communication_error with these words instead of waiting
/// for messages that never come. The transport cannot be used again after such an error. An error
/// that every rank throws is not told, see ContractErrors; the transport is as before then.
template <std::invocable Call>
decltype(auto) abort_on_error(const TransportRef& transport, const char* doing, Call&& call,
                              ContractErrors errors = ContractErrors::of_one_rank) {
  return report_on_error(
      std::forward<Call>(call),
      [&](const char* reason) { impl::tell_failure(transport, doing, reason); }, errors);
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/abort_on_error.ipp>
#endif
