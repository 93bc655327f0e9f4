// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// space: its own

// Every call on Views of any layout, another one on each rank: elements go by their indices, the
// last one fastest, and what lies between them stays as it is.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>

#include "support/complaint.hpp"

namespace test_index_order {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::Rank;
using hd::schedule::Algorithm;
using hd::schedule::Collective;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
template <class Data, class Layout>
using View = Kokkos::View<Data, Layout, Kokkos::HostSpace>;
using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
using Values = std::vector<float>;

constexpr float gap = -77;

/// Whole numbers that half precision has, as sums over four ranks.
float value(std::size_t rank, std::size_t i) {
  return static_cast<float>((rank * 131 + i * 7) % 499 + 1);
}
Values values_of(std::size_t rank, std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value(rank, i);
  return values;
}
Values sum_of(std::size_t ranks, std::size_t count) {
  Values sums(count, 0);
  for (std::size_t r = 0; r < ranks; ++r)
    for (std::size_t i = 0; i < count; ++i) sums[i] += value(r, i);
  return sums;
}

/// Calls `visit(element)` of a View, by their indices, the last one fastest.
template <class V, class Visit>
void for_each_element(const V& view, Visit&& visit) {
  for (std::size_t number = 0; number < view.size(); ++number) {
    std::size_t offset = 0, rest = number;
    for (std::size_t axis = V::rank; axis-- > 0;) {
      offset += rest % view.extent(axis) * static_cast<std::size_t>(view.stride(axis));
      rest /= view.extent(axis);
    }
    visit(view.data()[offset]);
  }
}

template <class V>
void set(const V& view, const Values& values) {
  auto next = values.begin();
  for_each_element(view, [&](float& element) { element = *next++; });
}
template <class V>
Values get(const V& view) {
  Values values;
  for_each_element(view, [&](float element) { values.push_back(element); });
  return values;
}

/// Memory with a View of it, whose elements may lie apart.
template <class V>
struct Held {
  Values memory;
  V view;

  /// Whether all is as it was made but for the elements.
  [[nodiscard]] bool gaps_untouched() const {
    Values others = memory;
    for_each_element(view, [&](float& element) {
      others[static_cast<std::size_t>(&element - memory.data())] = gap;
    });
    return std::ranges::count(others, gap) == static_cast<std::ptrdiff_t>(others.size());
  }
};

template <std::size_t rank>
struct PointersTo {
  using type = typename PointersTo<rank - 1>::type*;
};
template <>
struct PointersTo<0> {
  using type = float;
};
template <std::size_t rank, class Layout>
using Loose = Kokkos::View<typename PointersTo<rank>::type, Layout, Kokkos::HostSpace, Unmanaged>;

/// What a View of `V` looks like is drawn from `random`: extents of `count` elements in all; and
/// where its layout leaves that open, strides of any order, with gaps.
template <class V, class Random>
Held<V> drawn(std::size_t count, Random& random) {
  const auto draw = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
  constexpr std::size_t rank = V::rank;
  std::array<std::size_t, Kokkos::ARRAY_LAYOUT_MAX_RANK> extent{};
  extent.fill(1);
  if (rank > 0) extent[draw(rank)] = count;
  for (std::size_t axis = 0; axis != rank; ++axis) {  // some of an axis goes to another one
    const std::size_t other = draw(rank), part = 2 + draw(3);
    if (axis == other || extent[axis] % part != 0 || extent[axis] == 0) continue;
    extent[axis] /= part;
    extent[other] *= part;
  }
  std::size_t span = 1;
  typename V::array_layout layout;
  if constexpr (std::is_same_v<typename V::array_layout, Kokkos::LayoutStride>) {
    std::array<std::size_t, rank == 0 ? 1 : rank> order{};
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t way = draw(4);  // right, left, any dense one, any with gaps
    if (way == 0) std::ranges::reverse(order);
    if (way > 1) std::shuffle(order.begin(), order.end(), random);
    for (std::size_t i = 0; i < rank; ++i) {
      const std::size_t axis = order[i];
      if (way == 3) span += draw(3);
      layout.dimension[axis] = extent[axis];
      layout.stride[axis] = span;
      span *= std::max<std::size_t>(extent[axis], 1);
    }
  } else {
    for (std::size_t axis = 0; axis != rank; ++axis) layout.dimension[axis] = extent[axis];
    span = count;
  }
  Held<V> held;
  held.memory.assign(span + 3, gap);
  held.view = V(held.memory.data() + 1, layout);
  return held;
}

/// Performs a call in one of its three forms.
template <class Call, class Start, class Prepare>
void perform(std::size_t form, Call&& call, Start&& start, Prepare&& prepare) {
  if (form == 0) return call();
  if (form == 1) {
    hd::Request request = start();
    while (!request.test()) {
    }
    return;
  }
  auto prepared = prepare();
  form == 2 ? prepared() : prepared.start().wait();
}

/// What all ranks draw alike.
struct Case {
  Collective collective;
  std::size_t form;
  Rank root;
  std::size_t count;  ///< of elements, or of rank 0's block
  bool even;
  hd::CallOptions options = {};

  [[nodiscard]] std::vector<std::size_t> blocks(std::size_t ranks) const {
    std::vector<std::size_t> counts;
    for (std::size_t r = 0; r < ranks; ++r) counts.push_back(even ? count : count * (r % 3));
    return counts;
  }
};

template <class Random>
Case drawn_case(const hd::Communicator& comm, Random& random) {
  const auto draw = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
  constexpr std::array<std::size_t, 8> counts{0, 1, 2, 6, 12, 24, 30, 96};
  Case made{.collective = static_cast<Collective>(draw(8)),
            .form = draw(4),
            .root = Rank{draw(static_cast<std::size_t>(comm.size()))},
            .count = draw(50) == 0 ? 8400 : counts[draw(counts.size())],  // also shared memory
            .even = draw(2) == 0};
  if (draw(2) == 0) return made;
  for (;;) {
    const auto algorithm = static_cast<Algorithm>(draw(hd::schedule::algorithm_count));
    if (!hd::schedule::why_not(made.collective, algorithm,
                               {.ranks = comm.size(), .root = made.root})
             .empty())
      continue;
    made.options.algorithm = algorithm;
    break;
  }
  if (draw(3) == 0) made.options.codec = hd::Codec{hd::Scalar::f16};
  return made;
}

/// A call with one View, here of type V.
template <class V, class Random>
bool right_with(const Case& made, const hd::Communicator& comm, Random& random) {
  const std::size_t me = +comm.rank(), p = static_cast<std::size_t>(comm.size());
  const auto held = drawn<V>(V::rank == 0 ? 1 : made.count, random);
  const V& view = held.view;
  const std::size_t count = view.size();
  const hd::CallOptions& options = made.options;
  const Exec exec;
  set(view, values_of(me, count));
  Values expected = sum_of(p, count);
  if (made.collective == Collective::all_reduce) {
    perform(
        made.form, [&] { hd::all_reduce(exec, view, hd::Sum{}, comm, options); },
        [&] { return hd::all_reduce<hd::Request>(exec, view, hd::Sum{}, comm, options); },
        [&] { return hd::all_reduce<hd::Prepared>(exec, view, hd::Sum{}, comm, options); });
  } else if (made.collective == Collective::reduce) {
    perform(
        made.form, [&] { hd::reduce(exec, view, hd::Sum{}, made.root, comm, options); },
        [&] { return hd::reduce<hd::Request>(exec, view, hd::Sum{}, made.root, comm, options); },
        [&] { return hd::reduce<hd::Prepared>(exec, view, hd::Sum{}, made.root, comm, options); });
    if (me != +made.root) expected = get(view);
  } else {
    perform(
        made.form, [&] { hd::broadcast(exec, view, made.root, comm, options); },
        [&] { return hd::broadcast<hd::Request>(exec, view, made.root, comm, options); },
        [&] { return hd::broadcast<hd::Prepared>(exec, view, made.root, comm, options); });
    expected = values_of(+made.root, count);
  }
  return get(view) == expected && held.gaps_untouched();
}

/// A call with two Views, here of types In and Out.
template <class In, class Out, class Random>
bool right_with(const Case& made, const hd::Communicator& comm, Random& random) {
  const std::size_t me = +comm.rank(), p = static_cast<std::size_t>(comm.size());
  const std::vector<std::size_t> blocks = made.blocks(p);
  const auto first = [&](std::size_t rank) {
    return std::accumulate(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(rank),
                           std::size_t{0});
  };
  const std::size_t whole = first(p);
  hd::CallOptions options = made.options;
  if (!made.even) options.counts = blocks;
  const Exec exec;
  const bool at_root = made.root == comm.rank();
  const auto block_of = [&](const Values& values, std::size_t rank) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first(rank));
    return Values(begin, begin + static_cast<std::ptrdiff_t>(blocks[rank]));
  };
  Values gathered;
  for (std::size_t r = 0; r < p; ++r)
    for (const float each : values_of(r, blocks[r])) gathered.push_back(each);
  const auto check = [&](auto&& made_call, const auto& in, const auto& out,
                         const Values& expected) {
    made_call(in.view, out.view);
    return get(out.view) == expected && out.gaps_untouched() && in.gaps_untouched();
  };
  switch (made.collective) {
    case Collective::all_gather: {
      const auto in = drawn<In>(blocks[me], random);
      const auto out = drawn<Out>(whole, random);
      set(in.view, values_of(me, blocks[me]));
      return check(
          [&](const auto& from, const auto& to) {
            perform(
                made.form, [&] { hd::all_gather(exec, from, to, comm, options); },
                [&] { return hd::all_gather<hd::Request>(exec, from, to, comm, options); },
                [&] { return hd::all_gather<hd::Prepared>(exec, from, to, comm, options); });
          },
          in, out, gathered);
    }
    case Collective::reduce_scatter: {
      const auto in = drawn<In>(whole, random);
      const auto out = drawn<Out>(blocks[me], random);
      set(in.view, values_of(me, whole));
      return check(
          [&](const auto& from, const auto& to) {
            perform(
                made.form, [&] { hd::reduce_scatter(exec, from, to, hd::Sum{}, comm, options); },
                [&] {
                  return hd::reduce_scatter<hd::Request>(exec, from, to, hd::Sum{}, comm, options);
                },
                [&] {
                  return hd::reduce_scatter<hd::Prepared>(exec, from, to, hd::Sum{}, comm, options);
                });
          },
          in, out, block_of(sum_of(p, whole), me));
    }
    case Collective::all_to_all: {  // everybody sends the same counts
      const auto in = drawn<In>(whole, random);
      const auto out = drawn<Out>(blocks[me] * p, random);
      set(in.view, values_of(me, whole));
      Values expected;
      for (std::size_t r = 0; r < p; ++r)
        for (const float each : block_of(values_of(r, whole), me)) expected.push_back(each);
      return check(
          [&](const auto& from, const auto& to) {
            perform(
                made.form, [&] { hd::all_to_all(exec, from, to, comm, options); },
                [&] { return hd::all_to_all<hd::Request>(exec, from, to, comm, options); },
                [&] { return hd::all_to_all<hd::Prepared>(exec, from, to, comm, options); });
          },
          in, out, expected);
    }
    case Collective::gather: {
      const auto in = drawn<In>(blocks[me], random);
      const auto out = drawn<Out>(at_root ? whole : 0, random);
      set(in.view, values_of(me, blocks[me]));
      return check(
          [&](const auto& from, const auto& to) {
            perform(
                made.form, [&] { hd::gather(exec, from, to, made.root, comm, options); },
                [&] { return hd::gather<hd::Request>(exec, from, to, made.root, comm, options); },
                [&] { return hd::gather<hd::Prepared>(exec, from, to, made.root, comm, options); });
          },
          in, out, at_root ? gathered : Values{});
    }
    default: {
      const auto in = drawn<In>(at_root ? whole : 0, random);
      const auto out = drawn<Out>(blocks[me], random);
      if (at_root) set(in.view, values_of(me, whole));
      return check(
          [&](const auto& from, const auto& to) {
            perform(
                made.form, [&] { hd::scatter(exec, from, to, made.root, comm, options); },
                [&] { return hd::scatter<hd::Request>(exec, from, to, made.root, comm, options); },
                [&] {
                  return hd::scatter<hd::Prepared>(exec, from, to, made.root, comm, options);
                });
          },
          in, out, block_of(values_of(+made.root, whole), me));
    }
  }
}

}  // namespace

TEST_CASE("rows of ranks come one after another, whatever the layouts") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  const View<double**, Kokkos::LayoutLeft> rows("rows", 2, 3);
  const View<double**, Kokkos::LayoutRight> right("right", 2 * p, 3);
  const View<double**, Kokkos::LayoutLeft> left("left", 2 * p, 3);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      rows(i, j) = static_cast<double>(100 * +comm.rank() + 10 * i + j);
  hd::all_gather(Exec{}, rows, right, comm);
  hd::all_gather(Exec{}, rows, left, comm);
  for (std::size_t i = 0; i < 2 * p; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      CHECK(right(i, j) == static_cast<double>(100 * (i / 2) + 10 * (i % 2) + j));
      CHECK(left(i, j) == right(i, j));
    }
}

TEST_CASE("elements of one index are merged, and copied, though strides differ between ranks") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const Kokkos::LayoutStride layout =
      +comm.rank() % 2 == 0 ? Kokkos::LayoutStride(2, 3, 3, 1) : Kokkos::LayoutStride(2, 1, 3, 2);
  const View<double**, Kokkos::LayoutStride> view("view", layout);
  const auto fill = [&] {
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 3; ++j) view(i, j) = 10 * i + j + 100 * static_cast<int>(+comm.rank());
  };
  const int p = comm.size();
  fill();
  hd::all_reduce(Exec{}, view, hd::Sum{}, comm);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) CHECK(view(i, j) == p * (10 * i + j) + 50 * p * (p - 1));
  fill();
  hd::broadcast(Exec{}, view, Rank{p - 1}, comm);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) CHECK(view(i, j) == 10 * i + j + 100 * (p - 1));
  fill();
  hd::all_reduce(Exec{}, view, hd::Sum{}, comm, [] {});
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) CHECK(view(i, j) == p * (10 * i + j) + 50 * p * (p - 1));
}

TEST_CASE("what has the same layout on all ranks goes as it lies where a call is told so") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  const View<float**, Kokkos::LayoutLeft> view("view", 3, 5);
  const auto gaps = Kokkos::subview(view, std::pair(0, 2), Kokkos::ALL);
  for (const bool by_library : {true, false}) {
    hd::CallOptions options{.same_layout = true};
    if (!by_library) options.algorithm = Algorithm::ring;
    set(view, values_of(+comm.rank(), 15));
    hd::all_reduce(Exec{}, view, hd::Sum{}, comm, options);
    CHECK(get(view) == sum_of(p, 15));
    CHECK_THAT(hd::test::message_of<hd::contract_error>(
                   [&] { hd::broadcast(Exec{}, gaps, Rank{}, comm, options); }),
               ContainsSubstring("heddle::collective::broadcast: same_layout needs a View "
                                 "without gaps"));
  }
}

TEST_CASE("a row of a matrix by columns is summed, and the others stay") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const View<double**, Kokkos::LayoutLeft> matrix("matrix", 3, 4);
  Kokkos::deep_copy(matrix, 1);
  const auto row = Kokkos::subview(matrix, 1, Kokkos::ALL);
  hd::all_reduce(Exec{}, row, hd::Sum{}, comm);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) CHECK(matrix(i, j) == (i == 1 ? comm.size() : 1));
}

TEST_CASE("this rank's rows of the output are gathered in place, dense or not") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  const auto test = [&](const auto& wide, const hd::CallOptions& options) {
    Kokkos::deep_copy(wide, -1);
    const auto all = Kokkos::subview(wide, Kokkos::ALL, std::pair(1, 4));
    const auto mine =
        Kokkos::subview(all, std::pair(2 * +comm.rank(), 2 * +comm.rank() + 2), Kokkos::ALL);
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 3; ++j)
        mine(i, j) = static_cast<float>(100 * +comm.rank() + 10 * i + j);
    hd::all_gather(Exec{}, mine, all, comm, options);
    for (std::size_t i = 0; i < 2 * p; ++i) {
      for (std::size_t j = 0; j < 3; ++j)
        CHECK(all(i, j) == static_cast<float>(100 * (i / 2) + 10 * (i % 2) + j));
      CHECK((wide(i, 0) == -1 && wide(i, 4) == -1));
    }
  };
  for (const bool by_library : {true, false}) {
    hd::CallOptions options;
    if (!by_library) options.algorithm = Algorithm::ring;
    test(View<float**, Kokkos::LayoutRight>("wide", 2 * p, 5), options);
    test(View<float**, Kokkos::LayoutLeft>("wide", 2 * p, 5), options);
  }
}

TEST_CASE("SharedViews whose elements are looked at in another order on each rank") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  constexpr std::size_t n = 64, m = 210;  // 52 KiB, which ranks read in place
  const hd::SharedView<float**> shared(comm, n, m);
  using Strided = Kokkos::View<float**, Kokkos::LayoutStride, Kokkos::HostSpace, Unmanaged>;
  const Strided view(shared.view().data(), +comm.rank() % 2 == 0
                                               ? Kokkos::LayoutStride(n, m, m, 1)
                                               : Kokkos::LayoutStride(n, 1, m, n));
  const auto p = static_cast<std::size_t>(comm.size());
  set(view, values_of(+comm.rank(), n * m));
  hd::all_reduce(Exec{}, view, hd::Sum{}, comm);
  CHECK(get(view) == sum_of(p, n * m));
  // Some ranks look at it as it is.
  const auto sum = [&](const auto& data) {
    set(data, values_of(+comm.rank(), n * m));
    hd::all_reduce(Exec{}, data, hd::Sum{}, comm);
    CHECK(get(data) == sum_of(p, n * m));
    set(data, values_of(+comm.rank(), n * m));
    hd::broadcast(Exec{}, data, Rank{0}, comm);
    CHECK(get(data) == values_of(0, n * m));
    const View<float*, Kokkos::LayoutRight> block("block", n * m / p);
    set(data, values_of(+comm.rank(), n * m));
    hd::reduce_scatter(Exec{}, data, block, hd::Sum{}, comm);
    const Values sums = sum_of(p, n * m);
    CHECK(std::equal(block.data(), block.data() + block.size(),
                     sums.data() + +comm.rank() * block.size()));
    set(block, values_of(+comm.rank(), block.size()));
    hd::all_gather(Exec{}, block, data, comm);
    Values gathered;
    for (std::size_t r = 0; r < p; ++r)
      for (const float each : values_of(r, block.size())) gathered.push_back(each);
    CHECK(get(data) == gathered);
  };
  +comm.rank() == 0 ? sum(shared.view()) : sum(view);
  const Strided rows(shared.view().data(), Kokkos::LayoutStride(n / 2, 2 * m, m, 1));
  set(rows, values_of(+comm.rank(), rows.size()));
  hd::broadcast(Exec{}, rows, Rank{p - 1}, comm);
  CHECK(get(rows) == values_of(p - 1, rows.size()));
}

TEST_CASE("calls drawn at random, on Views that each rank draws for itself") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  std::mt19937_64 together(20260), alone(1 + +comm.rank());
  using Kokkos::LayoutLeft;
  using Kokkos::LayoutRight;
  using Kokkos::LayoutStride;
  std::size_t wrong = 0;
  for (int i = 0; i < 1000; ++i) {
    const Case made = drawn_case(comm, together);
    const auto kind = alone();
    bool right = false;
    if (made.collective == Collective::all_reduce || made.collective == Collective::reduce ||
        made.collective == Collective::broadcast) {
      if (made.count == 1 && kind % 2 == 0)
        right = right_with<Loose<0, LayoutRight>>(made, comm, alone);
      else if (kind % 3 == 0)
        right = right_with<Loose<2, LayoutLeft>>(made, comm, alone);
      else if (kind % 3 == 1)
        right = right_with<Loose<3, LayoutStride>>(made, comm, alone);
      else
        right = right_with<Loose<8, LayoutStride>>(made, comm, alone);
    } else if (kind % 4 == 0) {
      right = right_with<Loose<2, LayoutLeft>, Loose<3, LayoutRight>>(made, comm, alone);
    } else if (kind % 4 == 1) {
      right = right_with<Loose<1, LayoutStride>, Loose<2, LayoutLeft>>(made, comm, alone);
    } else {
      right = right_with<Loose<3, LayoutStride>, Loose<4, LayoutStride>>(made, comm, alone);
    }
    if (right) continue;
    ++wrong;
    UNSCOPED_INFO("case " << i << ": " << made.collective << " form " << made.form << " root "
                          << made.root << " count " << made.count << " even " << made.even);
  }
  CHECK(wrong == 0);
}

}  // namespace test_index_order
