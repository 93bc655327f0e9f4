// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of exchange_handler.hpp.

#include <cstddef>

#include <heddle/collective/internal/instance.hpp>
#include <heddle/comm/internal/strided_message.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/layout/strided_block.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/tensor/internal/exchange_handler.hpp>
#include <heddle/tensor/internal/exchange_performer.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE ExchangeHandler::ExchangeHandler(const Instance& by,
                                                    const schedule::BlockExchange& exchange,
                                                    const ExchangePerformer& performer)
    : m_by(&by), m_loops(by.one_thread()), m_exchange(&exchange), m_performer(&performer) {}

HEDDLE_FULL_INLINE void ExchangeHandler::operator()(const Task& task) const {
  if (task.kind() != Kind::cast) return m_by->perform(task, m_loops);
  const BoundUse& first = task.uses()[0];
  const BoundUse& second = task.uses()[1];
  if (first.access == Access::write)
    pack(+task.item(), second.data, first.data);
  else
    unpack(+task.item(), first.data, second.data);
}

HEDDLE_FULL_INLINE void ExchangeHandler::pack(std::size_t piece, const std::byte* base,
                                              std::byte* packed) const {
  const StridedMessage* const message = m_performer->find(packed);
  if (message != nullptr) packed = message->packed();
  if (packed == nullptr) return;
  std::byte* end = packed;
  for (const StridedBlock& block : m_exchange->pieces[piece].blocks) {
    m_by->pack(block, base, end);
    end += block.bytes();
  }
  if (message != nullptr && message->staged() != nullptr)
    m_by->fetch(packed, message->staged(), message->bytes());
  m_by->wait("heddle::tensor::copy");
}

HEDDLE_FULL_INLINE void ExchangeHandler::unpack(std::size_t piece, const std::byte* packed,
                                                std::byte* base) const {
  if (const StridedMessage* const message = m_performer->find(packed)) {
    packed = message->packed();
    if (message->staged() != nullptr)
      m_by->give(message->staged(), message->packed(), message->bytes());
  }
  if (packed == nullptr) return;
  for (const StridedBlock& block : m_exchange->pieces[piece].blocks) {
    m_by->unpack(block, packed, base);
    packed += block.bytes();
  }
  m_by->wait("heddle::tensor::copy");
}

}  // namespace heddle::inline v0::impl
