// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3
// space: its own
// program: its own

// Halos at the contract level "communication": what differs between ranks is named on all of them.

#define HEDDLE_CHECK_COMMUNICATION

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/tensor.hpp>

#include "support/one_rank_differs.hpp"

namespace test_agreement {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::said;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Tensor = hd::Sharded<double*, Exec>;

/// A tensor of `size` elements, with a halo.
Tensor tensor(const hd::Communicator& comm, int size) {
  return {comm, hd::Layout(hd::MeshShape{{"all", comm.size()}}, {size}, {hd::Shard{0, {}, 1}})};
}

}  // namespace

TEST_CASE("halos that differ between ranks are refused when they are made") {
  const auto made = [](int size, const hd::schedule::HaloOptions& options = {}, int age = 0) {
    return [=](const hd::Communicator& comm) {
      const Tensor u = tensor(comm, size);
      hd::Halo<double*, Exec> halo(u, options, {.age = age});
      halo.exchange(Exec{}, u);
    };
  };
  CHECK(said(made(12), made(12)) == "nothing");
  CHECK_THAT(said(made(12), made(13)), ContainsSubstring("heddle::Halo") &&
                                           ContainsSubstring("layout") &&
                                           ContainsSubstring("13 on all="));
  CHECK_THAT(said(made(12), made(12, {}, 1)), ContainsSubstring("freshness"));
  CHECK_THAT(said(made(12), made(12, {.periodic = {true}})), ContainsSubstring("periodic"));
  CHECK_THAT(said(made(12), made(12, {.corners = false})), ContainsSubstring("corners"));
}

TEST_CASE("a call on one rank with a tensor of another layout is named on all") {
  const auto exchanged = [](int size) {
    return [=](const hd::Communicator& comm) {
      const Tensor u = tensor(comm, 12), v = tensor(comm, size);
      hd::Halo<double*, Exec> halo(u);
      halo.exchange(Exec{}, v);
    };
  };
  CHECK_THAT(said(exchanged(12), exchanged(11)),
             ContainsSubstring("heddle::Halo::exchange") && ContainsSubstring("11 on all="));
}

}  // namespace test_agreement
