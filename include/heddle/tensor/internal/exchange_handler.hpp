// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ExchangeHandler: what the actions of a BlockExchange's Schedule do.

#include <cstddef>

#include <heddle/core/linkage.hpp>
#include <heddle/execute/task.hpp>

namespace heddle::inline v0 {
namespace schedule {
struct BlockExchange;
}

namespace impl {

class ExchangePerformer;
class Instance;

/// The handler of a Schedule by to_schedule(BlockExchange): casts pack and unpack, as the performer
/// says of boxes that are a message, moves on one rank copy, combines merge. Kernels run in the
/// instance that it is given, and are waited for.
class ExchangeHandler {
 public:
  ExchangeHandler(const Instance& by, const schedule::BlockExchange& exchange,
                  const ExchangePerformer& performer);

  void operator()(const Task& task) const;

  /// Copies the part at `packed` to where piece `piece` lies around `base`.
  void unpack(std::size_t piece, const std::byte* packed, std::byte* base) const;

 private:
  void pack(std::size_t piece, const std::byte* base, std::byte* packed) const;

  const Instance* m_by;
  bool m_loops;
  const schedule::BlockExchange* m_exchange;
  const ExchangePerformer* m_performer;
};

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_TENSOR
#include <heddle/tensor/internal/exchange_handler.ipp>
#endif
