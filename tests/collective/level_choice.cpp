// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 4 8
// space: its own

// Calls that a table of costs leads to levels of groups, by messages: what they leave, bit for bit,
// and by which Schedule; and that such a choice is one that can be timed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>
#include <heddle/collective/impl/timed_calls.hpp>
#include <heddle/collective/internal/instance_in.hpp>
#include <heddle/collective/internal/merging_in.hpp>
#include <heddle/collective/measure_collectives.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/machine/network.hpp>

namespace test_level_choice {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::Rank;
using hd::schedule::Algorithm;
using hd::schedule::Collective;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<std::int64_t*, Kokkos::HostSpace>;
constexpr auto nested = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                         Collective::broadcast, Collective::reduce};

/// Groups of two near ranks, which follow one another or are dealt out in turns.
hd::Machine pairs(int ranks, bool in_turns = false) {
  std::vector<std::vector<hd::Link>> links(static_cast<std::size_t>(ranks));
  const auto group = [&](std::size_t r) { return in_turns ? r % (links.size() / 2) : r / 2; };
  for (std::size_t a = 0; a < links.size(); ++a)
    for (std::size_t b = 0; b < links.size(); ++b)
      links[a].push_back(group(a) == group(b) ? hd::Link{1e-6, 1e10} : hd::Link{1e-3, 1e8});
  return hd::network(links, {.name = "node"});
}

/// What is expected to be the fastest over levels.
hd::plan::CollectiveChoice best_nested(Collective collective, const hd::Machine& machine) {
  const hd::schedule::CollectiveOptions options{
      .ranks = machine.ranks(), .bytes = 1 << 16, .type = hd::Scalar::i64};
  for (const auto& [choice, time] : hd::plan::predict(collective, options, machine))
    if (!choice.levels.empty()) return choice;
  return {};
}

/// A table that leads to levels.
std::shared_ptr<const hd::plan::CostTable> leading_to_levels(int ranks, bool in_turns = false) {
  hd::plan::CostTable table(pairs(ranks, in_turns));
  for (const Collective collective : nested) {
    const hd::plan::CollectiveChoice choice = best_nested(collective, table.machine());
    REQUIRE(choice.algorithm == Algorithm::hierarchical);
    REQUIRE(choice.levels[0].groups.empty() != in_turns);
    table.set(collective, 1 << 16, choice, 1e-6);
    table.set(collective, 1 << 16, {.library = true}, 1);
  }
  return std::make_shared<const hd::plan::CostTable>(std::move(table));
}

View filled(const hd::Communicator& comm, std::size_t size, std::int64_t salt) {
  View view("view", size);
  for (std::size_t i = 0; i < size; ++i)
    view(i) = static_cast<std::int64_t>(+comm.rank() * 1000003 + i * 7) * salt;
  return view;
}

std::size_t differing(const View& a, const View& b) {
  std::size_t count = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) count += a(i) != b(i);
  return count;
}

/// `call(data, output, options)` with levels, at once, begun and prepared, leaves what the
/// library's call does: in an output of so many elements, or where there is none in the data.
template <class Call, class Start, class Prepare>
void leaves_the_same(const hd::Communicator& comm, std::size_t data,
                     std::optional<std::size_t> output,
                     const std::shared_ptr<const hd::plan::CostTable>& table, Call&& call,
                     Start&& start, Prepare&& prepare) {
  const View theirs = filled(comm, data, 3), their_output("output", output.value_or(0));
  call(theirs, their_output, hd::CallOptions{});
  const hd::CallOptions options{.costs = table, .shared_memory = false};
  for (int way = 0; way < 3; ++way) {
    const View in = filled(comm, data, 3), out("output", output.value_or(0));
    if (way == 0) {
      call(in, out, options);
    } else if (way == 1) {
      start(in, out, options).wait();
    } else {
      auto prepared = prepare(in, out, options);
      REQUIRE_FALSE(prepared.by_library());
      CHECK_THAT(prepared.schedule().name(), ContainsSubstring("hierarchical"));
      prepared();
    }
    CHECK((output ? differing(out, their_output) : differing(in, theirs)) == 0);
  }
}

}  // namespace

TEST_CASE("a table leads calls to levels, which leave what the library's calls leave") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto table = leading_to_levels(comm.size(), GENERATE(false, true));
  const hd::Communicator own(comm.get());  // remembers what the table says
  const Exec exec;
  const Rank root{3};
  const auto p = static_cast<std::size_t>(comm.size());
  for (const std::size_t n : {0, 1, 13, 20011}) {
    INFO(n << " elements");
    leaves_the_same(
        own, n, {}, table,
        [&](auto in, auto, auto options) { hd::all_reduce(exec, in, hd::Sum{}, own, options); },
        [&](auto in, auto, auto options) {
          return hd::all_reduce<hd::Request>(exec, in, hd::Sum{}, own, options);
        },
        [&](auto in, auto, auto options) {
          return hd::all_reduce<hd::Prepared>(exec, in, hd::Sum{}, own, options);
        });
    const std::size_t mine = n / p + (+comm.rank() < n % p ? 1 : 0);
    leaves_the_same(
        own, n, mine, table,
        [&](auto in, auto out, auto options) {
          hd::reduce_scatter(exec, in, out, hd::Sum{}, own, options);
        },
        [&](auto in, auto out, auto options) {
          return hd::reduce_scatter<hd::Request>(exec, in, out, hd::Sum{}, own, options);
        },
        [&](auto in, auto out, auto options) {
          return hd::reduce_scatter<hd::Prepared>(exec, in, out, hd::Sum{}, own, options);
        });
    leaves_the_same(
        own, mine, n, table,
        [&](auto in, auto out, auto options) { hd::all_gather(exec, in, out, own, options); },
        [&](auto in, auto out, auto options) {
          return hd::all_gather<hd::Request>(exec, in, out, own, options);
        },
        [&](auto in, auto out, auto options) {
          return hd::all_gather<hd::Prepared>(exec, in, out, own, options);
        });
    leaves_the_same(
        own, n, {}, table,
        [&](auto in, auto, auto options) { hd::broadcast(exec, in, root, own, options); },
        [&](auto in, auto, auto options) {
          return hd::broadcast<hd::Request>(exec, in, root, own, options);
        },
        [&](auto in, auto, auto options) {
          return hd::broadcast<hd::Prepared>(exec, in, root, own, options);
        });
  }
}

TEST_CASE("a reduction over levels leaves the sum at its root") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto table = leading_to_levels(comm.size(), GENERATE(false, true));
  for (const std::size_t n : {0, 1, 13, 20011}) {
    for (int root = 0; root < comm.size(); ++root) {
      const View mine = filled(comm, n, 3), theirs = filled(comm, n, 3);
      hd::reduce(Exec{}, mine, hd::Sum{}, Rank{root}, comm,
                 {.costs = table, .shared_memory = false});
      hd::reduce(Exec{}, theirs, hd::Sum{}, Rank{root}, comm);
      if (comm.rank() == Rank{root}) CHECK(differing(mine, theirs) == 0);
    }
  }
}

TEST_CASE("a choice over levels can be timed") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto table = std::make_shared<const hd::plan::CostTable>(pairs(comm.size()));
  const Exec exec;
  using Floats = Kokkos::View<float*, Kokkos::HostSpace>;
  const auto moves = hd::impl::instance<Floats>(exec);
  const auto adds = hd::impl::instance<Floats>(exec, hd::Sum{});
  for (const Collective collective : nested) {
    const hd::impl::TimedCalls timed({moves, adds}, collective, 52, comm, table, 20);
    const hd::plan::CollectiveChoice nested_choice = best_nested(collective, pairs(comm.size()));
    REQUIRE(nested_choice.algorithm == hd::schedule::Algorithm::hierarchical);
    const auto times =
        hd::impl::time_in_turns({timed({.library = true}), timed(nested_choice)}, 1e-3, comm);
    CHECK(times.size() == 2);
  }
}

}  // namespace test_level_choice
