// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread

// Blocks in the order of the work of Kokkos' instances.

#include <cstddef>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/device/mirror.hpp>
#include <heddle/memory/execution_events.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/source/from_space.hpp>
#include <heddle/memory/stats.hpp>
#include <heddle/memory/stream_ordered.hpp>
#include <heddle/memory/view.hpp>

#include "kernel/support.hpp"

namespace test_execution_events {

namespace memory = heddle::memory;
using Exec = kernel_test::Exec;

struct Add {
  Kokkos::View<long*, Exec::memory_space> to;
  long value;
  KOKKOS_FUNCTION void operator()(std::size_t i) const { to(i) += value; }
};

/// Of two instances at once.
struct Sum {
  Kokkos::View<long*, Exec::memory_space> from, to;
  KOKKOS_FUNCTION void operator()(std::size_t i) const { Kokkos::atomic_add(&to(i), from(i)); }
};

// Where none are known a mark is the instance, for a fence.
template <class Mark>
concept Fences = requires(Mark mark) {
  mark.exec;
};
constexpr bool knows_events = !Fences<memory::ExecutionEvents<Exec>::Mark>;

TEST_CASE("a View that is given back while kernels use it is not anybody's before they are done") {
  memory::Pool pool(memory::FromSpace<Exec::memory_space>{});
  memory::Ordered<Exec, memory::Ref<decltype(pool)>> ordered(pool);
  static_assert(memory::StreamOrderedResource<decltype(ordered), Exec>);
  constexpr std::size_t size = 5000;
  const Kokkos::View<long*, Exec::memory_space> sum("heddle::test::sum", size);
  const Exec first;
  for (long step = 0; step < 20; ++step) {
    const auto temporary = memory::make_view<long*>(first, ordered, "temporary", size);
    Kokkos::parallel_for("heddle::test::add", Kokkos::RangePolicy<Exec>(first, 0, size),
                         Add{temporary, step});
    Kokkos::parallel_for("heddle::test::add", Kokkos::RangePolicy<Exec>(first, 0, size),
                         Add{sum, step});
  }
  ordered.wait();
  first.fence("heddle::test::done");
  const auto host = heddle::host_mirror(sum);
  Kokkos::deep_copy(host, sum);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < size; ++i) wrong += host(i) != 190;
  CHECK(wrong == 0);
  pool.trim();
  CHECK(pool.reserved() == 0);
}

TEST_CASE("an instance is given what another one has done with, when it has") {
  memory::Pool pool(memory::FromSpace<Exec::memory_space>{});
  memory::Stats beneath(pool);
  memory::Ordered<Exec, memory::Ref<decltype(beneath)>> ordered(beneath);
  constexpr std::size_t size = 5000;
  const auto instances = Kokkos::Experimental::partition_space(Exec(), 1, 1);
  const Kokkos::View<long*, Exec::memory_space> sum("heddle::test::sum", size);
  for (long step = 0; step < 40; ++step) {
    const Exec& exec = instances[static_cast<std::size_t>(step % 2)];
    const auto temporary = memory::make_view<long*>(exec, ordered, "some", size);
    Kokkos::parallel_for("heddle::test::add", Kokkos::RangePolicy<Exec>(exec, 0, size),
                         Add{temporary, step});
    Kokkos::parallel_for("heddle::test::add", Kokkos::RangePolicy<Exec>(exec, 0, size),
                         Sum{temporary, sum});
    if (step % 4 == 3) exec.fence("heddle::test::step");
  }
  // Of which every fourth is known to be over when the next one asks.
  if (knows_events) CHECK(beneath.usage().peak <= 6 * (size * sizeof(long) + 1024));
  ordered.wait();
  const auto host = heddle::host_mirror(sum);
  Kokkos::deep_copy(host, sum);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < size; ++i) wrong += host(i) != 780;
  CHECK(wrong == 0);
}

TEST_CASE("marks of an instance are over when its work is") {
  const Exec exec;
  using Events = memory::ExecutionEvents<Exec>;
  const Kokkos::View<long*, Exec::memory_space> to("heddle::test::to", 1000);
  Kokkos::parallel_for("heddle::test::add", Kokkos::RangePolicy<Exec>(exec, 0, 1000), Add{to, 3});
  const auto mark = Events::record(exec);
  Events::wait(mark);
  if (knows_events) CHECK(Events::done(mark));
  const auto host = heddle::host_mirror(to);
  Kokkos::deep_copy(host, to);
  CHECK(host(999) == 3);
}

}  // namespace test_execution_events
