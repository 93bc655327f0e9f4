// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Implements read_orders(): parses the cells of a schedule file.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/order/lowered_orders.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule::impl {

/// A transfer of a schedule file, `2SEND_F0`.
struct CsvTransfer {
  bool sends;     ///< true for SEND, false for RECV
  bool gradient;  ///< true for _B, false for _F
  Stage stage;    ///< the stage that sends or receives
  Item item;
  std::size_t cell = 0;    ///< the cell in its line, from 0 on
  std::size_t before = 0;  ///< the number of entries of the same rank in the cells before it

  friend std::ostream& operator<<(std::ostream& out, const CsvTransfer& transfer) {
    return out << transfer.stage << (transfer.sends ? "SEND" : "RECV")
               << (transfer.gradient ? "_B" : "_F") << transfer.item;
  }
};

/// The contents of a file and their cells. Entry i of rank r is in cell `cell_of[r][i]` of its
/// line, and step i in cell `cell_of_step[r][i]`.
struct CsvContent {
  LoweredOrders lowered = {};
  std::vector<std::vector<std::size_t>> cell_of = {};
  std::vector<std::vector<std::size_t>> cell_of_step = {};
  std::vector<std::vector<CsvTransfer>> transfers = {};
};

/// The fix for a file that looks like one of the old dialect.
inline constexpr const char* old_dialect_fix =
    "this looks like the old dialect, where B is the backward for the input and BW the whole "
    "backward: read it with CsvOptions::old_dialect, or schedule check --old-dialect";

/// Returns a text without the blanks around it.
[[nodiscard]] inline std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

/// Reads a line cell by cell. If read() returns false, `what` is the problem and `fix` the fix.
class CsvReader {
 public:
  /// Constructs a reader that appends the line to `content` as its next rank.
  CsvReader(CsvContent& content, bool old_dialect)
      : m_list(content.lowered.orders.ranks.emplace_back()),
        m_steps(content.lowered.steps.emplace_back()),
        m_cell_of(content.cell_of.emplace_back()),
        m_cell_of_step(content.cell_of_step.emplace_back()),
        m_transfers(content.transfers.emplace_back()),
        m_old(old_dialect) {}

  std::string what, fix;

  /// Reads the next cell. Returns false if it is wrong.
  [[nodiscard]] bool read(std::string_view cell) {
    ++m_cell;
    if (cell.empty()) return true;  // idle
    if (cell.front() == '(') return read_pair(cell);
    std::string_view rest = cell;
    std::string_view name;
    std::uint32_t stage = 0;
    std::uint32_t item = 0;
    bool has_item = false;
    if (!split(rest, stage, name, item, has_item)) return not_an_action();
    for (const ParameterStep::Action action :
         {ParameterStep::Action::unshard, ParameterStep::Action::reshard,
          ParameterStep::Action::reduce_grad}) {
      if (name != to_string(action)) continue;
      const ParameterStep step{action, Stage{stage}, m_list.size()};
      if (has_item) {
        what = "a step of a stage names a microbatch";
        fix = text("write ", step, ": it is for all microbatches");
        return false;
      }
      m_steps.push_back(step);
      m_cell_of_step.push_back(m_cell - 1);
      return true;
    }
    if (!has_item) return not_an_action();
    struct Transfer {
      std::string_view name;
      bool sends, gradient;
    };
    constexpr Transfer transfers[] = {{"SEND_F", true, false},
                                      {"RECV_F", false, false},
                                      {"SEND_B", true, true},
                                      {"RECV_B", false, true}};
    for (const auto& [known, sends, gradient] : transfers) {
      if (name != known) continue;
      m_transfers.push_back({sends, gradient, Stage{stage}, Item{item}, m_cell - 1, m_list.size()});
      return true;
    }
    Kind kind{};
    if (!kind_of(name, kind)) return false;
    append({kind, Stage{stage}, Item{item}});
    return true;
  }

 private:
  bool not_an_action() {
    what = "a cell is not an action";
    fix =
        "write 2F0: the stage, one of F I W B, SEND_F, RECV_F, SEND_B, RECV_B, the microbatch; or "
        "2UNSHARD, 2RESHARD, 2REDUCE_GRAD; or (2F1;3B0)OVERLAP_F_B";
    return false;
  }

  [[nodiscard]] bool kind_of(std::string_view name, Kind& kind) {
    if (m_old) {  // B was the backward for the input, BW the whole
      if (name == "B") return kind = Kind::backward_input, true;
      if (name == "BW") return kind = Kind::backward, true;
      if (name == "I") return not_an_action();
    }
    for (const Kind known :
         {Kind::forward, Kind::backward_input, Kind::backward_weight, Kind::backward, Kind::update})
      if (name == to_string(known)) return kind = known, true;
    (void)not_an_action();
    if (name == "BW") fix = old_dialect_fix;
    return false;
  }

  /// Splits `rest` into a number, capital letters and an optional second number.
  [[nodiscard]] static bool split(std::string_view rest, std::uint32_t& stage,
                                  std::string_view& name, std::uint32_t& item, bool& has_item) {
    const auto number = [&rest](std::uint32_t& value) {
      const char* const end = rest.data() + rest.size();
      const auto [after, error] = std::from_chars(rest.data(), end, value);
      if (error != std::errc{}) return false;
      rest.remove_prefix(static_cast<std::size_t>(after - rest.data()));
      return true;
    };
    if (!number(stage)) return false;
    std::size_t letters = 0;
    while (letters < rest.size() &&
           ((rest[letters] >= 'A' && rest[letters] <= 'Z') || rest[letters] == '_'))
      ++letters;
    name = rest.substr(0, letters);
    rest.remove_prefix(letters);
    if (rest.empty()) return true;
    has_item = number(item);
    return has_item && rest.empty();
  }

  /// Reads a fused pair, `(0F7;7B3)OVERLAP_F_B`.
  [[nodiscard]] bool read_pair(std::string_view cell) {
    constexpr std::string_view end = ")OVERLAP_F_B";
    if (!cell.ends_with(end)) return not_an_action();
    const std::string_view both = cell.substr(1, cell.size() - 1 - end.size());
    const std::size_t middle = both.find(';');
    if (middle == std::string_view::npos) return not_an_action();
    Order pair[2];
    for (const int i : {0, 1}) {
      const std::string_view half = i == 0 ? both.substr(0, middle) : both.substr(middle + 1);
      std::string_view name;
      std::uint32_t stage = 0;
      std::uint32_t item = 0;
      bool has_item = false;
      if (!split(without_blanks(half), stage, name, item, has_item) || !has_item)
        return not_an_action();
      pair[i] = {Kind::forward, Stage{stage}, Item{item}};
      if (!kind_of(name, pair[i].kind)) return false;
    }
    pair[0].fused = true;
    append(pair[0]);
    append(pair[1]);
    return true;
  }

  void append(const Order& order) {
    m_list.push_back(order);
    m_cell_of.push_back(m_cell - 1);
  }

  std::vector<Order>& m_list;
  std::vector<ParameterStep>& m_steps;
  std::vector<std::size_t>& m_cell_of;
  std::vector<std::size_t>& m_cell_of_step;
  std::vector<CsvTransfer>& m_transfers;
  bool m_old;
  std::size_t m_cell = 0;  ///< the number of cells that have been read
};

}  // namespace heddle::inline v0::schedule::impl
