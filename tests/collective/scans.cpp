// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 7
// space: its own

// Scans: sums, merges that do not commute and reductions of one's own, by the library and by every
// algorithm, in all forms; what rank 0 of an exclusive scan gets; and Views with gaps.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>
#include <heddle/collective/exclusive_scan.hpp>
#include <heddle/collective/inclusive_scan.hpp>

#include "support/complaint.hpp"

namespace test_scans {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::schedule::Algorithm;
using hd::schedule::Collective;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;

/// x -> a x + b modulo 2^32, merged by composition: the order matters, and no MPI knows it.
struct Affine {
  std::uint32_t a, b;
  friend bool operator==(const Affine&, const Affine&) = default;
};
struct Compose {
  static constexpr bool commutes = false;
  void join(Affine& into, const Affine& from) const {
    into = {into.a * from.a, into.b * from.a + from.b};
  }
  void init(Affine& value) const { value = {1, 0}; }
};

template <class T>
T part(std::size_t rank, std::size_t i) {
  if constexpr (std::is_same_v<T, Affine>)
    return {static_cast<std::uint32_t>(2 * rank + 3), static_cast<std::uint32_t>(i % 97 + rank)};
  else
    return static_cast<T>((rank * 37 + i * 5) % 101 + 1);
}

/// Differences of `view` from the merge of ranks 0 to `last` - 1; of none, the identity.
template <class View, class R>
std::size_t wrong(const View& view, const R& reduction, std::size_t last) {
  using T = typename View::value_type;
  std::size_t count = 0;
  for (std::size_t i = 0; i < view.size(); ++i) {
    T expected = hd::identity<T>(reduction);
    for (std::size_t r = 0; r < last; ++r) reduction.join(expected, part<T>(r, i));
    count += !(view(i) == expected);
  }
  return count;
}

/// The call, started, and prepared: each leaves the right values.
template <class T, class R>
void check(const R& reduction, const hd::Communicator& comm, std::size_t count,
           const hd::CallOptions& options) {
  const std::size_t me = +comm.rank();
  const Kokkos::View<T**, Kokkos::LayoutLeft, Kokkos::HostSpace> matrix("matrix", 3, count);
  const auto check_on = [&](const auto& view) {
    const auto fill = [&] {
      for (std::size_t i = 0; i < view.size(); ++i) view(i) = part<T>(me, i);
    };
    const auto check_once = [&](std::size_t last, auto&& call) {
      fill();
      call();
      REQUIRE(wrong(view, reduction, last) == 0);
    };
    const Exec exec;
    check_once(me + 1, [&] { hd::inclusive_scan(exec, view, reduction, comm, options); });
    check_once(me + 1, [&] {
      hd::inclusive_scan<hd::Request>(exec, view, reduction, comm, options).wait();
    });
    auto inclusive = hd::inclusive_scan<hd::Prepared>(exec, view, reduction, comm, options);
    for (int again = 0; again < 2; ++again) check_once(me + 1, [&] { inclusive(); });
    check_once(me, [&] { hd::exclusive_scan(exec, view, reduction, comm, options); });
    check_once(
        me, [&] { hd::exclusive_scan<hd::Request>(exec, view, reduction, comm, options).wait(); });
    auto exclusive = hd::exclusive_scan<hd::Prepared>(exec, view, reduction, comm, options);
    for (int again = 0; again < 2; ++again) check_once(me, [&] { exclusive(); });
  };
  check_on(Kokkos::View<T*, Kokkos::HostSpace>("view", count));
  check_on(Kokkos::subview(matrix, 1, Kokkos::ALL));
  for (std::size_t i = 0; i < count; ++i) REQUIRE((matrix(0, i) == T{} && matrix(2, i) == T{}));
}

template <class T, class R>
void check_all(const R& reduction) {
  const hd::Communicator comm(MPI_COMM_WORLD);
  for (const std::size_t count : {0, 1, 7, 1001, 9001}) {  // the last one in shared memory
    check<T>(reduction, comm, count, {});
    for (const Algorithm algorithm : {Algorithm::recursive_doubling, Algorithm::ring})
      for (const int chunks : {1, 3})
        for (const bool shared : {true, false})
          check<T>(reduction, comm, count,
                   {.algorithm = algorithm, .chunks = chunks, .shared_memory = shared});
  }
}

}  // namespace

TEST_CASE("sums over the ranks up to each, and before it") { check_all<std::int32_t>(hd::Sum{}); }
TEST_CASE("extremes, whose identity is not zero") { check_all<double>(hd::Max{}); }
TEST_CASE("what does not commute is merged in the order of the ranks") {
  check_all<Affine>(Compose{});
}

TEST_CASE("the library scans what it knows, and ours what it does not") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const Kokkos::View<double*, Kokkos::HostSpace> numbers("numbers", 5);
  const Kokkos::View<Affine*, Kokkos::HostSpace> maps("maps", 5);
  CHECK(hd::inclusive_scan<hd::Prepared>(Exec{}, numbers, hd::Sum{}, comm).by_library());
  CHECK(hd::exclusive_scan<hd::Prepared>(Exec{}, numbers, hd::Sum{}, comm).by_library());
  CHECK_FALSE(hd::inclusive_scan<hd::Prepared>(Exec{}, maps, Compose{}, comm).by_library());
  CHECK_THAT(hd::exclusive_scan<hd::Prepared>(Exec{}, maps, Compose{}, comm).schedule().name(),
             ContainsSubstring("recursive_doubling exclusive_scan"));
}

TEST_CASE("an encoded scan errs as its codec says") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const Kokkos::View<float*, Kokkos::HostSpace> view("view", 19);
  for (const Algorithm algorithm : {Algorithm::recursive_doubling, Algorithm::ring}) {
    for (std::size_t i = 0; i < 19; ++i) view(i) = part<float>(+comm.rank(), i);
    hd::inclusive_scan(Exec{}, view, hd::Sum{}, comm,
                       {.algorithm = algorithm, .codec = hd::Codec{hd::Scalar::f16}});
    CHECK(wrong(view, hd::Sum{}, +comm.rank() + 1) == 0);  // whole numbers below 2048
  }
}

TEST_CASE("an algorithm that does not scan is refused") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const Kokkos::View<double*, Kokkos::HostSpace> view("view", 5);
  CHECK_THAT(hd::test::message_of<hd::infeasible>([&] {
               hd::inclusive_scan(Exec{}, view, hd::Sum{}, comm, {.algorithm = Algorithm::direct});
             }),
             ContainsSubstring("inclusive_scan"));
  CHECK_THAT(hd::test::message_of<hd::contract_error>(
                 [&] { hd::exclusive_scan(Exec{}, view, hd::Sum{}, comm, {.counts = {5}}); }),
             ContainsSubstring("heddle::collective::exclusive_scan: this call has no blocks, so "
                               "CallOptions::counts must be empty"));
}

}  // namespace test_scans
