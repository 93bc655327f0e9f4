// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3
// space: its own
// program: its own

// Halos, redistributions and stale sums at the contract level "communication": what differs between
// ranks is named on all of them.

#define HEDDLE_CHECK_COMMUNICATION

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/tensor.hpp>

#include "support/one_rank_differs.hpp"
#include "support/world.hpp"

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
  CHECK_THAT(said(made(12), made(12, {}, 1)), ContainsSubstring("staleness"));
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

TEST_CASE("redistributions that differ between ranks are refused") {
  const auto moved = [](int size, const hd::ShardOrder& order) {
    return [=](const hd::Communicator& comm) {
      (void)hd::redistribute(tensor(comm, size), {hd::Shard{0, order}});
    };
  };
  const auto usual = moved(12, hd::ShardOrder::cyclic());
  CHECK(said(usual, usual) == "nothing");
  CHECK_THAT(said(usual, moved(11, hd::ShardOrder::cyclic())),
             ContainsSubstring("heddle::redistribute") && ContainsSubstring("source") &&
                 ContainsSubstring("11 on all="));
  CHECK_THAT(said(usual, moved(12, hd::ShardOrder::zigzag())),
             ContainsSubstring("target") && ContainsSubstring("zigzag"));
  CHECK_THAT(said(usual,
                  [](const hd::Communicator& comm) {
                    const hd::Sharded<float*, Exec> u(comm, tensor(comm, 12).layout());
                    (void)hd::redistribute(u, {hd::Shard{0, hd::ShardOrder::cyclic()}});
                  }),
             ContainsSubstring("element") && ContainsSubstring("4 bytes"));
}

TEST_CASE("stale sums that differ between ranks are refused when they are made, and called") {
  const auto made = [](std::size_t size, int age, hd::Correction correction, int calls = 1) {
    return [=](const hd::Communicator& comm) {
      hd::StaleSum<double, Exec> sum(comm, size, {.age = age}, correction);
      const hd::StaleSum<double, Exec>::View values("values", size);
      for (int call = 0; call < calls; ++call) sum(Exec{}, values);
    };
  };
  using enum hd::Correction;
  CHECK(said(made(3, 1, own), made(3, 1, own)) == "nothing");
  CHECK_THAT(said(made(3, 1, own), made(4, 1, own)),
             ContainsSubstring("heddle::StaleSum") && ContainsSubstring("values"));
  CHECK_THAT(said(made(3, 1, own), made(3, 2, own)), ContainsSubstring("age 2"));
  CHECK_THAT(said(made(3, 1, own), made(3, 1, none)), ContainsSubstring("correction"));
  CHECK_THAT(said(made(3, 0, own),
                  [](const hd::Communicator& comm) {
                    hd::StaleSum<double, Exec> sum(comm, 3, {});
                    const Kokkos::View<double*, Exec::memory_space> other("other", 3);
                    hd::all_reduce(Exec{}, other, hd::Max{}, comm);
                  }),
             ContainsSubstring("heddle::StaleSum") && ContainsSubstring("all_reduce"));
}

TEST_CASE("arguments that are wrong on one rank are an error on all ranks") {
  using Call = std::function<void(const hd::Communicator&, bool wrong)>;
  const std::pair<const char*, Call> table[] = {
      {"the number of values has changed",
       [](const auto& comm, bool wrong) {
         hd::StaleSum<double, Exec> sum(comm, 3, {});
         sum(Exec{}, hd::StaleSum<double, Exec>::View("values", wrong ? 4 : 3));
       }},
      {"age",
       [](const auto& comm, bool wrong) {
         const hd::StaleSum<double, Exec> sum(comm, 3, {.age = wrong ? -1 : 0});
       }},
      {"different communicators",
       [](const auto& comm, bool wrong) {
         const hd::Communicator self(MPI_COMM_SELF);
         const Tensor from = tensor(comm, 12), alone = tensor(self, 12), to = tensor(comm, 12);
         hd::redistribute(Exec{}, from, wrong ? alone : to);
       }},
      {"the pairs must divide the node",
       [](const auto& comm, bool wrong) {
         const hd::ShardGroup group(comm, comm.size(), wrong ? 7 : 1);
       }},
      {"the communicator is empty", [](const auto& comm, bool wrong) {
         hd::Communicator own(comm.get()), other(MPI_COMM_SELF);
         const Tensor from = tensor(own, 12);
         if (wrong) other = hd::Communicator(std::move(own));
         (void)hd::among(comm, from);
       }}};
  for (const auto& [why, call] : table) {
    INFO(why);
    CHECK(said([&](const auto& comm) { call(comm, false); },
               [&](const auto& comm) { call(comm, false); }) == "nothing");
    const std::string error = said([&](const auto& comm) { call(comm, false); },
                                   [&](const auto& comm) { call(comm, true); });
    CHECK_THAT(error, ContainsSubstring(why));
    CHECK((error.find("rank 1 reports: ") != std::string::npos) == (hd::test::world_rank() != 1));
  }
}

TEST_CASE("tensors of an empty communicator are refused") {
  hd::Communicator moved(MPI_COMM_WORLD);
  const Tensor u = tensor(moved, 12), v = tensor(moved, 12);
  const hd::Communicator comm(std::move(moved));
  const hd::Communicator& empty = moved;  // NOLINT(bugprone-use-after-move): that is what is tested
  const std::function<void()> doors[] = {
      [&] { hd::redistribute(Exec{}, u, v); },
      [&] { hd::redistribute(Exec{}, tensor(comm, 12), v); },
      [&] { const hd::Halo<double*, Exec> halo(u); },
      [&] { (void)hd::among(empty, v); },
      [&] { (void)hd::among(comm, v); },
      [&] { const hd::StaleSum<double, Exec> sum(empty, 3, {}); },
      [&] { const hd::ShardGroup group(empty, 1, 1); },
      [&] { const hd::TensorLine<double, Exec> line(empty); },
      [&] { (void)tensor(empty, 12); }};
  for (const auto& door : doors) {
    INFO("door " << (&door - doors));
    CHECK_THROWS_AS(door(), hd::contract_error);
  }
}

}  // namespace test_agreement
