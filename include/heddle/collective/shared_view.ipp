// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of shared_view.hpp.

#include <heddle/collective/impl/shared_performer.hpp>
#include <heddle/collective/shared_view.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/shared_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/shared_blocks.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE SharedBlocks share_blocks(const Communicator& comm, Bytes bytes,
                                             ContractLevel level) {
  constexpr const char* where = "heddle::SharedView";
  check_together(
      comm, where, [] {},
      [&] {
        return impl::CollectiveCall{where, {{"bytes", text(bytes)}}};
      },
      level, SharedOptions{}.watchdog);
  return comm.attached<SharedPlace>().line([] {}).share(bytes);
}

}  // namespace heddle::inline v0::impl
