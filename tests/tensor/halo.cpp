// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 6 8
// timeout: 300

// Halos of any width, with corners and without, around or not, now and some steps ago, against what
// each place must hold.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/core/text.hpp>
#include <heddle/device.hpp>
#include <heddle/tensor.hpp>

#include "space.hpp"
#include "support/complaint.hpp"
#include "support/halo_case.hpp"
#include "support/path_tables.hpp"

namespace test_halo {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using examples::Space;
using hd::Rank;
using hd::Shard;
using hd::schedule::Staleness;
using hd::test::HaloCase;
using hd::test::path_table;

namespace {

constexpr std::int32_t untouched = -1;

/// Fills what the rank owns, and leaves the halo.
template <class Tensor>
void fill(const Tensor& tensor, std::uint64_t seed) {
  if (!tensor.here()) return;
  const auto host = hd::host_mirror(tensor.parts());
  Kokkos::deep_copy(host, tensor.parts());
  const auto part = hd::test::part_of(tensor.layout(), *tensor.here());
  hd::test::for_each_element(tensor.layout(), *tensor.here(),
                             [&](std::size_t offset, const std::vector<std::int64_t>& global) {
                               host.data()[offset] =
                                   hd::test::value_of<std::int32_t>(global, part, seed);
                             });
  Kokkos::deep_copy(tensor.parts(), host);
}

/// Places that do not hold what they must: elements of `seed`, in the halo of `halo_seed`.
template <class Tensor>
std::size_t wrong(const Tensor& tensor, const HaloCase& test, std::uint64_t seed,
                  std::uint64_t halo_seed) {
  if (!tensor.here()) return tensor.parts().size();  // nothing is there
  const auto host = hd::host_mirror(tensor.parts());
  Kokkos::deep_copy(host, tensor.parts());
  std::vector<bool> owned(host.size(), false);
  hd::test::for_each_element(tensor.layout(), *tensor.here(),
                             [&](std::size_t offset, const auto&) { owned[offset] = true; });
  std::size_t count = 0;
  for (std::size_t place = 0; place < host.size(); ++place)
    count += host.data()[place] == test.meant<std::int32_t>(*tensor.here(), place, untouched,
                                                            owned[place] ? seed : halo_seed)
                 ? 0u
                 : 1u;
  return count;
}

template <class Data>
std::size_t wrong_after(const hd::Communicator& comm, const HaloCase& test, std::uint64_t seed,
                        const Staleness& staleness, const std::optional<hd::PathTable>& paths) {
  // Two tensors in turn, as of a stencil that reads one and writes the other.
  const hd::Sharded<Data, Space> a(comm, test.layout), b(comm, test.layout);
  hd::Halo halo(a, test.options, staleness, paths);
  std::size_t count = 0;
  for (std::uint64_t step = 0; step < 7; ++step) {
    const auto& tensor = step % 2 == 0 ? a : b;
    Kokkos::deep_copy(tensor.parts(), untouched);
    fill(tensor, seed + step);
    if ((seed + step) % 2 == 0) {
      halo.exchange(Space{}, tensor);
    } else {
      halo.start(Space{}, tensor);
      if (seed % 4 < 2) static_cast<void>(halo.advance(Space{}));
      halo.wait(Space{});
    }
    const int wait = std::max(staleness.age, staleness.warmup);
    const auto age = static_cast<std::uint64_t>(staleness.age);
    count += wrong(tensor, test, seed + step,
                   seed + (static_cast<int>(step) < wait ? step : step - age));
  }
  return count;
}

/// Places that are wrong after random halos, the first case that has some, in words; by what
/// `paths(seed)` says.
template <class Paths>
std::pair<std::size_t, std::string> wrong_after_all(const hd::Communicator& comm, Paths&& paths) {
  std::size_t bad = 0;
  std::string first;
  for (std::uint64_t seed = 0; seed < 90; ++seed) {
    const HaloCase test = HaloCase::draw(seed, comm.size());
    const Staleness age{static_cast<int>(seed / 3 % 3), static_cast<int>(seed / 9 % 4)};
    const auto by = paths(seed);
    const std::size_t count =
        test.layout.dims() == 1   ? wrong_after<std::int32_t*>(comm, test, seed, age, by)
        : test.layout.dims() == 2 ? wrong_after<std::int32_t**>(comm, test, seed, age, by)
                                  : wrong_after<std::int32_t***>(comm, test, seed, age, by);
    if (count != 0 && first.empty())
      first = hd::text("seed ", seed, ", ", age, ": ", count, " places, ", test.layout);
    bad += count;
  }
  return {bad, first};
}

}  // namespace

TEST_CASE("random halos hold what their neighbours own, or owned some steps ago") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto [bad, first] =
      wrong_after_all(comm, [](std::uint64_t) { return std::optional<hd::PathTable>(); });
  INFO(first);
  CHECK(bad == 0);
}

TEST_CASE("halos in every dimension have their edges and corners, on axes of one rank, too") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  // 8 ranks are 2 x 2 x 2, 6 are 2 x 3 x 1, 3 are 3 x 1 x 1: the last axes often have one rank.
  std::array<int, 3> sides{1, 1, 1};
  int left = comm.size();
  for (std::size_t side = 0; left > 1; side = (side + 1) % 3)
    for (int factor = 2; factor <= left; ++factor)
      if (left % factor == 0) {
        sides[side] *= factor;
        left /= factor;
        break;
      }
  const hd::MeshShape mesh{{"x", sides[0]}, {"y", sides[1]}, {"z", sides[2]}};
  for (const std::int64_t width : {1, 2})
    for (const bool around : {false, true})
      for (const int age : {0, 1}) {
        const HaloCase test{
            hd::Layout(mesh, {8, 6, 4},
                       {Shard{0, {}, width}, Shard{1, {}, width}, Shard{2, {}, width}}),
            {.periodic = {around, around, true}}};
        INFO(test.layout << ", age " << age);
        CHECK(wrong_after<std::int32_t***>(comm, test, 7, {.age = age}, {}) == 0);
        CHECK(wrong_after<std::int32_t***>(
                  comm, test, 7, {.age = age},
                  path_table(7, comm.rank(), hd::impl::box_memory<Space>())) == 0);
      }
}

TEST_CASE("they do so by every path, and where ranks do not choose alike") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto [bad, first] = wrong_after_all(comm, [&](std::uint64_t seed) {
    return std::optional(path_table(seed, comm.rank(), hd::impl::box_memory<Space>()));
  });
  INFO(first);
  CHECK(bad == 0);
}

namespace {

/// Places where a LayoutLeft tensor differs from a LayoutRight one that has the same elements,
/// after an exchange of both and after both went to other placements.
template <class Data>
std::size_t left_differs(const hd::Communicator& comm, const HaloCase& test, std::uint64_t seed) {
  using Right = hd::Sharded<Data, Space>;
  using Left = hd::Sharded<Data, Space, Kokkos::LayoutLeft>;
  const Right right(comm, test.layout);
  const Left left(comm, test.layout);
  // Calls `visit(a, b)` for the elements of both Views with the same indices.
  const auto both = [](const auto& a, const auto& b, auto&& visit) {
    std::size_t count = 0;
    for (std::size_t place = 0; place < a.size(); ++place) {
      std::size_t rest = place, of_a = 0, of_b = 0;
      for (std::size_t dim = Right::dims; dim-- > 0;) {
        of_a += rest % a.extent(dim) * a.stride(dim);
        of_b += rest % a.extent(dim) * b.stride(dim);
        rest /= a.extent(dim);
      }
      count += visit(a.data()[of_a], b.data()[of_b]) ? 1u : 0u;
    }
    return count;
  };
  const auto differ = [&](const Right& a, const Left& b) {
    const auto host = hd::host_mirror(a.parts());
    const auto other = hd::host_mirror(b.parts());
    Kokkos::deep_copy(host, a.parts());
    Kokkos::deep_copy(other, b.parts());
    return both(host, other, [](std::int32_t x, std::int32_t y) { return x != y; });
  };
  Kokkos::deep_copy(right.parts(), untouched);
  fill(right, seed);
  const auto from = hd::host_mirror(right.parts());
  const auto to = hd::host_mirror(left.parts());
  Kokkos::deep_copy(from, right.parts());
  both(from, to, [](std::int32_t x, std::int32_t& y) { return (y = x) != 0; });
  Kokkos::deep_copy(left.parts(), to);
  hd::Halo(right, test.options).exchange(Space{}, right);
  hd::Halo(left, test.options).exchange(Space{}, left);
  std::size_t count = differ(right, left);
  if (test.layout.partial()) return count;
  std::vector<hd::Placement> whole(test.layout.placements().size(), hd::Replicate{});
  return count + differ(hd::redistribute(right, whole), hd::redistribute(left, whole));
}

}  // namespace

TEST_CASE("tensors whose first dimension is the fastest have the same halos, and the same moves") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  std::size_t several = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const HaloCase test = HaloCase::draw(seed, comm.size());
    INFO("seed " << seed << ": " << test.layout);
    const std::size_t bad = test.layout.dims() == 1 ? left_differs<std::int32_t*>(comm, test, seed)
                            : test.layout.dims() == 2
                                ? left_differs<std::int32_t**>(comm, test, seed)
                                : left_differs<std::int32_t***>(comm, test, seed);
    CHECK(bad == 0);
    several += test.layout.dims() > 1 ? 1u : 0u;
  }
  CHECK(several > 10);
}

TEST_CASE("a halo prints by which paths its messages go") {
  if (!hd::impl::box_memory<Space>().mpi_takes_it)
    SKIP("MPI does not take pointers to this memory");
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"columns", world.size()}});
  const hd::Sharded<double**, Space> u(mesh, {4, 3 * world.size()}, {Shard{1, {}, 2}});
  const auto printed = [&](int age) {
    return hd::text(hd::Halo(u, {}, {.age = age}, hd::test::by_length_of_runs()));
  };
  std::string datatypes, packed;
  for (const int step : {-1, 1}) {
    const int peer = static_cast<int>(+world.rank()) + step;
    if (peer < 0 || peer >= world.size()) continue;
    // Columns 2 to 4 of 7 are the rank's own.
    const auto line = [&](const char* way, int column) {
      return hd::text(way, " rank ", peer, ": ",
                      hd::StridedBlock(16).repeated(4, 56).shifted(8 * column), ", ");
    };
    for (const std::string& each : {line("to", step < 0 ? 2 : 3), line("from", step < 0 ? 0 : 5)}) {
      datatypes += each + "datatype\n";
      packed += each + "direct\n";
    }
  }
  const auto sorted = [](const std::string& lines) {
    std::istringstream in(lines);
    std::multiset<std::string> all;
    for (std::string line; std::getline(in, line);) all.insert(line);
    return all;
  };
  CHECK(sorted(printed(0)) == sorted(datatypes));
  // Of an age, messages are under way when the tensor is written: MPI gathers none from it.
  CHECK(sorted(printed(1)) == sorted(packed));
  CHECK(hd::text(hd::Halo(u)).empty());  // no table was asked
}

TEST_CASE("start() sends all of the exchange: neighbours complete theirs before this rank waits") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"columns", world.size()}});
  // Columns of 8 elements with gaps, so they are packed: messages this short need no second call.
  const hd::Sharded<double**, Space> u(mesh, {8, 3 * world.size()}, {Shard{1, {}, 1}});
  hd::Halo halo(u);
  const auto value = [](Rank rank, int round) { return 10 * round + static_cast<double>(+rank); };
  for (int round = 0; round < 3; ++round) {
    Kokkos::deep_copy(u.view(), value(world.rank(), round));
    halo.start(Space{}, u);
    // Rank 0 waits only once all others have completed, which they can only do by what it has sent.
    if (+world.rank() == 0) {
      for (int peer = 1; peer < world.size(); ++peer)
        MPI_Recv(nullptr, 0, MPI_BYTE, peer, 7, world.get(), MPI_STATUS_IGNORE);
    } else {
      while (!halo.advance(Space{})) {
      }
      MPI_Send(nullptr, 0, MPI_BYTE, 0, 7, world.get());
    }
    halo.wait(Space{});
    const auto host = hd::host_mirror(u.view());
    Kokkos::deep_copy(host, u.view());
    for (std::size_t row = 0; row < 8; ++row) {
      const int before = static_cast<int>(+world.rank()) - 1, behind = before + 2;
      CHECK(host(row, 1) == value(world.rank(), round));
      CHECK(host(row, 0) == value(before < 0 ? world.rank() : Rank{before}, round));
      CHECK(host(row, 4) == value(behind == world.size() ? world.rank() : Rank{behind}, round));
    }
  }
}

TEST_CASE("an exchange that is started is waited for once, by the destructor if not before") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"rows", world.size()}});
  const hd::Sharded<double**, Space> u(mesh, {2 * world.size(), 3}, {Shard{0, {}, 1}});
  for (const int age : {0, 1}) {
    hd::Halo halo(u, {}, {.age = age});
    CHECK_THAT(hd::test::message_of<hd::contract_error>([&] { halo.wait(Space{}); }),
               ContainsSubstring("heddle::Halo::wait: no exchange has been started"));
    halo.start(Space{}, u);
    const std::string refused = ": the exchange that was started is not complete";
    CHECK_THAT(hd::test::message_of<hd::contract_error>([&] { halo.start(Space{}, u); }),
               ContainsSubstring("heddle::Halo::start" + refused));
    CHECK_THAT(hd::test::message_of<hd::contract_error>([&] { halo.exchange(Space{}, u); }),
               ContainsSubstring("heddle::Halo::exchange" + refused));
    halo.wait(Space{});
    CHECK_THROWS_AS(halo.wait(Space{}), hd::contract_error);
    halo.start(Space{}, u);
  }
}

TEST_CASE("a halo exchange is a schedule, and refuses what it is not made for") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"rows", world.size()}});
  const hd::Sharded<double**, Space> u(mesh, {3 * world.size(), 5}, {Shard{0, {}, 1}});
  hd::Halo halo(u);
  CHECK(halo.schedule().name() == "halo of age 0");
  // A row to each neighbour, which lies in one run: messages, and nothing that packs.
  CHECK(halo.schedule().size() == 2 * static_cast<std::size_t>(world.size() - 1));
  const hd::Sharded<double**, Space> other(mesh, {3 * world.size(), 4}, {Shard{0, {}, 1}});
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] { halo.exchange(Space{}, other); }),
             ContainsSubstring("heddle::Halo::exchange: the tensor has another layout"));
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] { hd::Halo(u, {}, {.age = -1}); }),
             ContainsSubstring("heddle::Halo: an age must be at least 0 (age = -1)"));
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] { hd::Halo(u, {}, {.warmup = -1}); }),
             ContainsSubstring("heddle::Halo: a warm-up must be at least 0 calls (warmup = -1)"));
  if (world.size() == 1) return;
  // The same ranks, but in another order.
  const hd::Communicator reversed = world.split(0, -static_cast<int>(+world.rank()));
  const hd::Sharded<double**, Space> turned(reversed, u.layout());
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] { halo.exchange(Space{}, turned); }),
             ContainsSubstring("heddle::Halo::exchange: the tensor is among the ranks of another "
                               "communicator (") &&
                 ContainsSubstring(
                     "use the communicator of the tensor that the Halo was constructed with"));
}

}  // namespace test_halo
