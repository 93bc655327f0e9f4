// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of head_exchange.hpp.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include <heddle/collective/internal/instance.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/kernel/attention_state.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/schedule/attention/head_exchange.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/redistribution/exchange_schedule.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/sequence/impl/head_exchange.hpp>
#include <heddle/tensor/internal/exchange_handler.hpp>
#include <heddle/tensor/internal/exchange_performer.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE kernel::AttentionHeads share_of_heads(const kernel::AttentionHeads& heads,
                                                         std::size_t ranks, std::size_t rank) {
  const std::size_t kv_heads = even_share(heads.kv_heads, ranks, rank).count;
  return {kv_heads * (heads.heads / heads.kv_heads), kv_heads, heads.head_width};
}

HEDDLE_FULL_INLINE void HeadExchanges::run(const Instance& by, const ExchangeSpace& space,
                                           const schedule::HeadExchange& wanted, Scalar type,
                                           const ExchangeMemory& memory,
                                           const ExecuteOptions& options) {
  by.fence("heddle::sequence::exchange");
  const Known& known = find(by, space, wanted, type, memory);
  const ExchangeHandler handler(by, known.exchange, *known.performer);
  known.performer->begin(memory, options);
  known.performer->finish(handler);
}

HEDDLE_FULL_INLINE const HeadExchanges::Known& HeadExchanges::find(
    const Instance& by, const ExchangeSpace& space, const schedule::HeadExchange& wanted,
    Scalar type, const ExchangeMemory& memory) {
  const auto found = std::find_if(m_known.rbegin(), m_known.rend(), [&](const Known& known) {
    return known.space == by.memory() && known.type == type && known.wanted == wanted;
  });
  if (found != m_known.rend()) {
    std::rotate(m_known.rbegin(), found, found + 1);
  } else {
    m_known.push_back(abort_on_error(m_transport, "preparing an exchange of heads", [&] {
      schedule::BlockExchange exchange =
          wanted.blocks(static_cast<std::size_t>(m_transport.size()), size_of(type));
      auto performer = space.performer(exchange, to_schedule(exchange, "tokens and heads", type),
                                       m_transport, memory, std::nullopt, false);
      return Known{by.memory(), type, wanted, std::move(exchange), std::move(performer)};
    }));
    if (m_known.size() > most) m_known.erase(m_known.begin());
  }
  return m_known.back();
}

}  // namespace heddle::inline v0::impl
