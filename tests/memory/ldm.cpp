// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// Ldm: as much as a core of Sunway has.

#include <cstddef>
#include <cstdint>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/source/ldm.hpp>

#include "memory/conformance.hpp"
#include "memory/failing.hpp"
#include "support/complaint.hpp"

namespace test_ldm {

namespace hd = heddle;
namespace memory = heddle::memory;
using hd::test::message_of;

TEST_CASE("local memory conforms") {
  memory::Ldm ldm(std::size_t{1} << 20);
  memory_test::conforms(ldm, 1 << 17);
  CHECK(ldm.used() == 0);
}

TEST_CASE("local memory is that of a core, in multiples of 32 B") {
  memory::Ldm ldm(memory::Ldm::of_core, std::size_t{128} << 10);
  CHECK(ldm.bytes() == 131'072);
  void* const a = ldm.allocate(1, 1);
  void* const b = ldm.allocate(33, 8);
  CHECK(reinterpret_cast<std::uintptr_t>(b) - reinterpret_cast<std::uintptr_t>(a) == 32);
  CHECK(hd::text(ldm) == "96 B of 131072 B used, the largest free piece 130976 B");
  CHECK(ldm.owns(b));
  CHECK(message_of<hd::out_of_memory>([&] { (void)ldm.allocate(130'977, 8); }) ==
        "heddle::memory::Ldm: cannot allocate 131008 B aligned to 32 B (130976 B of 131072 B are "
        "free, the largest free piece has 130976 B)");
  ldm.deallocate(a, 1, 1);
  ldm.deallocate(b, 33, 8);
  CHECK(ldm.used() == 0);
}

TEST_CASE("local memory of which nothing is left is refused") {
  CHECK(message_of<hd::contract_error>([] { memory::Ldm ldm(1024, 1024); }) ==
        "heddle::memory::Ldm: cannot reserve 1024 B of 1024 B; pass multiples of 32 B, and "
        "reserve less than all");
  CHECK_THROWS_AS(memory::Ldm(1000), hd::contract_error);
}

}  // namespace test_ldm
