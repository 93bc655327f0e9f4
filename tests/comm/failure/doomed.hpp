// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A transport on a rank that stops or dies at one of its calls.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/execute.hpp>

#include "failure.hpp"

namespace failing {

/// When and how this rank leaves, if it does. The first step is for counting its acts.
class Doom {
 public:
  explicit Doom(hd::Rank rank) : m_rank(rank) {}

  /// Acts so far.
  [[nodiscard]] std::uint64_t acts() const { return m_acts; }
  /// By `signal`, `acts` acts from now and then `looks` looks later.
  void arm(int signal, std::uint64_t acts, std::uint64_t looks) {
    m_signal = signal;
    m_last = m_acts + acts;
    m_looks = looks;
  }

  void act() {
    ++m_acts;
    look();
  }
  void look() {
    if (m_signal == 0 || m_acts <= m_last || m_looks-- > 0) return;
    leave(m_rank, std::exchange(m_signal, 0));
  }

 private:
  hd::Rank m_rank;
  int m_signal = 0;
  std::uint64_t m_acts = 0;
  std::uint64_t m_last = 0;
  std::uint64_t m_looks = 0;
};

/// A transport on a rank that may leave at any of its calls.
template <hd::Transport T>
class DoomedTransport {
 public:
  using Request = typename T::Request;

  DoomedTransport(T& inner, Doom& doom) : m_inner(&inner), m_doom(&doom) {}

  [[nodiscard]] hd::Rank rank() const { return m_inner->rank(); }
  [[nodiscard]] int size() const { return m_inner->size(); }
  [[nodiscard]] Request send(hd::Rank peer, hd::Lane lane, const std::byte* data, hd::Bytes bytes) {
    m_doom->act();
    return m_inner->send(peer, lane, data, bytes);
  }
  [[nodiscard]] Request receive(hd::Rank peer, hd::Lane lane, std::byte* data, hd::Bytes bytes) {
    m_doom->act();
    return m_inner->receive(peer, lane, data, bytes);
  }
  [[nodiscard]] bool test(Request& request) {
    const bool done = m_inner->test(request);
    m_doom->look();
    return done;
  }
  void cancel(Request& request) { m_inner->cancel(request); }
  void abort(const hd::Abort& abort) { m_inner->abort(abort); }
  [[nodiscard]] std::optional<hd::Abort> aborted() {
    m_doom->look();
    return m_inner->aborted();
  }
  void answer(const hd::ListPlace& place) { m_inner->answer(place); }
  [[nodiscard]] std::vector<std::optional<hd::ListPlace>> places() { return m_inner->places(); }
  void note_silence() { m_inner->note_silence(); }
  [[nodiscard]] std::vector<std::uint32_t> domains() const requires hd::SharesMemory<T> {
    return m_inner->domains();
  }
  [[nodiscard]] hd::SharedBlocks share(hd::Bytes bytes) requires hd::SharesMemory<T> {
    return m_inner->share(bytes);
  }

 private:
  T* m_inner;
  Doom* m_doom;
};

}  // namespace failing
