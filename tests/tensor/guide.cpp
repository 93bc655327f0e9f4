// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2

// What the pages of docs/guide show and no example has, as it stands there; the tests
// structure.guide.* compare.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/kernel/blas_library.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/schedule/collective/group_level.hpp>
#include <heddle/simulate.hpp>
#include <heddle/tensor.hpp>
#include <heddle/trace.hpp>

#include "space.hpp"

namespace test_guide {

namespace hd = heddle;
using examples::Space;
using hd::schedule::Algorithm;

TEST_CASE("the guide's calls by a table, and by levels") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const Kokkos::View<double*, Space> sum("sum", 100);
  Kokkos::deep_copy(sum, 1);
  if (comm.rank() == hd::Rank{0})
    hd::plan::CostTable(hd::Machine::uniform(2, {"rank"}, {1e-6, 1e9})).write("costs.txt");
  MPI_Barrier(comm.get());
  const auto costs =
      std::make_shared<const hd::plan::CostTable>(hd::plan::CostTable::read("costs.txt"));
  hd::all_reduce(Space{}, sum, hd::Sum{}, comm, {.costs = costs});
  MPI_Barrier(comm.get());
  if (comm.rank() == hd::Rank{0}) std::filesystem::remove("costs.txt");

  const std::vector<std::uint32_t> hosts = {0, 1};
  const Algorithm inside = Algorithm::direct, across = Algorithm::ring;
  const int host_count = 2;
  hd::all_reduce(Space{}, sum, hd::Sum{}, comm,
                 {.algorithm = Algorithm::hierarchical,
                  .levels = {hd::schedule::level_of(hosts, inside), {host_count, across}}});
  const auto host = hd::host_mirror(sum);
  Kokkos::deep_copy(host, sum);
  CHECK(host(99) == 4);
}

TEST_CASE("the guide's tensors are moved, and have neighbours that may be a step old") {
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", 2}});
  const Space exec;
  const hd::Communicator& common = mesh.all();
  const hd::Sharded<double**, Space> from(mesh, {4, 6}, {hd::Shard{0}});
  const hd::Sharded<double**, Space> to(mesh, {4, 6}, {hd::Shard{1}});
  Kokkos::deep_copy(from.parts(), 7);
  hd::redistribute(exec, from, to);
  const std::optional tensor(from);
  hd::redistribute(exec, hd::among(common, tensor), to);
  const auto host = hd::host_mirror(to.parts());
  Kokkos::deep_copy(host, to.parts());
  CHECK(host(3, 2) == 7);
  const auto plan = hd::schedule::redistribution(from.layout(), to.layout(), 2, sizeof(double));
  CHECK(!hd::text(plan).empty());

  const hd::Sharded<double*, Space> u(mesh, {8}, {hd::Shard{0, {}, 1}});
  hd::Halo halo(u, {}, {.age = 1, .warmup = 4});
  for (int step = 0; step < 6; ++step) {
    halo.exchange(exec, u);
    halo.advance(exec);
  }
}

TEST_CASE("the guide's array is a View of the program, with a halo behind the inside") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const Space exec;
  const std::int64_t rows = 6, columns = 5;
  const hd::Layout layout({{"all", 2}}, {rows, columns}, {hd::Shard{0, {}, 1}});
  const std::vector<std::int64_t> extents = layout.extents(*layout.rank_here(comm.rank()));
  const Kokkos::View<double**, Kokkos::LayoutRight, Space::memory_space> mine(
      "mine", static_cast<std::size_t>(extents[0]), static_cast<std::size_t>(extents[1]));
  const hd::Sharded<double**, Space> u(comm, layout, mine);
  Kokkos::deep_copy(mine, static_cast<double>(+comm.rank()));
  hd::Halo halo(u);
  halo.start(exec, u);
  // Here come kernels that read the rank's own elements.
  halo.wait(exec);
  const auto host = hd::host_mirror(mine);
  Kokkos::deep_copy(host, mine);
  CHECK(host(comm.rank() == hd::Rank{0} ? 4 : 0, 2) == (comm.rank() == hd::Rank{0} ? 1 : 0));
  CHECK(hd::all_reduce(mine.extent(0), hd::Sum{}, comm) == 10);
}

TEST_CASE("the guide's fields have one message for all of them") {
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", 2}});
  const Space exec;
  const std::int64_t rows = 6, columns = 5;
  const hd::Sharded<double***, Space> fields(mesh, {3, rows, columns}, {hd::Shard{1, {}, 1}});
  const auto pressure = Kokkos::subview(fields.view(), 2, Kokkos::ALL, Kokkos::ALL);
  hd::Halo halo(fields);
  const auto host = Kokkos::create_mirror(pressure);
  Kokkos::deep_copy(host, static_cast<double>(10 + +mesh.rank()));
  Kokkos::deep_copy(pressure, host);
  halo.exchange(exec, fields);
  Kokkos::deep_copy(host, pressure);
  CHECK(host(mesh.rank() == hd::Rank{0} ? 4 : 0, 3) == (mesh.rank() == hd::Rank{0} ? 11 : 10));
  std::size_t messages = 0;
  for (const hd::Action& action : halo.schedule().actions())
    messages += action.kind == hd::Kind::move ? 1 : 0;
  CHECK(messages == 2);  // one in each direction
}

TEST_CASE("the guide's library of matrix products has a name") {
  std::ostringstream out;
  out << hd::kernel::blas_library<Space>() << '\n';
  CHECK(out.str().size() > 1);
}

TEST_CASE("the guide's batch divides") {
  const int samples = 8, microbatches = 4;
  CHECK(hd::schedule::microbatch_size(samples, microbatches) == 2);
}

TEST_CASE("the guide's hang is named by the watchdog, and told to the log") {
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", 2}});
  const hd::Schedule schedule =
      hd::schedule::one_f_one_b({.ranks = 2, .microbatches = 2, .sizes = {.activation = 64}});
  const auto model = [](const hd::Task&) {};
  std::ostringstream out;
  std::string reason;
  {
    hd::RunOptions options;
    options.execute.watchdog = 0.5;  // seconds; without this line 120
    options.execute.log = [&](std::string_view line) { out << line << '\n'; };
    hd::Runner run(model, schedule, mesh, options);
    try {
      if (mesh.rank() == 0) run.step();  // rank 1 does not come
    } catch (const hd::communication_error& error) {
      reason = error.what();
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (mesh.rank() != 0) return;
  CHECK(reason ==
        "heddle::Executor, rank 0 at 0B0: stuck: 0RECV_B0 from rank 1 did not complete (watchdog "
        "after 0.5 s; rank 1 is silent, outside of communication; it was last seen before its "
        "first action of this step); see what that rank is doing, or raise "
        "ExecuteOptions::watchdog; a blocking "
        "collective call of the MPI library has a watchdog only with CallOptions::watch_library");
  CHECK(out.str().find("0RECV_B0 from rank 1 did not complete") != std::string::npos);
  CHECK(out.str().find("rank 1 is silent") != std::string::npos);
}

TEST_CASE("the guide's orders deadlock, which weave() says before anything runs") {
  std::ostringstream out;
  hd::Orders orders = hd::schedule::one_f_one_b(2, 2);
  std::swap(orders.ranks[0][1], orders.ranks[0][2]);  // rank 0 wants 0B0 before it sends 0F1
  std::swap(orders.ranks[1][1], orders.ranks[1][2]);  // rank 1 wants 1F1 before it sends 1B0
  try {
    const hd::Schedule schedule = hd::weave(orders);
    out << hd::to_grid(schedule);
    const hd::Timeline timeline = hd::simulate(schedule, {.forward = 1, .backward = 2});
    out << "a step takes " << timeline.makespan() << ", idle " << timeline.bubble_ratio() << '\n';
  } catch (const hd::infeasible& error) {
    out << error.what() << '\n';
  }
  CHECK(out.str() ==
        "heddle::weave(1F1B P=2 M=2): the orders cannot progress (rank 0 waits at 0B0 for 1B0, "
        "rank 1 waits at 1F1 for 0F1); reorder one of these actions\n");
  const hd::Schedule right = hd::weave(hd::schedule::one_f_one_b(2, 2));
  CHECK(hd::simulate(right, {.forward = 1, .backward = 2}).makespan() == 9);
}

TEST_CASE("the guide's orders are refused with the wrong cell marked") {
  std::ostringstream out;
  hd::Orders orders = hd::schedule::gpipe(2, 2);
  std::swap(orders.ranks[1][0], orders.ranks[1][2]);
  if (const auto fault = hd::schedule::first_fault(orders))
    out << fault->what << '\n' << hd::to_grid(orders, *fault);
  CHECK(out.str().find("> 1B") != std::string::npos);
}

}  // namespace test_guide
