// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstdint>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/device/athread.hpp>

namespace test_athread_tools {

using heddle::Athread;
namespace Tools = Kokkos::Tools::Experimental;

namespace {

std::vector<std::string>* heard = nullptr;  // by the callbacks, which are plain functions

void hear(const char* name, std::uint32_t, std::uint64_t*) { heard->emplace_back(name); }

/// What Kokkos told its tools while it lived.
class Listener {
 public:
  Listener() : m_before(Tools::get_callbacks()) {
    heard = &m_heard;
    Tools::set_begin_parallel_for_callback(hear);
    Tools::set_begin_parallel_reduce_callback(hear);
    Tools::set_begin_parallel_scan_callback(hear);
    Tools::set_begin_fence_callback(hear);
  }
  ~Listener() {
    Tools::set_callbacks(m_before);
    heard = nullptr;
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] const std::vector<std::string>& names() const { return m_heard; }

 private:
  Tools::EventSet m_before;
  std::vector<std::string> m_heard;
};

struct Nothing {
  using value_type = int;
  void operator()(int) const {}
  void operator()(int, int&, bool) const {}
  void operator()(int, int, int&) const {}
  void operator()(const Kokkos::TeamPolicy<Athread>::member_type&) const {}
};

}  // namespace

TEST_CASE("labels of kernels and fences reach Kokkos Tools unchanged") {
  const Athread space;
  const Listener listener;
  int result = 0;
  Kokkos::parallel_for("for", Kokkos::RangePolicy<Athread>(0, 3), Nothing{});
  Kokkos::parallel_for("teams", Kokkos::TeamPolicy<Athread>(3, 1), Nothing{});
  Kokkos::parallel_reduce("tiles", Kokkos::MDRangePolicy<Athread, Kokkos::Rank<2>>({0, 0}, {3, 3}),
                          Nothing{}, result);
  Kokkos::parallel_scan("scan", Kokkos::RangePolicy<Athread>(0, 3), Nothing{});
  space.fence("fence");
  const std::vector<std::string> expected = {"for", "teams", "tiles", "scan", "fence"};
  std::vector<std::string> found;
  for (const std::string& name : listener.names())
    if (name.find("Kokkos::") != 0) found.push_back(name);  // Kokkos adds fences of its own
  REQUIRE(found == expected);
}

TEST_CASE("the fence of all spaces includes this one") {
  const Listener listener;
  Kokkos::fence("all");
  // One for each space that Kokkos knows: the default one and Athread at least.
  int fences = 0;
  for (const std::string& name : listener.names()) fences += name == "all" ? 1 : 0;
  REQUIRE(fences >= 2);
}

}  // namespace test_athread_tools
