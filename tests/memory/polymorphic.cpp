// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// Polymorphic and FromPolymorphic: std::pmr over resources, and the other way.

#include <cstddef>
#include <memory_resource>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/memory/arena.hpp>
#include <heddle/memory/limit.hpp>
#include <heddle/memory/polymorphic.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/tier/cache.hpp>
#include <heddle/tier/store.hpp>

#include "memory/conformance.hpp"
#include "memory/failing.hpp"
#include "support/complaint.hpp"
#include "support/small_store.hpp"

namespace test_polymorphic {

namespace hd = heddle;
namespace memory = heddle::memory;
using hd::test::message_of;

TEST_CASE("containers of std::pmr have the blocks of a resource") {
  memory_test::Failing heap;
  {
    memory::Polymorphic resource(heap);
    std::pmr::vector<std::pmr::string> words(&resource);
    for (int i = 0; i < 100; ++i) words.emplace_back(static_cast<std::size_t>(i), 'x');
    CHECK(heap.owns(words.data()));
    CHECK(heap.owns(words[99].data()));
    CHECK(resource.is_equal(resource));
    memory::Polymorphic other(heap);
    CHECK_FALSE(resource.is_equal(other));
    void* const nothing = resource.allocate(0, 1);
    CHECK(nothing != nullptr);
    resource.deallocate(nothing, 0, 1);
  }
  CHECK(heap.blocks() == 0);
  CHECK(heap.wrong() == 0);
  memory::Polymorphic few(memory::Limit(memory::Pages{}, 100));
  CHECK_THROWS_AS(std::pmr::vector<int>(26, &few), hd::out_of_memory);
  CHECK(few.upstream().used() == 0);
}

TEST_CASE("blocks of std::pmr conform") {
  memory::FromPolymorphic resource(std::pmr::new_delete_resource());
  memory_test::conforms(resource, 1 << 20);
  memory_test::Failing heap;
  memory::Polymorphic there(heap);
  memory::FromPolymorphic back(&there);
  memory_test::conforms(back, 1 << 18);
  CHECK(heap.blocks() == 0);
  CHECK(heap.wrong() == 0);
  memory::FromPolymorphic usual;
  usual.deallocate(usual.allocate(100, 64), 100, 64);
}

TEST_CASE("a cache of a slower tier has its objects in the blocks of a resource") {
  const hd::test::TestFolder folder("polymorphic");
  hd::test::write_experts(folder.file("weights.tier"), {64, 64, 64});
  hd::tier::Store store({.file = folder.file("weights.tier")});
  memory::Polymorphic resource(memory::Limit(memory::Pages{}, 512));
  {
    hd::tier::Cache cache(store, {.capacity = 512, .memory = &resource});
    for (const char* name : {"expert 0", "expert 1", "expert 2"})
      CHECK(cache.get(name).as<float>().size() == 64);
    CHECK(resource.upstream().used() == 512);
  }
  CHECK(resource.upstream().used() == 0);
}

TEST_CASE("what std::pmr has not is out of memory") {
  memory::FromPolymorphic resource(std::pmr::null_memory_resource());
  CHECK(message_of<hd::out_of_memory>([&] { (void)resource.allocate(5, 1); }) ==
        "heddle::memory::FromPolymorphic: the std::pmr resource cannot allocate 5 B");
  CHECK(memory_test::each_failure([](memory_test::Failing& heap) {
          memory::Polymorphic there(heap);
          memory::FromPolymorphic back(&there);
          memory_test::use_some(back);
        }) == 12);
}

}  // namespace test_polymorphic
