// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1

// A Store whose objects are in the memory in which kernels compute: a Cache reads and changes them
// as those of a file, and the file stays as it is.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/comm/space_source.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/tier/cache.hpp>
#include <heddle/tier/store.hpp>

#include "support/complaint.hpp"
#include "support/small_store.hpp"

namespace test_space_source {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using Exec = Kokkos::DefaultExecutionSpace;

namespace {

std::vector<float> values(const tier::Pinned& object) {
  const auto span = object.as<float>();
  return {span.begin(), span.end()};
}

}  // namespace

TEST_CASE("objects in device memory are read and written through a cache") {
  const test::TestFolder folder("space_source");
  const std::string file = folder.file("weights.tier");
  const std::vector<std::size_t> sizes{64, 5000, 1, 300};
  test::write_experts(file, sizes);
  tier::Store store(std::make_unique<SpaceSource<Exec>>(file),
                    {.model = "experts 1", .writable = true});
  {
    tier::Cache cache(store, {.capacity = 5001 * sizeof(float)});
    for (const std::size_t e : {0u, 1u, 2u, 3u, 1u, 0u})
      CHECK(values(cache.get(text("expert ", e))) == test::expert_weights(e, sizes[e]));
    {
      const tier::Pinned changed = cache.get("expert 3", Access::update);
      changed.writable_as<float>()[7] = -1;
    }
    static_cast<void>(cache.get("expert 1"));  // expert 3 leaves
    CHECK(store.counters().bytes_written == 300 * sizeof(float));
    CHECK(values(cache.get("expert 3"))[7] == -1);
  }
  tier::Store other({.file = file});
  tier::Cache before(other, {.capacity = 300 * sizeof(float)});
  CHECK(values(before.get("expert 3")) == test::expert_weights(3, 300));
}

TEST_CASE("a source in device memory names its file if bytes beyond its end are asked for") {
  const test::TestFolder folder("space_source_end");
  const std::string file = folder.file("weights.tier");
  test::write_experts(file, {64});
  const auto size = static_cast<std::size_t>(std::filesystem::file_size(file));
  SpaceSource<Exec> source(file);
  CHECK(source.bytes() == size);
  std::vector<std::byte> some(8);
  source.read(size - 8, some);
  CHECK_THAT(test::message_of<format_error>([&] { source.read(size - 7, some); }),
             ContainsSubstring(file) && ContainsSubstring(text(") of ", size)));
  CHECK_THAT(test::message_of<format_error>([&] { source.write(size + 1, some); }),
             ContainsSubstring("ends too early"));
  std::filesystem::resize_file(file, size / 2);
  CHECK_THAT(test::message_of<format_error>(
                 [&] { tier::Store cut(std::make_unique<SpaceSource<Exec>>(file), {}); }),
             ContainsSubstring(file));
  CHECK_THAT(test::message_of<format_error>([&] { SpaceSource<Exec>("/nowhere/weights.tier"); }),
             ContainsSubstring("/nowhere/weights.tier"));
}

}  // namespace test_space_source
