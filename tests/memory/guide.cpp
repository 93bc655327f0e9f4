// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// What the pages of docs/guide show about pools and no example has, as it stands there; the tests
// structure.guide.* compare.

#include <cstddef>
#include <sstream>
#include <string>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/memory.hpp>

namespace test_pool_guide {

namespace hd = heddle;
namespace memory = heddle::memory;

namespace {

Kokkos::View<double*, Kokkos::HostSpace> squares(std::size_t n) {
  const memory::SharedPool<> pool;
  auto result = pool.view<double*>("squares", n);
  for (std::size_t i = 0; i < n; ++i) result(i) = static_cast<double>(i * i);
  return result;  // the pool ends with the last copy of the View
}

}  // namespace

TEST_CASE("the guide's pool throws when its memory is out, and serves on") {
  std::ostringstream out;
  memory::Pool pool(memory::Pages(), {.most = std::size_t{64} << 20});
  const auto u = pool.view<double*>("u", 1'000'000);
  try {
    const auto v = pool.view<double*>("v", 10'000'000);
  } catch (const hd::out_of_memory& error) {
    out << error.what() << '\n';
  }
  CHECK(out.str().starts_with(
      "heddle::memory::Pool: cannot allocate 8000"));  // and some bytes of Kokkos
  CHECK(out.str().ends_with(
      " B of at most 67108864 B are in use); free some, or raise PoolOptions::most if the machine "
      "has more\n"));
  CHECK(u(999'999) == 0);
  const auto w = pool.view<double*>("w", 5'000'000);
  CHECK(w.size() == 5'000'000);
}

TEST_CASE("the guide's View outlives the scope of its shared pool") {
  const auto view = squares(1000);
  CHECK(view(999) == 998001);
}

}  // namespace test_pool_guide
