// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of abort_channel.hpp.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/impl/abort_channel.hpp>
#include <heddle/comm/impl/ulfm.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/schedule/list_place.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE AbortRecord::AbortRecord(const Abort& abort)
    : rank(static_cast<std::int32_t>(abort.rank.value)) {
  fill(action, sizeof action, abort.action);
  fill(reason, sizeof reason, abort.reason);
  if (!abort.place) return;
  has_place = true;
  step = abort.place->step;
  list = abort.place->list;
  started = abort.place->started;
  finished = abort.place->finished;
}

HEDDLE_FULL_INLINE Abort AbortRecord::abort() const {
  return {Rank{rank}, action, reason, place()};
}

HEDDLE_FULL_INLINE std::optional<ListPlace> AbortRecord::place() const {
  if (!has_place) return std::nullopt;
  return ListPlace{.started = started, .finished = finished, .step = step, .list = list};
}

HEDDLE_FULL_INLINE void AbortRecord::fill(char* field, std::size_t size, std::string_view words) {
  const std::size_t length = std::min(words.size(), size - 1);
  std::memcpy(field, words.data(), length);
  if (length < words.size()) std::memcpy(field + size - 4, "...", 3);
}

HEDDLE_FULL_INLINE AbortChannel::AbortChannel(MPI_Comm original)
    : m_comm(original),
      m_record(std::make_unique<AbortRecord>()),
      m_released(static_cast<std::size_t>(m_comm.size())),
      m_places(m_released.size()) {
  m_sends.reserve(m_released.size());
}

HEDDLE_FULL_INLINE AbortChannel::~AbortChannel() {
  if (!over() || !mpi_is_up()) return;
  // Freeing is collective and the other ranks are on their ways out: one communicator is leaked,
  // and the record too where it is not sent yet.
  int sent = 1;
  MPI_Testall(static_cast<int>(m_sends.size()), m_sends.data(), &sent, MPI_STATUSES_IGNORE);
  if (sent == 0) static_cast<void>(m_record.release());
  static_cast<void>(m_comm.release());
}

HEDDLE_FULL_INLINE void AbortChannel::lose() {
  if (std::exchange(m_lost, true)) return;
  if (!m_heard) {
    const std::optional<Rank> dead = dead_rank(m_comm.get());
    m_heard = dead ? Abort{*dead, "", "its process has ended"}
                   : Abort{unknown_rank, "", "another rank has found this"};
  }
  revoke(m_comm.get());
}

HEDDLE_FULL_INLINE void AbortChannel::tell(const Abort& abort) {
  if (!m_told) send(AbortRecord(abort));
}

HEDDLE_FULL_INLINE void AbortChannel::answer(const ListPlace& place) {
  if (m_told) return;
  AbortRecord record({m_comm.rank(), "", "", place});
  record.answers = true;
  send(record);
}

HEDDLE_FULL_INLINE void AbortChannel::send(const AbortRecord& record) {
  m_told = true;
  *m_record = record;
  m_places[+m_comm.rank()] = record.place();
  for (int peer = 0; peer < m_comm.size() && !m_lost; ++peer) {
    if (Rank{peer} == m_comm.rank()) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Isend(m_record.get(), sizeof(AbortRecord), MPI_BYTE, peer, abort_tag,
                               m_comm.get(), &request);
    if (is_death(code)) return lose();
    check(code, "heddle::MpiTransport::abort");
    m_sends.push_back(request);
  }
}

HEDDLE_FULL_INLINE const std::optional<Abort>& AbortChannel::heard() {
  while (!m_heard && arrived(MPI_ANY_SOURCE, abort_tag)) take();
  return m_heard;
}

HEDDLE_FULL_INLINE const std::vector<std::optional<ListPlace>>& AbortChannel::places() {
  while (arrived(MPI_ANY_SOURCE, abort_tag)) take();
  return m_places;
}

HEDDLE_FULL_INLINE void AbortChannel::take() {
  AbortRecord record;
  const int code = MPI_Recv(&record, sizeof record, MPI_BYTE, MPI_ANY_SOURCE, abort_tag,
                            m_comm.get(), MPI_STATUS_IGNORE);
  if (is_death(code)) return lose();  // found by another rank since the probe
  check(code, "heddle::MpiTransport::aborted");
  const Abort abort = record.abort();
  std::optional<ListPlace>& told = m_places[+abort.rank];
  if (!told) told = abort.place;
  if (!record.answers && !m_heard) m_heard = abort;
}

HEDDLE_FULL_INLINE std::string AbortChannel::story() const {
  const auto told = [](const Abort& abort) { return text(failure_of(abort), ": ", abort.reason); };
  if (m_heard) return told(*m_heard);
  return m_told && !m_record->answers ? told(m_record->abort()) : std::string();
}

HEDDLE_FULL_INLINE void AbortChannel::release() {
  if (m_has_released || m_lost) return;
  m_has_released = true;
  for (int peer = 0; peer < m_comm.size(); ++peer) {
    if (Rank{peer} == m_comm.rank()) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Isend(nullptr, 0, MPI_BYTE, peer, release_tag, m_comm.get(), &request) == MPI_SUCCESS)
      MPI_Request_free(&request);
  }
}

HEDDLE_FULL_INLINE bool AbortChannel::released(Rank peer) {
  if (peer == m_comm.rank()) return m_has_released;
  const int source = static_cast<int>(peer.value);
  if (m_released[+peer] == 0 && arrived(source, release_tag)) {
    MPI_Recv(nullptr, 0, MPI_BYTE, source, release_tag, m_comm.get(), MPI_STATUS_IGNORE);
    m_released[+peer] = 1;
  }
  return m_released[+peer] != 0;
}

HEDDLE_FULL_INLINE bool AbortChannel::arrived(int source, int tag) {
  if (m_lost) return false;
  int there = 0;
  const int code = MPI_Iprobe(source, tag, m_comm.get(), &there, MPI_STATUS_IGNORE);
  if (is_death(code)) {
    lose();
    return false;
  }
  check(code, "heddle::MpiTransport::aborted");
  return there != 0;
}

}  // namespace heddle::inline v0::impl
