// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/memory/polymorphic.hpp>
#include <heddle/memory/source/from_space.hpp>
#include <heddle/memory/space.hpp>

#include "conformance.hpp"

namespace test_from_space {

namespace hm = heddle::memory;

// Of spaces that nobody vouches for it is not.
static_assert(hm::is_ipc_safe<hm::FromSpace<>>);
static_assert(!hm::is_ipc_safe<hm::FromSpace<hm::Space<hm::FromPolymorphic>>>);

TEST_CASE("memory of Kokkos' host space keeps to what a resource keeps to") {
  hm::FromSpace<> memory;
  memory_test::conforms(memory);
  hm::FromSpace<Kokkos::HostSpace> given{Kokkos::HostSpace()};
  memory_test::conforms(given, 1 << 20);
}

TEST_CASE("copies of FromSpace are one resource") {
  hm::FromSpace<> memory;
  auto copy = memory;
  for (const std::size_t alignment : {1, 64, 128, 4096, 1 << 20}) {
    void* const block = memory.allocate(97, alignment);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
    copy.deallocate(block, 97, alignment);
  }
}

TEST_CASE("FromSpace says which space had how much not") {
  hm::FromSpace<> memory;
  constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  const auto complaint = [&](std::size_t bytes, std::size_t alignment) -> std::string {
    try {
      (void)memory.allocate(bytes, alignment);
    } catch (const heddle::out_of_memory& error) {
      return error.what();
    }
    return "";
  };
#ifndef __SANITIZE_ADDRESS__  // which ends the program
  CHECK(
      complaint(std::size_t{1} << 60, 64)
          .starts_with("heddle::memory::FromSpace: Host cannot allocate 1152921504606846976 B ("));
  CHECK(
      complaint(std::size_t{1} << 60, 4096)
          .starts_with("heddle::memory::FromSpace: Host cannot allocate 1152921504606846976 B ("));
#endif
  CHECK(complaint(all, 4096) ==
        "heddle::memory::FromSpace: the address space cannot hold "
        "18446744073709551615 B (aligned to 4096 B)");
  CHECK_THROWS_AS(memory.allocate(all, 64), std::bad_alloc);
}

namespace {
std::vector<std::string> told;
}

TEST_CASE("tools see the blocks of FromSpace come and go") {
  told.clear();
  Kokkos::Tools::Experimental::set_allocate_data_callback([](const Kokkos::Tools::SpaceHandle space,
                                                             const char* label, const void*,
                                                             const std::uint64_t bytes) {
    told.push_back(std::string("+") + space.name + " " + label + " " + std::to_string(bytes));
  });
  Kokkos::Tools::Experimental::set_deallocate_data_callback(
      [](const Kokkos::Tools::SpaceHandle space, const char* label, const void*,
         const std::uint64_t bytes) {
        told.push_back(std::string("-") + space.name + " " + label + " " + std::to_string(bytes));
      });
  hm::FromSpace<> memory;
  memory.deallocate(memory.allocate(97, 8), 97, 8);
  memory.deallocate(memory.allocate(97, 128), 97, 128);
  Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr);
  Kokkos::Tools::Experimental::set_deallocate_data_callback(nullptr);
  CHECK(told == std::vector<std::string>{
                    "+Host heddle::memory::block 97", "-Host heddle::memory::block 97",
                    "+Host heddle::memory::block 161", "-Host heddle::memory::block 161"});
}

TEST_CASE("blocks of a device are aligned and come back") {
  using Device = Kokkos::DefaultExecutionSpace::memory_space;
  static_assert(std::is_same_v<hm::FromSpace<Device>::memory_space, Device>);
  hm::FromSpace<Device> memory;
  for (const std::size_t bytes : {0, 1, 97, 65537})
    for (const std::size_t alignment : {1, 64, 256, 4096, 65536}) {
      void* const block = memory.allocate(bytes, alignment);
      CHECK((block == nullptr) == (bytes == 0));
      CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
      memory.deallocate(block, bytes, alignment);
    }
}

}  // namespace test_from_space
