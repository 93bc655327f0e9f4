// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Explorer: answers the requests of the explorer's page. The page runs it as WebAssembly; the
/// program `explorer` and the tests run the same code.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/schedule/timeline.hpp>

#include "../common/pricing.hpp"

namespace tool {

/// A box or a message of a drawing, as plain numbers that the page reads without a copy.
struct Drawn {
  std::int32_t kind = 0;    ///< a heddle::Kind
  std::int32_t flags = 0;   ///< bits of heddle::flag
  std::int32_t from = 0;    ///< the rank that works or sends
  std::int32_t to = 0;      ///< the rank that receives; equals `from` for local work
  std::int32_t stage = 0;   ///< the stage
  std::int32_t item = 0;    ///< the microbatch
  std::int32_t action = 0;  ///< its number in the schedule
  std::int32_t row = 0;     ///< 0; in a trace with two timelines, 1 for the second one
};

class Json;

/// The explorer's view of one schedule. It throws the library's errors.
class Explorer {
 public:
  /// Returns the answer to `request`, which is pairs `key=value` joined by '&'. The key `do` says
  /// what is asked; the other keys are the options of the program `schedule`.
  ///
  /// - `do=catalogue`: the schedules that there are, as JSON;
  /// - `do=draw`: simulates `schedule=NAME`, or the schedule file `file` if there is no such key,
  ///   and returns its numbers as JSON. Its boxes are then in drawn(), times() and live().
  ///   With `search=1` the orders are the shortest that search_orders() finds with the computations
  ///   of this schedule, in the memory `cap-bytes`. With `search=kept` they are those for the
  ///   activations that each rank keeps. `effort`, 1 unless given, shortens the search;
  /// - `do=read&kind=KIND&name=NAME`: checks the profile, machine or plan in `file`, and returns a
  ///   description as JSON;
  /// - `do=plan&profile=N&machine=N&plan=N`: simulates the plan, whose profile and machine are the
  ///   first bytes of `file`, as many as the numbers say. With `schedule=NAME` the plan has this
  ///   schedule. Without a plan, each rank has a stage and a sample of `microbatches` microbatches;
  /// - `do=action&action=I`: what is to be known about an action of the schedule that was drawn;
  /// - `do=csv`, `do=svg`, `do=perfetto`: the schedule that was drawn, as such a file;
  /// - `do=trace`: draws a trace. `file` has a line for each action, in seconds:
  ///   `KIND,timeline,action,from,to,stage,item,start,end,arrival`. Timeline is 0 or 1;
  /// - `do=analyse`: why the ranks waited in the trace that was drawn, and its plan error.
  ///
  /// @throws heddle::contract_error for a request that is none, heddle::infeasible if there is no
  ///         such schedule, heddle::schedule::wrong_cell for a wrong schedule file, and
  ///         heddle::format_error for a wrong file of another kind.
  [[nodiscard]] std::string answer(std::string_view request, std::string_view file = {});

  /// Returns the boxes and messages of the last drawing, in list order.
  [[nodiscard]] const std::vector<Drawn>& drawn() const { return m_drawn; }
  /// Returns start, end and arrival of each entry of drawn().
  [[nodiscard]] const std::vector<double>& times() const { return m_times; }
  /// Returns what all ranks hold over time, one rank after another: pairs of a time and a number of
  /// bytes, or, if the request has no sizes, a number of parts of live activations. The JSON of the
  /// drawing says where each rank begins.
  [[nodiscard]] const std::vector<double>& live() const { return m_live; }

 private:
  /// A slice of a trace.
  struct Slice {
    Drawn drawn;
    heddle::Span span;
  };

  [[nodiscard]] std::string draw(std::string_view request, std::string_view file);
  [[nodiscard]] std::string plan(std::string_view request, std::string_view files);
  [[nodiscard]] Json report(bool sized);
  [[nodiscard]] std::string action(std::string_view request) const;
  [[nodiscard]] std::string trace(std::string_view slices);
  [[nodiscard]] std::string analyse() const;
  [[nodiscard]] const Priced& priced() const;
  void keep(const heddle::Timeline& timeline);

  std::optional<Priced> m_priced;
  std::vector<Slice> m_slices;
  std::vector<Drawn> m_drawn;
  std::vector<double> m_times;
  std::vector<double> m_live;
};

/// Returns what explorer.answer() returns. An error becomes the JSON object that the page shows:
/// its text, and for a wrong cell of a schedule file the line, the cell and the cells around it.
/// Its member `infeasible` is true if no such schedule has this shape or none fits the memory.
/// `threw` says whether there was one.
[[nodiscard]] std::string answer_or_error(Explorer& explorer, std::string_view request,
                                          std::string_view file, bool& threw);

}  // namespace tool
