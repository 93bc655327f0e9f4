// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 7 8
// space: its own

// Every call by the library and by every algorithm that performs it, in all three forms, with even,
// uneven and empty blocks, against what one rank can say of all.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>
#include <heddle/memory/message_memory.hpp>
#include <heddle/schedule/collective/group_level.hpp>

namespace test_calls {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using hd::Rank;
using hd::schedule::Algorithm;
using hd::schedule::Collective;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<std::int32_t*, Kokkos::HostSpace>;

/// What element i of `rank` is: all different.
std::int32_t value(std::size_t rank, std::size_t i) {
  return static_cast<std::int32_t>(rank * 1000003 + i * 7 + 1);
}

View filled(std::size_t count, std::size_t rank) {
  const View view("view", count);
  for (std::size_t i = 0; i < count; ++i) view(i) = value(rank, i);
  return view;
}

/// Blocks of uneven sizes, one of them empty where there are several.
std::vector<std::size_t> uneven(std::size_t ranks, std::size_t scale) {
  std::vector<std::size_t> counts;
  for (std::size_t r = 0; r < ranks; ++r) counts.push_back(r % 3 == 1 ? 0 : scale + 2 * r + 1);
  return counts;
}

std::size_t sum(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}
std::size_t first(const std::vector<std::size_t>& counts, std::size_t rank) {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank),
                         std::size_t{0});
}
/// n elements dealt out as the calls do.
std::vector<std::size_t> dealt(std::size_t total, std::size_t ranks) {
  std::vector<std::size_t> counts(ranks);
  for (std::size_t r = 0; r < ranks; ++r) counts[r] = total / ranks + (r < total % ranks ? 1 : 0);
  return counts;
}

/// Calls `test(options)` for the library, and for every algorithm of ours in one chunk and in two:
/// among all ranks, in pairs or what else they divide into, and in groups that are not alike, with
/// a ring or a tree across.
void in_every_way(const hd::Communicator& comm, Collective collective,
                  const std::vector<std::size_t>& counts,
                  const std::function<void(const hd::CallOptions&)>& test) {
  test({.counts = counts});
  int ours = 0;
  const auto by = [&](Algorithm algorithm, const std::vector<hd::schedule::GroupLevel>& levels) {
    for (const int chunks : {1, 2}) {
      if (!hd::schedule::why_not(collective, algorithm,
                                 {.ranks = comm.size(), .chunks = chunks, .levels = levels})
               .empty())
        continue;
      ++ours;
      INFO(collective << " by " << algorithm << " of " << levels.size() << " levels, chunks "
                      << chunks);
      test({.algorithm = algorithm, .chunks = chunks, .levels = levels, .counts = counts});
    }
  };
  const int inside = comm.size() % 2 == 0 ? 2 : comm.size();
  for (std::size_t a = 0; a < hd::schedule::algorithm_count; ++a) {
    const auto algorithm = static_cast<Algorithm>(a);
    by(algorithm, {});
    for (const Algorithm across : {Algorithm::ring, Algorithm::binomial_tree})
      by(Algorithm::hierarchical, {{inside, algorithm}, {comm.size() / inside, across}});
  }
  // All but the last rank are a group; ranks are dealt to two groups in turns; and so they are to
  // groups of three, the last of which has fewer.
  const auto p = static_cast<std::uint32_t>(comm.size());
  std::vector<std::uint32_t> last(p, 0), turns(p), threes(p);
  last.back() = p > 1 ? 1 : 0;
  for (std::uint32_t r = 0; r < p; ++r) {
    turns[r] = r % 2;
    threes[r] = r % ((p + 2) / 3);
  }
  for (const auto& groups : {last, turns, threes}) {
    const auto count = static_cast<int>(*std::max_element(groups.begin(), groups.end())) + 1;
    for (const Algorithm within : {Algorithm::direct, Algorithm::ring, Algorithm::binomial_tree})
      for (const Algorithm across : {Algorithm::ring, Algorithm::binomial_tree})
        by(Algorithm::hierarchical, {hd::schedule::level_of(groups, within), {count, across}});
  }
  REQUIRE(ours > 0);
}

/// Performs a call in its three forms, each followed by `check()`. `fill()` comes before.
template <class Fill, class Call, class Start, class Prepare, class Check>
void in_every_form(Fill&& fill, Call&& call, Start&& start, Prepare&& prepare, Check&& check) {
  fill();
  call();
  check();
  fill();
  {
    hd::Request request = start();
    while (!request.test()) {
    }
  }
  check();
  auto prepared = prepare();
  for (int again = 0; again < 2; ++again) {
    fill();
    prepared();
    check();
  }
}

}  // namespace

TEST_CASE("broadcast from every root") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  for (const std::size_t count : {0, 1, 7, 1001})
    for (std::size_t root = 0; root < p; ++root)
      in_every_way(comm, Collective::broadcast, {}, [&](const hd::CallOptions& options) {
        const View view("view", count);
        in_every_form(
            [&] { Kokkos::deep_copy(view, filled(count, +comm.rank())); },
            [&] { hd::broadcast(Exec{}, view, Rank{root}, comm, options); },
            [&] { return hd::broadcast<hd::Request>(Exec{}, view, Rank{root}, comm, options); },
            [&] { return hd::broadcast<hd::Prepared>(Exec{}, view, Rank{root}, comm, options); },
            [&] {
              for (std::size_t i = 0; i < count; ++i) REQUIRE(view(i) == value(root, i));
            });
      });
}

TEST_CASE("reduce to every root") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  for (const std::size_t count : {0, 1, 7, 1001})
    for (std::size_t root = 0; root < p; ++root)
      in_every_way(comm, Collective::reduce, {}, [&](const hd::CallOptions& options) {
        const View view("view", count);
        in_every_form(
            [&] { Kokkos::deep_copy(view, filled(count, +comm.rank())); },
            [&] { hd::reduce(Exec{}, view, hd::Sum{}, Rank{root}, comm, options); },
            [&] {
              return hd::reduce<hd::Request>(Exec{}, view, hd::Sum{}, Rank{root}, comm, options);
            },
            [&] {
              return hd::reduce<hd::Prepared>(Exec{}, view, hd::Sum{}, Rank{root}, comm, options);
            },
            [&] {
              if (+comm.rank() != root) return;
              for (std::size_t i = 0; i < count; ++i) {
                std::int32_t expected = 0;
                for (std::size_t r = 0; r < p; ++r) expected += value(r, i);
                REQUIRE(view(i) == expected);
              }
            });
      });
}

TEST_CASE("reduce_scatter of even, uneven and empty blocks") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  const std::size_t me = +comm.rank();
  for (const std::size_t scale : {0, 1, 7, 501})
    for (const bool counted : {false, true}) {
      const auto counts = counted ? uneven(p, scale) : dealt(scale, p);
      in_every_way(comm, Collective::reduce_scatter, counted ? counts : std::vector<std::size_t>{},
                   [&](const hd::CallOptions& options) {
                     const View in("in", sum(counts)), out("out", counts[me]);
                     in_every_form(
                         [&] { Kokkos::deep_copy(in, filled(in.size(), me)); },
                         [&] { hd::reduce_scatter(Exec{}, in, out, hd::Sum{}, comm, options); },
                         [&] {
                           return hd::reduce_scatter<hd::Request>(Exec{}, in, out, hd::Sum{}, comm,
                                                                  options);
                         },
                         [&] {
                           return hd::reduce_scatter<hd::Prepared>(Exec{}, in, out, hd::Sum{}, comm,
                                                                   options);
                         },
                         [&] {
                           for (std::size_t i = 0; i < out.size(); ++i) {
                             std::int32_t expected = 0;
                             for (std::size_t r = 0; r < p; ++r)
                               expected += value(r, first(counts, me) + i);
                             REQUIRE(out(i) == expected);
                           }
                         });
                   });
    }
}

TEST_CASE(
    "all_gather of even, uneven and empty blocks, also of what is in place, on all ranks or some") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  const std::size_t me = +comm.rank();
  for (const std::size_t scale : {0, 1, 7, 501})
    for (const bool counted : {false, true})
      for (const int in_place_from : {-1, 0, 1}) {  // no rank, all, the odd ones
        const bool in_place = in_place_from == 0 || (in_place_from == 1 && me % 2 == 1);
        const auto counts = counted ? uneven(p, scale) : dealt(scale, p);
        in_every_way(
            comm, Collective::all_gather, counted ? counts : std::vector<std::size_t>{},
            [&](const hd::CallOptions& options) {
              // The library wants all ranks in place, or none.
              if (in_place_from == 1 && !options.algorithm) return;
              const View out("out", sum(counts));
              const std::size_t begin = first(counts, me);
              const View in = in_place
                                  ? View(Kokkos::subview(out, std::pair(begin, begin + counts[me])))
                                  : View("in", counts[me]);
              in_every_form(
                  [&] {
                    Kokkos::deep_copy(out, -1);
                    Kokkos::deep_copy(in, filled(in.size(), me));
                  },
                  [&] { hd::all_gather(Exec{}, in, out, comm, options); },
                  [&] { return hd::all_gather<hd::Request>(Exec{}, in, out, comm, options); },
                  [&] { return hd::all_gather<hd::Prepared>(Exec{}, in, out, comm, options); },
                  [&] {
                    for (std::size_t r = 0; r < p; ++r)
                      for (std::size_t i = 0; i < counts[r]; ++i)
                        REQUIRE(out(first(counts, r) + i) == value(r, i));
                  });
            });
      }
}

TEST_CASE("all_to_all of even, uneven and empty blocks") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  const std::size_t me = +comm.rank();
  for (const std::size_t scale : {0, 1, 7, 301})
    for (const bool counted : {false, true}) {
      // What r sends to q.
      const auto sent = [&](std::size_t r) {
        return counted ? uneven(p, scale + r) : dealt(scale, p);
      };
      std::vector<std::size_t> received;
      for (std::size_t r = 0; r < p; ++r) received.push_back(sent(r)[me]);
      in_every_way(
          comm, Collective::all_to_all, counted ? sent(me) : std::vector<std::size_t>{},
          [&](const hd::CallOptions& options) {
            const View in("in", sum(sent(me))), out("out", sum(received));
            in_every_form(
                [&] {
                  Kokkos::deep_copy(in, filled(in.size(), me));
                  Kokkos::deep_copy(out, -1);
                },
                [&] { hd::all_to_all(Exec{}, in, out, comm, options); },
                [&] { return hd::all_to_all<hd::Request>(Exec{}, in, out, comm, options); },
                [&] { return hd::all_to_all<hd::Prepared>(Exec{}, in, out, comm, options); },
                [&] {
                  for (std::size_t r = 0; r < p; ++r)
                    for (std::size_t i = 0; i < received[r]; ++i)
                      REQUIRE(out(first(received, r) + i) == value(r, first(sent(r), me) + i));
                });
          });
    }
}

TEST_CASE("gather to every root, and scatter from it") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  const std::size_t me = +comm.rank();
  for (const std::size_t scale : {0, 1, 101})
    for (const bool counted : {false, true})
      for (std::size_t root = 0; root < p; ++root) {
        const auto counts = counted ? uneven(p, scale) : std::vector<std::size_t>(p, scale);
        const auto told = counted ? counts : std::vector<std::size_t>{};
        const Rank at{root};
        const std::size_t whole = me == root ? sum(counts) : 0;
        in_every_way(comm, Collective::gather, told, [&](const hd::CallOptions& options) {
          const View in = filled(counts[me], me), out("out", whole);
          in_every_form(
              [&] { Kokkos::deep_copy(out, -1); },
              [&] { hd::gather(Exec{}, in, out, at, comm, options); },
              [&] { return hd::gather<hd::Request>(Exec{}, in, out, at, comm, options); },
              [&] { return hd::gather<hd::Prepared>(Exec{}, in, out, at, comm, options); },
              [&] {
                for (std::size_t r = 0; r < p && me == root; ++r)
                  for (std::size_t i = 0; i < counts[r]; ++i)
                    REQUIRE(out(first(counts, r) + i) == value(r, i));
              });
        });
        in_every_way(comm, Collective::scatter, told, [&](const hd::CallOptions& options) {
          const View in = filled(whole, root), out("out", counts[me]);
          in_every_form(
              [&] { Kokkos::deep_copy(out, -1); },
              [&] { hd::scatter(Exec{}, in, out, at, comm, options); },
              [&] { return hd::scatter<hd::Request>(Exec{}, in, out, at, comm, options); },
              [&] { return hd::scatter<hd::Prepared>(Exec{}, in, out, at, comm, options); },
              [&] {
                for (std::size_t i = 0; i < counts[me]; ++i)
                  REQUIRE(out(i) == value(root, first(counts, me) + i));
              });
        });
      }
}

TEST_CASE("a barrier holds all ranks until the last has come") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  in_every_way(comm, Collective::barrier, {}, [&](const hd::CallOptions& options) {
    hd::barrier(comm, options);
    auto prepared = hd::barrier<hd::Prepared>(comm, options);
    prepared();
    // Not done on any rank before the last one starts it: which is told by a message.
    hd::Request request;
    if (+comm.rank() + 1 < static_cast<std::size_t>(comm.size())) {
      request = hd::barrier<hd::Request>(comm, options);
      for (int polls = 0; polls < 100; ++polls) REQUIRE_FALSE(request.test());
      int seen = 1;
      MPI_Send(&seen, 1, MPI_INT, comm.size() - 1, 77, MPI_COMM_WORLD);
    } else {
      for (int r = 0; r + 1 < comm.size(); ++r) {
        int seen = 0;
        MPI_Recv(&seen, 1, MPI_INT, r, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
      request = hd::barrier<hd::Request>(comm, options);
    }
    request.wait();
  });
}

TEST_CASE("what calls of many sizes keep for the next ones is bounded") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto in_use = [&pool = hd::memory::message_memory<Kokkos::HostSpace>()] {
    return pool.reserved() - pool.idle();
  };
  const auto before = in_use();
  const View all("all", std::size_t{4} << 20);
  hd::Bytes most = 0;
  for (std::size_t i = 0; i < 24; ++i) {
    const auto some = Kokkos::subview(all, std::pair(std::size_t{0}, all.size() - 1024 * i));
    hd::all_reduce(Exec{}, some, hd::Max{}, comm,
                   {.algorithm = Algorithm::ring, .shared_memory = false});
    most = std::max(most, in_use() - before);
  }
  if (comm.size() > 1) CHECK(most > hd::Bytes{100} << 20);  // without bound 160 MiB and more
  CHECK(most < hd::Bytes{145} << 20);
}

TEST_CASE("calls that do not fit are refused") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  const View view("view", p), longer("longer", 2 * p + 1);
  CHECK_THROWS_MATCHES(hd::broadcast(Exec{}, view, Rank{p}, comm), hd::contract_error,
                       MessageMatches(ContainsSubstring("no such root")));
  CHECK_THROWS_MATCHES(hd::all_gather(Exec{}, longer, view, comm), hd::contract_error,
                       MessageMatches(ContainsSubstring("the input has the wrong size (longer")));
  CHECK_THROWS_MATCHES(hd::reduce_scatter(Exec{}, view, longer, hd::Sum{}, comm),
                       hd::contract_error,
                       MessageMatches(ContainsSubstring("the output has the wrong size (longer")));
  CHECK_THROWS_MATCHES(
      hd::all_gather(Exec{}, view, view, comm, {.counts = std::vector<std::size_t>(p, 3)}),
      hd::contract_error,
      MessageMatches(ContainsSubstring("CallOptions::counts do not fit the ranks or the View")));
  CHECK_THROWS_MATCHES(
      hd::all_reduce(Exec{}, view, hd::Sum{}, comm, {.counts = {p}}), hd::contract_error,
      MessageMatches(
          ContainsSubstring("this call has no blocks, so CallOptions::counts must be empty")));
  CHECK_THROWS_AS(hd::barrier(comm, {.algorithm = Algorithm::ring}), hd::infeasible);
}

}  // namespace test_calls
