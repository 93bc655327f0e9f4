// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Collectives among ranks of which some share memory: what they leave, what they send, and how they
// are chosen.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"
#include "support/interpreter.hpp"

namespace test_shared_collective {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using schedule::Algorithm;
using schedule::Collective;
using Domains = std::vector<std::uint32_t>;

namespace {

/// Bytes of messages that `rank` sends.
Bytes sent_by(const Schedule& schedule, Rank rank) {
  Bytes sum = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Queue& queue = schedule[schedule[ActionId{i}].queue];
    if (!queue.local() && queue.from == rank) sum += schedule.bytes(schedule.uses(ActionId{i})[0]);
  }
  return sum;
}

/// Links of hosts of two ranks: near within one, `far` between them, where both share a line.
Machine hosts_of_two(std::size_t ranks, const Link& far) {
  std::vector<std::vector<Link>> links(ranks, std::vector<Link>(ranks));
  for (std::size_t a = 0; a < ranks; ++a)
    for (std::size_t b = 0; b < ranks; ++b)
      if (a != b) links[a][b] = a / 2 == b / 2 ? Link{1e-6, 4e9} : far;
  Machine machine = network(links, {.name = "node"});
  for (std::size_t host = 0; host < ranks; host += 2) {
    std::vector<std::pair<Rank, Rank>> out;
    for (std::size_t peer = 0; peer < ranks; ++peer)
      if (peer / 2 != host / 2) {
        out.emplace_back(Rank{host}, Rank{peer});
        out.emplace_back(Rank{host + 1}, Rank{peer});
      }
    machine.share(text("line ", host), far.bandwidth, out);
  }
  return machine;
}

}  // namespace

TEST_CASE("over shared memory every collective leaves what it leaves by messages") {
  for (const Domains& domains :
       {Domains{0, 0, 0}, Domains{0, 0, 2, 2}, Domains{0, 1, 1, 1}, Domains{0, 0, 0, 3, 3, 3},
        Domains{0, 1, 0, 1}, Domains{0, 1, 2, 0, 1, 2}, Domains{0, 1, 0, 0, 1}}) {
    const int ranks = static_cast<int>(domains.size());
    for (std::size_t c = 0; c < schedule::collective_count; ++c) {
      const auto collective = static_cast<Collective>(c);
      for (const Bytes elements : {0, 1, 1009}) {
        const schedule::CollectiveOptions options{
            .ranks = ranks, .bytes = 8 * elements, .type = Scalar::i64, .root = Rank{ranks - 1}};
        for (const Algorithm outer : {Algorithm::ring, Algorithm::binomial_tree}) {
          if (!schedule::why_not(collective, outer, options).empty()) continue;
          const Schedule plain = schedule::collective(collective, outer, options);
          const Schedule shared = plan::to_shared_schedule(
              {.algorithm = outer, .piece = 512, .shared = true}, collective, options, domains);
          test::Storage expected(plain, std::byte{0x5a}), found(shared, std::byte{0xa5});
          static_cast<void>(test::interpret(plain, expected, 1));
          static_cast<void>(test::interpret(shared, found, 1));
          for (std::size_t b = 0; b < plain.buffers().size(); ++b) {
            const Buffer& buffer = plain[BufferId{b}];
            if (buffer.transient || buffer.bytes == 0) continue;
            // What a rank does not end with is anything: sums on their way.
            const bool root = buffer.rank == options.root;
            if (collective == Collective::reduce && !root) continue;
            Bytes first = 0, bytes = buffer.bytes;
            if (collective == Collective::reduce_scatter) {
              const Bytes rank = +buffer.rank, p = static_cast<Bytes>(ranks);
              first = 8 * (rank * (elements / p) + std::min(rank, elements % p));
              bytes = 8 * (elements / p + (rank < elements % p ? 1 : 0));
            }
            INFO(collective << " by " << outer << ", " << elements << " elements, buffer " << b);
            CHECK((bytes == 0 || std::memcmp(expected.begin(BufferId{b}) + first,
                                             found.begin(BufferId{b}) + first, bytes) == 0));
          }
        }
      }
    }
  }
}

TEST_CASE("over shared memory only hosts send, each rank its share") {
  const Bytes bytes = 6 * 4096;
  const auto sum = [&](const Domains& domains) {
    return plan::to_shared_schedule(
        {.algorithm = Algorithm::ring, .shared = true}, Collective::all_reduce,
        {.ranks = static_cast<int>(domains.size()), .bytes = bytes}, domains);
  };
  for (std::size_t r = 0; r < 6; ++r) {
    CHECK(sent_by(sum({0, 0, 0, 0, 0, 0}), Rank{r}) == 0);
    // A host of n sums the n-th part of each of its ranks in a ring of g: 2 (g - 1) / g of it.
    CHECK(sent_by(sum({0, 0, 2, 2, 4, 4}), Rank{r}) == bytes / 2 * 4 / 3);
    CHECK(sent_by(sum({0, 0, 0, 3, 3, 3}), Rank{r}) == bytes / 3);
  }
  CHECK(sum({0, 0, 2, 2, 4, 4}).domains().size() == 6);
  for (std::size_t r = 0; r < 6; ++r)  // in turns
    CHECK(sent_by(sum({0, 1, 2, 0, 1, 2}), Rank{r}) == bytes / 2 * 4 / 3);
  // Of hosts of several sizes as many ranks as the smallest has.
  for (std::size_t r = 0; r < 6; ++r) {
    CHECK(sent_by(sum({0, 0, 0, 0, 4, 4}), Rank{r}) == (r == 2 || r == 3 ? 0 : bytes / 2));
    CHECK(sent_by(sum({0, 0, 0, 0, 0, 5}), Rank{r}) == (r == 0 || r == 5 ? bytes : 0));
  }
}

TEST_CASE("slots within a host are as large as an outbox, whatever the size of the data") {
  const Domains domains(4, 0);
  const auto transient = [&](Bytes bytes) {
    Bytes sum = 0;
    const Schedule shared =
        plan::to_shared_schedule({.piece = shared_piece, .shared = true}, Collective::all_reduce,
                                 {.ranks = 4, .bytes = bytes}, domains);
    for (const Buffer& buffer : shared.buffers())
      if (buffer.transient) sum += buffer.bytes;
    return sum;
  };
  CHECK(transient(1 << 24) == transient(1 << 22));
  // And of what each rank has copied out when it begins to use them again.
  CHECK(transient(1 << 24) >= 4 * shared_outbox);
  CHECK(transient(1 << 24) < 4 * (shared_outbox + 4 * 2 * shared_piece));
  CHECK(transient(1 << 20) == 4 * (1 << 20));
}

TEST_CASE("shared memory is a candidate where ranks have it") {
  const Machine machine = hosts_of_two(4, {1e-3, 1e8});
  const schedule::CollectiveOptions large{.ranks = 4, .bytes = 1 << 20};
  const auto shared_ones = [&](Collective collective, const schedule::CollectiveOptions& options,
                               const Domains& domains) {
    std::vector<Algorithm> found;
    for (const plan::CollectiveChoice& choice :
         plan::candidates(collective, options, machine, domains))
      if (choice.shared) found.push_back(choice.algorithm);
    return found;
  };
  CHECK(shared_ones(Collective::all_reduce, large, {}).empty());
  CHECK(shared_ones(Collective::all_reduce, large, {0, 1, 2, 3}).empty());
  CHECK(shared_ones(Collective::all_reduce, {.ranks = 4, .bytes = 1 << 10}, {0, 0, 0, 0}).empty());
  CHECK(shared_ones(Collective::all_reduce, large, {0, 0, 0, 0}) == std::vector{Algorithm::direct});
  CHECK(shared_ones(Collective::all_to_all, large, {0, 0, 0, 0}) == std::vector{Algorithm::direct});
  CHECK(shared_ones(Collective::all_reduce, large, {0, 0, 2, 2}).size() > 8);
  CHECK(shared_ones(Collective::broadcast, large, {0, 0, 0, 0}) ==
        std::vector{Algorithm::binomial_tree});
  CHECK(sent_by(plan::to_shared_schedule({.algorithm = Algorithm::ring, .shared = true},
                                         Collective::broadcast, large, {0, 0, 2, 2}),
                Rank{0}) == large.bytes);
  CHECK(shared_ones(Collective::barrier, {.ranks = 4}, {0, 0, 0, 0}).empty());
  // Between hosts the half of the data that a rank has summed goes by the algorithm that suits.
  const plan::CollectiveChoice chosen =
      plan::choose(Collective::all_reduce, large, machine, {0, 0, 2, 2});
  CHECK(chosen.shared);
  const Schedule made =
      plan::to_schedule(chosen, Collective::all_reduce, large, machine, {0, 0, 2, 2});
  CHECK(sent_by(made, Rank{0}) == large.bytes / 2);
  CHECK_FALSE(plan::choose(Collective::all_reduce, large, machine).shared);
}

TEST_CASE("a choice of shared memory is written and read") {
  const plan::CollectiveChoice choice{.algorithm = Algorithm::ring, .shared = true};
  CHECK(text(choice) == "ring over shared memory");
  plan::CostTable table(hosts_of_two(4, {1e-3, 1e8}));
  table.set(Collective::all_reduce, 1 << 20, choice, 1e-3);
  table.set(Collective::all_reduce, 1 << 20, {.algorithm = Algorithm::ring}, 2e-3);
  const plan::CostTable read = plan::CostTable::parse(table.to_text());
  CHECK(read.to_text() == table.to_text());
  CHECK(read.choose(Collective::all_reduce, 1 << 20) == choice);
  for (const char* line :
       {"time all_reduce 8 1 ring 0 0 sharing\n", "time barrier 0 1 library shared\n"}) {
    const std::string lines = text("ranks 1 node\nlink 0 0 0 inf\n", line);
    std::ostringstream whole;
    whole << "heddle-costs 1 " << std::hex << fnv1a(lines) << '\n' << lines;
    CHECK_THAT(test::message_of<format_error>(
                   [&] { static_cast<void>(plan::CostTable::parse(whole.str())); }),
               ContainsSubstring("a line is not valid"));
  }
}

}  // namespace test_shared_collective
