// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Cooperative launches of the emulated core group: barriers, transfers between cores, broadcasts;
// and what is said where cores wait for what never comes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/device/core_group.hpp>

#include "support/complaint.hpp"

namespace test_core_group_cooperative {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

constexpr std::size_t cores = CoreGrid::cores;

/// What a cooperative launch of `kernel` says.
template <class Kernel>
std::string said(const Kernel& kernel) {
  CoreGroup group({.host_threads = 2});
  return test::message_of<contract_error>(
      [&] { group.launch("heddle::test::together", kernel, Cooperative::yes); });
}

/// Appends its number to a list that all cores share, before and after a barrier.
struct Append {
  std::vector<int>* list;
  void operator()(Core& core) const {
    list->push_back(core.index());
    core.synchronise();
    list->push_back(core.index());
    if (current_core() != &core) list->clear();
    core.synchronise_row();
    core.synchronise_column();
    list->push_back(core.index());
  }
};

/// Each core's number travels `steps` places along the ring of all cores.
struct Ring {
  int steps;
  int* arrived;

  void operator()(Core& core) const {
    int* const mine = core.allocate<int>(1);
    int* const next = core.allocate<int>(1);
    Reply& sent = core.reply();
    Reply& received = core.reply();
    *mine = core.index();
    core.synchronise();
    for (int step = 1; step <= steps; ++step) {
      const auto count = static_cast<std::uint32_t>(step);
      core.rma_put((core.index() + 1) % CoreGrid::cores, next, mine, sizeof(int), sent, received);
      core.wait(received, count);
      core.wait(sent, count);
      core.synchronise();  // all have received before anybody overwrites
      *mine = *next;
      core.synchronise();
    }
    arrived[core.index()] = *mine;
  }
};

/// Matrix product by blocks of n x n on the grid of cores: block (r, c) of C is the sum over k of
/// A(r, k) B(k, c), which are sent along rows and columns.
struct MeshProduct {
  const int* a;  ///< 8 x 8 blocks, one after another
  const int* b;
  int* c;
  std::size_t n;

  void operator()(Core& core) const {
    const std::size_t size = n * n;
    const std::size_t bytes = size * sizeof(int);
    const auto at = static_cast<std::size_t>(core.index()) * size;
    int* const mine_a = core.allocate<int>(size);
    int* const mine_b = core.allocate<int>(size);
    int* const row_a = core.allocate<int>(size);
    int* const column_b = core.allocate<int>(size);
    int* const sum = core.allocate<int>(size);
    Reply& reply = core.reply();
    core.get(mine_a, a + at, bytes, reply);
    core.get(mine_b, b + at, bytes, reply);
    core.wait(reply, 2);
    for (std::size_t i = 0; i < size; ++i) sum[i] = 0;
    for (int k = 0; k < 8; ++k) {
      core.broadcast_row(row_a, mine_a, bytes, k);
      core.broadcast_column(column_b, mine_b, bytes, k);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t l = 0; l < n; ++l)
          for (std::size_t j = 0; j < n; ++j)
            sum[i * n + j] += row_a[i * n + l] * column_b[l * n + j];
    }
    core.put(c + at, sum, bytes, reply);
    core.wait(reply, 3);
  }
};

}  // namespace

TEST_CASE("nobody passes a barrier before all have come", "[core_group]") {
  CoreGroup group({.host_threads = 2});
  std::vector<int> first, second;
  group.launch("append", Append{&first}, Cooperative::yes);
  REQUIRE(first.size() == 3 * cores);
  std::array<int, cores> seen{};
  for (std::size_t i = 0; i < cores; ++i) CHECK(first[i] == static_cast<int>(i));
  for (std::size_t i = cores; i < 2 * cores; ++i) ++seen[static_cast<std::size_t>(first[i])];
  for (const int count : seen) CHECK(count == 1);
  // The order is the same each time, whoever launches.
  std::thread([&] { group.launch("append", Append{&second}, Cooperative::yes); }).join();
  CHECK(first == second);
}

TEST_CASE("numbers travel around the ring of cores", "[core_group]") {
  CoreGroup group({.host_threads = 1});
  for (const int steps : {0, 1, 7, 64, 65}) {
    std::array<int, cores> arrived{};
    group.launch("ring", Ring{steps, arrived.data()}, Cooperative::yes);
    for (int core = 0; core < CoreGrid::cores; ++core)
      CHECK(arrived[static_cast<std::size_t>(core)] == (core + 64 * 2 - steps) % 64);
    CHECK(group.last_launch().rma_bytes == 64 * sizeof(int) * static_cast<std::size_t>(steps));
    CHECK(group.last_launch().dma_requests() == 0);
  }
}

TEST_CASE("cores read from each other", "[core_group]") {
  CoreGroup group({.host_threads = 1});
  struct Transpose {
    int* found;
    void operator()(Core& core) const {
      int* const mine = core.allocate<int>(1);
      int* const theirs = core.allocate<int>(1);
      Reply& reply = core.reply();
      Reply& asked = core.reply();
      *mine = core.index();
      core.synchronise();
      core.rma_get(theirs, 8 * core.column() + core.row(), mine, sizeof(int), reply, asked);
      found[2 * core.index()] = *theirs;
      core.wait(reply, 1);
      core.wait(asked, 1);  // the other one has read ours
      found[2 * core.index() + 1] = *theirs;
    }
  };
  std::array<int, 2 * cores> found{};
  group.launch("transpose", Transpose{found.data()}, Cooperative::yes);
  for (int core = 0; core < CoreGrid::cores; ++core) {
    CHECK(found[static_cast<std::size_t>(2 * core)] == -1);  // invisible before the wait
    CHECK(found[static_cast<std::size_t>(2 * core + 1)] == 8 * (core % 8) + core / 8);
  }
}

TEST_CASE("broadcasts reach the group, the row and the column", "[core_group]") {
  CoreGroup group({.host_threads = 1});
  struct Broadcast {
    int* found;
    void operator()(Core& core) const {
      int* const mine = core.allocate<int>(2);
      int* const got = core.allocate<int>(2);
      mine[0] = core.index(), mine[1] = -core.index();
      int* const out = found + 3 * core.index();
      core.broadcast(got, core.index() == 23 ? mine : nullptr, 2 * sizeof(int), 23);
      out[0] = got[0] - got[1];
      core.broadcast_row(got, mine, 2 * sizeof(int), 5);
      out[1] = got[0] - got[1];
      core.broadcast_column(got, mine, 2 * sizeof(int), 6);
      out[2] = got[0] - got[1];
    }
  };
  std::array<int, 3 * cores> found{};
  group.launch("broadcast", Broadcast{found.data()}, Cooperative::yes);
  for (int core = 0; core < CoreGrid::cores; ++core) {
    const auto at = static_cast<std::size_t>(3 * core);
    CHECK(found[at] == 2 * 23);
    CHECK(found[at + 1] == 2 * (core / 8 * 8 + 5));
    CHECK(found[at + 2] == 2 * (6 * 8 + core % 8));
  }
  CHECK(group.last_launch().rma_bytes == 8 * (63 + 56 + 56));
}

TEST_CASE("a matrix product on the grid of cores", "[core_group]") {
  CoreGroup group({.host_threads = 2});
  for (const std::size_t n : {1, 2, 5, 16}) {
    const std::size_t side = 8 * n;
    // Element (i, j) of a matrix of blocks.
    const auto at = [&](std::size_t i, std::size_t j) {
      return ((i / n * 8 + j / n) * n + i % n) * n + j % n;
    };
    std::vector<int> a(side * side), b(side * side), c(side * side);
    for (std::size_t i = 0; i < side; ++i)
      for (std::size_t j = 0; j < side; ++j) {
        a[at(i, j)] = static_cast<int>((3 * i + j) % 11) - 5;
        b[at(i, j)] = static_cast<int>((i + 7 * j) % 13) - 6;
      }
    group.launch("mesh", MeshProduct{a.data(), b.data(), c.data(), n}, Cooperative::yes);
    for (std::size_t i = 0; i < side; ++i)
      for (std::size_t j = 0; j < side; ++j) {
        int sum = 0;
        for (std::size_t k = 0; k < side; ++k) sum += a[at(i, k)] * b[at(k, j)];
        REQUIRE(c[at(i, j)] == sum);
      }
    CHECK(group.last_launch().get_bytes == 2 * side * side * sizeof(int));
    CHECK(group.last_launch().rma_bytes == 2 * 7 * 8 * side * side * sizeof(int) / 8);
  }
}

TEST_CASE("a barrier names the cores that do not come", "[core_group]") {
  CHECK_THAT(
      said([](Core& core) {
        if (core.index() != 9) core.synchronise();
      }),
      StartsWith("kernel \"heddle::test::together\" on core 0 (row 0, column 0): "
                 "synchronise: not all cores take part (missing: core 9 (row 1, column 1) has "
                 "ended)"));
  CHECK_THAT(said([](Core& core) {
               if (core.index() == 20) core.synchronise();
             }),
             StartsWith("kernel \"heddle::test::together\" on core 20 (row 2, column 4): ") &&
                 ContainsSubstring("missing: core 0 (row 0, column 0) has ended, core 1 ") &&
                 ContainsSubstring(" and 59 more"));
  // Within a row: the others of the row are missing, not those of other rows.
  CHECK_THAT(
      said([](Core& core) {
        if (core.column() != 3 || core.row() != 2) core.synchronise_row();
      }),
      StartsWith("kernel \"heddle::test::together\" on core 16 (row 2, column 0): "
                 "synchronise_row: not all cores take part (missing: core 19 (row 2, column 3) "
                 "has ended)"));
  // Cores that wait in different places.
  CHECK_THAT(said([](Core& core) {
               if (core.index() == 63)
                 core.synchronise_column();
               else
                 core.synchronise();
             }),
             ContainsSubstring("core 63 (row 7, column 7) is in synchronise_column"));
  CHECK_THAT(said([](Core& core) {
               if (core.index() == 5) core.wait(core.reply(), 1);
               core.synchronise();
             }),
             ContainsSubstring("core 5 (row 0, column 5) waits for a reply"));
  CHECK_THAT(said([](Core& core) {
               int* const block = core.allocate<int>(2);
               core.broadcast(block, block, core.index() == 2 ? 4 : 8, 0);
             }),
             ContainsSubstring("broadcast: not all cores take part") &&
                 ContainsSubstring("core 2 (row 0, column 2) is in broadcast of 4 bytes from core "
                                   "0"));
}

TEST_CASE("the error of the core that failed is thrown, not what follows from it", "[core_group]") {
  CHECK_THAT(said([](Core& core) {
               if (core.index() == 33) (void)core.allocate(1 << 20);
               core.synchronise();
             }),
             StartsWith("kernel \"heddle::test::together\" on core 33 (row 4, column 1): local "
                        "memory is exhausted"));
}

TEST_CASE("transfers between cores keep the rules of transfers", "[core_group]") {
  const auto on_core_4 = [](auto body) {
    return said([body](Core& core) {
      int* const block = core.allocate<int>(4);
      Reply& here = core.reply();
      Reply& there = core.reply();
      core.synchronise();
      if (core.index() == 4) body(core, block, here, there);
    });
  };
  CHECK_THAT(
      on_core_4([](Core& core, int* block, Reply& here, Reply& there) {
        core.rma_put(64, block, block, 4, here, there);
      }),
      ContainsSubstring("on core 4 ") && ContainsSubstring("rma_put: no such core (64 of 64)"));
  CHECK_THAT(on_core_4([](Core& core, int* block, Reply& here, Reply& there) {
               core.rma_put(5, block, block, 3, here, there);
             }),
             ContainsSubstring("rma_put: sizes must be multiples of 4 bytes"));
  CHECK_THAT(on_core_4([](Core& core, int* block, Reply& here, Reply& there) {
               int on_the_stack = 0;
               core.rma_get(&on_the_stack, 5, block, 4, here, there);
             }),
             ContainsSubstring("rma_get: the local side is not in"));
  CHECK_THAT(on_core_4([](Core& core, int* block, Reply& here, Reply&) {
               Reply on_the_stack;
               core.rma_get(block, 5, block + 1, 4, here, on_the_stack);
             }),
             ContainsSubstring("rma_get: the reply is not in the core's local memory"));
  CHECK_THAT(on_core_4([](Core& core, int* block, Reply& here, Reply& there) {
               core.rma_get(block, 5, block + 1, 4, here, there);
             }),
             ContainsSubstring("the kernel ends with transfers that nobody waited for") &&
                 ContainsSubstring("the first a rma_get of 4 bytes"));
  CHECK_THAT(on_core_4([](Core& core, int* block, Reply& here, Reply&) {
               core.wait(here, 1);
               *block = 0;
             }),
             ContainsSubstring("a wait that can never be met") &&
                 ContainsSubstring("for a count of 1 where it is 0"));
  CHECK_THAT(on_core_4([](Core& core, int* block, Reply&, Reply&) {
               core.broadcast_row(block, block, 4, 8);
             }),
             ContainsSubstring("broadcast_row: no such core (8 of 8)"));
  // Core 6 has less memory in use than core 4 believes; without the barrier it has none yet.
  CHECK_THAT(on_core_4([](Core& core, int*, Reply& here, Reply& there) {
               int* const mine = core.allocate<int>(1);
               core.rma_put(6, mine, mine, 4, here, there);
             }),
             ContainsSubstring("core 6 (row 0, column 6) has not allocated the remote side"));
  CHECK_THAT(said([](Core& core) {
               int* const mine = core.allocate<int>(1);
               Reply& here = core.reply();
               Reply& there = core.reply();
               core.rma_put(core.index() ^ 1, mine, mine, 4, here, there);
               core.wait(here, 1);
             }),
             ContainsSubstring("on core 0 ") &&
                 ContainsSubstring("core 1 (row 0, column 1) has not allocated the remote side") &&
                 ContainsSubstring("then synchronise()"));
  // What an earlier launch had allocated there does not count.
  CoreGroup group({.host_threads = 1});
  group.launch("before", [](Core& core) { (void)core.allocate(1024); });
  CHECK_THAT(test::message_of<contract_error>([&] {
               group.launch(
                   "after",
                   [](Core& core) {
                     int* const mine = core.allocate<int>(1);
                     Reply& reply = core.reply();
                     core.rma_put(63 - core.index(), mine, mine, 4, reply, reply);
                   },
                   Cooperative::yes);
             }),
             ContainsSubstring("core 63 (row 7, column 7) has not allocated the remote side"));
}

}  // namespace test_core_group_cooperative
