// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// program: its own
// space: its own

// SequenceLine::explain() against the bytes and messages that MPI is given to send, the choice of
// the method automatic, and what it rejects.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/measure_links.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan/sequence_choice.hpp>
#include <heddle/sequence.hpp>

#include "support/complaint.hpp"
#include "support/sent_bytes.hpp"
#include "support/sequence_case.hpp"
#include "support/world.hpp"

namespace test_automatic {

namespace hd = heddle;
using namespace hd::test::sequence;
using Catch::Matchers::ContainsSubstring;
using hd::test::count_sent_bytes;
using hd::test::message_of;
using hd::test::sent_bytes;
using hd::test::sent_messages;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

using Line = hd::SequenceLine<double, Exec>;

/// A machine with a private link between every two ranks.
hd::Machine private_links(int ranks, hd::Seconds latency = 0) {
  hd::Machine machine = hd::Machine::uniform(ranks, {}, {.latency = latency, .bandwidth = 1e9});
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r)
    machine.set_ports(0, r, {.out = hd::Ports::unlimited, .in = hd::Ports::unlimited});
  return machine;
}

/// The same, but all messages of a rank pass one port each way.
hd::Machine one_port(int ranks) {
  hd::Machine machine = private_links(ranks);
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r)
    machine.set_ports(0, r, {.out = 1e9, .in = 1e9});
  return machine;
}

/// Calls visit(mesh, near) for every division of the ranks, with either axis near.
template <class Visit>
void for_each_division(const Visit& visit) {
  for (int heads = 1; heads <= world_size(); ++heads) {
    if (world_size() % heads != 0) continue;
    const int ring = world_size() / heads;
    visit(hd::DeviceMesh(MPI_COMM_WORLD, {{"ring", ring}, {"heads", heads}}),
          hd::plan::NearAxis::heads);
    if (heads > 1 && ring > 1)
      visit(hd::DeviceMesh(MPI_COMM_WORLD, {{"heads", heads}, {"ring", ring}}),
            hd::plan::NearAxis::ring);
  }
}

/// What ranks send in a call: the bytes and messages of the rank that sends most, and all bytes.
struct Sent {
  std::uint64_t bytes = 0, messages = 0, all_bytes = 0;

  friend bool operator==(const Sent&, const Sent&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Sent& sent) {
    return out << sent.bytes << " bytes in " << sent.messages << " messages, " << sent.all_bytes
               << " in all";
  }
};
template <class Call>
Sent sent_by(const Call& call) {
  count_sent_bytes();
  call();
  Sent most{sent_bytes, sent_messages, sent_bytes};
  MPI_Allreduce(MPI_IN_PLACE, &most, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &most.all_bytes, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return most;
}
Sent predicted(const hd::plan::SequencePass& pass) {
  return {pass.bytes, pass.moves, pass.all_bytes};
}

}  // namespace

TEST_CASE("explain: predicts the bytes and messages of every method, to the byte") {
  const hd::SequenceShape shapes[] = {{1, 24, {8, 4, 2}, {.causal = false}},
                                      {2, 37, {8, 4, 3}},
                                      {1, 29, {12, 6, 1}, {true, {4, 11}}}};
  for_each_division([&](const hd::DeviceMesh& mesh, hd::plan::NearAxis near) {
    for (const hd::ShardOrder& order : {hd::ShardOrder(), hd::ShardOrder::zigzag()}) {
      const Line whole(mesh["heads"], mesh["ring"],
                       {.method = hd::SequenceMethod::automatic,
                        .order = order,
                        .machine = private_links(world_size()),
                        .near = near});
      for (const hd::SequenceShape& shape : shapes) {
        const hd::SequenceExplanation explained = whole.explain(shape, private_links(world_size()));
        REQUIRE(!explained.here.empty());
        for (const hd::plan::SequenceCandidate& each : explained.here) {
          INFO(hd::text(each, ", ", order, ", ", shape));
          const bool trains = each.method != hd::SequenceMethod::token_ring;
          CHECK(each.refused.empty() == trains);
          if (!trains) continue;
          const Line line(mesh["heads"], mesh["ring"],
                          {.method = each.method, .order = order, .ways = each.ways});
          const std::size_t rows = line.rows(shape);
          const auto qkv = random<double>("qkv", rows, shape.qkv_columns());
          const Real2<double> output("output", rows, shape.heads.query_columns()),
              grad("grad", rows, shape.qkv_columns());
          const Real1<double> saved("saved", line.saved_size(shape));
          CHECK(sent_by([&] {
                  hd::sequence_attention_forward(line, Exec{}, shape, qkv, saved, output);
                }) == predicted(each.forward));
          REQUIRE(each.backward.has_value());
          CHECK(sent_by([&] {
                  hd::sequence_attention_backward(line, Exec{}, shape, qkv, saved, output, grad);
                }) == predicted(*each.backward));
        }
      }
    }
  });
}

TEST_CASE("explain: prints a line for each method, and why one is refused") {
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", world_size()}, {"heads", 1}});
  const Line line(mesh["heads"], mesh["ring"], {.method = hd::SequenceMethod::ring});
  const hd::SequenceShape shape{1, 24, {2, 1, 2}};
  const std::string printed = hd::text(line.explain(shape, private_links(world_size())));
  for (const char* method : {"ring", "rsa", "token_ring"})
    CHECK_THAT(printed, ContainsSubstring(method));
  CHECK_THAT(printed,
             ContainsSubstring(hd::text("with 1 heads ranks x ", world_size(), " ring ranks")) &&
                 ContainsSubstring("TokenRing has no backward pass"));
  if (world_size() > 1)
    CHECK_THAT(printed, ContainsSubstring("with other axes") &&
                            ContainsSubstring(hd::text(world_size(), " heads ranks, but only 1")));
}

TEST_CASE("explain: says that a zigzag without a causal mask gains nothing") {
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", world_size()}, {"heads", 1}});
  const auto printed = [&](const hd::ShardOrder& order, bool causal) {
    const Line line(mesh["heads"], mesh["ring"],
                    {.method = hd::SequenceMethod::ring, .order = order});
    const hd::SequenceShape shape{1, 24, {2, 1, 2}, {.causal = causal}};
    return hd::text(line.explain(shape, private_links(world_size())));
  };
  const auto says = ContainsSubstring("a zigzag balances nothing");
  CHECK_THAT(printed(hd::ShardOrder::zigzag(), false), says);
  CHECK_THAT(printed(hd::ShardOrder::zigzag(), true), !says);
  CHECK_THAT(printed({}, false), !says);
}

TEST_CASE("automatic: takes the least predicted time, and equals attention on one rank") {
  const Line alone;
  const hd::SequenceShape shapes[] = {{2, 37, {8, 4, 3}}, {1, 24, {8, 4, 2}, {.causal = false}}};
  for_each_division([&](const hd::DeviceMesh& mesh, hd::plan::NearAxis near) {
    for (const hd::Machine& machine : {private_links(world_size()), one_port(world_size())}) {
      const Line line(mesh["heads"], mesh["ring"],
                      {.method = hd::SequenceMethod::automatic,
                       .order = hd::ShardOrder::zigzag(),
                       .machine = machine,
                       .near = near});
      for (const hd::SequenceShape& shape : shapes) {
        const hd::SequenceExplanation explained = line.explain(shape, machine);
        INFO(hd::text(explained));
        const auto least = std::ranges::min_element(
            explained.here, {}, [](const hd::plan::SequenceCandidate& each) {
              return std::pair(!each.refused.empty(), each.time);
            });
        CHECK(line.method(shape) == least->method);
        CHECK(line.ways(shape) == least->ways);
        CHECK(line.method() == hd::SequenceMethod::automatic);
        const Input<double> all(shape);
        check_equal(line, shape, divided(line, shape, all),
                    attention(alone, shape, all.qkv, all.output_grad));
      }
    }
  });
}

TEST_CASE("automatic: private links favour two ways, and a port one") {
  if (world_size() < 3) return;
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", world_size()}, {"heads", 1}});
  const hd::SequenceShape shape{1, 24, {4, 4, 2}, {.causal = false}};
  const auto chosen = [&](const hd::Machine& machine) {
    const Line line(mesh["heads"], mesh["ring"],
                    {.method = hd::SequenceMethod::automatic, .machine = machine});
    CHECK(line.method(shape) == hd::SequenceMethod::ring);
    return line.ways(shape);
  };
  CHECK(chosen(private_links(world_size())) == 2);
  CHECK(chosen(one_port(world_size())) == 1);
}

TEST_CASE("automatic: work favours rsa, unless it saves more than the limit") {
  if (world_size() == 1) return;
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", world_size()}, {"heads", 1}});
  const hd::SequenceShape shape{1, 12 * world_size(), {4, 4, 2}, {.causal = false}};
  const auto made = [&](hd::Bytes limit) {
    return Line(mesh["heads"], mesh["ring"],
                {.method = hd::SequenceMethod::automatic,
                 .machine = private_links(world_size()),
                 .work = {.product = 1},  // messages cost nothing beside it
                 .saved_limit = limit});
  };
  // Backward has 4 products by rsa and 5 by a ring, which makes the scores again.
  const Line any = made(0);
  CHECK(any.method(shape) == hd::SequenceMethod::rsa);
  const hd::Bytes saved = any.saved_size(shape) * sizeof(double);
  CHECK(made(saved).method(shape) == hd::SequenceMethod::rsa);
  const Line limited = made(saved - 1);
  CHECK(limited.method(shape) == hd::SequenceMethod::ring);
  CHECK_THAT(hd::text(limited.explain(shape, private_links(world_size()))),
             ContainsSubstring(
                 hd::text("saves ", saved, " bytes around the ring; the limit is ", saved - 1)));
  CHECK_THAT(message_of<hd::contract_error>([&] { (void)made(1).method(shape); }),
             ContainsSubstring("no method can compute this attention along these axes"));
}

TEST_CASE("automatic: measured links are the same on all ranks, which choose alike") {
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", world_size()}, {"heads", 1}});
  const hd::Machine machine = hd::measure_links(mesh, {.budget = 0.001, .largest = 1 << 16});
  const Line line(mesh["heads"], mesh["ring"],
                  {.method = hd::SequenceMethod::automatic, .machine = machine});
  const hd::SequenceShape shape{1, 24, {4, 4, 2}};
  int choice[] = {static_cast<int>(line.method(shape)), -static_cast<int>(line.method(shape)),
                  line.ways(shape), -line.ways(shape)};
  const std::vector<int> mine(std::begin(choice), std::end(choice));
  MPI_Allreduce(MPI_IN_PLACE, choice, 4, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  CHECK(mine == std::vector<int>(std::begin(choice), std::end(choice)));
}

TEST_CASE("automatic: rejects a missing, a small and an unequal machine on every rank") {
  const auto complaint = [](std::optional<hd::Machine> machine) {
    const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", world_size()}, {"heads", 1}});
    return message_of<hd::contract_error>([&] {
      const Line line(mesh["heads"], mesh["ring"],
                      {.method = hd::SequenceMethod::automatic, .machine = std::move(machine)});
    });
  };
  CHECK_THAT(complaint({}), ContainsSubstring("automatic needs a machine") &&
                                ContainsSubstring("measure_links(mesh)"));
  if (world_size() == 1) return;
  CHECK_THAT(complaint(private_links(world_size() - 1)),
             ContainsSubstring("the machine has fewer ranks than the line"));
  const bool odd = world_rank() == world_size() - 1;
  CHECK_THAT(complaint(private_links(world_size(), odd ? 1e-6 : 0)),
             ContainsSubstring("machine") && ContainsSubstring("rank "));
}

}  // namespace test_automatic
