// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// NcclWire under WiredTransport: messages between the memories of devices, where there is a device
/// for each rank. Elsewhere this only compiles and links; what the transport does with a wire that
/// is like NCCL's is tested in tests/execute/wired_transport.cpp and
/// tests/comm/wired_transport.cpp.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/nccl_wire.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/await.hpp>

#include "support/world.hpp"

namespace {

namespace hd = heddle;

/// Memory of the device, filled with or read as bytes of the host.
class DeviceBytes {
 public:
  explicit DeviceBytes(const std::vector<std::byte>& bytes) : m_bytes(bytes.size()) {
    REQUIRE(HEDDLE_GPU(Malloc)(&m_data, m_bytes) == HEDDLE_GPU(Success));
    REQUIRE(HEDDLE_GPU(Memcpy)(m_data, bytes.data(), m_bytes, HEDDLE_GPU(MemcpyDefault)) ==
            HEDDLE_GPU(Success));
  }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes() { static_cast<void>(HEDDLE_GPU(Free)(m_data)); }

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(m_data); }
  [[nodiscard]] std::vector<std::byte> host() const {
    std::vector<std::byte> bytes(m_bytes);
    REQUIRE(HEDDLE_GPU(Memcpy)(bytes.data(), m_data, m_bytes, HEDDLE_GPU(MemcpyDefault)) ==
            HEDDLE_GPU(Success));
    return bytes;
  }

 private:
  std::size_t m_bytes;
  void* m_data = nullptr;
};

/// What rank `rank` sends on lane `lane`.
std::vector<std::byte> words(int rank, std::uint32_t lane, std::size_t bytes) {
  std::vector<std::byte> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    all[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(rank) * 31 + lane);
  return all;
}

TEST_CASE("messages of all pairs between devices, on several lanes, the last one received first") {
  int devices = 0;
  if (HEDDLE_GPU(GetDeviceCount)(&devices) != HEDDLE_GPU(Success)) devices = 0;
  if (devices < hd::test::world_size())
    SKIP(hd::text("needs a GPU for each rank: ", hd::test::world_size(), " ranks, ", devices,
                  " GPUs"));
  REQUIRE(HEDDLE_GPU(SetDevice)(hd::test::world_rank()) == HEDDLE_GPU(Success));
  const hd::Communicator comm(MPI_COMM_WORLD);
  hd::MpiTransport announcements(comm.get());
  hd::NcclWire wire(comm);
  hd::NcclTransport transport(announcements, wire);
  constexpr std::uint32_t lanes = 3;
  const auto bytes_of = [](std::uint32_t lane) { return std::size_t{1'000'003} / (lane + 1); };
  std::vector<hd::NcclTransport::Request> requests;
  std::vector<std::unique_ptr<DeviceBytes>> sent, received;
  for (int peer = 0; peer < comm.size(); ++peer)
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      const auto mine = words(hd::test::world_rank(), lane, bytes_of(lane));
      sent.push_back(std::make_unique<DeviceBytes>(mine));
      requests.push_back(
          transport.send(hd::Rank{peer}, hd::Lane{lane}, sent.back()->data(), bytes_of(lane)));
    }
  for (int peer = 0; peer < comm.size(); ++peer)
    for (std::uint32_t lane = lanes; lane-- > 0;) {
      received.push_back(std::make_unique<DeviceBytes>(std::vector<std::byte>(bytes_of(lane))));
      requests.push_back(transport.receive(hd::Rank{peer}, hd::Lane{lane}, received.back()->data(),
                                           bytes_of(lane)));
    }
  for (auto& request : requests)
    hd::impl::await(
        transport, request, hd::Idle::yield, 60, [] { return std::string("the test"); },
        [] {
          return hd::ErrorInfo{"the test", "a message did not complete"};
        });
  std::size_t next = 0;
  for (int peer = 0; peer < comm.size(); ++peer)
    for (std::uint32_t lane = lanes; lane-- > 0; ++next)
      CHECK(received[next]->host() == words(peer, lane, bytes_of(lane)));
}

}  // namespace
