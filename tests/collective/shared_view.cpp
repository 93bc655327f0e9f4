// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3 4 7 8
// space: its own

// Calls on Views that lie in memory of all ranks: in place, without copies out of the caller's
// memory, and equal to the library's on ordinary Views; and those that go as with any other View.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>
#include <heddle/collective/impl/shared_performer.hpp>

#include "support/complaint.hpp"

namespace test_shared_view {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::schedule::Algorithm;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Shared = hd::SharedView<std::int64_t*>;
using Part = Shared::View;
using View = Kokkos::View<std::int64_t*, Kokkos::HostSpace>;
constexpr std::size_t large = 20011;

template <class V>
void fill(const V& view, const hd::Communicator& comm, std::int64_t round) {
  for (std::size_t i = 0; i < view.size(); ++i)
    view(i) = static_cast<std::int64_t>(+comm.rank() * 1000003 + i * 7) + round;
}

template <class A, class B>
std::size_t differing(const A& a, const B& b) {
  std::size_t count = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) count += a(i) != b(i);
  return count;
}

/// The elements of `shared` from `first` on.
Part part(const Shared& shared, std::size_t first, std::size_t count) {
  return Kokkos::subview(shared.view(), std::pair(first, first + count));
}

/// Bytes that the communicator's calls copy through memory of their own.
hd::Bytes copied(const hd::Communicator& comm) {
  return comm.attached<hd::impl::SharedPlace>().line([] {}).bytes();
}

/// That `call` is one of ours, without memory of its own for copies.
void require_in_place(const hd::Prepared& call) {
  REQUIRE_FALSE(call.by_library());
  const hd::Schedule schedule = call.schedule();
  for (const hd::Buffer& buffer : schedule.buffers())
    CHECK((!buffer.transient || buffer.bytes == 0));
}

/// Differences between what five collectives leave in parts of `shared` from `first` on and the
/// library's in ordinary memory.
std::size_t differing(const hd::Communicator& comm, const Shared& shared, std::size_t first,
                      std::size_t count, const hd::CallOptions& options = {}) {
  const auto p = static_cast<std::size_t>(comm.size());
  const std::size_t whole = count * p;
  std::size_t wrong = 0;
  for (std::int64_t round = 0; round < 2; ++round) {
    const auto both = [&](const Part& ours, const View& theirs) {
      fill(ours, comm, round);
      fill(theirs, comm, round);
    };
    const Part ours = part(shared, first, whole);
    const View theirs("theirs", whole);
    const View block("block", count), other("other", count);
    both(ours, theirs);
    hd::all_reduce(Exec{}, ours, hd::Sum{}, comm, options);
    hd::all_reduce(Exec{}, theirs, hd::Sum{}, comm);
    wrong += differing(ours, theirs);
    both(ours, theirs);
    hd::reduce_scatter(Exec{}, ours, block, hd::Sum{}, comm, options);
    hd::reduce_scatter(Exec{}, theirs, other, hd::Sum{}, comm);
    wrong += differing(block, other);
    hd::all_gather(Exec{}, block, ours, comm, options);
    hd::all_gather(Exec{}, block, theirs, comm);
    wrong += differing(ours, theirs);
    both(ours, theirs);
    hd::broadcast(Exec{}, ours, hd::Rank{1}, comm, options);
    hd::broadcast(Exec{}, theirs, hd::Rank{1}, comm);
    wrong += differing(ours, theirs);
    both(ours, theirs);
    hd::reduce(Exec{}, ours, hd::Sum{}, hd::Rank{1}, comm, options);
    hd::reduce(Exec{}, theirs, hd::Sum{}, hd::Rank{1}, comm);
    if (comm.rank() == hd::Rank{1}) wrong += differing(ours, theirs);
  }
  return wrong;
}

}  // namespace

TEST_CASE("calls on SharedViews and on parts of them work in place") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  const Shared a(comm, large * p + 100), b(comm, large * p);
  CHECK(a.view().size() == large * p + 100);
  CHECK(a.view()(large) == 0);
  // 1,023 elements and 4,099 of each rank are odd counts below and above 32 KiB in all.
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{1023}, std::size_t{4099}, std::size_t{large}}) {
    INFO(count);
    CHECK(differing(comm, a, 0, count) == 0);
    CHECK(differing(comm, b, 0, count) == 0);
    CHECK(differing(comm, a, 97, count) == 0);
  }
  CHECK(copied(comm) == 0);
  CHECK(differing(comm, a, 3, large, {.algorithm = Algorithm::ring}) == 0);
  const Part mine = part(a, 5, large * p);
  const View block("block", large);
  require_in_place(hd::all_reduce<hd::Prepared>(Exec{}, mine, hd::Sum{}, comm));
  require_in_place(hd::reduce_scatter<hd::Prepared>(Exec{}, mine, block, hd::Sum{}, comm));
  require_in_place(hd::all_gather<hd::Prepared>(Exec{}, block, mine, comm));
  require_in_place(hd::broadcast<hd::Prepared>(Exec{}, mine, hd::Rank{1}, comm));
  require_in_place(hd::reduce<hd::Prepared>(Exec{}, mine, hd::Sum{}, hd::Rank{1}, comm));
}

TEST_CASE("a SharedView may go, and others come in its place") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  for (int round = 0; round < 3; ++round) {
    const Shared one(comm, large * p);
    std::optional<Shared> two(std::in_place, comm, large * p);
    CHECK(differing(comm, *two, 0, large) == 0);
    two.reset();
    CHECK(differing(comm, one, 0, large) == 0);
  }
}

TEST_CASE("a SharedView has as many axes as any View") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const hd::SharedView<double** [3]> shared(comm, 67, 101);
  const auto view = shared.view();
  REQUIRE(view.extent(0) == 67);
  REQUIRE(view.extent(1) == 101);
  Kokkos::deep_copy(view, 1.0 + static_cast<double>(+comm.rank()));
  hd::all_reduce(Exec{}, view, hd::Sum{}, comm);
  const int p = comm.size();
  CHECK(view(0, 0, 0) == p * (p + 1) / 2);
  CHECK(view(66, 100, 2) == p * (p + 1) / 2);
  require_in_place(hd::all_reduce<hd::Prepared>(Exec{}, view, hd::Sum{}, comm));
}

TEST_CASE("what works otherwise on a SharedView") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  const Shared shared(comm, large * p);
  CHECK(differing(comm, shared, 0, large, {.shared_memory = false}) == 0);
  const View theirs("theirs", large * p), out("out", large * p);
  // Requests, also of what is prepared to be in place.
  auto prepared = hd::all_reduce<hd::Prepared>(Exec{}, shared.view(), hd::Sum{}, comm);
  for (int round = 0; round < 2; ++round) {
    fill(shared.view(), comm, round);
    fill(theirs, comm, round);
    if (round == 0)
      hd::all_reduce<hd::Request>(Exec{}, shared.view(), hd::Sum{}, comm).wait();
    else
      prepared.start().wait();
    hd::all_reduce(Exec{}, theirs, hd::Sum{}, comm);
    CHECK(differing(shared.view(), theirs) == 0);
  }
  // From one View to another.
  fill(shared.view(), comm, 3);
  fill(theirs, comm, 3);
  hd::all_to_all(Exec{}, shared.view(), out, comm);
  const View other("other", large * p);
  hd::all_to_all(Exec{}, theirs, other, comm);
  CHECK(differing(out, other) == 0);
}

TEST_CASE("ranks of several hosts have SharedViews as ordinary memory") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  static_cast<void>(comm.attached<hd::impl::SharedPlace>().line([] {}, {.domain = 1}));
  const auto p = static_cast<std::size_t>(comm.size());
  const Shared shared(comm, large * p);
  CHECK(differing(comm, shared, 0, large) == 0);
  CHECK(hd::all_reduce<hd::Prepared>(Exec{}, shared.view(), hd::Sum{}, comm).by_library());
}

TEST_CASE("a rank that does not come to a call in place is not written to") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const Shared shared(comm, large);
  hd::all_reduce(Exec{}, shared.view(), hd::Sum{}, comm);  // what is kept for it is there
  fill(shared.view(), comm, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (comm.rank() != hd::Rank{0})
    CHECK_THAT(hd::test::message_of<hd::communication_error>([&] {
                 hd::all_reduce(Exec{}, shared.view(), hd::Sum{}, comm,
                                {.wait = {.watchdog = 0.2}});
               }),
               ContainsSubstring("watchdog after 0.2 s") || ContainsSubstring("failed at"));
  MPI_Barrier(MPI_COMM_WORLD);
  const View filled("filled", large);
  fill(filled, comm, 0);
  if (comm.rank() == hd::Rank{0}) CHECK(differing(shared.view(), filled) == 0);
}

TEST_CASE("ranks that give other parts of SharedViews are found before they touch each other's") {
  constexpr std::size_t aside = 100;
  for (const bool other_view : {false, true}) {
    for (const bool kept : {false, true}) {  // what is kept for it is there already
      INFO(other_view << ' ' << kept);
      const hd::Communicator comm(MPI_COMM_WORLD);
      const Shared first(comm, large + aside), second(comm, large + aside);
      const bool differs = comm.rank() == hd::Rank{1};
      const Part usual = part(first, 0, large);
      const Part other = other_view ? part(second, 0, large) : part(first, aside, large);
      const auto sum = [&](const Part& data) {
        hd::all_reduce(Exec{}, data, hd::Sum{}, comm, {.wait = {.watchdog = 20}});
      };
      if (kept) sum(usual);
      fill(usual, comm, 0);
      fill(other, comm, 0);
      bool found = false;
      std::string said = "nothing";
      try {
        sum(differs ? other : usual);
      } catch (const hd::contract_error& error) {
        found = true;
        said = error.what();
        CHECK_THAT(
            said,
            ContainsSubstring("the ranks pass different parts of SharedViews to one call") &&
                ContainsSubstring("number 0 from byte 0") &&
                ContainsSubstring(other_view ? "number 1 from byte 0" : "number 0 from byte 800"));
      } catch (const hd::communication_error& error) {
        said = error.what();
        CHECK_THAT(said, ContainsSubstring("failed at") &&
                             ContainsSubstring("different parts of SharedViews"));
      }
      CHECK(said != "nothing");
      MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_CXX_BOOL, MPI_LOR, MPI_COMM_WORLD);
      CHECK(found);
      const View filled("filled", large);
      fill(filled, comm, 0);
      if (differs) CHECK(differing(other, filled) == 0);
    }
  }
}

TEST_CASE("a rank that gives other memory is not touched, and waits in its own call") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const Shared shared(comm, large);
  const View other("other", large), filled("filled", large);
  hd::all_reduce(Exec{}, shared.view(), hd::Sum{}, comm);
  fill(shared.view(), comm, 0);
  fill(filled, comm, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (comm.rank() == hd::Rank{1}) {
    Kokkos::deep_copy(other, 1);
    hd::all_reduce(Exec{}, other, hd::Sum{}, comm);
    CHECK(other(large - 1) == 1);
    CHECK(differing(shared.view(), filled) == 0);
  } else {
    CHECK_THAT(hd::test::message_of<hd::communication_error>([&] {
                 hd::all_reduce(Exec{}, shared.view(), hd::Sum{}, comm,
                                {.wait = {.watchdog = 0.2}});
               }),
               ContainsSubstring("watchdog after 0.2 s") || ContainsSubstring("failed at"));
    // That one's call is the library's, which no watchdog ends: with zeros it does.
    MPI_Allreduce(MPI_IN_PLACE, other.data(), static_cast<int>(large), MPI_INT64_T, MPI_SUM,
                  comm.get());
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace test_shared_view
