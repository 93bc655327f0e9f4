// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 7 8
// space: its own

// Every reduction: what the concept promises, and over ranks what it is when computed serially, by
// every algorithm of ours and by the MPI library where that knows it.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>
#include <heddle/collective/moments.hpp>
#include <heddle/collective/online_softmax.hpp>
#include <heddle/collective/reduction.hpp>

namespace test_reductions {

namespace hd = heddle;
using hd::schedule::Algorithm;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;

/// All that the concept promises of some values; `same` compares.
template <class T, hd::Reduction<T> R, class Same>
void battery(const R& reduction, const std::vector<T>& values, Same&& same) {
  const auto joined = [&](T a, const T& b) {
    reduction.join(a, b);
    return a;
  };
  const T none = hd::identity<T>(reduction);
  for (const T& a : values) {
    CHECK(same(joined(none, a), a));
    CHECK(same(joined(a, none), a));
    for (const T& b : values) {
      CHECK(same(joined(a, b), joined(b, a)));
      for (const T& c : values) CHECK(same(joined(joined(a, b), c), joined(a, joined(b, c))));
    }
  }
}

/// The battery, and the merge over ranks of what `part(rank, i)` says.
template <class T, hd::Reduction<T> R, class Part, class Same>
void check_over_ranks(const R& reduction, Part&& part, Same&& same) {
  const hd::Communicator comm(MPI_COMM_WORLD);
  std::vector<hd::CallOptions> ways(1);
  for (std::size_t a = 0; a < hd::schedule::algorithm_count; ++a) {
    const hd::CallOptions way{.algorithm = static_cast<Algorithm>(a),
                              .levels = {{comm.size(), Algorithm::direct}, {1, Algorithm::ring}}};
    if (hd::schedule::why_not(hd::schedule::Collective::all_reduce, *way.algorithm,
                              {.ranks = comm.size(), .levels = way.levels})
            .empty())
      ways.push_back(way);
  }
  REQUIRE(ways.size() == 1 + hd::schedule::algorithm_count);
  for (const std::size_t count : {0, 1, 13, 501}) {
    const Kokkos::View<T*, Kokkos::HostSpace> view("view", count);
    for (const hd::CallOptions& options : ways) {
      for (std::size_t i = 0; i < count; ++i) view(i) = part(static_cast<int>(+comm.rank()), i);
      hd::all_reduce(Exec{}, view, reduction, comm, options);
      for (std::size_t i = 0; i < count; ++i) {
        T expected = part(0, i);
        for (int r = 1; r < comm.size(); ++r) reduction.join(expected, part(r, i));
        REQUIRE(same(view(i), expected));
      }
    }
  }
}

constexpr auto equal = [](const auto& a, const auto& b) { return a == b; };

/// Small whole numbers, some of them 0, exact under every operation.
int number(int rank, std::size_t i) { return (rank * 7 + static_cast<int>(i) * 3) % 5; }

template <class T, class R>
void check_numbers(const R& reduction) {
  battery<T>(reduction, {T(0), T(1), T(2), T(5)}, equal);
  check_over_ranks<T>(
      reduction, [](int rank, std::size_t i) { return static_cast<T>(number(rank, i)); }, equal);
}

bool close(double a, double b, double scale) { return a == b || std::abs(a - b) <= 1e-12 * scale; }

}  // namespace

TEST_CASE("sums, products and extremes of numbers") {
  check_numbers<double>(hd::Sum{});
  check_numbers<std::int32_t>(hd::Product{});
  check_numbers<float>(hd::Min{});
  check_numbers<std::int64_t>(hd::Max{});
}

TEST_CASE("infinite numbers have the identity of an extreme, too") {
  constexpr double far = std::numeric_limits<double>::infinity();
  CHECK(hd::identity<double>(hd::Min{}) == far);
  CHECK(hd::identity<float>(hd::Max{}) == -std::numeric_limits<float>::infinity());
  CHECK(hd::identity<std::int64_t>(hd::Min{}) == std::numeric_limits<std::int64_t>::max());
  CHECK(hd::identity<std::uint8_t>(hd::Max{}) == 0);
  battery<double>(hd::Min{}, {far, -far, 0., std::numeric_limits<double>::max()}, equal);
  battery<float>(hd::Max{}, {-std::numeric_limits<float>::infinity(), 0.f}, equal);
  battery<Kokkos::Experimental::half_t>(
      hd::Min{}, {Kokkos::Experimental::infinity_v<Kokkos::Experimental::half_t>}, equal);
}

TEST_CASE("sums of what is stored narrow") {
  const auto same = [](hd::bf16 a, hd::bf16 b) {
    return static_cast<float>(a) == static_cast<float>(b);
  };
  // Small whole numbers: no sum is rounded.
  battery<hd::bf16>(hd::SumIn<float>{}, {hd::bf16(0.f), hd::bf16(3.f), hd::bf16(-8.f)}, same);
  check_over_ranks<hd::bf16>(
      hd::SumIn<float>{},
      [](int rank, std::size_t i) { return hd::bf16(static_cast<float>(number(rank, i))); }, same);
}

TEST_CASE("bits and truth") {
  check_numbers<std::uint8_t>(hd::BitAnd{});
  check_numbers<std::uint16_t>(hd::BitOr{});
  check_numbers<std::uint64_t>(hd::BitXor{});
  // Any number is true, but 1 is what is made of it.
  const auto truth = [](const auto& reduction) {
    battery<int>(reduction, {0, 1}, equal);
    check_over_ranks<int>(
        reduction, [](int rank, std::size_t i) { return number(rank, i) > 1 ? 1 : 0; }, equal);
  };
  truth(hd::LogicalAnd{});
  truth(hd::LogicalOr{});
}

TEST_CASE("Kokkos's reducers, and the place of an extreme") {
  double ignored = -1;
  check_numbers<double>(Kokkos::Sum<double>(ignored));
  CHECK(ignored == -1);
  using Place = Kokkos::MinLoc<double, int>;
  Place::value_type place{};
  const auto same = [](const Place::value_type& a, const Place::value_type& b) {
    return a.val == b.val && a.loc == b.loc;
  };
  // No two values are equal: of equal ones either may be found.
  check_over_ranks<Place::value_type>(
      Place(place),
      [](int rank, std::size_t i) {
        return Place::value_type{std::fmod(double(i) * 1.7 + rank * 2.3, 11.0) + rank * 1e-3,
                                 100 * rank + static_cast<int>(i)};
      },
      same);
}

TEST_CASE("the normaliser of a softmax") {
  using Partial = hd::SoftmaxPartial<double>;
  const auto same = [](const Partial& a, const Partial& b) {
    return a.max == b.max && close(a.sum, b.sum, a.sum);
  };
  constexpr double infinite = std::numeric_limits<double>::infinity();
  battery<Partial>(hd::OnlineSoftmax{}, {{0, 1}, {-3, 2}, {710, 1.5}, {-1e300, 1}, {-infinite, 0}},
                   same);
  check_over_ranks<Partial>(
      hd::OnlineSoftmax{},
      [](int rank, std::size_t i) {
        return Partial{std::sin(double(i) + rank) * 40, 1 + double(i % 3)};
      },
      same);
  // Of numbers themselves: x -> {x, 1}.
  Partial all = hd::identity<Partial>(hd::OnlineSoftmax{});
  double sum = 0;
  for (int i = 0; i < 100; ++i) {
    hd::OnlineSoftmax{}.join(all, {std::cos(i) * 5, 1});
    sum += std::exp(std::cos(i) * 5);
  }
  CHECK(std::abs(all.sum * std::exp(all.max) - sum) <= 1e-13 * sum);
  Partial bad{std::nan(""), 1};
  hd::OnlineSoftmax{}.join(bad, {3, 1});
  CHECK(std::isnan(bad.sum));
}

TEST_CASE("means with weights") {
  using Partial = hd::WeightedMean::Partial<double>;
  const auto same = [](const Partial& a, const Partial& b) {
    return a.weight == b.weight && close(a.mean, b.mean, 100);
  };
  battery<Partial>(hd::WeightedMean{}, {{1, 3}, {2, -5}, {0.5, 100}, {0, 0}}, same);
  check_over_ranks<Partial>(
      hd::WeightedMean{},
      [](int rank, std::size_t i) {
        return Partial{double(1 + i % 4), double(rank) - double(i % 7)};
      },
      same);
}

TEST_CASE("moments, far from zero, without cancellation") {
  using Partial = hd::Moments::Partial<double>;
  const auto same = [](const Partial& a, const Partial& b) {
    return a.count == b.count && close(a.mean, b.mean, 100) && close(a.squares, b.squares, 1e5);
  };
  battery<Partial>(hd::Moments{}, {{1, 3, 0}, {2, -5, 8}, {7, 100, 3}, {0, 0, 0}}, same);
  check_over_ranks<Partial>(
      hd::Moments{},
      [](int rank, std::size_t i) {
        return Partial{double(1 + i % 4), double(rank) - double(i % 7), double(i % 5)};
      },
      same);
  // The variance of 0, 1, ..., 99 at 1e9, where a sum of squares has no digits left.
  Partial all = hd::identity<Partial>(hd::Moments{});
  for (int i = 0; i < 100; ++i) hd::Moments{}.join(all, {1, 1e9 + i, 0});
  CHECK(std::abs(all.squares / all.count - (100.0 * 100 - 1) / 12) < 1e-3);
}

TEST_CASE("a reduction of the user's own, and MPI taught to make it") {
  struct Longest {
    std::int32_t length, from;
  };
  struct KeepLongest {
    void join(Longest& into, const Longest& other) const {
      if (other.length > into.length) into = other;
    }
    void init(Longest& value) const { value = {-1, -1}; }
  };
  const auto same = [](const Longest& a, const Longest& b) {
    return a.length == b.length && a.from == b.from;
  };
  const auto part = [](int rank, std::size_t i) {
    return Longest{
        static_cast<std::int32_t>((i * 5 + static_cast<std::size_t>(rank) * 3) % 97) * 8 + rank,
        rank};
  };
  check_over_ranks<Longest>(KeepLongest{}, part, same);
  const hd::Communicator comm(MPI_COMM_WORLD);
  const hd::MpiOperation<Longest, KeepLongest> taught;
  std::vector<Longest> values(33);
  const int me = static_cast<int>(+comm.rank());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = part(me, i);
  MPI_Allreduce(MPI_IN_PLACE, values.data(), 33, taught.type(), taught.operation(), comm.get());
  for (std::size_t i = 0; i < values.size(); ++i) {
    Longest expected = part(0, i);
    for (int r = 1; r < comm.size(); ++r) KeepLongest{}.join(expected, part(r, i));
    CHECK(same(values[i], expected));
  }
}

}  // namespace test_reductions
