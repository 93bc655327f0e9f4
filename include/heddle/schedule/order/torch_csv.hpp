// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Reads and writes schedule files of torch.distributed.pipelining: a line per rank, its actions
/// separated by commas, and an empty cell for each slot in which the rank is idle.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/internal/check_spans.hpp>
#include <heddle/schedule/order/lowered_orders.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::schedule {

/// The options of reading a schedule file.
struct CsvOptions {
  std::string name = "CSV";  ///< the name of the orders
  /// The graph of the stages, which a file does not contain. With 0 stages it is a chain over the
  /// stages that the file names.
  StageGraph graph = {};
  /// If true, B is the backward for the input and BW the whole backward.
  bool old_dialect = false;
  bool vertical_sync = false;  ///< Orders::vertical_sync, which a file does not contain either
};

/// The error for the first wrong cell of a schedule file. It holds the cells around it, to print
/// beside the error.
class wrong_cell : public format_error {
 public:
  /// Constructs the error. Line and cell are counted from 1; the grid marks the cell.
  wrong_cell(ErrorInfo complaint, std::size_t line, std::size_t cell, std::string grid);

  /// Returns the line of the file, from 1 on. It is the line of rank line() - 1.
  [[nodiscard]] std::size_t line() const noexcept { return m_line; }
  /// Returns the cell of the line, from 1 on.
  [[nodiscard]] std::size_t cell() const noexcept { return m_cell; }
  /// Returns the cells around the wrong one in a line per rank. The wrong cell stands between
  /// arrows.
  [[nodiscard]] const std::string& grid() const noexcept { return m_grid; }

 private:
  std::size_t m_line;
  std::size_t m_cell;
  std::string m_grid;
};

/// Returns the orders of a schedule file and its parameter steps (UNSHARD, RESHARD, REDUCE_GRAD).
/// Files may also contain transfers (SEND_F, RECV_F, SEND_B, RECV_B). They must equal the transfers
/// that weave() inserts, and are not part of the result. Idle cells and empty lines at the end are
/// skipped. Cells may be quoted, and lines may end in CR LF. A line of commas only is wrong even at
/// the end, because torch counts it as a rank.
///
/// A step is wrong if torch.distributed.pipelining would stop at it or compute something else:
///
/// - a step for a stage that the rank does not compute, or for a single microbatch;
/// - a stage that is unsharded twice, without being used, or until the end of the step;
/// - a stage that is resharded before its last use;
/// - a computation before its stage is unsharded, if the file shards the stage;
/// - a gradient that is reduced before the last B or W, or twice, or not at all although the file
///   reduces others. A file without any REDUCE_GRAD is accepted, because older versions of torch
///   wrote none.
///
/// @throws wrong_cell, a format_error, for the first cell that is wrong: by itself, as an entry of
///         the orders (see first_fault()), as a step, or as a transfer. It names the line, the cell
///         and its text.
/// @throws format_error if the file has no lines.
[[nodiscard]] LoweredOrders read_lowered(std::string_view csv, const CsvOptions& options = {});

/// Returns the orders of a schedule file without its parameter steps.
/// @throws wrong_cell or format_error as read_lowered() does.
[[nodiscard]] Orders read_orders(std::string_view csv, const CsvOptions& options = {});

/// The contents of a schedule file.
enum class CsvContents : std::uint8_t {
  compute,   ///< F, I, W, B and fused pairs: torch's format "compute_only"
  transfers  ///< these, and all that torch's lowering adds to them: torch's format "compute_comms"
};

/// The place of a receive in a schedule file with transfers.
enum class Receives : std::uint8_t {
  /// At the point that the receiving rank has reached when the value is sent, as in torch's own
  /// lowering. For this the ranks take turns: each runs the head of its list, a step or an action,
  /// if
  /// it can.
  as_torch,
  /// Directly before the action that needs the value. Such a receive does not keep a rank from work
  /// that does not need it. A receive stands earlier, if possible before a send, if the ranks would
  /// otherwise wait for each other with sends and receives that block and have no buffers.
  late
};

/// Returns orders and their parameter steps as a schedule file with transfers, which torch loads
/// with the format "compute_comms". A value is sent directly after the action that makes it.
/// `receives` says where it is received.
///
/// torch adds nothing to such a file. Without parameter steps it does not scale gradients, and does
/// not sum them over ranks that share a stage. If there are no steps, pass lower(orders). torch
/// cannot run all orders; why_not_torch() says why.
/// @throws infeasible for orders or steps with a fault that read_lowered() would find.
[[nodiscard]] std::string to_csv(const LoweredOrders& lowered,
                                 Receives receives = Receives::as_torch);

/// Returns the orders as a schedule file in the current dialect. With transfers it returns
/// to_csv(lower(orders)). torch cannot load the files of all orders; why_not_torch() says why.
/// @throws infeasible, with transfers only, as to_csv(const LoweredOrders&) does.
[[nodiscard]] std::string to_csv(const Orders& orders, CsvContents contents = CsvContents::compute);

/// Returns the compute actions of a timeline as a schedule file with idle cells. There is a column
/// for each `slot` of time from the beginning on. For example, to_csv(simulate(schedule, {.forward
/// = 1, .backward = 1})) shows the slots of the schedule. Empty cells follow an action that takes
/// longer than a slot. A fused pair is one cell.
///
/// The file does not contain the actions that weave() adds, such as the updates at the end of the
/// step. It has empty cells for actions that run again (see recompute()), because the dialect has
/// no name for them. Therefore read_orders() returns the orders that were woven.
/// @throws contract_error if an action does not begin at a slot of its own, or if `slot` is not
///         positive.
template <class Time>
[[nodiscard]] std::string to_csv(const BasicTimeline<Time>& timeline, Time slot = Time(1)) {
  expects(Time{} < slot, [] {
    return ErrorInfo{"heddle::schedule::to_csv", "the duration of a slot must be above 0", {}};
  });
  heddle::impl::check_spans("heddle::schedule::to_csv", timeline);
  const Schedule& schedule = timeline.schedule();
  const Time begin = timeline.begin();
  std::vector<std::string> lines(static_cast<std::size_t>(schedule.ranks()));
  std::vector<int> slots(lines.size(), 0);  // that are written
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
      return ErrorInfo{"heddle::schedule::to_csv",
                       "an action does not begin at the start of a time slot",
                       text(action_text(schedule, id), " on rank ", rank),
                       "simulate with costs that are whole numbers of slots"};
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

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/torch_csv.ipp>
#endif
