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
#include <heddle/schedule/first_fault.hpp>
#include <heddle/schedule/impl/csv_reader.hpp>
#include <heddle/schedule/impl/csv_transfers.hpp>
#include <heddle/schedule/impl/csv_writer.hpp>
#include <heddle/schedule/impl/marked_grid.hpp>
#include <heddle/schedule/orders.hpp>
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

/// The cells of every line, without the blanks around them.
[[nodiscard]] inline std::vector<std::vector<std::string_view>> cells_of(std::string_view csv) {
  std::vector<std::vector<std::string_view>> lines;
  while (!csv.empty()) {
    std::string_view line = csv.substr(0, csv.find('\n'));
    csv.remove_prefix(std::min(line.size() + 1, csv.size()));
    auto& cells = lines.emplace_back();
    for (bool more = true; more;) {
      std::string_view cell = line.substr(0, line.find(','));
      more = cell.size() < line.size();
      line.remove_prefix(std::min(cell.size() + 1, line.size()));
      const std::size_t first = std::min(cell.find_first_not_of(" \t\r"), cell.size());
      cell.remove_prefix(first);
      cells.push_back(cell.substr(0, cell.find_last_not_of(" \t\r") + 1));
    }
  }
  return lines;
}

}  // namespace impl

/// The orders of a schedule file. Files may hold transfers too (SEND_F, RECV_F, SEND_B, RECV_B):
/// they are compared with those that weave() inserts and left out, as are UNSHARD, RESHARD and
/// REDUCE_GRAD, which Heddle derives. Idle cells are left out. Lines may end in CR LF.
///
/// @throws wrong_cell, a format_error, for the first cell that is wrong: by itself, as an entry of
///         the orders (see first_fault()), or as a transfer. It names line, cell and text.
/// @throws format_error for a file without lines.
[[nodiscard]] inline Orders read_orders(std::string_view csv, const CsvOptions& options = {}) {
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
  content.orders.name = options.name;
  content.orders.graph = options.graph;
  content.orders.vertical_sync = options.vertical_sync;
  bool transfers = false;
  for (std::size_t row = 0; row < cells.size(); ++row) {
    impl::CsvReader reader(content, options.old_dialect);
    for (std::size_t cell = 0; cell < cells[row].size(); ++cell)
      if (!reader.read(cells[row][cell])) refuse(row, cell, reader.what, {}, reader.fix);
    transfers |= !content.transfers.back().empty();
    if (content.orders.ranks.back().empty())
      refuse(row, 0, "a rank has no action", {}, "a line is the list of one rank");
  }
  if (const auto fault = first_fault(content.orders))
    refuse(+fault->rank, content.cell_of[+fault->rank][fault->entry], fault->what, fault->why, {});
  if (transfers)
    if (const auto fault = impl::CsvTransfers(content).find())
      refuse(+fault->rank, fault->entry, fault->what, fault->why, {});
  return std::move(content.orders);
}

/// What a schedule file holds.
enum class CsvContents : std::uint8_t {
  compute,   ///< F, I, W, B and fused pairs
  transfers  ///< and the sends and receives between ranks
};

/// The orders as a schedule file, in the current dialect. With transfers, a value is sent right
/// after the action that makes it, and its receive stands where the receiving rank had come by
/// then, as torch's own lowering places them: ranks take turns, each doing the head of its list if
/// it can.
/// @throws infeasible for orders with a fault that read_orders() would find (with transfers only).
[[nodiscard]] inline std::string to_csv(const Orders& orders,
                                        CsvContents contents = CsvContents::compute) {
  if (contents == CsvContents::compute) return to_string(orders);
  if (const auto fault = first_fault(orders))
    throw infeasible(
        {text("heddle::schedule::to_csv(", orders.name, ")"), fault->what, fault->why});
  return impl::CsvWriter(orders).write();
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
