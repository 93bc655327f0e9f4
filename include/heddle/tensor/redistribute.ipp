// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of redistribute.hpp.

#include <optional>

#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/meet.hpp>
#include <heddle/collective/internal/views.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/tensor/impl/redistributions.hpp>
#include <heddle/tensor/impl/same_ranks.hpp>
#include <heddle/tensor/impl/shard_ref.hpp>
#include <heddle/tensor/internal/exchange_handler.hpp>
#include <heddle/tensor/internal/exchange_performer.hpp>
#include <heddle/tensor/redistribute.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE void redistribute(const Instance& by, const ShardRef& source,
                                     const ShardRef& target, const ExecuteOptions& options,
                                     const std::optional<PathTable>& paths, ContractLevel level) {
  constexpr const char* where = "heddle::redistribute";
  const AnySharded& from = *source.tensor;
  const AnySharded& to = *target.tensor;
  const auto check = [&] {
    expects(same_ranks(from.comm(), to.comm()), [&] {
      return ErrorInfo{where, "the two tensors belong to different communicators",
                       text(from.layout(), "; ", to.layout()),
                       "put both on a communicator with the ranks of both by among()"};
    });
  };
  // Views that were given may lie in one memory, too, which only ranks that have elements see.
  const bool one_memory =
      from.shares(to) || overlap(source.data, source.bytes, target.data, target.bytes);
  const auto describe = [&] {
    return impl::CollectiveCall{where,
                                {{"source", text(from.layout())},
                                 {"target", text(to.layout())},
                                 {"element", text(source.element, " bytes")},
                                 {"memory", one_memory ? "one for both" : "apart"}}};
  };
  agree(from.comm(), where, options.watchdog, check, describe, level);
  expects(!one_memory, [&] {
    return ErrorInfo{where, "the source and the target are the same memory", text(from.layout()),
                     "use another Sharded for the result"};
  });
  by.fence("heddle::tensor::redistribute");
  const ExchangeMemory memory{source.data, target.data};
  const Redistributions::Known& known =
      from.comm().attached<Redistributions>().find(by, source, to.in_memory(), memory, paths);
  const ExchangeHandler handler(by, known.plan.exchange, *known.performer);
  known.performer->begin(memory, options);
  known.performer->finish(handler);
}

}  // namespace heddle::inline v0::impl
