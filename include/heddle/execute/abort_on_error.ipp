// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of abort_on_error.hpp.

#include <exception>
#include <new>

#include <heddle/core/error.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/transport_ref.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE void impl::report_and_rethrow(FunctionRef<void(const char*)> report,
                                            ContractErrors errors) {
  try {
    throw;
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

namespace impl {

HEDDLE_INLINE void tell_failure(const TransportRef& transport, const char* doing,
                                const char* reason) noexcept {
  try {
    try {
      if (!transport.aborted()) transport.abort({transport.rank(), doing, reason});
    } catch (const std::bad_alloc&) {  // these texts are short enough to need no memory
      transport.abort({transport.rank(), "a call", "out of memory"});
    }
  } catch (...) {  // see the declaration
  }
}

}  // namespace impl

}  // namespace heddle::inline v0
