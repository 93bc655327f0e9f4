// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// MortalTransport: a transport whose rank dies at a chosen call. A thread leaves by an exception,
/// and a process is killed.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/survivors.hpp>

namespace heddle::test {

/// Ends the thread of a rank that has died.
struct Death : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// When a rank dies. It counts the calls in which it could.
struct Fate {
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t end = never;              ///< the number of its last call
  std::uint64_t after_agreement = never;  ///< the same, counted from its first agreement
  const char* only = nullptr;             ///< counts calls of this name; null: all
  std::uint64_t calls = 0;
  const char* place = nullptr;                        ///< where it has died
  std::function<void(const char* place)> leave = {};  ///< called before it dies

  void call(const char* what) {
    if (only != nullptr && std::string_view(only) != what) return;
    if (calls++ != end) return;
    place = what;
    leave(what);
    throw Death(what);
  }
  /// Counts the agreement after which work is done again, or over.
  void agreement() {
    if (after_agreement != never && end == never) end = calls + after_agreement;
    call("the agreement");
  }
};

/// A transport whose rank dies at a call of its Fate. It models LosesRanks, as T does.
template <LosesRanks T>
class MortalTransport {
 public:
  using Request = typename T::Request;

  MortalTransport(T& transport, Fate& fate) : m_inner(&transport), m_fate(&fate) {
    if constexpr (requires { transport.die(); })
      fate.leave = [&transport](const char*) { transport.die(); };
  }
  MortalTransport(std::unique_ptr<T> transport, Fate& fate) : MortalTransport(*transport, fate) {
    m_owned = std::move(transport);
  }

  [[nodiscard]] Rank rank() const noexcept { return m_inner->rank(); }
  [[nodiscard]] int size() const noexcept { return m_inner->size(); }
  Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes) {
    m_fate->call("a message");
    return m_inner->send(peer, lane, data, bytes);
  }
  Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes) {
    m_fate->call("a message");
    return m_inner->receive(peer, lane, data, bytes);
  }
  [[nodiscard]] bool test(Request& request) { return m_inner->test(request); }
  void cancel(Request& request) { m_inner->cancel(request); }
  void abort(const Abort& abort) { m_inner->abort(abort); }
  [[nodiscard]] std::optional<Abort> aborted() { return m_inner->aborted(); }

  [[nodiscard]] std::uint32_t agree(std::uint32_t flags, Seconds watchdog) {
    if (flags != done) m_fate->agreement();
    return m_inner->agree(flags, watchdog);
  }
  [[nodiscard]] Survivors<MortalTransport> survivors(Seconds watchdog) {
    m_fate->call("the question who is left");
    Survivors<T> left = m_inner->survivors(watchdog);
    return {std::move(left.ranks),
            std::make_unique<MortalTransport>(std::move(left.transport), *m_fate)};
  }

 private:
  static constexpr std::uint32_t done = 3;  // survive() says so of work without an error

  std::unique_ptr<T> m_owned;
  T* m_inner;
  Fate* m_fate;
};

}  // namespace heddle::test
