// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3
// space: its own

// A rank that has no memory for what it needs: the others hear of it, and do not wait.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/core/text.hpp>
#include <heddle/memory/internal/own_record.hpp>
#include <heddle/tensor.hpp>

namespace test_failure {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
namespace Tools = Kokkos::Tools::Experimental;

/// While it lives, this rank has no memory to pack in.
class NoScratch {
 public:
  NoScratch() : m_before(Tools::get_callbacks()) {
    Tools::set_callbacks({});
    Tools::set_allocate_data_callback(
        [](const Kokkos_Profiling_SpaceHandle, const char* name, const void*, const std::uint64_t) {
          if (std::strcmp(name, "heddle::tensor::packed") == 0) throw std::bad_alloc();
        });
  }
  NoScratch(const NoScratch&) = delete;
  NoScratch& operator=(const NoScratch&) = delete;
  ~NoScratch() { Tools::set_callbacks(m_before); }

 private:
  Tools::EventSet m_before;
};

/// What `call` says on the ranks that had memory, while the last one has none.
template <class Call>
void check_that_all_hear(Call&& call) {
  const hd::Communicator world(MPI_COMM_WORLD);
  const bool without = +world.rank() + 1 == static_cast<std::size_t>(world.size());
  const auto begin = std::chrono::steady_clock::now();
  if (without) {
    const NoScratch none;
    CHECK_THROWS_AS(call(), std::bad_alloc);
  } else {
    std::string said;
    try {
      call();
    } catch (const hd::communication_error& error) {
      said = error.what();
    }
    CHECK_THAT(said, ContainsSubstring(hd::text("rank ", world.size() - 1)));
  }
  // The watchdog's time is 120 s.
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

}  // namespace

TEST_CASE("where one rank cannot prepare a redistribution, the others do not wait for it") {
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", hd::Communicator(MPI_COMM_WORLD).size()}});
  const hd::Sharded<double**, Exec> rows(mesh, {6, 6}, {hd::Shard{0}});
  check_that_all_hear([&] { (void)hd::redistribute(rows, {hd::Shard{1}}); });
}

TEST_CASE("a halo that failed is destroyed without waiting for what was under way") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", world.size()}});
  const hd::Sharded<double**, Exec> u(mesh, {6, 6}, {hd::Shard{0, {}, 1}});
  const auto begin = std::chrono::steady_clock::now();
  std::string said;
  {
    // The first rank makes calls that the others do not: two stay under way, the third fails.
    hd::Halo halo(u, {}, {.age = 2});
    const int calls = world.rank() == hd::Rank{0} ? 5 : 2;
    try {
      for (int call = 0; call < calls; ++call)
        halo.exchange(Exec{}, u, {.watchdog = call == 2 ? 0.3 : 120.});
    } catch (const hd::communication_error& error) {
      said = error.what();
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (world.rank() == hd::Rank{0}) CHECK_THAT(said, ContainsSubstring("watchdog after 0.3 s"));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("where one rank cannot make a halo, the others do not wait for it") {
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", hd::Communicator(MPI_COMM_WORLD).size()}});
  const hd::Sharded<double**, Exec> columns(mesh, {6, 6}, {hd::Shard{1, {}, 1}});
  check_that_all_hear([&] {
    hd::Halo halo(columns, {.periodic = {false, true}});  // each rank waits for the last one
    halo.exchange(Exec{}, columns);
  });
}

TEST_CASE("a part that exceeds the address space is rejected") {
  if constexpr (!hd::memory::impl::own_record<Kokkos::HostSpace>)
    SKIP("Kokkos allocates the parts, and does not check the product of extents");
  const hd::Communicator world(MPI_COMM_WORLD);
  const auto sharded = [&](std::int64_t rows, std::int64_t columns) {
    return hd::Sharded<double**, Exec>(world, hd::Layout(hd::MeshShape{{"ranks", world.size()}},
                                                         {rows, columns}, {hd::Replicate{}}));
  };
  // The bytes are 0 modulo 2^64, and 2^63.
  CHECK_THROWS_MATCHES(
      sharded(std::int64_t{1} << 31, std::int64_t{1} << 30), hd::out_of_memory,
      Catch::Matchers::MessageMatches(ContainsSubstring(
          "the address space cannot hold so many elements (2147483648 x 1073741824 of 8 B)")));
  CHECK_THROWS_AS(sharded(std::int64_t{1} << 30, std::int64_t{1} << 30), hd::out_of_memory);
  // A part without elements is none of these.
  CHECK(sharded(0, 3).view().size() == 0);
}

}  // namespace test_failure
