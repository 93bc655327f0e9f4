// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The transfers that an emulated core has begun and not yet waited for. Nothing moves before the
/// wait: that is the latest moment that the machine allows, and shows who does not wait.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <heddle/device/core_group/reply.hpp>

namespace heddle::inline v0::emulated::impl {

/// `pieces` pieces of `piece` bytes, contiguous in local memory and `step` bytes apart at the other
/// side.
struct Transfer {
  const char* name;  ///< the call that began the transfer
  void* to;
  const void* from;
  std::size_t pieces;
  std::size_t piece;
  std::size_t to_step;
  std::size_t from_step;
  Reply* reply;             ///< incremented when the transfer is complete
  Reply* remote = nullptr;  ///< so is this one, of another core

  [[nodiscard]] std::size_t bytes() const noexcept { return pieces * piece; }

  /// Makes the destination in local memory unreadable: 0xff is not a number.
  void poison() const noexcept { std::memset(to, 0xff, bytes()); }

  void perform() const noexcept {
    for (std::size_t i = 0; i < pieces; ++i)
      std::memcpy(static_cast<std::byte*>(to) + i * to_step,
                  static_cast<const std::byte*>(from) + i * from_step, piece);
    ++reply->count;
    if (remote != nullptr) ++remote->count;
  }
};

/// One core's transfers, in the order of their calls.
class Transfers {
 public:
  void begin(const Transfer& transfer) { m_pending.push_back(transfer); }

  /// Completes transfers with this reply, in order, until it has counted to `value` or none is
  /// left.
  void complete(const Reply& reply, std::uint32_t value) noexcept {
    if (reply.count >= value) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < m_pending.size(); ++i) {
      const Transfer transfer = m_pending[i];
      if (reply.count < value && (transfer.reply == &reply || transfer.remote == &reply))
        transfer.perform();
      else
        m_pending[kept++] = transfer;
    }
    m_pending.erase(m_pending.begin() + static_cast<std::ptrdiff_t>(kept), m_pending.end());
  }

  /// The first that reads or writes any of the `bytes` from `local` on; null where none does.
  [[nodiscard]] const Transfer* first_from(const std::byte* local,
                                           std::size_t bytes) const noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(local);
    const auto touches = [&](const void* data, std::size_t size) {
      const auto address = reinterpret_cast<std::uintptr_t>(data);
      return address < begin + bytes && begin < address + size;
    };
    // The side in main memory may be longer, but touches no local memory.
    for (const Transfer& transfer : m_pending)
      if (touches(transfer.to, transfer.bytes()) || touches(transfer.from, transfer.bytes()) ||
          touches(transfer.reply, sizeof(Reply)))
        return &transfer;
    return nullptr;
  }

  [[nodiscard]] bool empty() const noexcept { return m_pending.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return m_pending.size(); }
  [[nodiscard]] const Transfer& front() const noexcept { return m_pending.front(); }
  void clear() noexcept { m_pending.clear(); }

 private:
  std::vector<Transfer> m_pending;
};

}  // namespace heddle::inline v0::emulated::impl
