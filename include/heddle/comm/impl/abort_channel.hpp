// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The channel on which the ranks of an MpiTransport say that one of them failed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/transport.hpp>

namespace heddle::inline v0 {
namespace impl {

/// An Abort as it travels: of one size, and so small that every MPI sends it without waiting for
/// the receiver. Longer texts end in "...".
struct AbortRecord {
  std::int32_t rank = 0;
  char action[252] = {};
  char reason[768] = {};

  explicit AbortRecord(const Abort& abort) : rank(static_cast<std::int32_t>(abort.rank.value)) {
    fill(action, sizeof action, abort.action);
    fill(reason, sizeof reason, abort.reason);
  }
  AbortRecord() = default;

  [[nodiscard]] Abort abort() const { return {Rank{rank}, action, reason}; }

 private:
  static void fill(char* field, std::size_t size, std::string_view words) {
    const std::size_t length = std::min(words.size(), size - 1);
    std::memcpy(field, words.data(), length);
    if (length < words.size()) std::memcpy(field + size - 4, "...", 3);
  }
};
static_assert(sizeof(AbortRecord) == 1024);

/// Two kinds of message, on a communicator of their own: ABORT, and RELEASE: "I have no receive
/// posted and will post none, so nobody's memory is read for my sake any more".
class AbortChannel {
 public:
  explicit AbortChannel(MPI_Comm original)
      : m_comm(original), m_released(static_cast<std::size_t>(m_comm.size())) {}
  AbortChannel(const AbortChannel&) = delete;
  AbortChannel& operator=(const AbortChannel&) = delete;
  ~AbortChannel() {
    if (!over() || !mpi_is_up()) return;
    // Freeing is collective and the other ranks are on their ways out: one communicator is leaked,
    // and the record too where it is not sent yet.
    int sent = 1;
    MPI_Testall(static_cast<int>(m_sends.size()), m_sends.data(), &sent, MPI_STATUSES_IGNORE);
    if (sent == 0) static_cast<void>(m_record.release());
    static_cast<void>(m_comm.release());
  }

  /// True once this rank has told an abort or heard of one.
  [[nodiscard]] bool over() const noexcept { return m_record || m_heard; }

  /// Starts to tell every other rank; only the first call does. Does not wait.
  void tell(const Abort& abort) {
    if (m_record) return;
    m_record = std::make_unique<AbortRecord>(abort);
    for (int peer = 0; peer < m_comm.size(); ++peer) {
      if (Rank{peer} == m_comm.rank()) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Isend(m_record.get(), sizeof(AbortRecord), MPI_BYTE, peer, abort_tag, m_comm.get(),
                      &request),
            "heddle::MpiTransport::abort");
      m_sends.push_back(request);
    }
  }

  /// The first abort that another rank has told, if any. Stays once it is there.
  [[nodiscard]] const std::optional<Abort>& heard() {
    if (!m_heard && arrived(MPI_ANY_SOURCE, abort_tag)) {
      AbortRecord record;
      check(MPI_Recv(&record, sizeof record, MPI_BYTE, MPI_ANY_SOURCE, abort_tag, m_comm.get(),
                     MPI_STATUS_IGNORE),
            "heddle::MpiTransport::aborted");
      m_heard = record.abort();
    }
    return m_heard;
  }

  /// Who failed, at what and why: the rank that this one has heard of, else this one. Empty where
  /// nobody has.
  [[nodiscard]] std::string story() const {
    const auto told = [](const Abort& abort) {
      return text("rank ", abort.rank, " failed at ", abort.action, ": ", abort.reason);
    };
    if (m_heard) return told(*m_heard);
    return m_record ? told(m_record->abort()) : std::string();
  }

  /// Tells every other rank RELEASE; only the first call does. Empty messages: no memory to keep.
  void release() {
    if (m_has_released) return;
    m_has_released = true;
    for (int peer = 0; peer < m_comm.size(); ++peer) {
      if (Rank{peer} == m_comm.rank()) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      if (MPI_Isend(nullptr, 0, MPI_BYTE, peer, release_tag, m_comm.get(), &request) == MPI_SUCCESS)
        MPI_Request_free(&request);
    }
  }

  /// Has `peer` told RELEASE? This rank counts as released once it has told the others.
  [[nodiscard]] bool released(Rank peer) {
    if (peer == m_comm.rank()) return m_has_released;
    const int source = static_cast<int>(peer.value);
    if (m_released[+peer] == 0 && arrived(source, release_tag)) {
      MPI_Recv(nullptr, 0, MPI_BYTE, source, release_tag, m_comm.get(), MPI_STATUS_IGNORE);
      m_released[+peer] = 1;
    }
    return m_released[+peer] != 0;
  }

 private:
  static constexpr int abort_tag = 0;
  static constexpr int release_tag = 1;

  [[nodiscard]] bool arrived(int source, int tag) const {
    int there = 0;
    check(MPI_Iprobe(source, tag, m_comm.get(), &there, MPI_STATUS_IGNORE),
          "heddle::MpiTransport::aborted");
    return there != 0;
  }

  Communicator m_comm;
  std::unique_ptr<AbortRecord> m_record;  ///< this rank's message, while it is in flight
  std::vector<MPI_Request> m_sends;
  std::optional<Abort> m_heard;
  bool m_has_released = false;
  std::vector<char> m_released;  ///< per rank
};

}  // namespace impl
}  // namespace heddle::inline v0
