// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 6 8
// timeout: 300

// Random redistributions, each element compared bit by bit with what it must be.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
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
#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/path_tables.hpp"
#include "support/redistribution_case.hpp"

namespace test_redistribute {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using examples::Space;
using hd::Partial;
using hd::Rank;
using hd::Replicate;
using hd::Shard;
using hd::test::RedistributionCase;

namespace {

using Index = std::vector<std::int64_t>;

/// Writes this rank's part of every element; the rest is -1.
template <class Tensor>
void fill(const Tensor& tensor, std::uint64_t seed) {
  using T = typename Tensor::Element;
  const auto host = hd::host_mirror(tensor.parts());
  Kokkos::deep_copy(host, T(-1));
  if (tensor.here()) {
    const auto part = hd::test::part_of(tensor.layout(), *tensor.here());
    hd::test::for_each_element(tensor.layout(), *tensor.here(),
                               [&](std::size_t offset, const Index& global) {
                                 host.data()[offset] = hd::test::value_of<T>(global, part, seed);
                               });
  }
  Kokkos::deep_copy(tensor.parts(), host);
}

/// Elements of `tensor`, those of its halo among them, that are not as they must be.
template <class Tensor>
std::size_t wrong(const Tensor& tensor, const RedistributionCase& test, std::uint64_t seed) {
  using T = typename Tensor::Element;
  const auto host = hd::host_mirror(tensor.parts());
  Kokkos::deep_copy(host, tensor.parts());
  std::vector<T> meant(host.size(), T(-1));
  if (tensor.here())
    hd::test::for_each_element(
        tensor.layout(), *tensor.here(), [&](std::size_t offset, const Index& global) {
          meant[offset] = hd::test::expected<T>(test, *tensor.here(), global, seed);
        });
  std::size_t count = 0;
  for (std::size_t i = 0; i < meant.size(); ++i)
    count += std::memcmp(&meant[i], host.data() + i, sizeof(T)) == 0 ? 0u : 1u;
  return count;
}

template <class Data>
std::size_t wrong_after(const hd::Communicator& comm, const RedistributionCase& test,
                        std::uint64_t seed, const std::optional<hd::PathTable>& paths) {
  const hd::Sharded<Data, Space> source(comm, test.source);
  const hd::Sharded<Data, Space> target(comm, test.target);
  using T = typename hd::Sharded<Data, Space>::Element;
  fill(source, seed);
  Kokkos::deep_copy(target.parts(), T(-1));
  hd::redistribute(Space{}, source, target, {}, paths);
  std::size_t count = wrong(target, test, seed);
  // Once more, from other memory: what is kept from the first time is used.
  const hd::Sharded<Data, Space> again(comm, test.source);
  fill(again, seed + 1);
  Kokkos::deep_copy(target.parts(), T(-1));
  hd::redistribute(Space{}, again, target, {}, paths);
  return count + wrong(target, test, seed + 1);
}

/// In as many dimensions as the case has, each of other elements.
std::size_t wrong_after_any(const hd::Communicator& comm, const RedistributionCase& test,
                            std::uint64_t seed, const std::optional<hd::PathTable>& paths = {}) {
  switch (test.source.dims()) {
    case 1: return wrong_after<double*>(comm, test, seed, paths);
    case 2: return wrong_after<float**>(comm, test, seed, paths);
    case 3: return wrong_after<std::int16_t***>(comm, test, seed, paths);
    case 4: return wrong_after<double****>(comm, test, seed, paths);
    case 5: return wrong_after<float*****>(comm, test, seed, paths);
    case 6: return wrong_after<std::int16_t******>(comm, test, seed, paths);
    case 7: return wrong_after<double*******>(comm, test, seed, paths);
    default: return wrong_after<int********>(comm, test, seed, paths);
  }
}

std::uint64_t cases() { return hd::test::cases(1000, 10000); }

/// Elements that cannot be added. nvcc takes no class of a function as the elements of a View.
struct Pair {
  float a, b;
};

}  // namespace

TEST_CASE("random tensors come to any layout bit by bit") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  std::size_t bad = 0;
  std::string first;
  for (std::uint64_t seed = 0; seed < cases(); ++seed) {
    const RedistributionCase test = RedistributionCase::draw(seed, comm.size(), 9);
    const std::size_t count = wrong_after_any(comm, test, seed);
    if (count != 0 && first.empty())
      first = hd::text("seed ", seed, ": ", count, " elements, ", test.source, " to ", test.target);
    bad += count;
  }
  INFO(first);
  CHECK(bad == 0);
}

TEST_CASE("tensors of five to eight dimensions come to any layout bit by bit") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  std::size_t bad = 0;
  std::array<int, 9> drawn = {};
  std::string first;
  for (std::uint64_t seed = 0; seed < cases() / 5; ++seed) {
    const RedistributionCase test = RedistributionCase::draw(seed, comm.size(), 4, 8);
    ++drawn[test.source.dims()];
    const std::size_t count = wrong_after_any(comm, test, seed);
    if (count != 0 && first.empty())
      first = hd::text("seed ", seed, ": ", count, " elements, ", test.source, " to ", test.target);
    bad += count;
  }
  INFO(first);
  CHECK(bad == 0);
  for (std::size_t dims = 5; dims <= 8; ++dims) CHECK((drawn[dims] > 0 || cases() < 1000));
}

TEST_CASE("they do so by every path, and where ranks do not choose alike") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  std::size_t bad = 0;
  std::string first;
  for (std::uint64_t seed = 0; seed < cases() / 4; ++seed) {
    const RedistributionCase test = RedistributionCase::draw(seed, comm.size(), 9);
    const std::size_t count = wrong_after_any(
        comm, test, seed, hd::test::path_table(seed, comm.rank(), hd::impl::box_memory<Space>()));
    if (count != 0 && first.empty())
      first = hd::text("seed ", seed, ": ", count, " elements, ", test.source, " to ", test.target);
    bad += count;
  }
  INFO(first);
  CHECK(bad == 0);
}

TEST_CASE("as one writes it: rows become columns, and all of it on every rank") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"data", world.size()}, {"tensor", 1}});
  const int rows = 5, columns = 7;
  const hd::Sharded<double**, Space> a(mesh, {rows, columns}, {Shard{0}, Replicate{}});
  fill(a, 1);
  const auto b = hd::redistribute(a, {Shard{1}, Replicate{}});
  CHECK(wrong(b, {a.layout(), b.layout()}, 1) == 0);
  CHECK(b.view().extent(0) == 5);
  CHECK(static_cast<std::int64_t>(b.view().extent(1)) == b.indices(1).size());
  const auto c = hd::redistribute(b, {Replicate{}, Replicate{}});
  CHECK(wrong(c, {a.layout(), c.layout()}, 1) == 0);
  const auto d = hd::redistribute(c, a.layout());
  CHECK(wrong(d, {a.layout(), a.layout()}, 1) == 0);
}

TEST_CASE("parts are summed, and are not values before") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"data", world.size()}});
  const hd::Sharded<double*, Space> parts(mesh, {11}, {Partial{}});
  Kokkos::deep_copy(parts.parts(), static_cast<double>(1 + +world.rank()));
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] { (void)parts.view(); }),
             ContainsSubstring("heddle::Sharded::view: the layout has a Partial axis, so the "
                               "elements are not summed yet") &&
                 ContainsSubstring("redistribute to Shard or Replicate, or ask for the parts()"));
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] { (void)parts.owned(); }),
             ContainsSubstring("heddle::Sharded::owned: the layout has a Partial axis, so the "
                               "elements are not summed yet") &&
                 ContainsSubstring("or ask for the owned_parts()"));
  CHECK(parts.owned_parts().extent(0) == 11);
  const auto sum = hd::redistribute(parts, {Replicate{}});
  const auto host = hd::host_mirror(sum.view());
  Kokkos::deep_copy(host, sum.view());
  for (std::size_t i = 0; i < host.extent(0); ++i)
    CHECK(host(i) == world.size() * (world.size() + 1) / 2);
}

template <class T>
std::size_t wrong_sums(const hd::DeviceMesh& mesh, hd::Merge merge) {
  // On rank r element i has (i % 3 + 1) + r, small enough for 8 bits of a mantissa.
  const hd::Sharded<T*, Space> parts(mesh, {101}, {Partial{merge}});
  const auto part = [](std::size_t i, int rank) { return static_cast<float>(i % 3 + 1) + rank; };
  const auto mine = hd::host_mirror(parts.parts());
  for (std::size_t i = 0; i < mine.size(); ++i)
    mine(i) = static_cast<T>(part(i, static_cast<int>(+mesh.rank())));
  Kokkos::deep_copy(parts.parts(), mine);
  const auto rows = hd::redistribute(parts, {Shard{0}});
  const auto host = hd::host_mirror(rows.view());
  Kokkos::deep_copy(host, rows.view());
  const auto first = rows.indices(0).size() == 0 ? 0 : static_cast<std::size_t>(rows.indices(0)[0]);
  std::size_t count = 0;
  for (std::size_t i = 0; i < host.size(); ++i) {
    float meant = part(first + i, 0);
    for (int r = 1; r < mesh.size(); ++r)
      meant = hd::test::merged(merge, meant, part(first + i, r));
    const T expected = static_cast<T>(meant);
    count += std::memcmp(&expected, &host(i), sizeof expected) == 0 ? 0u : 1u;
  }
  return count;
}

TEST_CASE("narrow and complex numbers are merged, too") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"data", world.size()}});
  for (const hd::Merge merge : {hd::Merge::sum, hd::Merge::min, hd::Merge::max}) {
    CHECK(wrong_sums<hd::bf16>(mesh, merge) == 0);
    CHECK(wrong_sums<hd::f16>(mesh, merge) == 0);
  }
  for (const hd::Merge merge : {hd::Merge::sum, hd::Merge::product})
    CHECK(wrong_sums<Kokkos::complex<double>>(mesh, merge) == 0);
  using Complex = hd::Sharded<Kokkos::complex<float>*, Space>;
  CHECK_THAT(hd::test::message_of<hd::contract_error>(
                 [&] { Complex(mesh, {10}, {Partial{hd::Merge::min}}); }),
             ContainsSubstring("a Partial placement needs elements that can be added"));
}

TEST_CASE("NaNs and zeros of both signs are merged in one order, to the same bits on every rank") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"data", world.size()}});
  const auto bits_of = [](double value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  };
  const auto nan = [&](int payload) {
    double value = 0;
    const std::uint64_t bits = 0x7ff8000000000000u + static_cast<std::uint64_t>(payload);
    std::memcpy(&value, &bits, sizeof bits);
    return value;
  };
  // What rank r has at i: each of five values meets each other one in either order.
  const auto part = [&](int rank, std::size_t i) {
    for (int r = 0; r < rank; ++r) i /= 5;
    const double values[] = {0.0, -0.0, nan(1 + rank), 1.0 + rank, -1.0 - rank};
    return values[i % 5];
  };
  // Few, which every rank merges itself, and many, which one does for all.
  for (const std::size_t count : {std::size_t{25}, std::size_t{3125}})
    for (const hd::Merge merge :
         {hd::Merge::min, hd::Merge::max, hd::Merge::sum, hd::Merge::product}) {
      INFO(merge << " of " << count);
      const hd::Sharded<double*, Space> parts(mesh, {static_cast<int>(count)}, {Partial{merge}});
      const auto mine = hd::host_mirror(parts.parts());
      for (std::size_t i = 0; i < count; ++i) mine(i) = part(static_cast<int>(+world.rank()), i);
      Kokkos::deep_copy(parts.parts(), mine);
      const auto all = hd::redistribute(parts, {Replicate{}});
      const auto host = hd::host_mirror(all.view());
      Kokkos::deep_copy(host, all.view());
      std::vector<std::uint64_t> bits(count), of_first(count);
      for (std::size_t i = 0; i < count; ++i) of_first[i] = bits[i] = bits_of(host(i));
      MPI_Bcast(of_first.data(), static_cast<int>(count), MPI_UINT64_T, 0, MPI_COMM_WORLD);
      CHECK(bits == of_first);
      if (merge != hd::Merge::min && merge != hd::Merge::max) continue;
      std::size_t other = 0;
      for (std::size_t i = 0; i < count; ++i) {
        double meant = part(0, i);
        for (int r = 1; r < world.size(); ++r) meant = hd::test::merged(merge, meant, part(r, i));
        other += bits[i] == bits_of(meant) ? 0u : 1u;
      }
      CHECK(other == 0);
    }
}

TEST_CASE("a halo is around what a rank owns, and stays as it is") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"data", world.size()}});
  const hd::Sharded<float**, Space> a(mesh, {9, 4}, {Shard{0, {}, 2}});
  CHECK(a.view().extent(0) == a.owned().extent(0) + 4);
  CHECK(a.view().extent(1) == 4);
  CHECK(static_cast<std::int64_t>(a.owned().extent(0)) == a.indices(0).size());
  CHECK(a.owned().data() == a.view().data() + 2 * 4);
  // In the most dimensions.
  const hd::Sharded<int********, Space> b(mesh, {2, 1, 3, 1, 9, 1, 2, 2}, {Shard{4, {}, 1}});
  CHECK(b.owned().extent(2) == 3);
  CHECK(b.view().extent(4) == b.owned().extent(4) + 2);
  CHECK(static_cast<std::int64_t>(b.owned().extent(4)) == b.indices(4).size());
  CHECK(b.owned().data() == b.view().data() + 1 * 1 * 2 * 2);
}

TEST_CASE("tensors move between meshes that share no rank") {
  const hd::Communicator world(MPI_COMM_WORLD);
  if (world.size() < 2) return;
  const int half = world.size() / 2;
  std::vector<Rank> left, right;
  for (int r = 0; r < world.size(); ++r) (r < half ? left : right).emplace_back(r);
  const hd::Layout source(hd::MeshShape{{"data", half}}, {13, 3}, {Shard{0}}, left);
  const hd::Layout target(hd::MeshShape{{"tensor", world.size() - half}}, {13, 3},
                          {Shard{1, hd::ShardOrder::cyclic()}}, right);
  const hd::Sharded<double**, Space> a(world, source);
  CHECK(a.here().has_value() == (+world.rank() < left.size()));
  if (!a.here()) CHECK(a.view().size() == 0);
  fill(a, 3);
  const auto b = hd::redistribute(a, target);
  CHECK(wrong(b, {source, target}, 3) == 0);
}

/// Moves a random tensor between two communicators, whose ranks are these of `world`; elements that
/// are wrong then. A rank that is not of one has none.
template <class Data>
std::size_t wrong_after_moves(const hd::Communicator& world,
                              const std::optional<hd::Communicator>& left,
                              const std::vector<Rank>& of_left,
                              const std::optional<hd::Communicator>& right,
                              const std::vector<Rank>& of_right, std::uint64_t seed) {
  using Tensor = hd::Sharded<Data, Space>;
  hd::test::LayoutDraw draw(seed);
  std::vector<std::int64_t> sizes;
  for (std::size_t dim = 0; dim < Tensor::dims; ++dim) sizes.push_back(draw.below(8));
  const auto laid = [&](std::size_t ranks, bool parts) {
    const hd::MeshShape mesh = draw.mesh(static_cast<std::int64_t>(ranks));
    return hd::Layout(mesh, sizes, draw.placements(mesh, Tensor::dims, parts, hd::Merge::sum));
  };
  const hd::Layout source = laid(of_left.size(), true), target = laid(of_right.size(), false);
  const auto made = [](const auto& comm, const hd::Layout& layout) {
    return comm ? std::optional<Tensor>(std::in_place, *comm, layout) : std::nullopt;
  };
  const auto a = made(left, source), b = made(right, target);
  const Tensor from = hd::among(world, a), to = hd::among(world, b);
  const auto among_all = [](const hd::Layout& layout, const std::vector<Rank>& ranks) {
    return hd::Layout(layout.mesh(), layout.sizes(), layout.placements(), ranks);
  };
  const RedistributionCase test{among_all(source, of_left), among_all(target, of_right)};
  CHECK(from.layout() == test.source);
  CHECK(to.layout() == test.target);
  std::size_t count = 0;
  // Twice: of what is kept nothing is of the first time.
  for (std::uint64_t time = seed; time < seed + 2; ++time) {
    fill(from, time);
    Kokkos::deep_copy(to.parts(), -1);
    hd::redistribute(Space{}, from, to);
    // The elements are those of the tensor that was given.
    if (b) CHECK(b->view().data() == to.view().data());
    count += wrong(to, test, time);
  }
  return count;
}

TEST_CASE("tensors move between communicators") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const int ranks = world.size(), me = static_cast<int>(+world.rank());
  /// The ranks for which `has`, in the order of `key`, and their communicator.
  struct Part {
    std::vector<Rank> ranks;
    std::optional<hd::Communicator> comm;
  };
  const auto part = [&](auto&& has, auto&& key) {
    Part made;
    for (int r = 0; r < ranks; ++r)
      if (has(r)) made.ranks.emplace_back(r);
    std::ranges::sort(made.ranks, {}, [&](Rank r) { return key(static_cast<int>(+r)); });
    hd::Communicator split = world.split(has(me) ? 1 : 0, key(me) + ranks);
    if (has(me)) made.comm = std::move(split);
    return made;
  };
  const auto up = [](int r) { return r; };
  const auto down = [](int r) { return -r; };
  const auto all = [](int) { return true; };
  const auto low = [&](int r) { return r < (ranks + 1) / 2; };
  const auto high = [&](int r) { return r >= ranks / 2; };
  const auto odd = [&](int r) { return r % 2 == 1 || ranks == 1; };
  const auto last = [&](int r) { return r == ranks - 1; };
  const Part parts[] = {part(all, up),   part(all, down), part(low, up), part(high, down),
                        part(odd, down), part(odd, up),   part(last, up)};
  std::uint64_t seed = 100;
  std::size_t bad = 0;
  for (const Part& left : parts)
    for (const Part& right : parts)
      for (int time = 0; time < 3; ++time) {
        bad += wrong_after_moves<double**>(world, left.comm, left.ranks, right.comm, right.ranks,
                                           ++seed);
        bad += wrong_after_moves<std::int16_t***>(world, left.comm, left.ranks, right.comm,
                                                  right.ranks, ++seed);
      }
  CHECK(bad == 0);
}

TEST_CASE("tensors that no common communicator has, or not as one, are refused on all ranks") {
  const hd::Communicator world(MPI_COMM_WORLD);
  using Tensor = hd::Sharded<double*, Space>;
  const hd::Communicator self(MPI_COMM_SELF);
  const hd::Layout alone(hd::MeshShape{{"self", 1}}, {10}, {Replicate{}});
  const auto refusal = [](auto&& call) { return hd::test::message_of<hd::contract_error>(call); };
  CHECK_THAT(refusal([&] { (void)hd::among(world, std::optional<Tensor>()); }),
             ContainsSubstring("heddle::among: no rank passes the tensor"));
  if (world.size() == 1) return;
  // Each rank has one of its own.
  CHECK_THAT(refusal([&] { (void)hd::among(world, std::optional<Tensor>(Tensor(self, alone))); }),
             ContainsSubstring("the ranks pass different tensors (rank 1 does not give that of "
                               "rank 0)") &&
                 ContainsSubstring("give it on every rank of its communicator"));
  // One that has a part gives none.
  std::optional<Tensor> b(std::in_place, world,
                          hd::Layout(hd::MeshShape{{"all", world.size()}}, {10}, {Shard{0}}));
  if (world.rank() == Rank{1}) b.reset();
  CHECK_THAT(refusal([&] { (void)hd::among(world, b); }),
             ContainsSubstring("rank 1 does not give that of rank 0"));
  const Tensor whole(world, hd::Layout(hd::MeshShape{{"all", world.size()}}, {10}, {Shard{0}}));
  CHECK_THAT(refusal([&] { (void)hd::among(self, whole); }),
             ContainsSubstring("the communicator lacks a rank of the tensor") &&
                 ContainsSubstring("use a communicator with the ranks of both"));
}

TEST_CASE("a tensor may lie in a View that is there already") {
  const hd::Communicator world(MPI_COMM_WORLD);
  using Tensor = hd::Sharded<double**, Space>;
  const hd::Layout layout(hd::MeshShape{{"all", world.size()}}, {9, 4}, {Shard{0, {}, 1}});
  const auto extents = layout.extents(world.rank());
  const Tensor::View mine("mine", static_cast<std::size_t>(extents[0]),
                          static_cast<std::size_t>(extents[1]));
  const Tensor a(world, layout, mine);
  CHECK(a.view().data() == mine.data());
  fill(a, 5);
  const auto b = hd::redistribute(a, {Replicate{}});
  CHECK(wrong(b, {a.layout(), b.layout()}, 5) == 0);
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] {
               Tensor(world, layout, Tensor::View("other", mine.extent(0), mine.extent(1) + 1));
             }),
             ContainsSubstring("the View has other extents than this rank's part of the tensor "
                               "(dimension 1: 5, expected 4"));
  // What has gaps is not what messages are packed from.
  const Tensor::View wide("wide", mine.extent(0), mine.extent(1) + 2);
  const auto part = Kokkos::subview(wide, Kokkos::ALL, Kokkos::make_pair(1, 5));
  if constexpr (std::same_as<typename decltype(part)::array_layout, Kokkos::LayoutRight>)
    CHECK_THAT(hd::test::message_of<hd::contract_error>([&] { Tensor(world, layout, part); }),
               ContainsSubstring("the View has gaps between its elements"));
  // Nor can it lie where it comes from, or in a part of that.
  const Tensor::View both("both", mine.extent(0) + 1, mine.extent(1));
  const Tensor::View lower(both.data(), mine.extent(0), mine.extent(1));
  const Tensor::View upper(both.data() + mine.extent(1), mine.extent(0), mine.extent(1));
  const auto onto_itself = [&] {
    hd::redistribute(Space{}, Tensor(world, layout, lower), Tensor(world, layout, upper));
  };
  if (mine.extent(0) > 1)
    CHECK_THAT(hd::test::message_of<hd::contract_error>(onto_itself),
               ContainsSubstring("the source and the target are the same memory"));
  const Tensor again(world, layout, mine);
  CHECK_FALSE(a.shares(again));
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] { hd::redistribute(Space{}, a, again); }),
             ContainsSubstring("the source and the target are the same memory"));
}

TEST_CASE("meshes of one communicator's ranks may differ, and others are refused") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::DeviceMesh line(MPI_COMM_WORLD, {{"all", world.size()}});
  const hd::DeviceMesh plane(MPI_COMM_WORLD, {{"one", 1}, {"all", world.size()}});
  const hd::Sharded<double*, Space> a(line, {10}, {Shard{0}});
  const hd::Sharded<double*, Space> b(plane, {10}, {Replicate{}, Replicate{}});
  fill(a, 9);
  hd::redistribute(Space{}, a, b);
  CHECK(wrong(b, {a.layout(), b.layout()}, 9) == 0);
  const auto refusal = [](auto&& call) { return hd::test::message_of<hd::contract_error>(call); };
  CHECK_THAT(
      refusal([&] { hd::redistribute(Space{}, a, a); }),
      ContainsSubstring(
          "heddle::redistribute: the source and the target are the same memory (10 on all="));
  // On all ranks, also where there are no elements whose address would tell.
  const hd::Sharded<double*, Space> single(line, {1}, {Shard{0}});
  const auto copy = single;
  CHECK_THAT(refusal([&] { hd::redistribute(Space{}, single, copy); }),
             ContainsSubstring("the source and the target are the same memory (1 on all="));
  const hd::Communicator self(MPI_COMM_SELF);
  if (world.size() > 1) {
    const hd::Layout alone(hd::MeshShape{{"self", 1}}, {10}, {Replicate{}});
    const hd::Sharded<double*, Space> c(self, alone);
    CHECK_THAT(refusal([&] { hd::redistribute(Space{}, a, c); }),
               ContainsSubstring("the two tensors belong to different communicators") &&
                   ContainsSubstring("with the ranks of both by among()"));
    CHECK_THAT(refusal([&] { hd::Sharded<double*, Space>(self, a.layout()); }),
               ContainsSubstring(
                   "heddle::Sharded: the communicator lacks a rank of the layout (rank 1 of 1"));
  }
  CHECK_THAT(refusal([&] { hd::Sharded<double**, Space>(world, a.layout()); }),
             ContainsSubstring("the layout has another number of dimensions (10 on all="));
  CHECK_THAT(refusal([&] { hd::Sharded<Pair*, Space>(line, {10}, {Partial{}}); }),
             ContainsSubstring("a Partial placement needs elements that can be added"));
  CHECK_THAT(refusal([&] { (void)hd::redistribute(a, {Partial{}}); }),
             ContainsSubstring("an axis cannot become Partial"));
}

}  // namespace test_redistribute
