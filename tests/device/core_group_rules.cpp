// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The rules of the machine that the emulated core group enforces: for each a kernel that breaks it,
// on one core, and what is said then.

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/device/core_group.hpp>

#include "support/complaint.hpp"

namespace test_core_group_rules {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

constexpr CoreGroupOptions small_memory{.local_memory = 64 * 1024, .host_threads = 2};
constexpr CoreGroupOptions large_memory{.host_threads = 2};

/// Calls body(core) on one core only.
template <class Body>
struct OnlyOn {
  int index;
  Body body;
  void operator()(Core& core) const {
    if (core.index() == index) body(core);
  }
};

/// What a launch says in which core 42 does what `body` does.
template <class Body>
std::string said(const CoreGroupOptions& options, Cooperative cooperative, Body body) {
  CoreGroup group(options);
  const OnlyOn<Body> kernel{42, body};
  const std::string message = test::message_of<contract_error>(
      [&] { group.launch("heddle::test::broken", kernel, cooperative); });
  CHECK_THAT(message, StartsWith("kernel \"heddle::test::broken\" on core 42 (row 5, column 2): "));
  return message;
}
template <class Body>
std::string said(Body body) {
  return said(large_memory, Cooperative::no, body);
}

/// Main memory that kernels move to and from.
alignas(128) std::array<std::byte, 600 * 1024> memory{};

}  // namespace

TEST_CASE("local memory has its size and no more", "[core_group]") {
  constexpr std::size_t tile = 82192;  // 4 + 2 rows of 1024 + 2 doubles and 4 rows of 1024
  const auto fill = [](Core& core) { std::memset(core.allocate(tile), 1, tile); };
  CHECK_THAT(said(small_memory, Cooperative::no, fill),
             ContainsSubstring("local memory is exhausted") &&
                 ContainsSubstring("82192 bytes asked for") && ContainsSubstring("of 57344 free") &&
                 ContainsSubstring("smaller tiles"));
  CoreGroup group(large_memory);
  group.launch("fill", fill);
  CHECK(group.last_launch().local_peak >= tile);

  // Many small blocks come to the same end, and a released one may be used again.
  CHECK_THAT(said([](Core& core) {
               for (;;) (void)core.allocate(1000);
             }),
             ContainsSubstring("1000 bytes asked for"));
  CHECK_THAT(said([](Core& core) { (void)core.allocate(~std::size_t{0}); }),
             ContainsSubstring("local memory is exhausted"));
  group.launch("again and again", [](Core& core) {
    const std::size_t mark = core.mark();
    for (int i = 0; i < 100; ++i) {
      (void)core.allocate(200000);
      core.release(mark);
    }
    // The kernel's own copy is there already, all else is free.
    if (core.local_free() + core.mark() != 248 * 1024) throw std::logic_error("wrong size");
  });
  CHECK_THAT(said([](Core& core) {
               const std::size_t before = core.mark();
               (void)core.allocate(100);
               const std::size_t after = core.mark();
               core.release(before);
               core.release(after);
             }),
             ContainsSubstring("release() of a mark that was released before"));
}

TEST_CASE("heap, stack and cache divide the local memory", "[core_group]") {
  const auto heap_of = [](CoreGroupOptions options) {
    options.host_threads = 1;
    CoreGroup group(options);
    std::size_t found = 0;
    group.launch("size",
                 OnlyOn{0, [&found](Core& core) { found = core.mark() + core.local_free(); }});
    CHECK(found == options.heap());
    return found;
  };
  CHECK(heap_of({}) == (256 - 8) * 1024);
  CHECK(heap_of({.cache = 128 * 1024}) == (256 - 8 - 128) * 1024);
  CHECK(heap_of({.local_memory = 64 * 1024, .cache = 32 * 1024, .stack = 0}) == 32 * 1024);
  CHECK(heap_of({.stack = 128}) == 256 * 1024 - 128);

  const auto refusal = [](CoreGroupOptions options) {
    return test::message_of<contract_error>([&] { CoreGroup group(options); });
  };
  CHECK_THAT(refusal({.local_memory = 512 * 1024}),
             ContainsSubstring("more local memory than any core has") &&
                 ContainsSubstring("local memory 524288"));
  CHECK_THAT(refusal({.stack = 100}), ContainsSubstring("multiples of 128 bytes"));
  CHECK_THAT(refusal({.cache = 129 * 1024}), ContainsSubstring("at most half"));
  CHECK_THAT(refusal({.cache = 128 * 1024, .stack = 128 * 1024}),
             ContainsSubstring("leave no heap"));
  CHECK_THAT(refusal({.local_memory = 0}), ContainsSubstring("leave no heap"));
  CHECK_THAT(refusal({.host_threads = -1}), ContainsSubstring("host_threads = -1"));
}

TEST_CASE("behind each local memory lies a page that nobody can touch", "[core_group]") {
  // The system call says whether an address can be read, without the fault.
  const int null = open("/dev/null", O_WRONLY);
  std::array<int, 2> channel{};
  REQUIRE((null >= 0 && pipe(channel.data()) == 0));
  for (const std::size_t stack : {8 * 1024, 128}) {
    CoreGroup group({.stack = stack, .host_threads = 1});
    struct Touch {
      int channel;
      int* readable;
      void operator()(Core& core) const {
        const std::size_t bytes = core.local_free() / 128 * 128;
        const auto* const end = static_cast<std::byte*>(core.allocate(bytes, 128)) + bytes;
        *readable += write(channel, end - 1, 1) == 1 ? 1 : 0;
        *readable += write(channel, end, 1) == 1 || errno != EFAULT ? 1000 : 0;
      }
    };
    int readable = 0;
    group.launch("touch", Touch{channel[1], &readable});
    CHECK(readable == CoreGrid::cores);
  }
  close(null), close(channel[0]), close(channel[1]);
}

TEST_CASE("the two sides of a transfer lie where they belong", "[core_group]") {
  CHECK_THAT(said([](Core& core) {
               std::array<int, 4> on_the_stack{};
               core.get(on_the_stack.data(), memory.data(), 16, core.reply());
             }),
             ContainsSubstring("get: the local side is not in the core's allocated local memory") &&
                 ContainsSubstring("16 bytes at 0x") && ContainsSubstring("Core::allocate()"));
  CHECK_THAT(said([](Core& core) {
               void* const block = core.allocate(16);
               core.put(memory.data(), block, 32, core.reply());  // more than there is
             }),
             ContainsSubstring("put: the local side is not in"));
  CHECK_THAT(said([](Core& core) {
               const std::size_t mark = core.mark();
               void* const block = core.allocate(16);
               core.release(mark);
               core.get(block, memory.data(), 16, core.reply());
             }),
             ContainsSubstring("get: the local side is not in"));
  CHECK_THAT(said([](Core& core) {
               void* const a = core.allocate(16);
               void* const b = core.allocate(16);
               core.get(a, b, 16, core.reply());
             }),
             ContainsSubstring("get: the memory side is not in main memory") &&
                 ContainsSubstring("rma_put or rma_get"));
  CHECK_THAT(said([](Core& core) { core.put(nullptr, core.allocate(16), 16, core.reply()); }),
             ContainsSubstring("put: the memory side is not in main memory"));

  // Another core's local memory is not main memory either.
  struct Neighbour {
    std::array<void*, CoreGrid::cores>* blocks;
    bool use;
    void operator()(Core& core) const {
      void* const mine = core.allocate(16);
      if (!use) (*blocks)[static_cast<std::size_t>(core.index())] = mine;
      if (use && core.index() == 7) core.get(mine, (*blocks)[8], 16, core.reply());
    }
  };
  CoreGroup group(large_memory);
  std::array<void*, CoreGrid::cores> blocks{};
  group.launch("who", Neighbour{&blocks, false});
  CHECK_THAT(test::message_of<contract_error>([&] {
               group.launch("spy", Neighbour{&blocks, true});
             }),
             ContainsSubstring("kernel \"spy\" on core 7 (row 0, column 7)") &&
                 ContainsSubstring("the memory side is not in main memory"));
}

TEST_CASE("a transfer has a length and an alignment", "[core_group]") {
  const auto get = [](std::size_t bytes, std::size_t local_offset, std::size_t offset) {
    return [=](Core& core) {
      auto* const block = core.allocate<std::byte>(240 * 1024);
      core.get(block + local_offset, memory.data() + offset, bytes, core.reply());
    };
  };
  CHECK_THAT(said(get(0, 0, 0)),
             ContainsSubstring("at least 4 bytes") && ContainsSubstring("(0 bytes)"));
  CHECK_THAT(said(get(256 * 1024, 0, 0)),
             ContainsSubstring("less than 256 KB") && ContainsSubstring("262144 bytes"));
  CHECK_THAT(said(get(6, 0, 0)), ContainsSubstring("get: sizes must be multiples of 4 bytes"));
  CHECK_THAT(said(get(8, 2, 0)), ContainsSubstring("get: addresses must be multiples of 4 bytes"));
  CHECK_THAT(said(get(8, 0, 2)), ContainsSubstring("get: addresses must be multiples of 4 bytes") &&
                                     ContainsSubstring("direct loads or stores"));
  const auto strided = [](std::size_t bytes, std::size_t piece, std::size_t gap) {
    return [=](Core& core) {
      core.put_strided(memory.data(), core.allocate(1024), bytes, piece, gap, core.reply());
    };
  };
  CHECK_THAT(said(strided(100, 16, 0)),
             ContainsSubstring("put: the pieces of a strided transfer must be equally long") &&
                 ContainsSubstring("100 bytes in pieces of 16"));
  CHECK_THAT(said(strided(16, 0, 4)), ContainsSubstring("equally long"));
  CHECK_THAT(said(strided(12, 6, 0)), ContainsSubstring("in pieces of 6 with gaps of 0"));
  CHECK_THAT(said(strided(16, 8, 2)), ContainsSubstring("in pieces of 8 with gaps of 2"));
  // The longest that fits the memory of a core is fine.
  CoreGroup group({.stack = 1024, .host_threads = 1});
  group.launch("long", OnlyOn{3, [](Core& core) {
                                Reply& reply = core.reply();
                                const std::size_t bytes = core.local_free() / 4 * 4 - 64;
                                core.get(core.allocate(bytes), memory.data(), bytes, reply);
                                core.wait(reply, 1);
                              }});
  CHECK(group.last_launch().get_bytes > 254 * 1024);
}

TEST_CASE("a transfer is invisible until it is waited for", "[core_group]") {
  struct Look {
    std::uint32_t* numbers;  // 64 * 4
    std::uint32_t* seen;     // 64 * 3

    void operator()(Core& core) const {
      std::uint32_t* const mine = numbers + 4 * core.index();
      std::uint32_t* const look = seen + 3 * core.index();
      auto* const local = core.allocate<std::uint32_t>(4);
      Reply& first = core.reply();
      Reply& second = core.reply();
      core.get(local, mine, 8, first);
      core.get(local + 2, mine + 2, 8, second);
      look[0] = local[1];
      core.wait(second, 1);  // which does not show the first
      look[1] = local[1];
      core.wait(first, 1);
      local[3] = local[0] + local[1] + local[2];
      core.put(mine, local + 3, 4, first);
      look[2] = mine[0];
      core.wait(first, 2);
    }
  };
  std::vector<std::uint32_t> numbers(64 * 4), seen(64 * 3);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint32_t>(i);
  CoreGroup group(large_memory);
  group.launch("look", Look{numbers.data(), seen.data()});
  for (std::uint32_t core = 0; core < 64; ++core) {
    CHECK(seen[3 * core] == 0xffffffff);
    CHECK(seen[3 * core + 1] == 0xffffffff);
    CHECK(seen[3 * core + 2] == 4 * core);
    CHECK(numbers[4 * core] == 3 * 4 * core + 3);
  }
}

TEST_CASE("transfers are waited for, and waits can be met", "[core_group]") {
  CHECK_THAT(said([](Core& core) {
               core.get(core.allocate(64), memory.data(), 64, core.reply());
               core.put(memory.data(), core.allocate(32), 32, core.reply());
             }),
             ContainsSubstring("the kernel ends with transfers that nobody waited for") &&
                 ContainsSubstring("2 of them, the first a get of 64 bytes"));
  CHECK_THAT(said([](Core& core) {
               Reply& reply = core.reply();
               core.get(core.allocate(64), memory.data(), 64, reply);
               core.wait(reply, 2);
             }),
             ContainsSubstring("a wait that can never be met") &&
                 ContainsSubstring("for a count of 2 where it is 1"));
  // In a cooperative launch too, though another core's transfer could count on the reply.
  CHECK_THAT(said(large_memory, Cooperative::yes, [](Core& core) { core.wait(core.reply(), 1); }),
             ContainsSubstring("a wait that can never be met") &&
                 ContainsSubstring("for a count of 1 where it is 0"));
}

TEST_CASE("memory that a transfer uses is not released", "[core_group]") {
  const auto release_with = [](auto transfer) {
    return [transfer](Core& core) {
      Reply& outer = core.reply();
      void* const kept = core.allocate(64);
      const std::size_t mark = core.mark();
      transfer(core, kept, core.allocate(32), outer);
      core.release(mark);
    };
  };
  CHECK_THAT(said(release_with([](Core& core, void*, void* inner, Reply& reply) {
               core.get(inner, memory.data(), 32, reply);
             })),
             ContainsSubstring("release() of memory that a transfer uses (a get of 32 bytes)") &&
                 ContainsSubstring("wait() for it first"));
  CHECK_THAT(said(release_with([](Core& core, void*, void* inner, Reply& reply) {
               core.put(memory.data(), inner, 32, reply);
             })),
             ContainsSubstring("(a put of 32 bytes)"));
  CHECK_THAT(said(release_with([](Core& core, void* kept, void*, Reply&) {
               core.get(kept, memory.data(), 64, core.reply());
             })),
             ContainsSubstring("(a get of 64 bytes)"));
  // A transfer over two blocks, of which the first is kept: 64 bytes, and the next 32.
  CHECK_THAT(said(release_with([](Core& core, void* kept, void*, Reply& reply) {
               core.get(kept, memory.data(), 96, reply);
             })),
             ContainsSubstring("(a get of 96 bytes)"));
  // What is kept, and what has been waited for, does not matter.
  CoreGroup group(large_memory);
  group.launch("fine", [](Core& core) {
    Reply& reply = core.reply();
    void* const kept = core.allocate(64);
    const std::size_t mark = core.mark();
    core.get(core.allocate(64), memory.data(), 64, reply);
    core.wait(reply, 1);
    core.get(kept, memory.data(), 64, reply);
    core.release(mark);
    core.wait(reply, 2);
  });
  CHECK(group.last_launch().get_requests == 128);
}

TEST_CASE("a reply lies in local memory", "[core_group]") {
  CHECK_THAT(said([](Core& core) {
               Reply on_the_stack;
               core.get(core.allocate(64), memory.data(), 64, on_the_stack);
             }),
             ContainsSubstring("get: the reply is not in the core's local memory") &&
                 ContainsSubstring("Core::reply()"));
  CHECK_THAT(said([](Core& core) {
               Reply on_the_stack;
               core.wait(on_the_stack, 0);
             }),
             ContainsSubstring("wait: the reply is not in"));
}

TEST_CASE("kernels are copied bitwise into local memory, where they take room", "[core_group]") {
  struct Selfish {
    const Selfish* self = this;  // what a bitwise copy does not keep right
    int* right;
    int* outside;
    void operator()(Core& core) const {
      right[core.index()] = self == this;
      const auto* const block = static_cast<const std::byte*>(core.allocate(1));
      const auto distance = block - reinterpret_cast<const std::byte*>(this);
      outside[core.index()] = distance < 0 || distance > 1024;
    }
  };
  std::array<int, 64> right{}, outside{};
  Selfish kernel;
  kernel.right = right.data(), kernel.outside = outside.data();
  right.fill(2);
  CoreGroup group(small_memory);
  group.launch("selfish", kernel);
  CHECK(right == std::array<int, 64>{});
  CHECK(outside == std::array<int, 64>{});

  struct Huge {
    std::array<std::byte, 60 * 1024> table{};
    void operator()(Core&) const {}
  };
  CHECK_THAT(test::message_of<contract_error>([&] { group.launch("huge", Huge{}); }),
             ContainsSubstring("kernel \"huge\" on core 0 (row 0, column 0): local memory is "
                               "exhausted") &&
                 ContainsSubstring("61440 bytes asked for"));
  CoreGroup large(large_memory);
  large.launch("huge", Huge{});
  CHECK(large.last_launch().local_peak == sizeof(Huge));
}

TEST_CASE("what waits for other cores needs a cooperative launch", "[core_group]") {
  const std::string outside = " outside a cooperative launch";
  CHECK_THAT(said([](Core& core) { core.synchronise(); }),
             ContainsSubstring("synchronise" + outside) && ContainsSubstring("Cooperative::yes"));
  CHECK_THAT(said([](Core& core) { core.synchronise_row(); }),
             ContainsSubstring("synchronise_row" + outside));
  CHECK_THAT(said([](Core& core) { core.synchronise_column(); }),
             ContainsSubstring("synchronise_column" + outside));
  CHECK_THAT(said([](Core& core) {
               void* const block = core.allocate(8);
               core.rma_put(1, block, block, 8, core.reply(), core.reply());
             }),
             ContainsSubstring("rma_put" + outside));
  CHECK_THAT(said([](Core& core) {
               void* const block = core.allocate(8);
               core.rma_get(block, 1, block, 8, core.reply(), core.reply());
             }),
             ContainsSubstring("rma_get" + outside));
  CHECK_THAT(said([](Core& core) { core.broadcast(core.allocate(8), nullptr, 8, 0); }),
             ContainsSubstring("broadcast" + outside));
}

TEST_CASE("a kernel that throws ends its core, with its message", "[core_group]") {
  CHECK_THAT(said([](Core&) { throw std::runtime_error("no such luck"); }),
             ContainsSubstring("the kernel threw (no such luck)") &&
                 ContainsSubstring("a core has no exceptions"));
  CHECK_THAT(said([](Core&) { throw 42; }), ContainsSubstring("unknown exception"));
  CHECK_THAT(said([](Core&) {
               throw contract_error({"elsewhere", "something else"});
             }),
             ContainsSubstring("the kernel threw (elsewhere: something else)"));
  CoreGroup group(large_memory);
  CHECK_THAT(said([&group](Core&) { group.launch("inner", [](Core&) {}); }),
             ContainsSubstring("a core cannot launch a kernel: \"inner\""));
  // It would wait for its own launch.
  const auto no_counters =
      ContainsSubstring("a core cannot ask for the counters; ask when the launch has returned");
  CHECK_THAT(said([&group](Core&) { (void)group.last_launch(); }), no_counters);
  CHECK_THAT(said([&group](Core&) { (void)group.total(); }), no_counters);
  CHECK_THAT(said([&group](Core&) { group.reset_counters(); }), no_counters);
}

TEST_CASE("the first core's error is thrown though another core fails earlier", "[core_group]") {
  // Core 0 takes long, so that the other host thread runs core 51 while the caller runs core 12.
  struct Late {
    std::atomic<bool>* failed;
    void operator()(Core& core) const {
      using namespace std::chrono_literals;
      if (core.index() == 0) std::this_thread::sleep_for(2ms);
      if (core.index() == 12) {
        const auto end = std::chrono::steady_clock::now() + 10s;
        while (!*failed && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        std::this_thread::sleep_for(5ms);
      }
      if (core.index() == 51) *failed = true;
      if (core.index() == 12 || core.index() == 51) (void)core.allocate(1 << 20);
    }
  };
  CoreGroup group({.host_threads = 2});
  std::atomic<bool> failed = false;
  CHECK_THAT(test::message_of<contract_error>([&] { group.launch("late", Late{&failed}); }),
             ContainsSubstring("on core 12 (row 1, column 4)"));
  CHECK(failed);
}

TEST_CASE("of several errors the one on the first core is thrown; the group goes on",
          "[core_group]") {
  CoreGroup group({.host_threads = 3});
  for (int round = 0; round < 20; ++round) {
    CHECK_THAT(test::message_of<contract_error>([&] {
                 group.launch("several", [](Core& core) {
                   if (core.index() % 13 == 12) core.release(core.mark() + 1);
                 });
               }),
               ContainsSubstring("on core 12 (row 1, column 4)"));
    int runs = 0;
    group.launch("well", OnlyOn{63, [&runs](Core& core) {
                                  Reply& reply = core.reply();
                                  core.get(core.allocate(64), memory.data(), 64, reply);
                                  core.wait(reply, 1);
                                  ++runs;
                                }});
    CHECK(runs == 1);
    CHECK(current_core() == nullptr);
  }
}

}  // namespace test_core_group_rules
