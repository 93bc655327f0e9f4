// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// timeout: 240

/// @file
/// StridedExchange against its boxes byte by byte, by every path, on host cores and on the emulated
/// core group, whose kernels walk memory as a device's do; and measure_paths().

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/default_pack_gains.hpp>
#include <heddle/comm/measure_paths.hpp>
#include <heddle/comm/strided_exchange.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/athread.hpp>

#include "support/complaint.hpp"

namespace test_strided_exchange {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::message_of;

namespace {

constexpr std::array every_path{StridedPath::datatype, StridedPath::direct, StridedPath::one_shot,
                                StridedPath::staged};

constexpr impl::BoxMemory host{.on_host = true, .mpi_takes_it = true, .kernels_reach_host = true};
constexpr impl::BoxMemory aware_device{
    .on_host = false, .mpi_takes_it = true, .kernels_reach_host = true};
constexpr impl::BoxMemory device{
    .on_host = false, .mpi_takes_it = false, .kernels_reach_host = true};
constexpr impl::BoxMemory unpinned{
    .on_host = false, .mpi_takes_it = false, .kernels_reach_host = false};

/// Blocks of `bytes` each in memory of `size` bytes, beside one another: each in another shape.
std::vector<StridedBlock> blocks_of(const std::vector<Bytes>& bytes, std::mt19937& random,
                                    std::int64_t& size) {
  std::vector<StridedBlock> blocks;
  size = 0;
  for (const Bytes each : bytes) {
    // As many runs as divide it, with a gap, in one loop or two, forwards or backwards.
    std::vector<Bytes> divisors;
    for (Bytes d = 1; d <= each; ++d)
      if (each % d == 0 && each / d <= 64) divisors.push_back(d);
    const Bytes run = divisors.empty() ? 0 : divisors[random() % divisors.size()];
    StridedBlock block(run);
    if (run > 0) {
      const auto gap = static_cast<std::int64_t>(run + random() % 5);
      const std::uint64_t turns = each / run;
      const std::uint64_t inner = turns % 2 == 0 ? 2 : 1;
      const auto outer = static_cast<std::int64_t>(inner) * gap + 3;
      block =
          block.repeated(inner, gap).repeated(turns / inner, random() % 2 == 0 ? outer : -outer);
    }
    const StridedBlock::Bounds bounds = block.bounds();
    blocks.push_back(block.shifted(size - bounds.begin));
    size += bounds.end - bounds.begin + 7;
  }
  return blocks;
}

/// What byte `index` of the box from one rank to another is, the `box`-th between them.
std::byte content(int from, int to, std::size_t box, std::size_t index) {
  return std::byte((static_cast<std::size_t>(31 * from + 7 * to) + 13 * box + index) % 251 + 1);
}

/// Sizes of the boxes between two ranks: the same numbers on both.
std::vector<Bytes> sizes_between(int from, int to) {
  std::mt19937 random(static_cast<unsigned>(17 * from + to + 1));
  std::vector<Bytes> sizes(random() % 4);
  for (Bytes& size : sizes) size = random() % 5 == 0 ? 0 : 1 + random() % 600;
  if (from != to) sizes.push_back(4099 * 8);  // by rendezvous
  return sizes;
}

/// The boxes of one rank with all, on one side, and memory around them.
struct Side {
  Side(int rank, int ranks, bool sends, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Bytes> bytes;
    for (int peer = 0; peer < ranks; ++peer) {
      const std::vector<Bytes> sizes =
          sends ? sizes_between(rank, peer) : sizes_between(peer, rank);
      for (std::size_t box = 0; box < sizes.size(); ++box) {
        bytes.push_back(sizes[box]);
        moves.push_back({Rank{peer}, {}});
        boxes.push_back(box);
      }
    }
    std::int64_t size = 0;
    const std::vector<StridedBlock> blocks = blocks_of(bytes, random, size);
    for (std::size_t m = 0; m < moves.size(); ++m) moves[m].block = blocks[m];
    memory.assign(static_cast<std::size_t>(size), std::byte{});
  }

  /// The bytes of all boxes where they belong, in memory otherwise empty.
  std::vector<std::byte> filled(int rank, bool sends) const {
    std::vector<std::byte> full(memory.size());
    for (std::size_t m = 0; m < moves.size(); ++m) {
      std::size_t next = 0;
      const auto peer = static_cast<int>(moves[m].peer.value);
      moves[m].block.for_each_run([&](std::int64_t offset) {
        for (Bytes b = 0; b < moves[m].block.run(); ++b, ++next)
          full[static_cast<std::size_t>(offset) + b] =
              sends ? content(rank, peer, boxes[m], next) : content(peer, rank, boxes[m], next);
      });
    }
    return full;
  }

  std::vector<StridedMove> moves;
  std::vector<std::size_t> boxes;  ///< the number of each between its two ranks
  std::vector<std::byte> memory;
};

template <class Exec>
void check(const Communicator& comm, const StridedOptions& options, unsigned seed) {
  const auto rank = static_cast<int>(comm.rank().value);
  Side from(rank, comm.size(), true, seed), to(rank, comm.size(), false, seed + 1000);
  from.memory = from.filled(rank, true);
  StridedExchange<Exec> exchange(comm, from.moves, to.moves, options);
  INFO(text(exchange));
  for (int turn = 0; turn < 3; ++turn) {
    to.memory.assign(to.memory.size(), std::byte{});
    exchange.start(Exec{}, from.memory.data(), to.memory.data());
    if (turn == 1)
      while (!exchange.test()) continue;
    exchange.wait();
    REQUIRE(to.memory == to.filled(rank, false));
    REQUIRE(exchange.test());
  }
}

}  // namespace

TEMPLATE_TEST_CASE("boxes of every shape reach the other ranks, and this one, by every path", "",
                   Kokkos::DefaultExecutionSpace, Athread) {
  const Communicator comm(MPI_COMM_WORLD);
  unsigned seed = static_cast<unsigned>(comm.rank().value) * 100;
  check<TestType>(comm, {}, seed++);
  for (const StridedPath path : every_path) check<TestType>(comm, {PathTable(path)}, seed++);
  // Two ranks need not choose alike.
  check<TestType>(comm, {PathTable(every_path[(+comm.rank() + 1) % every_path.size()])}, seed++);
}

TEST_CASE("a subview goes from one View into another of another layout") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Communicator comm(MPI_COMM_WORLD);
  const auto ranks = static_cast<std::uint32_t>(comm.size());
  const Rank next{(comm.rank().value + 1) % ranks},
      previous{(comm.rank().value + ranks - 1) % ranks};
  Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace> from("from", 5, 7);
  Kokkos::View<double**, Kokkos::LayoutLeft, Kokkos::HostSpace> to("to", 6, 4);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 7; ++j)
      from(i, j) = static_cast<double>(100 * comm.rank().value + 10 * i + j);
  const auto sent = Kokkos::subview(from, std::pair(1, 4), std::pair(2, 4));
  const auto received = Kokkos::subview(to, std::pair(3, 6), std::pair(1, 3));
  StridedExchange<Exec> exchange(comm, {{next, kernel::strided_block_of(sent)}},
                                 {{previous, kernel::strided_block_of(received)}});
  exchange(Exec{}, kernel::bytes_of(sent), kernel::bytes_of(received));
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      const bool inside = i >= 3 && j >= 1 && j < 3;
      const double meant =
          inside ? static_cast<double>(100 * previous.value + 10 * (i - 3 + 1) + (j - 1 + 2)) : 0.0;
      REQUIRE(to(i, j) == meant);
    }
}

TEST_CASE("two exchanges are under way at once, and are waited for in either order") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Communicator comm(MPI_COMM_WORLD);
  const Rank peer{(comm.rank().value + 1) % static_cast<std::uint32_t>(comm.size())};
  const Rank other{(comm.rank().value + static_cast<std::uint32_t>(comm.size()) - 1) %
                   static_cast<std::uint32_t>(comm.size())};
  const StridedBlock block = StridedBlock(8).repeated(5, 24);
  std::array<std::vector<std::byte>, 2> from, to;
  for (std::size_t e = 0; e < 2; ++e) {
    from[e].assign(128, std::byte(e + 1));
    to[e].assign(128, std::byte{});
  }
  StridedExchange<Exec> first(comm, {{peer, block}}, {{other, block}});
  StridedExchange<Exec> second(comm, {{peer, block}}, {{other, block}});
  first.start(Exec{}, from[0].data(), to[0].data());
  second.start(Exec{}, from[1].data(), to[1].data());
  if (comm.rank() == Rank{0}) second.wait();
  first.wait();
  second.wait();
  block.for_each_run([&](std::int64_t at) {
    CHECK(to[0][static_cast<std::size_t>(at)] == std::byte{1});
    CHECK(to[1][static_cast<std::size_t>(at)] == std::byte{2});
  });
}

TEST_CASE("what cannot be moved is refused") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Communicator comm(MPI_COMM_WORLD);
  const StridedBlock block = StridedBlock(8).repeated(3, 16);
  const auto refusal = [&](std::vector<StridedMove> sends, std::vector<StridedMove> receives) {
    return message_of<contract_error>(
        [&] { StridedExchange<Exec>(comm, std::move(sends), std::move(receives)); });
  };
  CHECK_THAT(refusal({{Rank{comm.size()}, block}}, {}),
             ContainsSubstring(text("heddle::StridedExchange: no such rank (sends[0].peer is rank ",
                                    comm.size(), " of ", comm.size(), ")")));
  CHECK_THAT(refusal({{comm.rank(), block}}, {}),
             ContainsSubstring("the boxes that this rank sends to itself differ in size from those "
                               "that it receives (sends "
                               "24 B, receives nothing)"));
  CHECK_THAT(refusal({{comm.rank(), block}, {comm.rank(), StridedBlock(5)}},
                     {{comm.rank(), block}, {comm.rank(), StridedBlock(6)}}),
             ContainsSubstring("sends 24 B + 5 B, receives 24 B + 6 B"));
  // Boxes of no bytes are no boxes.
  CHECK_NOTHROW(StridedExchange<Exec>(comm, {{comm.rank(), StridedBlock()}}, {}));

  StridedExchange<Exec> exchange(comm, {}, {});
  exchange.start(Exec{}, nullptr, nullptr);
  CHECK_THAT(message_of<contract_error>([&] { exchange.start(Exec{}, nullptr, nullptr); }),
             ContainsSubstring("the exchange is already in flight (start() was called twice)"));
  exchange.wait();

  // Of memory that MPI cannot read; a host's it always can. Whatever is sent: all ranks find it.
  const auto refused = [](StridedPath path, const impl::BoxMemory& memory) {
    return message_of<contract_error>([&] { (void)impl::paths_of({PathTable(path)}, memory); });
  };
  CHECK_THAT(refused(StridedPath::direct, device),
             ContainsSubstring("heddle::StridedExchange: this MPI does not accept pointers to the "
                               "memory of the boxes (the table has direct)"));
  CHECK_THAT(refused(StridedPath::datatype, device), ContainsSubstring("the table has datatype"));
  CHECK(impl::paths_of({PathTable(StridedPath::staged)}, device) == PathTable(StridedPath::staged));
  // Of memory beside which there is none that kernels and MPI both reach.
  CHECK(impl::paths_of({PathTable(StridedPath::one_shot)}, device) ==
        PathTable(StridedPath::one_shot));
  CHECK_THAT(refused(StridedPath::one_shot, unpinned),
             ContainsSubstring("kernels cannot access the host memory of messages (the table "
                               "has one_shot)"));
}

TEST_CASE("paths are those that the memory and MPI allow") {
  const StridedBlock block = StridedBlock(8).repeated(3, 16);
  const PathTable datatype(StridedPath::datatype), direct(StridedPath::direct);
  CHECK(impl::path_of({block}, datatype) == StridedPath::datatype);
  CHECK(impl::path_of({StridedBlock(8).repeated(3, -16)}, datatype) == StridedPath::direct);
  CHECK(impl::path_of({StridedBlock(1 << 20).repeated(1 << 10, 2 << 20)}, datatype) ==
        StridedPath::direct);  // more than MPI takes in one piece
  CHECK(impl::path_of({StridedBlock(100)}, direct) == StridedPath::datatype);  // it is one piece
  CHECK(impl::path_of({StridedBlock(100), StridedBlock(100).shifted(200)}, direct) ==
        StridedPath::direct);
  // Of several blocks by all their bytes, in runs of 32 bytes on average.
  const PathTable by_run({{StridedPath::datatype, PackTable({1}, {1}, {1.0})},
                          {StridedPath::direct, PackTable({128}, {31, 32}, {2.0, 0.5})}});
  CHECK(impl::path_of({StridedBlock(48).repeated(2, 64), StridedBlock(16).repeated(2, 64)},
                      by_run) == StridedPath::datatype);
  CHECK(impl::path_of({StridedBlock(48).repeated(2, 64), StridedBlock(16).repeated(3, 64)},
                      by_run) == StridedPath::direct);
  // Without a table.
  CHECK(impl::paths_of({}, host) == PathTable(default_pack_gains()));
  CHECK(impl::paths_of({}, aware_device) == direct);
  CHECK(impl::paths_of({}, device) == PathTable(StridedPath::staged));
  CHECK(impl::paths_from(host) == std::vector{StridedPath::datatype, StridedPath::direct});
  CHECK(impl::paths_from(aware_device).size() == 4);
  CHECK(impl::paths_from(device) == std::vector{StridedPath::staged, StridedPath::one_shot});
  CHECK(impl::paths_from(unpinned) == std::vector{StridedPath::staged});
  CHECK(impl::box_memory<Kokkos::DefaultHostExecutionSpace>() == host);
}

TEST_CASE("a datatype that MPI cannot count is refused, here and by the transport") {
  CHECK_THAT(message_of<contract_error>([] { BlockDatatype(StridedBlock(Bytes{1} << 31)); }),
             ContainsSubstring("heddle::BlockDatatype: the block does not fit MPI's counts of type "
                               "int (the block is 2147483648 "
                               "B)"));
  MpiTransport transport(MPI_COMM_SELF, {.max_message = 16});
  const BlockDatatype type(StridedBlock(8).repeated(2, 16));
  std::array<std::byte, 32> memory{};
  CHECK_THAT(message_of<contract_error>(
                 [&] { (void)transport.send(Rank{0}, Lane{0}, memory.data(), 16, type.get()); }),
             ContainsSubstring("a message of an MPI datatype must be shorter than "
                               "MpiOptions::max_message (16 bytes, max_message "
                               "16)"));
}

TEST_CASE("the datatype of several blocks has their bytes one after the other") {
  const std::vector<StridedBlock> blocks{StridedBlock(3).repeated(2, 5).shifted(20),
                                         StridedBlock(7).shifted(2),
                                         StridedBlock(1).repeated(4, 6).shifted(41)};
  const BlockDatatype type(blocks);
  std::array<std::byte, 64> memory;
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = std::byte(i);
  std::array<std::byte, 17> packed{};
  int place = 0;
  MPI_Pack(memory.data() + 20, 1, type.get(), packed.data(), 17, &place, MPI_COMM_SELF);
  CHECK(place == 17);
  std::array<std::byte, 17> meant;
  kernel::pack(Kokkos::DefaultHostExecutionSpace{}, blocks, memory.data(), meant.data());
  CHECK(packed == meant);
}

TEST_CASE("a box of another size than the peer's is an error on the rank that receives it") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Communicator comm(MPI_COMM_WORLD);
  if (comm.size() != 2) return;
  const bool sends = comm.rank() == Rank{0};
  std::vector<std::byte> memory(64);
  const std::vector<StridedMove> none, short_one{{Rank{1}, StridedBlock(8).repeated(2, 16)}},
      long_one{{Rank{0}, StridedBlock(8).repeated(3, 16)}};
  StridedExchange<Exec> exchange(comm, sends ? short_one : none, sends ? none : long_one);
  if (sends) {
    exchange(Exec{}, memory.data(), memory.data());
  } else {
    CHECK_THAT(
        message_of<communication_error>([&] { exchange(Exec{}, memory.data(), memory.data()); }),
        ContainsSubstring("sent 16 bytes, expected 24"));
  }
}

TEST_CASE("so is one by a datatype, on either side, shorter or longer") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) return;
  constexpr std::array ways{std::pair(StridedPath::datatype, StridedPath::datatype),
                            std::pair(StridedPath::datatype, StridedPath::direct),
                            std::pair(StridedPath::direct, StridedPath::datatype)};
  for (const auto& [sent_by, received_by] : ways)
    for (const std::uint64_t sent : {2, 3}) {
      INFO(sent_by << ", " << received_by << ", " << sent << " words");
      const Communicator comm(MPI_COMM_WORLD);
      const bool sends = comm.rank() == Rank{0};
      const std::uint64_t expected = 5 - sent;
      const std::vector<StridedMove> none,
          moves{{Rank{sends ? 1 : 0}, StridedBlock(8).repeated(sends ? sent : expected, 16)}};
      StridedExchange<Exec> exchange(comm, sends ? moves : none, sends ? none : moves,
                                     {PathTable(sends ? sent_by : received_by)});
      std::vector<std::byte> memory(64);
      if (sends) {
        exchange(Exec{}, memory.data(), memory.data());
      } else {
        // Of a longer one some MPIs say only what fitted.
        CHECK_THAT(message_of<communication_error>(
                       [&] { exchange(Exec{}, memory.data(), memory.data()); }),
                   ContainsSubstring(sent < expected ? "sent 16 bytes, expected 24"
                                                     : " bytes, expected 16"));
      }
      MPI_Barrier(MPI_COMM_WORLD);
    }
}

TEST_CASE("an exchange may be under way for longer than the watchdog of those that wait") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Communicator comm(MPI_COMM_WORLD);
  const auto ranks = static_cast<std::uint32_t>(comm.size());
  const Rank next{(comm.rank().value + 1) % ranks},
      previous{(comm.rank().value + ranks - 1) % ranks};
  // By rendezvous: it moves only while somebody looks.
  const StridedBlock block = StridedBlock(4096).repeated(1000, 8192);
  std::vector<std::byte> from(4096 * 2000, std::byte(comm.rank().value + 1)), to(from.size());
  StridedOptions options;
  options.wait.watchdog = 0.05;
  StridedExchange<Exec> exchange(comm, {{next, block}}, {{previous, block}}, options);
  exchange.start(Exec{}, from.data(), to.data());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  while (!exchange.test()) continue;
  std::size_t wrong = 0;
  block.for_each_run([&](std::int64_t offset) {
    for (std::size_t b = 0; b < 4096; ++b)
      wrong += to[static_cast<std::size_t>(offset) + b] != std::byte(previous.value + 1);
  });
  CHECK(wrong == 0);
}

TEST_CASE("a box of many loops reaches another rank, and this one", "") {
  const Communicator comm(MPI_COMM_WORLD);
  const auto ranks = static_cast<std::uint32_t>(comm.size());
  const Rank next{(comm.rank().value + 1) % ranks},
      previous{(comm.rank().value + ranks - 1) % ranks};
  StridedBlock block(2);
  for (int depth = 0; depth < 10; ++depth)
    block = block.repeated(2, block.bounds().end - block.bounds().begin + 2 + 2 * depth);
  REQUIRE(block.loops().size() == 10);
  const auto reach = static_cast<std::size_t>(block.bounds().end);
  const std::vector<std::byte> from(2 * reach, std::byte(comm.rank().value + 1));
  std::vector<std::byte> to(2 * reach), meant(2 * reach);
  const StridedBlock own = block.shifted(static_cast<std::int64_t>(reach));
  StridedExchange<Athread> exchange(comm, {{next, block}, {comm.rank(), own}},
                                    {{previous, block}, {comm.rank(), own}});
  exchange(Athread{}, from.data(), to.data());
  const auto place = [&](const StridedBlock& where, Rank rank) {
    where.for_each_run([&](std::int64_t offset) {
      for (std::size_t b = 0; b < 2; ++b)
        meant[static_cast<std::size_t>(offset) + b] = std::byte(rank.value + 1);
    });
  };
  place(block, previous);
  place(own, comm.rank());
  CHECK(to == meant);
}

TEST_CASE("a rank that does not come is an error in wait(), and in test() not yet") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) return;
  {
    const Communicator comm(MPI_COMM_WORLD);
    StridedOptions options;
    options.wait.watchdog = 0.05;
    const std::vector<StridedMove> from{{Rank{1}, StridedBlock(8).repeated(2, 16)}};
    StridedExchange<Exec> exchange(
        comm, {}, comm.rank() == Rank{0} ? from : std::vector<StridedMove>(), options);
    std::vector<std::byte> memory(64);
    if (comm.rank() == Rank{0}) {
      CHECK_THAT(message_of<communication_error>([&] {
                   exchange.start(Exec{}, memory.data(), memory.data());
                   CHECK(!exchange.test());
                   exchange.wait();
                 }),
                 ContainsSubstring("rank 1 does not answer (watchdog after 0.05 s)"));
      CHECK(exchange.test());
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEMPLATE_TEST_CASE("paths are measured, and all ranks have the same table", "",
                   Kokkos::DefaultHostExecutionSpace, Athread) {
  const Communicator comm(MPI_COMM_WORLD);
  const PathOptions options{.sizes = {1, 100, 5000}, .runs = {8, 1000}, .rounds = 2};
  if (comm.size() < 2) {
    CHECK_THAT(message_of<contract_error>([&] { (void)measure_paths<TestType>(comm, options); }),
               ContainsSubstring("heddle::measure_paths: two ranks are needed (there is 1)"));
    return;
  }
  const PathTable table = measure_paths<TestType>(comm, options);
  REQUIRE(table.entries().size() == 2);
  CHECK(table.entries()[0].path == StridedPath::datatype);
  CHECK(table.entries()[0].gains ==
        PackTable(options.sizes, options.runs, std::vector<double>(6, 1.0)));
  CHECK(table.entries()[1].path == StridedPath::direct);
  // Equal on all ranks: the largest and the smallest of a gain are the same.
  const double mine = table.entries()[1].gains.gain(100, 8);
  std::array<double, 2> range{-mine, mine};
  MPI_Allreduce(MPI_IN_PLACE, range.data(), 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  CHECK(-range[0] == range[1]);
  // Two ranks time all four paths, whichever of them there are from this memory.
  if (+comm.rank() < 2) {
    const auto times = impl::path_times<TestType>(comm, 5000, 8, every_path, options);
    REQUIRE(times.size() == every_path.size());
    CHECK(std::ranges::all_of(times, [](Seconds time) { return time > 0; }));
  }
  CHECK_THAT(message_of<contract_error>([&] {
               (void)measure_paths<TestType>(comm, {.sizes = {1}, .runs = {1}, .rounds = 0});
             }),
             ContainsSubstring("the number of rounds must be at least 1 (rounds = 0)"));
  CHECK_THAT(message_of<contract_error>([&] {
               (void)measure_paths<TestType>(comm, {.sizes = {8, 4}, .runs = {1}});
             }),
             ContainsSubstring("sizes and runs must ascend"));
  const Bytes other = comm.rank() == Rank{1} ? 2 : 1;
  CHECK_THAT(
      message_of<contract_error>(
          [&] { (void)measure_paths<TestType>(comm, {.sizes = {other}, .runs = {other}}); }),
      ContainsSubstring("rank 1 has sizes 2 where rank 0 has sizes 1, and rank 1 has runs 2"));
}

}  // namespace test_strided_exchange
