// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// What a program allocates through Kokkos, as a trace that other resources replay.

#include <cstdint>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/trace/replay.hpp>
#include <heddle/memory/trace/view_recorder.hpp>
#include <heddle/memory/view.hpp>

namespace test_view_recorder {

namespace memory = heddle::memory;

int seen = 0;

TEST_CASE("Views and what kokkos_malloc gives are in the trace, of any space and out of a pool") {
  const Kokkos::View<double*, Kokkos::HostSpace> before("before", 3);
  memory::Pool pool;
  memory::Trace trace;
  {
    memory::ViewRecorder recorder;
    CHECK_THROWS_AS(memory::ViewRecorder(), heddle::contract_error);
    for (int step = 0; step < 3; ++step) {
      const Kokkos::View<double**, Kokkos::HostSpace> u("u", 10, 20);
      const auto v = memory::make_view<float*>(pool, "v", 1000);
    }
    Kokkos::kokkos_free<Kokkos::HostSpace>(Kokkos::kokkos_malloc<Kokkos::HostSpace>("raw", 77));
    trace = recorder.trace();
  }
  const Kokkos::View<double*, Kokkos::HostSpace> after("after", 3);
  CHECK(trace.blocks() == 7);
  CHECK(trace.live().back() == 0);
  CHECK(trace.labels() == std::vector<std::string>{"Host: u", "Host: v", "Host: raw"});
  CHECK(trace.peak() >= 10 * 20 * sizeof(double) + 1000 * sizeof(float));
  CHECK(memory::replay(trace, pool, memory::Touch::all).refused == 0);
}

TEST_CASE("two blocks at one address come back the last one first") {
  memory::Trace trace;
  const auto space = Kokkos::Tools::make_space_handle("Host");
  const int here = 0;
  {
    memory::ViewRecorder recorder;
    Kokkos::Tools::allocateData(space, "chunk", &here, 1000);  // and a View that begins it
    Kokkos::Tools::allocateData(space, "view", &here, 10);
    Kokkos::Tools::deallocateData(space, "view", &here, 10);
    Kokkos::Tools::deallocateData(space, "chunk", &here, 1000);
    Kokkos::Tools::deallocateData(space, "before", &here, 1000);
    trace = recorder.trace();
  }
  CHECK(trace.live() == std::vector<std::uint64_t>{1000, 1010, 1000, 0});
}

TEST_CASE("a tool that was listening goes on") {
  namespace tools = Kokkos::Tools::Experimental;
  const tools::EventSet none = tools::get_callbacks();
  seen = 0;
  tools::set_allocate_data_callback(
      [](Kokkos::Tools::SpaceHandle, const char*, const void*, std::uint64_t) { ++seen; });
  {
    memory::ViewRecorder recorder;
    const Kokkos::View<int*, Kokkos::HostSpace> view("view", 3);
    CHECK(seen == 1);
    CHECK(recorder.trace().blocks() == 1);
  }
  const Kokkos::View<int*, Kokkos::HostSpace> view("view", 3);
  CHECK(seen == 2);
  tools::set_callbacks(none);
}

}  // namespace test_view_recorder
