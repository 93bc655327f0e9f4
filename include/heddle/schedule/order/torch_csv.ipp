// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of torch_csv.hpp.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/fault.hpp>
#include <heddle/schedule/order/first_fault.hpp>
#include <heddle/schedule/order/impl/csv_reader.hpp>
#include <heddle/schedule/order/impl/csv_transfers.hpp>
#include <heddle/schedule/order/impl/csv_writer.hpp>
#include <heddle/schedule/order/impl/marked_grid.hpp>
#include <heddle/schedule/order/impl/step_checker.hpp>
#include <heddle/schedule/order/lowered_orders.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/torch_csv.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

// Returns the first bytes of a cell for a terminal.
inline std::string shown_cell(std::string_view cell) {
  constexpr std::size_t most = 32;
  const std::string shown = heddle::impl::printable(cell.substr(0, most));
  return cell.size() > most ? shown + "..." : shown;
}

// Returns the first cell of a line, and removes it with the comma behind it. As in torch's reader a
// quote at the front of a cell begins a quoted cell. `more` says whether there was a comma.
inline std::string_view take_cell(std::string_view& line, bool& more) {
  const std::size_t quoted = line.starts_with('"') ? line.find('"', 1) : std::string_view::npos;
  const bool quotes = quoted != std::string_view::npos;
  const std::size_t end = std::min(line.find(',', quotes ? quoted : 0), line.size());
  std::string_view cell = line.substr(0, end);
  more = end < line.size();
  line.remove_prefix(std::min(end + 1, line.size()));
  if (quotes && without_blanks(cell.substr(quoted + 1)).empty()) cell = cell.substr(1, quoted - 1);
  return without_blanks(cell);
}

// Returns the cells of every line without the blanks around them, without empty lines at the end,
// and without the mark with which spreadsheets begin a file.
inline std::vector<std::vector<std::string_view>> cells_of(std::string_view csv) {
  std::vector<std::vector<std::string_view>> lines;
  csv = heddle::impl::without_mark(csv);
  csv = csv.substr(0, csv.find_last_not_of(" \t\r\n") + 1);
  while (!csv.empty()) {
    std::string_view line = csv.substr(0, csv.find('\n'));
    csv.remove_prefix(std::min(line.size() + 1, csv.size()));
    auto& cells = lines.emplace_back();
    for (bool more = true; more;) cells.push_back(take_cell(line, more));
  }
  return lines;
}

// Returns how to fix a fault in the orders of a file.
inline std::string fix_of(const Orders& orders, const Fault& fault, bool old_dialect) {
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
    return "to read copies of a stage, set CsvOptions::graph.replicas or use schedule check "
           "--replicas; torch cannot load them";
  return {};
}

}  // namespace impl

HEDDLE_INLINE wrong_cell::wrong_cell(ErrorInfo complaint, std::size_t line, std::size_t cell,
                                     std::string grid)
    : format_error(std::move(complaint)), m_line(line), m_cell(cell), m_grid(std::move(grid)) {}

HEDDLE_INLINE LoweredOrders read_lowered(std::string_view csv, const CsvOptions& options) {
  const auto cells = impl::cells_of(csv);
  const std::string where = text("heddle::schedule::read_orders(", options.name, ")");
  if (cells.empty()) throw format_error({where, "the file is empty"});
  const auto refuse = [&](std::size_t row, std::size_t cell, std::string what, std::string why,
                          std::string fix) {
    std::vector<std::vector<std::string>> shown(cells.size());
    for (std::size_t r = 0; r < cells.size(); ++r)
      for (const std::string_view each : cells[r]) shown[r].push_back(impl::shown_cell(each));
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
      refuse(row, 0, "a rank has no action", {},
             "each line is a rank, also for torch: give it an action or delete the line");
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

HEDDLE_INLINE Orders read_orders(std::string_view csv, const CsvOptions& options) {
  return read_lowered(csv, options).orders;
}

HEDDLE_INLINE std::string to_csv(const LoweredOrders& lowered, Receives receives) {
  const std::string where = text("heddle::schedule::to_csv(", lowered.orders.name, ")");
  if (const auto fault = first_fault(lowered.orders))
    throw infeasible({where, fault->what, fault->why});
  if (const auto fault = impl::StepChecker(lowered).find())
    throw infeasible({where, fault->what, fault->why});
  impl::CsvWriter writer(lowered);
  return receives == Receives::late ? std::move(writer).write_late() : std::move(writer).write();
}

HEDDLE_INLINE std::string to_csv(const Orders& orders, CsvContents contents) {
  return contents == CsvContents::compute ? to_string(orders) : to_csv(lower(orders));
}

}  // namespace heddle::inline v0::schedule
