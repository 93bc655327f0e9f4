// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Schedule files of torch.distributed.pipelining, both ways: a line per rank, its actions
/// separated by commas, an empty cell where the rank idles.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/order/first_fault.hpp>
#include <heddle/schedule/order/impl/csv_reader.hpp>
#include <heddle/schedule/order/impl/csv_transfers.hpp>
#include <heddle/schedule/order/impl/csv_writer.hpp>
#include <heddle/schedule/order/impl/marked_grid.hpp>
#include <heddle/schedule/order/impl/step_checker.hpp>
#include <heddle/schedule/order/lowered_orders.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::schedule {

/// How a schedule file is read.
struct CsvOptions {
  std::string name = "CSV";  ///< of the orders
  StageGraph graph = {};     ///< what a file does not say; of 0 stages: a chain over those it names
  bool old_dialect = false;  ///< B is the backward for the input and BW the whole of it
  bool vertical_sync = false;  ///< of the orders; a file does not say it either
};

/// The first wrong cell of a schedule file, and its neighbourhood to print beside the error.
class wrong_cell : public format_error {
 public:
  /// Line and cell are counted from 1; the grid marks the cell.
  wrong_cell(Complaint complaint, std::size_t line, std::size_t cell, std::string grid)
      : format_error(std::move(complaint)), m_line(line), m_cell(cell), m_grid(std::move(grid)) {}

  /// The line of the file, from 1 on: that of rank line() - 1.
  [[nodiscard]] std::size_t line() const noexcept { return m_line; }
  /// The cell of the line, from 1 on.
  [[nodiscard]] std::size_t cell() const noexcept { return m_cell; }
  /// The cells around it in a line per rank, this one between arrows.
  [[nodiscard]] const std::string& grid() const noexcept { return m_grid; }

 private:
  std::size_t m_line;
  std::size_t m_cell;
  std::string m_grid;
};

namespace impl {

/// A cell for people to read, whatever bytes it has.
[[nodiscard]] inline std::string printable(std::string_view cell) {
  constexpr std::size_t most = 32;
  std::string shown(cell.substr(0, most));
  for (char& c : shown)
    if (c < ' ' || c > '~') c = '?';
  return cell.size() > most ? shown + "..." : shown;
}

/// The cell of a line that begins at its front, which is removed with the comma behind it. As in
/// torch's reader a quote at the front of a cell begins a quoted one. `more` says whether there was
/// a comma.
[[nodiscard]] inline std::string_view take_cell(std::string_view& line, bool& more) {
  const std::size_t quoted = line.starts_with('"') ? line.find('"', 1) : std::string_view::npos;
  const bool quotes = quoted != std::string_view::npos;
  const std::size_t end = std::min(line.find(',', quotes ? quoted : 0), line.size());
  std::string_view cell = line.substr(0, end);
  more = end < line.size();
  line.remove_prefix(std::min(end + 1, line.size()));
  if (quotes && without_blanks(cell.substr(quoted + 1)).empty()) cell = cell.substr(1, quoted - 1);
  return without_blanks(cell);
}

/// The cells of every line, without the blanks around them; no empty lines at the end.
[[nodiscard]] inline std::vector<std::vector<std::string_view>> cells_of(std::string_view csv) {
  std::vector<std::vector<std::string_view>> lines;
  csv = csv.substr(0, csv.find_last_not_of(" \t\r\n") + 1);
  while (!csv.empty()) {
    std::string_view line = csv.substr(0, csv.find('\n'));
    csv.remove_prefix(std::min(line.size() + 1, csv.size()));
    auto& cells = lines.emplace_back();
    for (bool more = true; more;) cells.push_back(take_cell(line, more));
  }
  return lines;
}

/// What to do about a fault of the orders of a file.
[[nodiscard]] inline std::string fix_of(const Orders& orders, const Fault& fault,
                                        bool old_dialect) {
  const auto& list = orders.ranks[+fault.rank];
  if (list.empty()) return {};
  const Order& order = list[fault.entry];
  const auto has = [&](Kind kind) {
    return std::ranges::count(list, Order{kind, order.stage, order.item}) > 0;
  };
  const auto stands_on = [&](const auto& other) {
    return &other != &list && std::ranges::count(other, order.stage, &Order::stage) > 0;
  };
  if (order.kind == Kind::backward_weight && has(Kind::backward)) return old_dialect_fix;
  if (old_dialect && order.kind == Kind::backward_input && !has(Kind::backward_weight))
    return "in the current dialect B is the whole backward: read the file without the old dialect";
  if (!orders.graph.replicas && std::ranges::any_of(orders.ranks, stands_on))
    return "copies of a stage are read with CsvOptions::graph.replicas, or schedule check "
           "--replicas; torch cannot load them";
  return {};
}

}  // namespace impl

/// The orders of a schedule file, and the steps of the parameters (UNSHARD, RESHARD, REDUCE_GRAD)
/// between them. Files may hold transfers too (SEND_F, RECV_F, SEND_B, RECV_B): they are compared
/// with those that weave() inserts and left out. Idle cells and empty lines at the end are left
/// out. Cells may be quoted; lines may end in CR LF.
///
/// A step is wrong if torch.distributed.pipelining would stop at it or compute something else: of a
/// stage that the rank does not compute, or of a microbatch; a stage unsharded twice, for nothing,
/// or until the end; resharded before its last use; computing before it is unsharded, where steps
/// shard it; a gradient reduced before the last B or W, twice, or not, where the file reduces
/// others. A file without any REDUCE_GRAD is read, because lowerings of older torch wrote none.
///
/// @throws wrong_cell, a format_error, for the first cell that is wrong: by itself, as an entry of
///         the orders (see first_fault()), as a step, or as a transfer. It names line, cell and
///         text.
/// @throws format_error for a file without lines.
[[nodiscard]] inline LoweredOrders read_lowered(std::string_view csv,
                                                const CsvOptions& options = {}) {
  const auto cells = impl::cells_of(csv);
  const std::string where = text("heddle::schedule::read_orders(", options.name, ")");
  if (cells.empty()) throw format_error({where, "the file is empty"});
  const auto refuse = [&](std::size_t row, std::size_t cell, std::string what, std::string why,
                          std::string fix) {
    std::vector<std::vector<std::string>> shown(cells.size());
    for (std::size_t r = 0; r < cells.size(); ++r)
      for (const std::string_view each : cells[r]) shown[r].push_back(impl::printable(each));
    const std::string place = text("line ", row + 1, ", cell ", cell + 1, ": '", shown[row][cell],
                                   why.empty() ? "'" : "', ", why);
    throw wrong_cell({where, std::move(what), place, std::move(fix)}, row + 1, cell + 1,
                     heddle::impl::marked_grid(shown, row, cell));
  };
  impl::CsvContent content;
  Orders& orders = content.lowered.orders;
  orders.name = options.name;
  orders.graph = options.graph;
  orders.vertical_sync = options.vertical_sync;
  bool transfers = false;
  for (std::size_t row = 0; row < cells.size(); ++row) {
    impl::CsvReader reader(content, options.old_dialect);
    for (std::size_t cell = 0; cell < cells[row].size(); ++cell)
      if (!reader.read(cells[row][cell])) refuse(row, cell, reader.what, {}, reader.fix);
    transfers |= !content.transfers.back().empty();
    if (orders.ranks.back().empty())
      refuse(row, 0, "a rank has no action", {}, "a line is the list of one rank");
  }
  if (const auto fault = first_fault(orders))
    refuse(+fault->rank, content.cell_of[+fault->rank][fault->entry], fault->what, fault->why,
           impl::fix_of(orders, *fault, options.old_dialect));
  if (const auto fault = impl::StepChecker(content.lowered).find())
    refuse(+fault->rank,
           (fault->is_step ? content.cell_of_step : content.cell_of)[+fault->rank][fault->index],
           fault->what, fault->why, "to_csv() with transfers writes the steps of torch's lowering");
  if (transfers)
    if (const auto fault = impl::CsvTransfers(content).find())
      refuse(+fault->rank, fault->entry, fault->what, fault->why, {});
  return std::move(content.lowered);
}

/// The orders of a schedule file alone. @throws as read_lowered() does.
[[nodiscard]] inline Orders read_orders(std::string_view csv, const CsvOptions& options = {}) {
  return read_lowered(csv, options).orders;
}

/// What a schedule file holds.
enum class CsvContents : std::uint8_t {
  compute,   ///< F, I, W, B and fused pairs: torch's format "compute_only"
  transfers  ///< and all that torch's lowering adds to them: its format "compute_comms"
};

/// Orders and their parameter steps as a schedule file with transfers, which torch loads with the
/// format "compute_comms": a value is sent right after the action that makes it, and its receive
/// stands where the receiving rank had come by then, as torch's own lowering places them. Ranks
/// take turns, each doing the head of its list, a step or an action, if it can.
///
/// torch adds nothing to such a file. Without the steps it does not scale gradients, and does not
/// sum them over ranks that share a stage: take lower(orders) if there are none. Some orders are
/// nothing that torch can run; why_not_torch() says which.
/// @throws infeasible for orders or steps with a fault that read_lowered() would find.
[[nodiscard]] inline std::string to_csv(const LoweredOrders& lowered) {
  const std::string where = text("heddle::schedule::to_csv(", lowered.orders.name, ")");
  if (const auto fault = first_fault(lowered.orders))
    throw infeasible({where, fault->what, fault->why});
  if (const auto fault = impl::StepChecker(lowered).find())
    throw infeasible({where, fault->what, fault->why});
  return impl::CsvWriter(lowered).write();
}

/// The orders as a schedule file, in the current dialect. With transfers it is
/// to_csv(lower(orders)).
/// @throws infeasible as that does (with transfers only).
[[nodiscard]] inline std::string to_csv(const Orders& orders,
                                        CsvContents contents = CsvContents::compute) {
  return contents == CsvContents::compute ? to_string(orders) : to_csv(lower(orders));
}

/// The compute actions of a timeline as a schedule file with its idle cells: a column for each
/// `slot` of time from the beginning on, so that to_csv(simulate(schedule, {.forward = 1, .backward
/// = 1})) shows the schedule's slots. What takes longer than a slot is followed by empty cells; a
/// fused pair is one cell. Left out are what weave() adds, the updates of orders that name none
/// among it, and what runs again (see recompute()), which has no name in this dialect: its cells
/// are empty. So read_orders() gives back the orders that were woven.
/// @throws contract_error where an action does not begin at a slot of its own, and for a slot of no
///         time.
template <class Time>
[[nodiscard]] std::string to_csv(const BasicTimeline<Time>& timeline, Time slot = Time(1)) {
  expects(Time{} < slot, [] {
    return Complaint{"heddle::schedule::to_csv", "a slot takes time", "slot = 0 or less"};
  });
  const Schedule& schedule = timeline.schedule();
  const Time begin = timeline.begin();
  std::vector<std::string> lines(static_cast<std::size_t>(schedule.ranks()));
  std::vector<int> slots(lines.size(), 0);  // written
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const auto [kind, flags] = std::pair(schedule[id].kind, schedule[id].flags);
    const bool computes = kind <= Kind::backward || kind == Kind::update;
    if (!computes || (flags & (flag::again | flag::unnamed)) != 0) continue;
    const Rank rank = schedule[schedule[id].queue].from;
    std::string& line = lines[+rank];
    int& written = slots[+rank];
    const auto at = [&] { return begin + slot * Time(written); };
    const auto comma = [&] { line += std::exchange(written, written + 1) > 0 ? "," : ""; };
    while (at() < timeline[id].start) comma();
    expects(!(timeline[id].start < at()), [&] {
      return Complaint{"heddle::schedule::to_csv", "an action does not begin at a slot of its own",
                       text(action_text(schedule, id), " on rank ", rank),
                       "simulate with costs of one slot or several"};
    });
    comma();
    if (flags & flag::with_next) {
      line += text("(", action_text(schedule, id), ";", action_text(schedule, ActionId{++i}),
                   ")OVERLAP_F_B");
    } else {
      line += action_text(schedule, id);
    }
  }
  std::string csv;
  for (const std::string& line : lines) csv += line + "\n";
  return csv;
}

}  // namespace heddle::inline v0::schedule
