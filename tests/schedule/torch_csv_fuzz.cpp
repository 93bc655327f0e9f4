// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// timeout: 1200

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>

#include "support/cases.hpp"

namespace test_torch_csv_fuzz {

using namespace heddle;

namespace {

/// A file, and what it does not say.
struct Seed {
  std::string file;
  StageGraph graph;
};

/// What mutations begin with: files with and without transfers, fused pairs and split backwards, of
/// chains, branches and replicas.
std::vector<Seed> seeds() {
  using schedule::CsvContents;
  std::vector<Seed> seeds = {{"0F0,0I0,0W0\n", {}},
                             {"0F0,1F0,(0F1;1B0)OVERLAP_F_B,1F1,0B0,1B1,0B1\n", {}},
                             {"0UNSHARD,0F0,0SEND_F0,0RECV_B0,0I0,0W0,0REDUCE_GRAD,0RESHARD\n"
                              "1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD\n",
                              {}}};
  const auto add = [&](const Orders& orders, const StageGraph& graph) {
    for (const CsvContents contents : {CsvContents::compute, CsvContents::transfers})
      seeds.push_back({schedule::to_csv(orders, contents), graph});
  };
  for (const auto& entry : schedule::catalogue()) {
    const Orders orders = entry.orders({.ranks = 2, .microbatches = 4});
    add(orders, orders.graph);
    add(orders, {});
  }
  // A fork and a join, on two ranks, and replicas of both ends with every second microbatch.
  StageGraph diamond{
      4, {{Stage{0}, Stage{1}}, {Stage{0}, Stage{2}}, {Stage{1}, Stage{3}}, {Stage{2}, Stage{3}}}};
  add(schedule::read_orders("0F0,0F1,1F0,1F1,1B0,0B0,1B1,0B1\n2F0,3F0,3B0,2B0,2F1,3F1,3B1,2B1",
                            {.graph = diamond}),
      diamond);
  diamond.replicas = true;
  add(schedule::read_orders("0F0,1F0,2F1,3F1,3B1,2B1,1B0,0B0\n0F1,1F1,2F0,3F0,3B0,2B0,1B1,0B1",
                            {.graph = diamond}),
      diamond);
  return seeds;
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : m_random(seed) {}

  std::size_t below(std::size_t bound) { return m_random() % bound; }

  /// An edge more or less, or replicas where there were none.
  void mutate(StageGraph& graph) {
    const auto stage = [&] { return Stage{below(static_cast<std::size_t>(graph.stages))}; };
    switch (below(3)) {
      case 0: graph.replicas = !graph.replicas; break;
      case 1:
        if (graph.stages > 0)
          graph.edges.push_back({stage(), stage(), below(2) == 0 ? Kind::forward : Kind::backward});
        break;
      default:
        if (!graph.edges.empty())
          graph.edges.erase(graph.edges.begin() +
                            static_cast<std::ptrdiff_t>(below(graph.edges.size())));
    }
  }

  /// A byte changed, added or lost, or a stretch copied, moved or cut out.
  void mutate(std::string& file) {
    constexpr std::string_view bytes = "0123456789FIWBSENDRCV_,\n\r\t ();OVERLAPGU\"-x\xff";
    const std::size_t at = below(file.size() + 1);
    const std::size_t length = std::min(below(12), file.size() - at);
    switch (below(6)) {
      case 0: file.insert(at, 1, bytes[below(bytes.size())]); break;
      case 1: file.erase(at, 1 + below(2)); break;
      case 2: file.insert(below(file.size() + 1), file.substr(at, length)); break;
      case 3: file.erase(at, length); break;
      case 4: file.insert(at, std::to_string(m_random())); break;
      default:
        if (at < file.size()) file[at] = bytes[below(bytes.size())];
    }
  }

 private:
  std::mt19937_64 m_random;
};

bool updates(const Orders& orders) {
  for (const auto& list : orders.ranks)
    for (const Order& order : list)
      if (order.kind == Kind::update) return true;
  return false;
}

}  // namespace

TEST_CASE("whatever a schedule file holds, it is read or refused at a cell") {
  const auto files = static_cast<long>(test::cases(20000, 1000000));
  const auto begin = seeds();
  Mutator mutator(1);
  long read = 0;
  long read_with_graph = 0;
  for (long i = 0; i < files; ++i) {
    auto [file, graph] = begin[mutator.below(begin.size())];
    for (std::size_t changes = mutator.below(4); changes > 0; --changes) mutator.mutate(file);
    if (mutator.below(8) == 0) mutator.mutate(graph);
    INFO(file);
    try {
      const schedule::LoweredOrders lowered =
          schedule::read_lowered(file, {.graph = graph, .old_dialect = i % 16 == 0});
      const Orders& orders = lowered.orders;
      ++read;
      read_with_graph += graph.stages > 0;
      // What is read can be woven (versions of weights are looked at there) and written, and means
      // the same then.
      if (!updates(orders) && weave(orders).size() < orders.ranks.size()) FAIL("actions were lost");
      for (const auto contents : {schedule::CsvContents::compute, schedule::CsvContents::transfers})
        if (schedule::read_orders(schedule::to_csv(orders, contents), {.graph = graph}).ranks !=
            orders.ranks)
          FAIL("it reads differently");
      if (schedule::read_lowered(schedule::to_csv(lowered), {.graph = graph}) != lowered)
        FAIL("its steps read differently");
    } catch (const schedule::wrong_cell& error) {
      if (error.grid().find("> ") == std::string::npos) FAIL("no cell is marked");
    } catch (const format_error&) {
      if (file.find_first_not_of(" \t\r\n") != std::string::npos) FAIL("refused without a cell");
    }
  }
  CHECK(read > files / 8);
  CHECK(read < files / 2);
  CHECK(read_with_graph > read / 4);
}

}  // namespace test_torch_csv_fuzz
