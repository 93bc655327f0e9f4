// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// message_memory(): one pool for a process, whoever asks, of what other processes reach.

#include <concepts>
#include <cstddef>
#include <thread>
#include <type_traits>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/memory/ipc_safe.hpp>
#include <heddle/memory/message_memory.hpp>
#include <heddle/memory/source/from_space.hpp>
#include <heddle/memory/source/pages.hpp>

namespace test_message_memory {

namespace memory = heddle::memory;
using Host = Kokkos::HostSpace;
using Messages = std::remove_reference_t<decltype(memory::message_memory<Host>())>;

static_assert(std::same_as<Messages, memory::Pool<memory::IpcSafe<memory::Pages>>>);
static_assert(memory::is_ipc_safe<Messages>);
static_assert(memory::is_ipc_safe<memory::FromSpace<Host>>);

TEST_CASE("message buffers are plain Views of one pool, which knows them") {
  auto& messages = memory::message_memory<Host>();
  CHECK(&messages == &memory::message_memory<Host>());
  const auto buffer = memory::message_buffer<Host>("buffer", 1000);
  static_assert(std::same_as<decltype(buffer), const Kokkos::View<std::byte*, Host>>);
  CHECK(buffer.size() == 1000);
  CHECK(buffer.label() == "buffer");
  CHECK(messages.owns(buffer.data()));
  CHECK(messages.upstream().owns(buffer.data() + 999));
  const Kokkos::View<std::byte*, Host> other("other", 1000);
  CHECK_FALSE(messages.owns(other.data()));
  CHECK(memory::message_buffer<Host>("none", 0).size() == 0);
}

TEST_CASE("what comes back is there for what comes next, until it is trimmed") {
  auto& messages = memory::message_memory<Host>();
  messages.trim();
  const std::size_t before = messages.reserved();
  constexpr std::size_t large = std::size_t{8} << 20;
  { const auto buffer = memory::message_buffer<Host>("large", large); }
  const std::size_t with = messages.reserved();
  CHECK(with >= before + large);
  { const auto buffer = memory::message_buffer<Host>("again", large); }
  CHECK(messages.reserved() == with);
  messages.trim();
  CHECK(messages.reserved() <= before);
}

TEST_CASE("threads take and give back buffers at once") {
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&wrong, t] {
      for (std::size_t round = 0; round < 200; ++round) {
        const auto buffer = memory::message_buffer<Host>("mine", 64 + 100 * round);
        buffer(0) = buffer(buffer.size() - 1) = static_cast<std::byte>(t);
        std::this_thread::yield();
        wrong[t] += buffer(0) == static_cast<std::byte>(t) ? 0 : 1;
        wrong[t] += memory::message_memory<Host>().owns(buffer.data()) ? 0 : 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

}  // namespace test_message_memory
