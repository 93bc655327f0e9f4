// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of agreement.hpp.

#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <mpi.h>

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/impl/agreement.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

namespace impl {

HEDDLE_FULL_INLINE void check_agreement(const Communicator& comm,
                                        impl::FunctionRef<CollectiveCall()> describe,
                                        ContractLevel level, Seconds watchdog,
                                        std::function<void()> further) {
  if (level != ContractLevel::communication || comm.size() == 1) return;
  comm.expect_not_empty("heddle::check_agreement");
  const bool valid = watchdog >= 0;
  const auto refuse = [&](const std::exception& error) {
    try {
      impl::Agreement(comm, {}, valid ? watchdog : Seconds{120}, further).refuse(error);
    } catch (...) {  // the error of describe() is the one to report
    }
  };
  CollectiveCall call;
  try {
    call = describe();
    expects(valid, [&] {
      return ErrorInfo{call.name, "the watchdog needs a time of at least 0",
                       text("watchdog = ", watchdog, " s"), "use 0 for no limit"};
    });
  } catch (const std::exception& error) {
    refuse(error);
    throw;
  } catch (...) {
    refuse(std::runtime_error("unknown exception"));
    throw;
  }
  std::string mine = call.name;
  for (const CollectiveCall::Term& term : call.terms) mine += "\n" + term.name + " " + term.value;
  impl::Agreement(comm, call.name, watchdog, std::move(further))(std::move(mine));
}

HEDDLE_FULL_INLINE void check_together(const Communicator& comm, std::string_view where,
                                       impl::FunctionRef<void()> check,
                                       impl::FunctionRef<CollectiveCall()> describe,
                                       ContractLevel level, Seconds watchdog,
                                       std::function<void()> further) {
  comm.expect_not_empty(where);
  if (level != ContractLevel::communication || comm.size() == 1) return check();
  check_agreement(
      comm,
      [&] {
        check();
        return describe();
      },
      level, watchdog, std::move(further));
}

}  // namespace impl

HEDDLE_FULL_INLINE void impl::check_color(const Communicator& comm, int color, const char* where) {
  impl::check_together(
      comm, where,
      [&] {
        expects(color >= 0 || color == MPI_UNDEFINED, [&] {
          return ErrorInfo{where, "a color must be at least 0",
                           text("rank ", comm.rank(), " gave ", color),
                           "give MPI_UNDEFINED on a rank that is in no part"};
        });
      },
      [&] {
        return impl::CollectiveCall{where, {}};
      },
      ContractLevel::communication);
}

}  // namespace heddle::inline v0
