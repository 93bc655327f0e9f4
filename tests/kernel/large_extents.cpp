// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread
// alone: yes
// timeout: 600

/// @file
/// More elements than an int can count: 2.2 GB of bytes written, beside as many that are only read
/// and of which the system keeps nothing but the few that are not zero. In the memory of a device
/// there are more elements than an unsigned int can count, 34 GB in all.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/kernel/adam.hpp>
#include <heddle/kernel/map.hpp>
#include <heddle/kernel/reduce.hpp>
#include <heddle/kernel/residual.hpp>
#include <heddle/kernel/stencil.hpp>

#include "support/patterns.hpp"

namespace test_large_extents {

using namespace pattern_test;
namespace hk = heddle::kernel;

namespace {

using Bytes = Kokkos::View<std::int8_t*, Kokkos::LayoutRight, Kokkos::HostSpace,
                           Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

struct Sides {
  template <class Neighbourhood>
  KOKKOS_FUNCTION std::int8_t operator()(const Neighbourhood& u) const {
    return static_cast<std::int8_t>(u(-1) + 2 * u(1));
  }
};
struct OneMore {
  KOKKOS_FUNCTION std::int8_t operator()(std::int8_t x) const {
    return static_cast<std::int8_t>(x + 1);
  }
};
struct Wide {
  KOKKOS_FUNCTION std::int64_t operator()(std::int8_t x) const { return x; }
};
struct AsDouble {
  KOKKOS_FUNCTION double operator()(float x) const { return x; }
};

/// Memory that the system can give without taking it from others, in bytes.
std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;)
    if (std::size_t kilobytes = 0; word == "MemAvailable:" && file >> kilobytes)
      return kilobytes * 1024;
  return 0;
}

/// Zeros, of which a page takes memory when it is written.
class Zeros {
 public:
  explicit Zeros(std::size_t bytes)
      : m_bytes(bytes),
        m_data(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    REQUIRE(m_data != MAP_FAILED);
  }
  ~Zeros() { munmap(m_data, m_bytes); }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  [[nodiscard]] Bytes view() const { return Bytes(static_cast<std::int8_t*>(m_data), m_bytes); }

 private:
  std::size_t m_bytes;
  void* m_data;
};

/// A vector where kernels run.
template <class T>
using Array = Kokkos::View<T*, Kokkos::LayoutRight, Memory>;

/// The length of two vectors that no 32-bit index reaches to the end of; short on a host, where
/// their memory would be the test machine's.
constexpr bool on_device = !hk::reachable_from<Bytes, Exec>;
constexpr std::size_t rows = on_device ? (std::size_t{1} << 16) + 1 : 61;
constexpr std::size_t columns = on_device ? (std::size_t{1} << 16) + 3 : 67;
constexpr std::size_t device_size = rows * columns;

template <class T>
void put(const Array<T>& array, std::size_t i, T value) {
  Kokkos::deep_copy(Kokkos::subview(array, i), value);
}
template <class T>
[[nodiscard]] T element_at(const Array<T>& array, std::size_t i) {
  T value;
  Kokkos::deep_copy(value, Kokkos::subview(array, i));
  return value;
}
[[nodiscard]] std::int64_t sum_of(const Array<std::int8_t>& array) {
  std::int64_t sum = 0;
  hk::reduce(Exec{}, Kokkos::Sum<std::int64_t>(sum), Wide{}, array);
  return sum;
}

}  // namespace

TEST_CASE("the patterns take more than 2^31 elements", "[map]") {
  if constexpr (!hk::reachable_from<Bytes, Exec>) {
    SKIP("the space does not reach the host's memory");
  } else {
    constexpr std::size_t n = (std::size_t{1} << 31) + 1007;
    if (available_memory() < 3'000'000'000)
      SKIP("3 GB of memory are wanted, " << available_memory() << " bytes are available");
    const Zeros zeros(n), others(n);
    const Bytes in = zeros.view(), out = others.view();
    in(0) = 5, in(n / 2) = 7, in(n - 1) = 11;
    std::int64_t sum = 0;
    hk::reduce(Exec{}, Kokkos::Sum<std::int64_t>(sum), Wide{}, in);
    REQUIRE(sum == 5 + 7 + 11);

    hk::stencil(Exec{}, 1, Sides{}, out, in, {.boundary = hk::Boundary::periodic});
    Exec{}.fence("heddle::test::stencil");
    hk::reduce(Exec{}, Kokkos::Sum<std::int64_t>(sum), Wide{}, out);
    REQUIRE(sum == 3 * (5 + 7 + 11));
    REQUIRE(int(out(1)) == 5);
    REQUIRE(int(out(n / 2 - 1)) == 14);
    REQUIRE(int(out(n / 2 + 1)) == 7);
    REQUIRE(int(out(n - 1)) == 2 * 5);
    REQUIRE(int(out(n - 2)) == 2 * 11);
    REQUIRE(int(out(0)) == 11);

    hk::map(Exec{}, OneMore{}, out, in);
    Exec{}.fence("heddle::test::map");
    hk::reduce(Exec{}, Kokkos::Sum<std::int64_t>(sum), Wide{}, out);
    REQUIRE(sum == static_cast<std::int64_t>(n) + 5 + 7 + 11);
    REQUIRE(int(out(n - 1)) == 12);
  }
}

TEST_CASE("the patterns take more than 2^32 elements of a device", "[map]") {
  static_assert(!on_device || device_size > std::size_t{1} << 32);
  constexpr std::size_t n = device_size;
  Array<std::int8_t> in, out;
  try {
    in = Array<std::int8_t>("test_large_extents::in", n);
    out = Array<std::int8_t>("test_large_extents::out", n);
  } catch (const std::exception& error) {
    SKIP("the device lacks memory: " << error.what());
  }
  put(in, 0, std::int8_t(5));
  put(in, n / 2, std::int8_t(7));
  put(in, n - 1, std::int8_t(11));
  REQUIRE(sum_of(in) == 5 + 7 + 11);

  hk::stencil(Exec{}, 1, Sides{}, out, in, {.boundary = hk::Boundary::periodic});
  REQUIRE(sum_of(out) == 3 * (5 + 7 + 11));
  REQUIRE(int(element_at(out, n / 2 - 1)) == 14);
  REQUIRE(int(element_at(out, n / 2 + 1)) == 7);
  REQUIRE(int(element_at(out, n - 1)) == 2 * 5);
  REQUIRE(int(element_at(out, 0)) == 11);

  hk::map(Exec{}, OneMore{}, out, in);
  REQUIRE(sum_of(out) == static_cast<std::int64_t>(n) + 5 + 7 + 11);
  REQUIRE(int(element_at(out, n - 1)) == 12);
}

TEST_CASE("updates and elementwise layers take more than 2^32 elements of a device", "[map]") {
  Array<float> parameter, zeros;
  try {
    parameter = Array<float>("test_large_extents::parameter", device_size);
    zeros = Array<float>("test_large_extents::zeros", device_size);
  } catch (const std::exception& error) {
    SKIP("the device lacks memory: " << error.what());
  }
  const auto sum = [&] {
    double total = 0;
    hk::reduce(Exec{}, Kokkos::Sum<double>(total), AsDouble{}, parameter);
    return total;
  };
  Kokkos::deep_copy(parameter, 1.0F);
  // Without a gradient a step only takes the share of the weight decay: sums are exact.
  hk::adam_update(Exec{}, {.learning_rate = 0.5, .weight_decay = 1}, 1, zeros, zeros, zeros,
                  parameter);
  REQUIRE(sum() == 0.5 * static_cast<double>(device_size));
  REQUIRE(element_at(parameter, device_size - 1) == 0.5F);

  const hk::Matrix<float, Exec> matrix(parameter.data(), rows, columns);
  hk::residual_add(Exec{}, matrix, matrix);
  REQUIRE(sum() == static_cast<double>(device_size));
  REQUIRE(element_at(parameter, device_size - 1) == 1.0F);
}

}  // namespace test_large_extents
