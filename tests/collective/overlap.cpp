// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 5
// space: its own

// Every call with an input and an output in one memory, wherever one lies relative to the other:
// the output is what it would be in memory of its own.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>

namespace test_overlap {

namespace hd = heddle;
using hd::Rank;
using hd::schedule::Algorithm;
using hd::schedule::Collective;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<std::int32_t*, Kokkos::HostSpace>;

/// Element i of the input of `rank`.
std::int32_t value(std::size_t rank, std::size_t i) {
  return static_cast<std::int32_t>(rank * 100003 + i * 7 + 1);
}

/// A call with an input and an output.
struct TestedCall {
  Collective collective;
  /// The sizes of input and output, and the offset of the rank's own block in the larger of them.
  std::size_t in, out, own;
  std::function<void(const View& in, const View& out, const hd::CallOptions&)> call;
  std::function<hd::Request(const View& in, const View& out, const hd::CallOptions&)> start;
  std::function<void(const View& in, const View& out, const hd::CallOptions&)> prepared;
  std::function<std::int32_t(std::size_t i)> expected;  ///< element i of the output
};

/// The calls over `comm`, with blocks of `block` elements on every rank. The root is the last rank.
std::vector<TestedCall> calls(const hd::Communicator& comm, std::size_t block) {
  const auto p = static_cast<std::size_t>(comm.size()), me = +comm.rank();
  const Rank root{p - 1};
  const bool at_root = comm.rank() == root;
  const std::size_t all = p * block, at = me * block;
  // The three forms of a call: `f(view, view, args..., comm, options)`.
  const auto forms = [&comm](TestedCall call, auto now, auto start, auto prepare) {
    call.call = [now, &comm](const View& in, const View& out, const hd::CallOptions& options) {
      now(in, out, comm, options);
    };
    call.start = [start, &comm](const View& in, const View& out, const hd::CallOptions& options) {
      return start(in, out, comm, options);
    };
    call.prepared = [prepare, &comm](const View& in, const View& out,
                                     const hd::CallOptions& options) {
      prepare(in, out, comm, options)();
    };
    return call;
  };
  std::vector<TestedCall> found;
  found.push_back(forms(
      {Collective::all_gather,
       block,
       all,
       at,
       {},
       {},
       {},
       [=](std::size_t i) { return value(i / block, i % block); }},
      [](const auto&... a) { hd::all_gather(Exec{}, a...); },
      [](const auto&... a) { return hd::all_gather<hd::Request>(Exec{}, a...); },
      [](const auto&... a) { return hd::all_gather<hd::Prepared>(Exec{}, a...); }));
  found.push_back(forms(
      {Collective::all_to_all,
       all,
       all,
       0,
       {},
       {},
       {},
       [=](std::size_t i) { return value(i / block, at + i % block); }},
      [](const auto&... a) { hd::all_to_all(Exec{}, a...); },
      [](const auto&... a) { return hd::all_to_all<hd::Request>(Exec{}, a...); },
      [](const auto&... a) { return hd::all_to_all<hd::Prepared>(Exec{}, a...); }));
  found.push_back(forms(
      {Collective::reduce_scatter,
       all,
       block,
       at,
       {},
       {},
       {},
       [=](std::size_t i) {
         std::int32_t sum = 0;
         for (std::size_t r = 0; r < p; ++r) sum += value(r, at + i);
         return sum;
       }},
      [](const auto& in, const auto& out, const auto&... a) {
        hd::reduce_scatter(Exec{}, in, out, hd::Sum{}, a...);
      },
      [](const auto& in, const auto& out, const auto&... a) {
        return hd::reduce_scatter<hd::Request>(Exec{}, in, out, hd::Sum{}, a...);
      },
      [](const auto& in, const auto& out, const auto&... a) {
        return hd::reduce_scatter<hd::Prepared>(Exec{}, in, out, hd::Sum{}, a...);
      }));
  found.push_back(forms(
      {Collective::gather,
       block,
       at_root ? all : 0,
       at,
       {},
       {},
       {},
       [=](std::size_t i) { return value(i / block, i % block); }},
      [=](const auto& in, const auto& out, const auto&... a) {
        hd::gather(Exec{}, in, out, root, a...);
      },
      [=](const auto& in, const auto& out, const auto&... a) {
        return hd::gather<hd::Request>(Exec{}, in, out, root, a...);
      },
      [=](const auto& in, const auto& out, const auto&... a) {
        return hd::gather<hd::Prepared>(Exec{}, in, out, root, a...);
      }));
  found.push_back(forms(
      {Collective::scatter,
       at_root ? all : 0,
       block,
       at,
       {},
       {},
       {},
       [=](std::size_t i) { return value(p - 1, at + i); }},
      [=](const auto& in, const auto& out, const auto&... a) {
        hd::scatter(Exec{}, in, out, root, a...);
      },
      [=](const auto& in, const auto& out, const auto&... a) {
        return hd::scatter<hd::Request>(Exec{}, in, out, root, a...);
      },
      [=](const auto& in, const auto& out, const auto&... a) {
        return hd::scatter<hd::Prepared>(Exec{}, in, out, root, a...);
      }));
  return found;
}

/// The MPI library, and every algorithm that performs the collective.
std::vector<hd::CallOptions> ways(Collective collective, int ranks, Rank root) {
  std::vector<hd::CallOptions> found{{}};
  for (std::size_t a = 0; a < hd::schedule::algorithm_count; ++a)
    if (hd::schedule::why_not(collective, static_cast<Algorithm>(a), {.ranks = ranks, .root = root})
            .empty())
      found.push_back({.algorithm = static_cast<Algorithm>(a)});
  return found;
}

enum class Form { call, start, prepared };

/// Elements of the output that differ when the input begins at `in` and the output at `out` of one
/// memory.
std::size_t wrong(const TestedCall& tested, std::size_t in, std::size_t out, std::size_t rank,
                  const hd::CallOptions& options, Form form) {
  const View memory("memory", std::max(in + tested.in, out + tested.out));
  const View input = Kokkos::subview(memory, std::pair(in, in + tested.in));
  const View output = Kokkos::subview(memory, std::pair(out, out + tested.out));
  for (std::size_t i = 0; i < tested.in; ++i) input(i) = value(rank, i);
  switch (form) {
    case Form::call: tested.call(input, output, options); break;
    case Form::start: tested.start(input, output, options).wait(); break;
    case Form::prepared: tested.prepared(input, output, options); break;
  }
  std::size_t differences = 0;
  for (std::size_t i = 0; i < tested.out; ++i) differences += output(i) != tested.expected(i);
  return differences;
}

}  // namespace

TEST_CASE("an input and an output of one memory may overlap in every way") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const std::size_t me = +comm.rank();
  // Blocks of more than 32 KiB in all are read in the memory of other ranks.
  for (const std::size_t block : {std::size_t{3}, std::size_t{10007}})
    for (const TestedCall& tested : calls(comm, block)) {
      // Where the input begins relative to the output, before and behind it.
      std::vector<std::pair<std::size_t, std::size_t>> places = {
          {0, 0},
          {1, 0},
          {0, 1},
          {block, 0},
          {0, block},
          {me % 2, 0},
          {0, me == 0 ? 1 : 0},
          {tested.out, 0},
          {tested.out == 0 ? 0 : tested.out - 1, 0}};
      // The rank's own block of the larger one, and its neighbours.
      const auto own = [&](std::size_t at) {
        return tested.in < tested.out ? std::pair(at, std::size_t{0})
                                      : std::pair(std::size_t{0}, at);
      };
      places.push_back(own(tested.own));
      places.push_back(own(tested.own + 1));
      if (block > 3) places = {{0, 0}, {0, 1}, own(tested.own)};
      for (const hd::CallOptions& options :
           ways(tested.collective, comm.size(), Rank{comm.size() - 1}))
        for (const auto& [in, out] : places)
          for (const Form form : {Form::call, Form::start, Form::prepared}) {
            INFO(tested.collective << " by "
                                   << (options.algorithm ? to_string(*options.algorithm)
                                                         : std::string_view("the library"))
                                   << ", blocks of " << block << ", input at " << in
                                   << ", output at " << out << ", form " << static_cast<int>(form));
            CHECK(wrong(tested, in, out, me, options, form) == 0);
          }
    }
}

TEST_CASE("columns of one matrix are exchanged with its other columns") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size()), me = +comm.rank();
  const Kokkos::View<std::int32_t**, Kokkos::LayoutRight, Kokkos::HostSpace> matrix("matrix", p, 3);
  const auto from = Kokkos::subview(matrix, Kokkos::ALL, std::pair(0, 2));
  const auto to = Kokkos::subview(matrix, Kokkos::ALL, std::pair(1, 3));
  for (const hd::CallOptions& options : ways(Collective::all_to_all, comm.size(), {})) {
    for (std::size_t i = 0; i < 2 * p; ++i) from(i / 2, i % 2) = value(me, i);
    hd::all_to_all(Exec{}, from, to, comm, options);
    for (std::size_t i = 0; i < 2 * p; ++i) CHECK(to(i / 2, i % 2) == value(i / 2, 2 * me + i % 2));
  }
}

}  // namespace test_overlap
