// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// IpcSafe: what may be wrapped, and whose an address is.

#include <cstddef>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/memory/any_resource.hpp>
#include <heddle/memory/arena.hpp>
#include <heddle/memory/fallback.hpp>
#include <heddle/memory/ipc_safe.hpp>
#include <heddle/memory/limit.hpp>
#include <heddle/memory/polymorphic.hpp>
#include <heddle/memory/source/ldm.hpp>
#include <heddle/memory/source/mapped.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/source/segment.hpp>

#include "memory/conformance.hpp"
#include "memory/failing.hpp"

namespace test_ipc_safe {

namespace hd = heddle;
namespace memory = heddle::memory;

using memory::is_ipc_safe;
static_assert(is_ipc_safe<memory::Pages>);
static_assert(!is_ipc_safe<memory::Mapped>);
static_assert(is_ipc_safe<memory::Ref<memory::Arena<memory::Limit<memory::Pages>>>>);
static_assert(is_ipc_safe<memory::IpcSafe<memory::Segment<memory::Pages>>>);
static_assert(is_ipc_safe<memory::Fallback<memory::Pages, memory::Segment<memory::Pages>>>);
static_assert(!is_ipc_safe<memory::Fallback<memory::Pages, memory::Mapped>>);
static_assert(!is_ipc_safe<memory::Fallback<memory::Pages, memory::Ldm>>);
static_assert(!is_ipc_safe<memory::Ldm>);
static_assert(!is_ipc_safe<memory::AnyResource>);
static_assert(!is_ipc_safe<memory::Limit<memory::FromPolymorphic>>);

TEST_CASE("safe blocks conform") {
  memory::IpcSafe safe(memory::Pages{});
  memory_test::conforms(safe, 1 << 20);
}

TEST_CASE("an address is its own as long as the block is out") {
  memory::Segment segment(1 << 20);
  memory::IpcSafe safe(segment);
  auto* const block = static_cast<std::byte*>(safe.allocate(1000, 64));
  auto* const other = static_cast<std::byte*>(segment.allocate(1000, 64));
  CHECK(safe.owns(block));
  CHECK(safe.owns(block + 999));
  CHECK_FALSE(safe.owns(block + 1000));
  CHECK_FALSE(safe.owns(block - 1));
  CHECK_FALSE(safe.owns(other));
  CHECK_FALSE(safe.owns(nullptr));
  safe.deallocate(block, 1000, 64);
  CHECK_FALSE(safe.owns(block));
  segment.deallocate(other, 1000, 64);
  CHECK(segment.used() == 0);
}

TEST_CASE("what a block grows by is its own, too") {
  const std::size_t page = memory::Pages::page();
  memory::IpcSafe safe(memory::Pages(memory::HugePages::no, std::size_t{1} << 30));
  auto* const block = static_cast<std::byte*>(safe.allocate(page, page));
  CHECK_FALSE(safe.owns(block + page));
  REQUIRE(safe.extend(block, page, page));
  CHECK(safe.owns(block + 2 * page - 1));
  CHECK_FALSE(safe.owns(block + 2 * page));
  CHECK_FALSE(safe.extend(block, 2 * page, std::size_t{2} << 30));
  safe.shrink(block, 2 * page, page);
  CHECK(safe.owns(block + page - 1));
  CHECK_FALSE(safe.owns(block + page));
  safe.deallocate(block, page, page);
}

TEST_CASE("a failure below what is safe loses nothing") {
  memory::Limit limit(memory::Pages{}, 200'000);
  memory::IpcSafe safe(limit);
  CHECK_THROWS_AS(memory_test::use_some(safe), hd::out_of_memory);
  CHECK(limit.used() == 0);
}

}  // namespace test_ipc_safe
