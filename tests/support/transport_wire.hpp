// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// TransportWire: a Wire that is one lane of a transport of its own. It knows no lanes and matches
/// by order alone, as the libraries for devices do.

#include <cstddef>
#include <deque>
#include <optional>

#include <heddle/execute/wired_transport.hpp>

namespace heddle::test {

template <Transport T>
class TransportWire {
 public:
  using Ticket = std::optional<std::size_t>;  ///< none: complete

  /// Over `inner`, to which it refers and which carries nothing else.
  explicit TransportWire(T& inner) : m_inner(&inner) {}

  Ticket send(Rank peer, const std::byte* data, Bytes bytes) {
    m_requests.push_back(m_inner->send(peer, Lane{0}, data, bytes));
    return m_requests.size() - 1;
  }
  Ticket receive(Rank peer, std::byte* data, Bytes bytes) {
    m_requests.push_back(m_inner->receive(peer, Lane{0}, data, bytes));
    return m_requests.size() - 1;
  }
  bool test(Ticket& ticket) {
    if (ticket && m_inner->test(m_requests[*ticket])) ticket.reset();
    return !ticket;
  }
  void abort() {
    m_inner->abort({m_inner->rank(), "the wire", "it is cut"});
    for (auto& request : m_requests) m_inner->cancel(request);
  }

 private:
  T* m_inner;
  std::deque<typename T::Request> m_requests;
};

}  // namespace heddle::test
