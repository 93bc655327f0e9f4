// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 7 8
// space: its own

// Sums over ranks, by the library and by our own schedules, against the sum computed on one rank.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>
#include <heddle/collective/call_options.hpp>
#include <heddle/collective/mpi_operation.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/collective/sum_in_place.hpp>
#include <heddle/collective/transferable_view.hpp>
#include <heddle/core/random.hpp>

namespace test_all_reduce {

namespace hd = heddle;
using hd::schedule::Algorithm;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;

/// What `rank` contributes at `index`: small whole numbers, so that sums are exact in every type.
template <class T>
T part(int rank, std::size_t index) {
  return static_cast<T>((rank + 1) * static_cast<int>(index % 97 + 1) - 40);
}

template <class T>
T expected(int ranks, std::size_t index) {
  T sum = 0;
  for (int r = 0; r < ranks; ++r) sum += part<T>(r, index);
  return sum;
}

constexpr std::size_t counts[] = {0, 1, 2, 3, 5, 7, 64, 1001, 100003};

/// How a sum can be made: by the library, and by each of ours that can.
std::vector<std::optional<Algorithm>> ways(const hd::Communicator& comm) {
  std::vector<std::optional<Algorithm>> all{std::nullopt};
  for (std::size_t a = 0; a < hd::schedule::algorithm_count; ++a)
    if (hd::schedule::why_not(hd::schedule::Collective::all_reduce, static_cast<Algorithm>(a),
                              {.ranks = comm.size()})
            .empty())
      all.emplace_back(static_cast<Algorithm>(a));
  return all;
}

}  // namespace

TEMPLATE_TEST_CASE("the library's sum and ours equal the serial one", "", std::int32_t,
                   std::int64_t, float, double) {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const int rank = static_cast<int>(+comm.rank());
  const auto all = ways(comm);
  REQUIRE(all.size() >= 3);
  for (const std::size_t count : counts) {
    INFO(count << " elements on " << comm.size() << " ranks");
    Kokkos::View<TestType*, Kokkos::HostSpace> view("view", count);
    const auto fill = [&] {
      for (std::size_t i = 0; i < count; ++i) view(i) = part<TestType>(rank, i);
    };
    const auto wrong = [&] {
      std::size_t number = 0;
      for (std::size_t i = 0; i < count; ++i)
        number += view(i) != expected<TestType>(comm.size(), i);
      return number;
    };
    for (const auto& algorithm : all) {
      INFO("algorithm " << (algorithm ? to_string(*algorithm) : "of the library"));
      for (const auto& [chunks, path] :
           {std::pair{1, hd::DevicePath::automatic}, std::pair{3, hd::DevicePath::staged}}) {
        const hd::CallOptions options{.algorithm = algorithm, .chunks = chunks, .path = path};
        fill();
        hd::all_reduce(Exec{}, view, hd::Sum{}, comm, options);
        CHECK(wrong() == 0);
        fill();
        hd::Request request = hd::all_reduce<hd::Request>(Exec{}, view, hd::Sum{}, comm, options);
        while (!request.test()) {
        }
        CHECK(wrong() == 0);
      }
    }
  }
}

TEST_CASE("a prepared sum is made again and again, also of what others use in between") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const int rank = static_cast<int>(+comm.rank());
  for (const auto& algorithm : ways(comm)) {
    std::array<Kokkos::View<double*, Kokkos::HostSpace>, 3> views;
    for (auto& view : views) view = Kokkos::View<double*, Kokkos::HostSpace>("view", 101);
    auto sum =
        hd::all_reduce<hd::Prepared>(Exec{}, views[0], hd::Sum{}, comm, {.algorithm = algorithm});
    CHECK(sum.by_library() == !algorithm.has_value());
    if (algorithm) CHECK(sum.schedule().ranks() == comm.size());
    for (int again = 0; again < 4; ++again) {
      for (auto& view : views)
        for (std::size_t i = 0; i < view.size(); ++i) view(i) = part<double>(rank, i);
      hd::Request first = sum.start();
      // Two of one size at the same time, of which one has the Schedule of the prepared one.
      hd::Request second =
          hd::all_reduce<hd::Request>(Exec{}, views[1], hd::Sum{}, comm, {.algorithm = algorithm});
      hd::all_reduce(Exec{}, views[2], hd::Sum{}, comm, {.algorithm = algorithm});
      again % 2 == 0 ? second.wait() : first.wait();
      first.wait();
      second.wait();
      for (const auto& view : views)
        for (std::size_t i = 0; i < view.size(); ++i)
          REQUIRE(view(i) == expected<double>(comm.size(), i));
    }
  }
}

TEST_CASE("the scheduled sum has one order: equal bits on all ranks and in all runs") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const hd::Random random(3, "sum");
  const Kokkos::View<double*, Kokkos::HostSpace> view("view", 1003);
  const std::span data(view.data(), view.size());
  std::vector<double> first;
  auto sum = hd::all_reduce<hd::Prepared>(Exec{}, view, hd::Sum{}, comm,
                                          {.algorithm = Algorithm::ring, .chunks = 2});
  for (int again = 0; again < 5; ++again) {
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = random.normal(+comm.rank() * data.size() + i);
    sum();
    if (again == 0) first.assign(data.begin(), data.end());
    CHECK(std::ranges::equal(data, first));
  }
  std::vector<double> of_root = first;
  MPI_Bcast(of_root.data(), static_cast<int>(of_root.size()), MPI_DOUBLE, 0, comm.get());
  CHECK(std::ranges::equal(data, of_root));
}

TEMPLATE_TEST_CASE("plain memory is summed in place, with and without a poll", "", float, double,
                   std::int32_t, std::int64_t) {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const hd::Scalar type = hd::scalar_of<TestType>;
  for (const std::size_t count : {0, 1, 2, 13, 1009}) {
    std::vector<TestType> data(count + 1), polled, sum(count + 1);
    for (std::size_t i = 0; i < count; ++i) {
      data[i] = part<TestType>(+comm.rank(), i);
      sum[i] = expected<TestType>(comm.size(), i);
    }
    data[count] = sum[count] = 77;  // behind the end
    polled = data;
    hd::sum_in_place(data.data(), count, type, comm);
    CHECK(data == sum);
    hd::sum_in_place(polled.data(), count, type, comm, [] {});
    CHECK(polled == sum);
  }
}

TEST_CASE("a poll that throws gives a sum up, and leaves the elements as they are") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  if (comm.size() == 1) return;  // the sum is there before the first poll
  std::vector<double> data(13, +comm.rank());
  bool late = false;
  // Rank 0 does not begin before all others have given up.
  if (comm.rank() != hd::Rank{0}) {
    try {
      hd::sum_in_place(data.data(), data.size(), hd::Scalar::f64, comm,
                       [] { throw std::runtime_error("enough"); });
    } catch (const std::runtime_error&) {
      late = true;
    }
    CHECK(late);
    CHECK(data == std::vector<double>(13, +comm.rank()));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (comm.rank() == hd::Rank{0})
    hd::sum_in_place(data.data(), data.size(), hd::Scalar::f64, comm, [] {});
  if (comm.rank() == hd::Rank{0})
    CHECK(data == std::vector<double>(13, comm.size() * (comm.size() - 1) / 2.0));
}

TEST_CASE("a plain number is reduced without a View") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const int ranks = comm.size();
  const int mine = static_cast<int>(+comm.rank()) + 1;
  CHECK(hd::all_reduce(mine, hd::Sum{}, comm) == ranks * (ranks + 1) / 2);
  CHECK(hd::all_reduce(-mine, hd::Min{}, comm) == -ranks);
  const double most = hd::all_reduce(0.25 * mine, hd::Max{}, comm);
  CHECK(most == 0.25 * ranks);
  CHECK(hd::all_reduce(std::int64_t{2}, hd::Product{}, comm, {.algorithm = Algorithm::ring}) ==
        std::int64_t{1} << ranks);
  CHECK(hd::all_reduce(mine == 1, hd::LogicalOr{}, comm));
  CHECK(hd::all_reduce(mine == 1, hd::LogicalAnd{}, comm) == (ranks == 1));
}

TEST_CASE("elements that can be sent, and the numbers and operations that MPI has") {
  STATIC_REQUIRE(hd::TransferableView<Kokkos::View<double**>>);
  STATIC_REQUIRE(hd::TransferableView<Kokkos::View<const std::array<int, 3>*>>);
  STATIC_REQUIRE_FALSE(hd::TransferableView<Kokkos::View<std::vector<int>*, Kokkos::HostSpace>>);
  STATIC_REQUIRE_FALSE(hd::TransferableView<std::vector<double>>);
  CHECK(hd::impl::mpi_number<float>() == MPI_FLOAT);
  CHECK(hd::impl::mpi_number<std::int8_t>() == MPI_INT8_T);
  CHECK(hd::impl::mpi_number<std::uint64_t>() == MPI_UINT64_T);
  CHECK(hd::impl::mpi_number<bool>() == MPI_DATATYPE_NULL);
  CHECK(hd::impl::mpi_number<hd::bf16>() == MPI_DATATYPE_NULL);
  CHECK(hd::impl::mpi_operation<hd::BitXor, int>() == MPI_BXOR);
  CHECK(hd::impl::mpi_operation<hd::BitXor, double>() == MPI_OP_NULL);
  CHECK(hd::impl::mpi_operation<hd::LogicalOr, std::int64_t>() == MPI_LOR);
  CHECK(hd::impl::mpi_operation<hd::Sum, hd::bf16>() == MPI_OP_NULL);
  CHECK(hd::impl::mpi_operation<Kokkos::Prod<double>, double>() == MPI_PROD);
  CHECK(hd::impl::mpi_operation<hd::SumIn<>, float>() == MPI_OP_NULL);
}

TEST_CASE("what cannot be summed is refused") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  char bytes[4] = {};
  CHECK_THROWS_AS(hd::sum_in_place(bytes, 4, hd::Scalar::byte, comm), hd::contract_error);
  CHECK_THROWS_AS(hd::sum_in_place(bytes, 4, hd::Scalar::byte, comm, [] {}), hd::contract_error);
  const Kokkos::View<double*, Kokkos::HostSpace> element("element", 1);
  CHECK_THROWS_AS(
      hd::all_reduce(Exec{}, element, hd::Sum{}, comm, {.algorithm = Algorithm::ring, .chunks = 0}),
      hd::contract_error);
  CHECK_THROWS_AS(
      hd::all_reduce(Exec{}, element, hd::Sum{}, comm, {.algorithm = Algorithm::hierarchical}),
      hd::infeasible);
}

}  // namespace test_all_reduce
