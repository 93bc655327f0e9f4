// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Mailboxes on ranks that are threads: every letter arrives once and in order, whatever its size.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/mailbox.hpp>
#include <heddle/execute/sendable.hpp>
#include <heddle/execute/thread_transport.hpp>

#include "support/complaint.hpp"

namespace test_mailbox {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

/// The ranks of a transport but this one.
std::vector<Rank> others(const ThreadTransport& transport) {
  std::vector<Rank> peers;
  for (int r = 0; r < transport.size(); ++r)
    if (Rank{r} != transport.rank()) peers.push_back(Rank{r});
  return peers;
}

/// The n-th letter from one rank to another, of a size that the three give.
MessageBytes letter(Rank from, Rank to, std::uint64_t n) {
  const Random random(1 + 64 * from.value + to.value, "letters");
  // Around the longest short letter, and far above it.
  const auto size =
      static_cast<std::size_t>(random.uniform(2 * n) < 0.8 ? 44 + 8 * random.uniform(2 * n + 1)
                                                           : 5'000 * random.uniform(2 * n + 1));
  MessageBytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(n + 3 * i + 7 * from.value + 11 * to.value);
  return bytes;
}

/// The sender of the next letter that is not its last.
std::uint32_t next_from(Mailbox<ThreadTransport>& mailbox) {
  for (;;) {
    const Letter got = mailbox.receive();
    if (!got.last) return got.from.value;
  }
}

TEST_CASE("letters of any size arrive once and in the order of each sender") {
  constexpr std::uint64_t count = 300;
  for (const int ranks : {1, 2, 4}) {
    std::atomic<int> wrong{0};
    std::atomic<std::uint64_t> arrived{0};
    run_threads(ranks, [&](ThreadTransport& transport) {
      const Rank self = transport.rank();
      const std::vector<Rank> peers = others(transport);
      Mailbox mailbox(transport, peers);
      std::vector<std::uint64_t> come(static_cast<std::size_t>(ranks), 0);
      const auto check = [&](const Letter& got) {
        std::uint64_t& n = come[+got.from];
        if (got.bytes != letter(got.from, self, n) || got.last != (n + 1 == count)) ++wrong;
        ++n;
        ++arrived;
      };
      for (std::uint64_t n = 0; n < count; ++n) {
        for (const Rank peer : peers)
          if (n + 1 < count)
            mailbox.send(peer, letter(self, peer, n));
          else
            mailbox.send_last(peer, letter(self, peer, n));
        while (auto got = mailbox.poll()) check(*got);
      }
      while (!mailbox.all_ended()) check(mailbox.receive());
      mailbox.close();
      // Nothing is left on the lane: a second mailbox works on it.
      Mailbox second(transport, peers);
      for (const Rank peer : peers) second.send(peer, letter(self, peer, 0));
      while (!second.all_ended()) {
        const Letter got = second.receive();
        if (got.last) continue;
        if (got.bytes != letter(got.from, self, 0)) ++wrong;
        second.send_last(got.from, {});
      }
      second.close();
    });
    CAPTURE(ranks);
    CHECK(wrong == 0);
    const auto pairs = static_cast<std::uint64_t>(ranks * (ranks - 1));
    CHECK(arrived == pairs * count);
  }
}

TEST_CASE("a letter comes from whoever sends first, and a wait may end before") {
  std::vector<std::uint32_t> order;
  bool early = true;
  run_threads(3, [&](ThreadTransport& transport) {
    const bool first = transport.rank() == Rank{0};
    const std::vector<Rank> peers = first ? others(transport) : std::vector<Rank>{Rank{0}};
    Mailbox mailbox(transport, peers);
    if (first) {
      early = mailbox.receive_until(steady_seconds() + 0.002).has_value();
      mailbox.send(Rank{2}, {});  // rank 1 sends only after rank 2 did
      order.push_back(next_from(mailbox));
      mailbox.send(Rank{1}, {});
      order.push_back(next_from(mailbox));
    } else {
      static_cast<void>(mailbox.receive());
      mailbox.send(Rank{0}, {});
    }
    mailbox.close();
  });
  CHECK_FALSE(early);
  CHECK(order == std::vector<std::uint32_t>{2, 1});
}

TEST_CASE("letters that nobody has read are dropped at the end") {
  std::atomic<int> read{0};
  run_threads(2, [&](ThreadTransport& transport) {
    const std::vector<Rank> peers = others(transport);
    Mailbox mailbox(transport, peers);
    for (int i = 0; i < 400; ++i) mailbox.send(peers[0], MessageBytes(1'000));
    if (transport.rank() == Rank{0}) {
      static_cast<void>(mailbox.receive());
      ++read;
    }
    mailbox.close();
  });
  CHECK(read == 1);
}

TEST_CASE("a rank that fails ends the waits of the others") {
  std::vector<std::string> errors(3);
  const std::string error = test::message_of<std::runtime_error>([&] {
    run_threads(3, [&](ThreadTransport& transport) {
      const std::vector<Rank> peers = others(transport);
      try {
        Mailbox mailbox(transport, peers, {.doing = "the test"});
        mailbox.send(peers[0], MessageBytes(100'000));  // in flight when the error comes
        if (transport.rank() == Rank{1}) throw std::runtime_error("a broken rank");
        while (!mailbox.all_ended()) static_cast<void>(mailbox.receive());
        mailbox.close();
      } catch (const std::exception& caught) {
        errors[+transport.rank()] = caught.what();
        throw;
      }
    });
  });
  CHECK(errors[1] == "a broken rank");
  CHECK_THAT(errors[0], ContainsSubstring("rank 1 failed at the test"));
  CHECK_THAT(errors[2], ContainsSubstring("rank 1 failed at the test"));
  CHECK_FALSE(error.empty());
}

TEST_CASE("a silent peer, and wrong uses of a mailbox, are named") {
  const auto alone = [](auto&& body) {
    return test::message_of<error>([&] {
      run_threads(2, [&](ThreadTransport& transport) {
        if (transport.rank() == Rank{1}) {
          while (!transport.aborted()) {
          }
          return;
        }
        body(transport);
      });
    });
  };
  const std::vector<Rank> one{Rank{1}};
  CHECK_THAT(alone([&](ThreadTransport& transport) {
               Mailbox mailbox(transport, one, {.wait = {.watchdog = 0.02}});
               static_cast<void>(mailbox.receive());
             }),
             ContainsSubstring("no letter arrives") && ContainsSubstring("open: rank 1"));
  CHECK_THAT(alone([&](ThreadTransport& transport) {
               Mailbox mailbox(transport, one);
               mailbox.send(Rank{0}, {});
             }),
             ContainsSubstring("rank 0 is no peer"));
  CHECK_THAT(alone([&](ThreadTransport& transport) {
               Mailbox mailbox(transport, one);
               mailbox.send_last(Rank{1}, {});
               mailbox.send(Rank{1}, {});
             }),
             ContainsSubstring("rank 1 was sent its last letter"));
  CHECK_THAT(alone([&](ThreadTransport& transport) {
               const std::vector<Rank> self{Rank{0}};
               const Mailbox mailbox(transport, self);
             }),
             ContainsSubstring("each peer must be another rank"));
}

static_assert(Sendable<double> && Sendable<std::string>);
static_assert(Sendable<std::vector<std::vector<std::string>>>);
static_assert(!Sendable<const char*> && !Sendable<std::string_view> && !Sendable<std::span<int>>);
static_assert(!Sendable<std::vector<int*>> && !Sendable<std::vector<std::vector<int*>>>);

TEST_CASE("values come out of a message as they went in") {
  struct Pair {
    int a;
    double b;
    bool operator==(const Pair&) const = default;
  };
  const std::vector<std::vector<std::string>> words{{"a", ""}, {}, {std::string(300, 'x')}};
  const std::vector<bool> flags{true, false, true};
  MessageBytes message;
  pack(message, Pair{3, 0.5});
  pack(message, words);
  pack(message, flags);
  pack(message, std::vector<double>{});
  std::span<const std::byte> rest = message;
  CHECK(unpack<Pair>(rest) == Pair{3, 0.5});
  CHECK(unpack<std::vector<std::vector<std::string>>>(rest) == words);
  CHECK(unpack<std::vector<bool>>(rest) == flags);
  CHECK(unpack<std::vector<double>>(rest).empty());
  CHECK(rest.empty());
  CHECK_THAT(test::message_of<contract_error>([&] { static_cast<void>(unpack<int>(rest)); }),
             ContainsSubstring("4 bytes expected, 0 are left"));
}

}  // namespace test_mailbox
