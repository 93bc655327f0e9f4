// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of agreement.hpp.

#include <exception>
#include <functional>
#include <string>
#include <utility>

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/impl/agreement.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE void impl::compare(const Communicator& comm,
                                      const std::function<CollectiveCall()>& describe,
                                      Seconds watchdog, std::function<void()> further) {
  comm.expect_not_empty("heddle::check_agreement");
  CollectiveCall call;
  try {
    call = describe();
  } catch (const std::exception& error) {
    Agreement(comm, {}, watchdog, std::move(further)).refuse(error);
    throw;
  }
  std::string mine = call.name;
  for (const CollectiveCall::Term& term : call.terms) mine += "\n" + term.name + " " + term.value;
  Agreement(comm, call.name, watchdog, std::move(further))(std::move(mine));
}

}  // namespace heddle::inline v0
