// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// timeout: 240

/// @file
/// DeviceTransport on the one memory space that every machine has, with the staging that devices
/// need switched on: what is tested is everything but the device's own copies.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <mpi.h>

#include <heddle/comm/device_transport.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/memory/message_memory.hpp>

#include "support/transport_battery.hpp"

namespace test_device_transport {

namespace {

using heddle::Bytes;
using heddle::DevicePath;
using heddle::Lane;
using heddle::MpiTransport;
using heddle::Rank;
using OverMpi = heddle::DeviceTransport<MpiTransport, Kokkos::HostSpace>;
using OverThreads = heddle::DeviceTransport<heddle::ThreadTransport, Kokkos::HostSpace>;
static_assert(heddle::Transport<OverMpi> && heddle::Transport<OverThreads>);

TEST_CASE("it carries what any transport carries, directly and staged") {
  const auto path = GENERATE(DevicePath::automatic, DevicePath::direct, DevicePath::staged);
  MpiTransport inner(MPI_COMM_WORLD);
  OverMpi transport(inner, path);
  REQUIRE_NOTHROW(heddle::test::transport_battery(transport));
  CHECK(transport.path() == (path == DevicePath::staged ? path : DevicePath::direct));
  CHECK((transport.staging_bytes() > 0) == (path == DevicePath::staged));
}

TEST_CASE("it carries messages of threads, too") {
  for (const auto path : {DevicePath::direct, DevicePath::staged})
    CHECK_NOTHROW(heddle::run_threads(3, [&](heddle::ThreadTransport& inner) {
      OverThreads transport(inner, path);
      heddle::test::transport_battery(transport);
    }));
}

TEST_CASE("aborts reach every rank through it, and give all memory back") {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int failing = 0; failing < size; ++failing) {
    for (const auto path : {DevicePath::direct, DevicePath::staged}) {
      MpiTransport inner(MPI_COMM_WORLD);
      OverMpi transport(inner, path);
      CAPTURE(failing, heddle::text(transport));
      REQUIRE_NOTHROW(heddle::test::transport_abort_battery(transport, Rank{failing}));
    }
  }
}

TEST_CASE("a staged send is done with its memory when it returns; a receive's waits for the test") {
  MpiTransport inner(MPI_COMM_SELF);
  OverMpi transport(inner, DevicePath::staged);
  for (const Bytes bytes : {Bytes{1}, Bytes{7}, Bytes{1'000'003}}) {
    std::vector<std::byte> from(bytes, std::byte{5});
    std::vector<std::byte> to(bytes, std::byte{9});
    auto receive = transport.receive(Rank{0}, Lane{0}, to.data(), bytes);
    auto send = transport.send(Rank{0}, Lane{0}, from.data(), bytes);
    std::fill(from.begin(), from.end(), std::byte{0});
    const auto nowhere = [] { return std::string("test"); };
    const auto stuck = [] { return heddle::ErrorInfo{"test", "stuck"}; };
    heddle::impl::await(transport, send, heddle::Idle::yield, 60, nowhere, stuck);
    CHECK(to == std::vector<std::byte>(bytes, std::byte{9}));
    heddle::impl::await(transport, receive, heddle::Idle::yield, 60, nowhere, stuck);
    CHECK(to == std::vector<std::byte>(bytes, std::byte{5}));
    CHECK(transport.test(receive));  // once complete, it stays so
  }
}

TEST_CASE("blocks of host memory are used again") {
  MpiTransport inner(MPI_COMM_SELF);
  OverMpi transport(inner, DevicePath::staged);
  std::byte from[64] = {};
  std::byte to[64] = {};
  for (int round = 0; round < 100; ++round) {
    auto receive = transport.receive(Rank{0}, Lane{0}, to, 64);
    auto send = transport.send(Rank{0}, Lane{0}, from, 64);
    while (!transport.test(receive) || !transport.test(send)) continue;
  }
  CHECK(transport.staging_bytes() == 2 * 64);
}

TEST_CASE("owned memory of messages is handed over, other is staged") {
  MpiTransport inner(MPI_COMM_SELF);
  const auto carry = [](OverMpi& transport, const std::byte* from, std::byte* to) {
    auto receive = transport.receive(Rank{0}, Lane{0}, to, 1000);
    auto send = transport.send(Rank{0}, Lane{0}, from, 1000);
    while (!transport.test(receive) || !transport.test(send)) continue;
    CHECK(std::equal(from, from + 1000, to));
  };
  const auto filled = [](int seed) {
    const auto made = heddle::memory::message_buffer<Kokkos::HostSpace>("filled", 1000);
    for (int i = 0; i < 1000; ++i) made(i) = static_cast<std::byte>(i * seed);
    return made;
  };
  const auto own_from = filled(3), own_to = filled(5);
  std::vector<std::byte> from(1000, std::byte{5}), to(1000);
  {
    OverMpi transport(inner, DevicePath::owned);
    CHECK(transport.path() == DevicePath::owned);
    carry(transport, own_from.data(), own_to.data());
    CHECK(transport.staging_bytes() == 0);
    carry(transport, own_from.data(), to.data());  // the receive alone
    CHECK(transport.staging_bytes() == 1000);
    carry(transport, from.data(), own_to.data());  // by the same block
    CHECK(transport.staging_bytes() == 1000);
    carry(transport, from.data(), to.data());
    CHECK(transport.staging_bytes() == 2000);
  }
  OverMpi transport(inner, DevicePath::owned);
  heddle::test::transport_battery(transport);
  CHECK(transport.staging_bytes() > 0);
}

TEST_CASE("what each path stands for") {
  using enum DevicePath;
  using heddle::ContractLevel;
  using heddle::impl::device_path;
  for (const auto level : {ContractLevel::local, ContractLevel::communication})
    for (const bool on_host : {false, true}) {
      CHECK(device_path(automatic, on_host, false, level) == staged);
      CHECK(device_path(owned, on_host, false, level) == staged);
      CHECK(device_path(direct, on_host, false, level) == direct);
      for (const auto path : {direct, staged, owned})
        CHECK(device_path(path, on_host, true, level) == path);
    }
  CHECK(device_path(automatic, true, true, ContractLevel::local) == direct);
  CHECK(device_path(automatic, false, true, ContractLevel::local) == direct);
  CHECK(device_path(automatic, true, true, ContractLevel::communication) == direct);
  CHECK(device_path(automatic, false, true, ContractLevel::communication) == owned);
}

TEST_CASE("it says which way messages go") {
  MpiTransport inner(MPI_COMM_SELF);
  CHECK(heddle::text(OverMpi(inner, DevicePath::staged)) ==
        "messages from and to Host go through host memory");
  CHECK(heddle::text(OverMpi(inner, DevicePath::owned)) ==
        "messages from and to Host go through host memory where theirs is not message_memory()");
  CHECK(heddle::text(OverMpi(inner)) == "messages from and to Host are handed over as they lie");
}

TEST_CASE("MPI takes the host's memory; what it says of devices is asked at run time") {
  CHECK(heddle::impl::gpu_aware<Kokkos::HostSpace>());
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  CHECK(heddle::impl::mpi_says(heddle::impl::Vendor::cuda) == (MPIX_Query_cuda_support() == 1));
#endif
  // An MPI without any such function takes none.
#if !defined(MPIX_ROCM_AWARE_SUPPORT) && !defined(MPIX_GPU_SUPPORT_HIP)
  CHECK_FALSE(heddle::impl::mpi_says(heddle::impl::Vendor::hip));
#endif
}

}  // namespace

}  // namespace test_device_transport
