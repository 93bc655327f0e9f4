// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Schedule files with all that torch.distributed.pipelining adds to a compute file: against a model
// of its lowering, written here by its rules and not by ours.

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"

namespace test_lowered_files {

using namespace heddle;
using schedule::CsvContents;
using schedule::LoweredOrders;
using schedule::read_lowered;
using schedule::to_csv;

namespace {

/// torch's lowering: strings in, strings out. Source: _add_unshard_reshard, _add_reduce_grad and
/// _add_send_recv in torch/distributed/pipelining/schedules.py, called in this order by
/// _PipelineScheduleRuntime._prepare_schedule_with_comms.
class Torch {
 public:
  /// A cell; of a pair the two halves.
  struct Cell {
    int stage = 0;
    std::string kind;
    int item = -1;
    std::vector<Cell> halves = {};

    [[nodiscard]] std::string text() const {
      if (!halves.empty()) return "(" + halves[0].text() + ";" + halves[1].text() + ")OVERLAP_F_B";
      return std::to_string(stage) + kind + (item < 0 ? "" : std::to_string(item));
    }
    [[nodiscard]] std::vector<Cell> leaves() const {
      return halves.empty() ? std::vector<Cell>{*this} : halves;
    }
  };
  using Lists = std::vector<std::vector<Cell>>;

  static std::string lower(const Lists& compute, int stages, int items,
                           const std::vector<int>& ahead) {
    Lists lists;
    for (const auto& list : compute) {
      const int most = ahead.empty() ? 3 : ahead[lists.size()];
      lists.push_back(reduced(unsharded(list, static_cast<std::size_t>(most)), items));
    }
    return sent(lists, stages);
  }

 private:
  static std::vector<Cell> unsharded(const std::vector<Cell>& compute, std::size_t ahead) {
    std::set<int> active;
    std::vector<Cell> result;
    for (std::size_t i = 0; i < compute.size(); ++i) {
      std::vector<int> next, near;  // looked for anew from every action
      for (std::size_t j = i; j < compute.size() && next.size() < 3; ++j) {
        const bool is_near = next.size() < ahead;
        for (const Cell& leaf : compute[j].leaves())
          if (std::ranges::count(next, leaf.stage) == 0) next.push_back(leaf.stage);
        if (is_near) near = next;
      }
      const std::set<int> before = active;
      for (const int stage : before)
        if (std::ranges::count(next, stage) == 0) {
          result.push_back({stage, "RESHARD"});
          active.erase(stage);
        }
      for (const int stage : near)
        if (!before.contains(stage)) {
          result.push_back({stage, "UNSHARD"});
          active.insert(stage);
        }
      result.push_back(compute[i]);
    }
    for (const int stage : active) result.push_back({stage, "RESHARD"});
    return result;
  }

  static std::vector<Cell> reduced(const std::vector<Cell>& list, int items) {
    std::map<int, int> count;
    std::vector<Cell> result;
    for (const Cell& cell : list) {
      result.push_back(cell);
      for (const Cell& leaf : cell.leaves())
        if ((leaf.kind == "W" || leaf.kind == "B") && ++count[leaf.stage] == items)
          result.push_back({leaf.stage, "REDUCE_GRAD"});
    }
    return result;
  }

  static std::string sent(const Lists& lists, int stages) {
    std::map<int, std::size_t> rank_of;
    for (std::size_t rank = 0; rank < lists.size(); ++rank)
      for (const Cell& cell : lists[rank])
        for (const Cell& leaf : cell.leaves()) rank_of[leaf.stage] = rank;
    std::vector<std::deque<Cell>> left;
    for (const auto& list : lists) left.emplace_back(list.begin(), list.end());
    std::vector<std::string> lines(lists.size());
    std::vector<std::set<std::string>> before(lists.size());
    const auto put = [&](std::size_t rank, const Cell& cell) {
      lines[rank] += (lines[rank].empty() ? "" : ",") + cell.text();
      for (const Cell& leaf : cell.leaves()) before[rank].insert(leaf.text());
    };
    const auto ready = [&](std::size_t rank, const Cell& leaf) {
      const auto has = [&](int stage, const char* kind) {
        return before[rank].contains(Cell{stage, kind, leaf.item}.text());
      };
      if (leaf.kind == "F" && leaf.stage != 0)
        return has(leaf.stage, "RECV_F") || has(leaf.stage - 1, "F");
      if ((leaf.kind == "I" || leaf.kind == "B") && leaf.stage != stages - 1)
        return has(leaf.stage, "RECV_B") || has(leaf.stage + 1, "I") || has(leaf.stage + 1, "B");
      return true;
    };
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < left.size(); ++rank) {
        if (left[rank].empty()) continue;
        const Cell cell = left[rank].front();
        const auto leaves = cell.leaves();
        if (!std::ranges::all_of(leaves, [&](const Cell& leaf) { return ready(rank, leaf); }))
          continue;
        left[rank].pop_front();
        progress = true;
        put(rank, cell);
        for (const Cell& leaf : leaves) {
          const bool forward = leaf.kind == "F";
          if (!forward && leaf.kind != "I" && leaf.kind != "B") continue;
          const int to = leaf.stage + (forward ? 1 : -1);
          if (to < 0 || to == stages || rank_of[to] == rank) continue;
          put(rank, {leaf.stage, forward ? "SEND_F" : "SEND_B", leaf.item});
          put(rank_of[to], {to, forward ? "RECV_F" : "RECV_B", leaf.item});
        }
      }
    }
    std::string csv;
    for (const std::string& line : lines) csv += line + "\n";
    return csv;
  }
};

std::string torch_file(const Orders& orders, const std::vector<int>& ahead = {}) {
  Torch::Lists lists;
  int stages = 0, items = 0;
  for (const auto& list : orders.ranks) {
    auto& cells = lists.emplace_back();
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto leaf = [](const Order& order) {
        return Torch::Cell{static_cast<int>(order.stage.value), text(order.kind),
                           static_cast<int>(order.item.value)};
      };
      stages = std::max(stages, static_cast<int>(list[i].stage.value) + 1);
      items = std::max(items, static_cast<int>(list[i].item.value) + 1);
      if (list[i].fused) {
        cells.push_back({.kind = "PAIR", .halves = {leaf(list[i]), leaf(list[i + 1])}});
        ++i;
      } else {
        cells.push_back(leaf(list[i]));
      }
    }
  }
  return Torch::lower(lists, stages, items, ahead);
}

/// "line.cell: what (why)" of the wrong cell.
std::string said(const std::string& csv) {
  try {
    (void)read_lowered(csv);
  } catch (const schedule::wrong_cell& error) {
    const std::string& why = error.complaint().why;
    const std::size_t begin = why.find("', ");
    return text(error.line(), ".", error.cell(), ": ", error.complaint().what, " (",
                begin == std::string::npos ? "" : why.substr(begin + 3), ")");
  }
  return {};
}

/// Orders of chains, as they are generated or changed where that is legal: swapped neighbours,
/// fused ones, halves of backwards merged.
Orders random_orders(std::mt19937_64& random) {
  const auto below = [&](std::size_t n) { return random() % n; };
  for (;;) {
    const auto& entry = schedule::catalogue()[below(schedule::catalogue().size())];
    const int ranks = 1 + static_cast<int>(below(4));
    Orders orders;
    try {
      orders = entry.orders({.ranks = ranks,
                             .microbatches = ranks * (1 + static_cast<int>(below(2))),
                             .stages_per_rank = 1 + static_cast<int>(below(5)),
                             .group = 1});
    } catch (const infeasible&) {
      continue;
    }
    if (!schedule::why_not_torch(orders).empty()) continue;
    if (below(3) == 0) orders = schedule::merge_backward(orders);
    for (std::size_t changes = below(6); changes > 0; --changes) {
      Orders changed = orders;
      auto& list = changed.ranks[below(changed.ranks.size())];
      const std::size_t at = below(list.size() - 1);
      if (below(2) == 0)
        std::swap(list[at], list[at + 1]);
      else
        list[at].fused = true;
      if (!schedule::first_fault(changed)) orders = std::move(changed);
    }
    return orders;
  }
}

/// The cells of a schedule file of a chain, by rank.
std::vector<std::vector<std::string>> cells_of(const std::string& csv) {
  std::vector<std::vector<std::string>> cells;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    auto& list = cells.emplace_back();
    for (std::string cell; std::getline(in, cell, ',');) list.push_back(cell);
  }
  return cells;
}

/// The receive that a send waits for: "3RECV_B1" for "4SEND_B1", in a chain.
std::string partner_of(const std::string& send) {
  std::size_t digits = 0;
  const int stage = std::stoi(send, &digits);
  const bool forward = send[digits + 5] == 'F';
  return text(forward ? stage + 1 : stage - 1, "RECV_", send.substr(digits + 5));
}

bool is(const std::string& cell, const char* what) { return cell.find(what) != std::string::npos; }

/// Whether the ranks reach the ends of their lines if a send and its receive block them until both
/// are reached.
bool runs_without_buffers(const std::string& csv) {
  const auto lines = cells_of(csv);
  std::vector<std::size_t> at(lines.size(), 0);
  const auto head = [&](std::size_t rank) {
    return at[rank] < lines[rank].size() ? lines[rank][at[rank]] : std::string();
  };
  for (bool any = true; any;) {
    any = false;
    for (std::size_t rank = 0; rank < lines.size(); ++rank) {
      const std::string cell = head(rank);
      if (cell.empty() || is(cell, "RECV")) continue;
      if (is(cell, "SEND")) {
        std::size_t there = 0;
        while (there < lines.size() && head(there) != partner_of(cell)) ++there;
        if (there == lines.size()) continue;
        ++at[there];
      }
      ++at[rank];
      any = true;
    }
  }
  for (std::size_t rank = 0; rank < lines.size(); ++rank)
    if (at[rank] < lines[rank].size()) return false;
  return true;
}

/// The number of receives that stand before work that does not need them.
int receives_in_the_way(const std::string& csv) {
  int count = 0;
  for (const auto& line : cells_of(csv))
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::size_t mark = line[i].find("RECV_");
      if (mark == std::string::npos) continue;
      std::size_t next = i + 1;
      while (is(line[next], "RECV")) ++next;
      if (is(line[next], "SEND")) continue;
      const std::string stage = line[i].substr(0, mark), item = line[i].substr(mark + 6);
      bool needs = false;
      for (const char* kind : line[i][mark + 5] == 'F' ? std::vector{"F"} : std::vector{"I", "B"})
        for (const char* before : {"", "(", ";"})
          for (const char* after : {"", ";", ")OVERLAP_F_B"}) {
            const std::string wanted = before + stage + kind + item + after;
            const std::size_t found = line[next].find(wanted);
            needs |= found != std::string::npos && (*before != 0 || found == 0) &&
                     (*after != 0 || found + wanted.size() == line[next].size());
          }
      count += !needs;
    }
  return count;
}

}  // namespace

TEST_CASE("files with transfers hold what torch's lowering adds") {
  CHECK(to_csv(schedule::one_f_one_b(1, 2), CsvContents::transfers) ==
        "0UNSHARD,0F0,0B0,0F1,0B1,0REDUCE_GRAD,0RESHARD\n");
  // Cases of torch's own test of _add_unshard_reshard (test/distributed/pipelining/
  // test_schedule.py), with the REDUCE_GRAD that it tests apart.
  CHECK(to_csv(schedule::read_orders("0F0,0F1,   ,0B0,0B1"), CsvContents::transfers) ==
        "0UNSHARD,0F0,0F1,0B0,0B1,0REDUCE_GRAD,0RESHARD\n");
  CHECK(to_csv(schedule::read_orders("0F0,0F1,1F0,1F1,1B0,1B1,0B0,0B1"), CsvContents::transfers) ==
        "0UNSHARD,1UNSHARD,0F0,0F1,1F0,1F1,1B0,1B1,1REDUCE_GRAD,1RESHARD,0B0,0B1,0REDUCE_GRAD,"
        "0RESHARD\n");
  // By hand: the step takes a turn, so that rank 0 does 0F0 when rank 1 has unsharded its stage.
  CHECK(to_csv(schedule::one_f_one_b(2, 1), CsvContents::transfers) ==
        "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
        "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD\n");
  // No gradient is reduced where none is made.
  CHECK(to_csv(schedule::read_orders("0F0,0F1"), CsvContents::transfers) ==
        "0UNSHARD,0F0,0F1,0RESHARD\n");
}

TEST_CASE("a thousand files are those of a model of torch's lowering, and are read as written") {
  std::mt19937_64 random(4);
  int reshards_on_the_way = 0, pairs = 0, fourths = 0;
  for (int round = 0; round < 1000; ++round) {
    const Orders orders = random_orders(random);
    const LoweredOrders lowered = schedule::lower(orders);
    const std::string csv = to_csv(orders, CsvContents::transfers);
    INFO(orders.name << "\n" << to_string(orders));
    if (csv != torch_file(orders)) FAIL(csv << "torch:\n" << torch_file(orders));
    const LoweredOrders read = read_lowered(csv, {.name = orders.name, .graph = orders.graph});
    if (read != lowered) FAIL(csv << "is read as\n" << to_csv(read));
    pairs += csv.find("OVERLAP") != std::string::npos;
    for (std::size_t rank = 0; rank < orders.ranks.size(); ++rank) {
      std::set<Stage> unsharded;
      for (const auto& step : lowered.steps[rank]) {
        if (step.action == schedule::ParameterStep::Action::unshard) unsharded.insert(step.stage);
        if (step.action == schedule::ParameterStep::Action::reshard) unsharded.erase(step.stage);
        reshards_on_the_way += step.action == schedule::ParameterStep::Action::reshard &&
                               step.before < orders.ranks[rank].size();
        fourths += unsharded.size() == 4;
      }
    }
  }
  CHECK(reshards_on_the_way > 1000);
  CHECK(pairs > 50);
  CHECK(fourths > 0);
}

TEST_CASE("a rank unshards as few stages ahead as it is told, and reshards them as before") {
  const auto file = [](std::vector<int> ahead) {
    return to_csv(schedule::lower(schedule::read_orders("0F0,1F0,2F0,2B0,1B0,0B0"), ahead));
  };
  const std::string rest =
      "2F0,2B0,2REDUCE_GRAD,2RESHARD,1B0,1REDUCE_GRAD,1RESHARD,0B0,0REDUCE_GRAD,0RESHARD\n";
  CHECK(file({}) == "0UNSHARD,1UNSHARD,2UNSHARD,0F0,1F0," + rest);
  CHECK(file({3}) == file({}));
  CHECK(file({2}) == "0UNSHARD,1UNSHARD,0F0,2UNSHARD,1F0," + rest);
  CHECK(file({1}) == "0UNSHARD,0F0,1UNSHARD,1F0,2UNSHARD," + rest);

  std::mt19937_64 random(9);
  int changed = 0, pairs = 0;
  for (int round = 0; round < 300; ++round) {
    const Orders orders = random_orders(random);
    std::vector<int> ahead;
    for (std::size_t rank = 0; rank < orders.ranks.size(); ++rank)
      ahead.push_back(1 + static_cast<int>(random() % 3));
    const LoweredOrders lowered = schedule::lower(orders, ahead), before = schedule::lower(orders);
    const std::string csv = to_csv(lowered);
    INFO(orders.name << "\n" << to_string(orders));
    if (csv != torch_file(orders, ahead)) FAIL(csv << "torch:\n" << torch_file(orders, ahead));
    if (read_lowered(csv, {.name = orders.name, .graph = orders.graph}) != lowered) FAIL(csv);
    CHECK(runs_without_buffers(to_csv(lowered, schedule::Receives::late)));
    for (std::size_t rank = 0; rank < orders.ranks.size(); ++rank) {
      const auto others = [&](std::vector<schedule::ParameterStep> steps) {
        std::erase_if(steps, [](const schedule::ParameterStep& step) {
          return step.action == schedule::ParameterStep::Action::unshard;
        });
        return steps;
      };
      CHECK(lowered.steps[rank].size() == before.steps[rank].size());
      CHECK(others(lowered.steps[rank]) == others(before.steps[rank]));
    }
    changed += lowered != before;
    pairs += csv.find("OVERLAP") != std::string::npos;
  }
  CHECK(changed > 50);
  CHECK(pairs > 20);

  CHECK(test::message_of<contract_error>([] {
          (void)schedule::lower(schedule::one_f_one_b(3, 3), {2, 3});
        }).find("expected a number of stages ahead for each of 3 ranks") != std::string::npos);
  CHECK(test::message_of<contract_error>([] {
          (void)schedule::lower(schedule::one_f_one_b(2, 2), {2, 4});
        }).find("a rank unshards 1 to 3 stages ahead (got 4)") != std::string::npos);
}

TEST_CASE("late receives keep no rank from other work, and no rank waits for ever") {
  std::mt19937_64 random(7);
  int as_torch = 0, late = 0, files = 0;
  const auto check = [&](const Orders& orders) {
    const LoweredOrders lowered = schedule::lower(orders);
    const std::string csv = to_csv(lowered, schedule::Receives::late);
    INFO(orders.name << "\n" << csv);
    CHECK(read_lowered(csv, {.name = orders.name, .graph = orders.graph}) == lowered);
    CHECK(runs_without_buffers(csv));
    as_torch += receives_in_the_way(to_csv(lowered));
    late += receives_in_the_way(csv);
    ++files;
  };
  for (const char* name : {"gpipe", "1f1b", "interleaved", "looped-bfs", "zb-h1", "zb-v", "v-half",
                           "dualpipe-v", "grouped-interleaved", "combined-1f1b", "gis"})
    check(schedule::find_schedule(name).orders({}));
  CHECK(as_torch > 300);
  CHECK(late == 0);
  // In other orders, two ranks may need values in another order than that in which they are sent.
  for (int round = 0; round < 300; ++round) check(random_orders(random));
  CHECK(files == 311);
  CHECK(as_torch > 1000);
  CHECK(20 * late < as_torch);
}

TEST_CASE("late receives of 1F1B stand directly before their actions, or before a send") {
  CHECK(to_csv(schedule::LoweredOrders{schedule::one_f_one_b(2, 3)}, schedule::Receives::late) ==
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0SEND_F2,0RECV_B1,0B1,0RECV_B2,0B2\n"
        "1RECV_F0,1F0,1B0,1RECV_F1,1SEND_B0,1F1,1B1,1RECV_F2,1SEND_B1,1F2,1B2,1SEND_B2\n");
}

TEST_CASE("steps of a file are kept where they stand") {
  const std::string csv =
      "0UNSHARD,0F0,0SEND_F0,0RESHARD,0UNSHARD,0RECV_B0,0B0,0RESHARD,0REDUCE_GRAD\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD\n";
  const LoweredOrders read = read_lowered(csv);
  CHECK(read.orders.ranks == schedule::one_f_one_b(2, 1).ranks);
  CHECK(text(read.steps[0][1]) == "0RESHARD");
  CHECK(read.steps[0][1].before == 1);
  CHECK(read.steps[1].size() == 1);
  CHECK(read_lowered(to_csv(read)) == read);
  CHECK(schedule::read_orders(csv) == read.orders);
  // Files of older lowerings.
  CHECK(read_lowered("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0").steps ==
        std::vector<std::vector<schedule::ParameterStep>>(2));
}

TEST_CASE("a step that torch would run wrongly is refused at its cell") {
  CHECK(said("0F0,0B0,0REDUCE_GRAD0") == "1.3: a step of a stage names a microbatch ()");
  CHECK(said("0UNSHARD1,0F0,0B0") == "1.1: a step of a stage names a microbatch ()");
  CHECK(said("0F0,0B0,1REDUCE_GRAD") ==
        "1.3: a step is of a stage that its rank does not compute (1REDUCE_GRAD on rank 0)");
  CHECK(said("0F0,1UNSHARD,0SEND_F0\n1RECV_F0,1F0") ==
        "1.2: a step is of a stage that its rank does not compute (1UNSHARD on rank 0)");
  CHECK(said("0F0,0F1,0B0,0REDUCE_GRAD,0B1") ==
        "1.4: a gradient is reduced before it is complete (0REDUCE_GRAD before 0B1)");
  CHECK(said("0F0,0I0,0REDUCE_GRAD,0W0") ==
        "1.3: a gradient is reduced before it is complete (0REDUCE_GRAD before 0W0)");
  CHECK(said("0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD") ==
        "1.4: a gradient is reduced twice (0REDUCE_GRAD)");
  CHECK(said("0F0,0REDUCE_GRAD") ==
        "1.2: a gradient is reduced but not computed (0REDUCE_GRAD, and no B or W of this stage)");
  CHECK(said("0F0,1F0,1B0,1REDUCE_GRAD,0B0") ==
        "1.5: a gradient is not reduced (no 0REDUCE_GRAD after 0B0)");
  CHECK(said("0UNSHARD,0F0,0RESHARD,0B0") ==
        "1.3: a stage is resharded before its last use (0RESHARD before 0B0)");
  CHECK(said("0UNSHARD,0F0,0I0,0RESHARD,0W0") ==
        "1.4: a stage is resharded before its last use (0RESHARD before 0W0)");
  CHECK(said("0F0,0UNSHARD,0B0,0RESHARD") ==
        "1.1: a stage computes before it is unsharded (0F0 before 0UNSHARD)");
  CHECK(said("0UNSHARD,0F0,0UNSHARD,0B0,0RESHARD") == "1.3: a stage is unsharded twice (0UNSHARD)");
  CHECK(said("0F0,0B0,0RESHARD").ends_with("(0F0 before 0UNSHARD)"));
  CHECK(said("0UNSHARD,0F0,0B0,0RESHARD,0RESHARD") ==
        "1.5: a stage is resharded but is not unsharded (0RESHARD)");
  CHECK(said("0UNSHARD,0RESHARD,0UNSHARD,0F0,0RESHARD") ==
        "1.1: a stage is unsharded and not used (nothing computes after 0UNSHARD)");
  CHECK(said("0UNSHARD,0F0,0RESHARD,0UNSHARD") ==
        "1.4: a stage is unsharded and not used (nothing computes after 0UNSHARD)");
  CHECK(said("0UNSHARD,0F0,0B0,0REDUCE_GRAD") ==
        "1.1: a stage stays unsharded at the end of the step (no 0RESHARD after 0B0)");
}

TEST_CASE("any step of torch's that is lost, moved or doubled is refused") {
  // Every single loss of a cell but UNSHARD and RESHARD as a pair leaves a file that stops.
  const std::string csv = to_csv(schedule::interleaved(2, 3, 4), CsvContents::transfers);
  CHECK(said(csv).empty());
  std::vector<std::vector<std::string>> lines;
  std::istringstream in(csv);
  for (std::string line; std::getline(in, line);) {
    auto& cells = lines.emplace_back();
    std::istringstream of(line);
    for (std::string cell; std::getline(of, cell, ',');) cells.push_back(cell);
  }
  const auto joined = [](const auto& all) {
    std::string file;
    for (const auto& cells : all) {
      for (std::size_t i = 0; i < cells.size(); ++i) file += (i == 0 ? "" : ",") + cells[i];
      file += "\n";
    }
    return file;
  };
  for (std::size_t rank = 0; rank < lines.size(); ++rank)
    for (std::size_t i = 0; i < lines[rank].size(); ++i) {
      if (lines[rank][i].find("SHARD") == std::string::npos &&
          lines[rank][i].find("GRAD") == std::string::npos)
        continue;
      INFO(rank << ", " << i << ": " << lines[rank][i]);
      auto lost = lines;
      lost[rank].erase(lost[rank].begin() + static_cast<std::ptrdiff_t>(i));
      CHECK_FALSE(said(joined(lost)).empty());
      auto doubled = lines;
      doubled[rank].insert(doubled[rank].begin() + static_cast<std::ptrdiff_t>(i), lines[rank][i]);
      CHECK_FALSE(said(joined(doubled)).empty());
      auto moved = lost;
      moved[1 - rank].push_back(lines[rank][i]);
      CHECK_FALSE(said(joined(moved)).empty());
    }
}

TEST_CASE("steps of one's own are checked before they are written") {
  LoweredOrders lowered = schedule::lower(schedule::one_f_one_b(2, 2));
  lowered.steps[1].pop_back();
  CHECK(
      test::message_of<infeasible>([&] { (void)to_csv(lowered); }) ==
      "heddle::schedule::to_csv(1F1B P=2 M=2): a stage stays unsharded at the end of the step (no "
      "1RESHARD after 1B1)");
  lowered.steps[1] = {{schedule::ParameterStep::Action::reduce_grad, Stage{1}, 5}};
  CHECK(test::message_of<infeasible>([&] { (void)to_csv(lowered); }).find("is not between") !=
        std::string::npos);
  lowered.steps = {{}, {}, {{}}};
  CHECK(test::message_of<infeasible>([&] { (void)to_csv(lowered); }).find("without orders") !=
        std::string::npos);
}

TEST_CASE("torch runs all of the catalogue but what it has no words for") {
  std::string others;
  for (const auto& entry : schedule::catalogue()) {
    const std::string why = schedule::why_not_torch(entry.orders({}));
    if (!why.empty()) others += text(entry.name, ": ", why, "\n");
  }
  CHECK(others ==
        "chimera: stage 1 has two copies, on ranks 1 and 2\n"
        "chimera-doubled: stage 1 has two copies, on ranks 1 and 2\n"
        "dualpipe: stage 1 has two copies, on ranks 1 and 2\n"
        "flexpipe: stage 3 uses the output of stage 7, but the stages of torch are a chain\n"
        "pipedream: it is asynchronous: torch has no action for 0UPDATE0 on rank 0\n"
        "pipedream-vertical: it is asynchronous: torch has no action for 0UPDATE0 on rank 0\n"
        "stream: it has no backward passes\n");
}

}  // namespace test_lowered_files
