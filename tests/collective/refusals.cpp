// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 5
// space: its own

// Calls that cannot be made, in all three forms: by an algorithm that does not perform the
// collective, and over a communicator without ranks.

#include <array>
#include <cstddef>
#include <functional>
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
#include <heddle/core/text.hpp>
#include <heddle/systems/gradsign/gradient_signs.hpp>
#include <heddle/systems/gradsign/sign_score.hpp>
#include <heddle/systems/hap/sum_by_factors.hpp>

namespace test_refusals {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using hd::Rank;
using hd::schedule::Algorithm;
using hd::schedule::Collective;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<int*, Kokkos::HostSpace>;

/// The forms of a call: made at once, as a Request, or prepared.
using Call = std::function<void(const hd::Communicator&, const hd::CallOptions&)>;
struct Forms {
  Collective collective;
  std::array<Call, 3> forms;
};

/// Every call, with blocks of `block` elements for each of `ranks` ranks. The root is rank 0.
std::vector<Forms> calls(std::size_t ranks, std::size_t block) {
  const View one("one", block), all("all", block * ranks), other("other", block * ranks);
  const Rank root{0};
  const auto started = [](hd::Request request) { request.wait(); };
  const auto prepared = [](auto made) { made(); };
  using Comm = const hd::Communicator&;
  using Options = const hd::CallOptions&;
  return {
      {Collective::all_reduce,
       {[=](Comm c, Options o) { hd::all_reduce(Exec{}, all, hd::Sum{}, c, o); },
        [=](Comm c, Options o) {
          started(hd::all_reduce<hd::Request>(Exec{}, all, hd::Sum{}, c, o));
        },
        [=](Comm c, Options o) {
          prepared(hd::all_reduce<hd::Prepared>(Exec{}, all, hd::Sum{}, c, o));
        }}},
      {Collective::reduce_scatter,
       {[=](Comm c, Options o) { hd::reduce_scatter(Exec{}, all, one, hd::Sum{}, c, o); },
        [=](Comm c, Options o) {
          started(hd::reduce_scatter<hd::Request>(Exec{}, all, one, hd::Sum{}, c, o));
        },
        [=](Comm c, Options o) {
          prepared(hd::reduce_scatter<hd::Prepared>(Exec{}, all, one, hd::Sum{}, c, o));
        }}},
      {Collective::all_gather,
       {[=](Comm c, Options o) { hd::all_gather(Exec{}, one, all, c, o); },
        [=](Comm c, Options o) { started(hd::all_gather<hd::Request>(Exec{}, one, all, c, o)); },
        [=](Comm c, Options o) {
          prepared(hd::all_gather<hd::Prepared>(Exec{}, one, all, c, o));
        }}},
      {Collective::all_to_all,
       {[=](Comm c, Options o) { hd::all_to_all(Exec{}, all, other, c, o); },
        [=](Comm c, Options o) { started(hd::all_to_all<hd::Request>(Exec{}, all, other, c, o)); },
        [=](Comm c, Options o) {
          prepared(hd::all_to_all<hd::Prepared>(Exec{}, all, other, c, o));
        }}},
      {Collective::broadcast,
       {[=](Comm c, Options o) { hd::broadcast(Exec{}, all, root, c, o); },
        [=](Comm c, Options o) { started(hd::broadcast<hd::Request>(Exec{}, all, root, c, o)); },
        [=](Comm c, Options o) {
          prepared(hd::broadcast<hd::Prepared>(Exec{}, all, root, c, o));
        }}},
      {Collective::reduce,
       {[=](Comm c, Options o) { hd::reduce(Exec{}, all, hd::Sum{}, root, c, o); },
        [=](Comm c, Options o) {
          started(hd::reduce<hd::Request>(Exec{}, all, hd::Sum{}, root, c, o));
        },
        [=](Comm c, Options o) {
          prepared(hd::reduce<hd::Prepared>(Exec{}, all, hd::Sum{}, root, c, o));
        }}},
      {Collective::gather,
       {[=](Comm c, Options o) { hd::gather(Exec{}, one, all, root, c, o); },
        [=](Comm c, Options o) { started(hd::gather<hd::Request>(Exec{}, one, all, root, c, o)); },
        [=](Comm c, Options o) {
          prepared(hd::gather<hd::Prepared>(Exec{}, one, all, root, c, o));
        }}},
      {Collective::scatter,
       {[=](Comm c, Options o) { hd::scatter(Exec{}, all, one, root, c, o); },
        [=](Comm c, Options o) { started(hd::scatter<hd::Request>(Exec{}, all, one, root, c, o)); },
        [=](Comm c, Options o) {
          prepared(hd::scatter<hd::Prepared>(Exec{}, all, one, root, c, o));
        }}},
      {Collective::barrier,
       {[=](Comm c, Options o) { hd::barrier(c, o); },
        [=](Comm c, Options o) { started(hd::barrier<hd::Request>(c, o)); },
        [=](Comm c, Options o) { prepared(hd::barrier<hd::Prepared>(c, o)); }}},
      {Collective::inclusive_scan,
       {[=](Comm c, Options o) { hd::inclusive_scan(Exec{}, all, hd::Sum{}, c, o); },
        [=](Comm c, Options o) {
          started(hd::inclusive_scan<hd::Request>(Exec{}, all, hd::Sum{}, c, o));
        },
        [=](Comm c, Options o) {
          prepared(hd::inclusive_scan<hd::Prepared>(Exec{}, all, hd::Sum{}, c, o));
        }}},
      {Collective::exclusive_scan,
       {[=](Comm c, Options o) { hd::exclusive_scan(Exec{}, all, hd::Sum{}, c, o); },
        [=](Comm c, Options o) {
          started(hd::exclusive_scan<hd::Request>(Exec{}, all, hd::Sum{}, c, o));
        },
        [=](Comm c, Options o) {
          prepared(hd::exclusive_scan<hd::Prepared>(Exec{}, all, hd::Sum{}, c, o));
        }}},
  };
}

}  // namespace

TEST_CASE("a call by an algorithm that does not perform it is infeasible on all ranks") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto ranks = static_cast<std::size_t>(comm.size());
  int impossible = 0;
  // Blocks of more than 32 KiB in all are read in the memory of other ranks.
  for (const std::size_t block : {std::size_t{2}, std::size_t{9001}})
    for (const Forms& call : calls(ranks, block))
      for (std::size_t a = 0; a < hd::schedule::algorithm_count; ++a)
        for (const Call& form : call.forms) {
          const auto algorithm = static_cast<Algorithm>(a);
          INFO(call.collective << " by " << algorithm << ", form " << (&form - &call.forms[0]));
          const bool possible =
              hd::schedule::why_not(call.collective, algorithm, {.ranks = comm.size()}).empty();
          impossible += !possible;
          if (possible)
            CHECK_NOTHROW(form(comm, {.algorithm = algorithm}));
          else
            CHECK_THROWS_MATCHES(
                form(comm, {.algorithm = algorithm}), hd::infeasible,
                MessageMatches(ContainsSubstring(hd::text("no ", call.collective, " of ",
                                                          comm.size(), " ranks by ", algorithm))));
        }
  CHECK(impossible > 100);
}

TEST_CASE("a call over an empty communicator is a contract_error") {
  hd::Communicator moved(MPI_COMM_WORLD);
  const hd::Communicator comm(std::move(moved));
  for (const Forms& call : calls(static_cast<std::size_t>(comm.size()), 3))
    for (const Call& form : call.forms)
      for (const hd::CallOptions& options :
           {hd::CallOptions{}, hd::CallOptions{.algorithm = Algorithm::ring}})
        CHECK_THROWS_MATCHES(
            form(moved, options), hd::contract_error,  // NOLINT(bugprone-use-after-move)
            MessageMatches(ContainsSubstring(
                hd::text("heddle::collective::", call.collective, ": the communicator is empty"))));
  double value = 1;
  const Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace> matrix("matrix", 1, 1);
  const std::pair<const char*, std::function<void()>> others[] = {
      {"sum_in_place", [&] { hd::sum_in_place(&value, 1, hd::Scalar::f64, moved); }},
      {"sum_in_place", [&] { hd::sum_in_place(&value, 1, hd::Scalar::f64, moved, [] {}); }},
      {"sum_by_factors",
       [&] { hd::systems::sum_by_factors(Exec{}, matrix, matrix, matrix, moved); }},
      {"sign_score",
       [&] { static_cast<void>(hd::systems::sign_score(hd::systems::GradientSigns(), moved)); }},
      {"SharedView", [&] { const hd::SharedView<double*> view(moved, 1); }},
      {"measure_collectives", [&] { static_cast<void>(hd::measure_collectives(moved)); }}};
  for (const auto& [name, call] : others)
    CHECK_THROWS_MATCHES(
        call(), hd::contract_error,
        MessageMatches(ContainsSubstring(name) && ContainsSubstring("the communicator is empty")));
}

TEST_CASE("a gradient in the memory of its factors is a contract_error") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto ranks = static_cast<std::size_t>(comm.size());
  using Matrix = Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace>;
  const Matrix x("x", ranks, 1), dy("dy", ranks, 1);
  const auto first = Kokkos::subview(dy, std::pair(0, 1), Kokkos::ALL);
  CHECK_THROWS_MATCHES(hd::systems::sum_by_factors(Exec{}, x, dy, first, comm), hd::contract_error,
                       MessageMatches(ContainsSubstring("the gradient shares memory")));
  CHECK_NOTHROW(hd::systems::sum_by_factors(Exec{}, x, x, Matrix("gradient", 1, 1), comm));
}

}  // namespace test_refusals
