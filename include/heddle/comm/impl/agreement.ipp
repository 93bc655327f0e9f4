// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of agreement.hpp.

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/impl/agreement.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>

namespace heddle::inline v0::impl {

// Up to the first line break; `rest` is what follows it.
inline std::string_view first_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

// Describes how `other`, the call of `rank`, differs from `meant`, the call of `most`: by the
// functions if these differ, else by the terms.
inline std::string difference(std::string_view meant, int most, std::string_view other, int rank) {
  const std::string_view meant_name = first_line(meant);
  const std::string_view other_name = first_line(other);
  if (meant_name != other_name)
    return text("rank ", rank, " calls ", other_name, " where rank ", most, " calls ", meant_name);
  std::string terms;
  while (!meant.empty() || !other.empty()) {
    const std::string_view expected = first_line(meant);
    const std::string_view given = first_line(other);
    if (expected == given) continue;
    terms += text(terms.empty() ? "" : ", and ", "rank ", rank, " has ",
                  given.empty() ? "nothing" : given, " where rank ", most, " has ",
                  expected.empty() ? "nothing" : expected);
  }
  return terms;
}

// The first call that differs from the one that most ranks make, as a sentence; empty where all
// are the same. `calls` by rank.
inline std::string disagreement(const std::vector<std::string>& calls) {
  const auto makers = [&](const std::string& call) {
    return std::count(calls.begin(), calls.end(), call);
  };
  // max_element returns the first of equals.
  const auto meant =
      std::max_element(calls.begin(), calls.end(),
                       [&](const auto& a, const auto& b) { return makers(a) < makers(b); });
  const auto odd =
      std::find_if(calls.begin(), calls.end(), [&](const auto& call) { return call != *meant; });
  if (odd == calls.end()) return {};
  return difference(*meant, static_cast<int>(meant - calls.begin()), *odd,
                    static_cast<int>(odd - calls.begin()));
}

HEDDLE_FULL_INLINE Agreement::Agreement(const Communicator& comm, std::string_view call,
                                        Seconds watchdog, std::function<void()> further)
    : m_comm(&comm), m_call(call), m_watchdog(watchdog), m_further(std::move(further)) {}

template <class Over>
bool Agreement::wait(Seconds patience, Over&& over) {
  Waiting waiting(Idle::yield);
  while (!over()) {
    if (patience > 0 && steady_seconds() - m_since > patience) return false;
    if (m_further) m_further();
    waiting();
  }
  return true;
}

HEDDLE_FULL_INLINE std::string Agreement::verdict_on(std::string mine) {
  std::string verdict;
  if (m_comm->rank() == Rank{0}) {
    verdict = judge(std::move(mine));
    for (int peer = 1; peer < m_comm->size(); ++peer) start(peer, verdict);
  } else {
    start(0, std::move(mine));
    std::optional<std::string> told;
    // Rank 0 may itself come late, and then wait for another rank for as long.
    wait(2 * m_watchdog, [&] { return (told = take(0)).has_value(); });
    verdict = told ? *std::move(told) : text(missing, silent(0));
  }
  wait(2 * m_watchdog, [&] { return sent(); });
  return verdict;
}

HEDDLE_FULL_INLINE void Agreement::refuse(const std::exception& error) {
  const bool known = dynamic_cast<const contract_error*>(&error) != nullptr ||
                     dynamic_cast<const infeasible*>(&error) != nullptr;
  verdict_on(text(no_call, known ? refused : failed, error.what()));
}

HEDDLE_FULL_INLINE void Agreement::operator()(std::string mine) {
  const std::string verdict = verdict_on(std::move(mine));
  if (verdict.front() == refused)
    throw contract_error({m_call, "a rank does not make the call", verdict.substr(1),
                          "correct the arguments of that rank"});
  if (verdict.front() == failed)
    throw communication_error({m_call, "a rank cannot make the call", verdict.substr(1)});
  if (verdict.front() == differ)
    throw contract_error({m_call, "the ranks do not make the same call", verdict.substr(1),
                          "all ranks make the same calls in the same order"});
  if (verdict.front() == missing)
    throw communication_error({m_call, verdict.substr(1), text("watchdog after ", m_watchdog, " s"),
                               "find out what that rank does instead"});
}

HEDDLE_FULL_INLINE Agreement::~Agreement() {
  // MPI may still read messages that were not sent completely, so their memory must stay: it leaks.
  if (!sent()) static_cast<void>(new std::vector<Message>(std::move(m_messages)));
}

HEDDLE_FULL_INLINE std::string Agreement::silent(int rank) {
  found_silent_rank = true;
  return text("rank ", rank, " does not make the call");
}

HEDDLE_FULL_INLINE std::string Agreement::judge(std::string mine) {
  std::vector<std::string> calls(static_cast<std::size_t>(m_comm->size()));
  calls[0] = std::move(mine);
  std::size_t heard = 1;
  const auto next = [&] {
    for (std::optional<std::string> call;
         heard < calls.size() && (call = take(static_cast<int>(heard))); ++heard)
      calls[heard] = *std::move(call);
    return heard == calls.size();
  };
  if (!wait(m_watchdog, next)) return text(missing, silent(static_cast<int>(heard)));
  for (std::size_t rank = 0; rank < calls.size(); ++rank)
    if (calls[rank].starts_with(no_call))
      return text(calls[rank][1], "rank ", rank, " reports: ", calls[rank].substr(2));
  const std::string sentence = disagreement(calls);
  return sentence.empty() ? std::string(1, same) : text(differ, sentence);
}

HEDDLE_FULL_INLINE std::optional<std::string> Agreement::take(int peer) {
  int there = 0;
  MPI_Status status;
  check(MPI_Iprobe(peer, tag, m_comm->get(), &there, &status), m_call);
  if (there == 0) return std::nullopt;
  int length = 0;
  MPI_Get_count(&status, MPI_CHAR, &length);
  std::string words(static_cast<std::size_t>(length), ' ');
  check(MPI_Recv(words.data(), length, MPI_CHAR, peer, tag, m_comm->get(), MPI_STATUS_IGNORE),
        m_call);
  return words;
}

HEDDLE_FULL_INLINE void Agreement::start(int peer, std::string words) {
  Message& message =
      m_messages.emplace_back(std::make_unique<std::string>(std::move(words)), MPI_REQUEST_NULL);
  check(MPI_Isend(message.words->data(), static_cast<int>(message.words->size()), MPI_CHAR, peer,
                  tag, m_comm->get(), &message.request),
        m_call);
}

HEDDLE_FULL_INLINE bool Agreement::sent() {
  return std::all_of(m_messages.begin(), m_messages.end(), [](Message& message) {
    int done = 0;
    return MPI_Test(&message.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
  });
}

}  // namespace heddle::inline v0::impl
