// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Messages: what a packed message is while it is on its way, and the memory of those to come. For
/// the interposer.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>

#include <mpi.h>

#include <heddle/core/units.hpp>
#include <heddle/layout/pack.hpp>

#include "call_mutex.hpp"
#include "known_types.hpp"
#include "report.hpp"

namespace heddle_mpi {

class Messages;

/// Unpacks what has come of a message to `to`, as `status` says; `code` is the error of it. Packing
/// it gains `gain`.
inline void arrive(const heddle::StridedBlock& block, const std::byte* packed, std::byte* to,
                   const MPI_Status& status, int code, double gain, Counters& counters) {
  int is = 0, bytes = 0;
  if (code != MPI_SUCCESS) PMPI_Error_class(code, &is);
  if (is != MPI_SUCCESS && is != MPI_ERR_TRUNCATE) return;
  PMPI_Get_count(&status, MPI_PACKED, &bytes);
  if (bytes > 0)
    counters.timed(gain, [&] {
      heddle::impl::unpack_first(static_cast<heddle::Bytes>(bytes), block, packed, to);
    });
}

/// A packed message on its way: its memory, and where it is unpacked to; nowhere, if it is sent. It
/// knows the bytes, not the datatype, which the program may free meanwhile.
struct Message {
  Messages& home;
  std::size_t kind;  ///< it has room for two to the power of that
  std::byte* packed;
  MPI_Request request = MPI_REQUEST_NULL;
  SharedStrided strided = {};  ///< of one that is received
  std::byte* to = nullptr;     ///< of one that has not arrived
  Message* next = nullptr;     ///< of those it is put together with
  int index = 0;               ///< of its request, while a call of MPI looks at that

  /// What there is to do when `status` says that it is there; `code` is the error of it.
  void arrive(const MPI_Status& status, int code);
};

struct GiveBack {
  void operator()(Message* message) const noexcept;
};
/// A message that goes back to where its memory is from.
using MessagePointer = std::unique_ptr<Message, GiveBack>;

/// Memory of messages, which is kept for the next ones: fresh memory of a large one would cost as
/// much as packing it, as the system hands out its pages one by one.
class Messages {
 public:
  explicit Messages(Counters& of) : counters(of) {}

  /// One of `bytes`; null where there is no memory.
  [[nodiscard]] MessagePointer take(heddle::Bytes bytes) {
    const auto kind = static_cast<std::size_t>(std::bit_width(std::max(bytes, least) - 1));
    {
      const std::lock_guard lock(m_mutex);
      if (Message* const message = m_kept[kind]; message != nullptr) {
        m_kept[kind] = message->next;
        m_bytes -= std::size_t{1} << kind;
        return MessagePointer(message);
      }
    }
    auto* const packed = static_cast<std::byte*>(std::aligned_alloc(least, std::size_t{1} << kind));
    if (packed == nullptr) return nullptr;
    auto* const message = new (std::nothrow) Message{*this, kind, packed};
    if (message == nullptr) std::free(packed);
    return MessagePointer(message);
  }

  Counters& counters;  ///< of the time that packing has gained

 private:
  friend GiveBack;
  static constexpr heddle::Bytes least = 4096;
  /// So much is kept at most.
  static constexpr heddle::Bytes most = heddle::Bytes{64} << 20;

  void give_back(Message* message) noexcept {
    message->strided = {};
    message->to = nullptr;
    const heddle::Bytes bytes = heddle::Bytes{1} << message->kind;
    {
      const std::lock_guard lock(m_mutex);
      if (m_bytes + bytes <= most) {
        message->next = m_kept[message->kind];
        m_kept[message->kind] = message;
        m_bytes += bytes;
        return;
      }
    }
    std::free(message->packed);
    delete message;
  }

  CallMutex m_mutex;
  std::array<Message*, 64> m_kept{};  ///< the first of each kind
  heddle::Bytes m_bytes = 0;          ///< of all of them
};

inline void Message::arrive(const MPI_Status& status, int code) {
  if (to == nullptr) return;
  int cancelled = 0;
  PMPI_Test_cancelled(&status, &cancelled);
  if (cancelled == 0)
    heddle_mpi::arrive(strided->block, packed, to, status, code, strided->gain_nonblocking,
                       home.counters);
  to = nullptr;
}

inline void GiveBack::operator()(Message* message) const noexcept {
  message->home.give_back(message);
}

}  // namespace heddle_mpi
