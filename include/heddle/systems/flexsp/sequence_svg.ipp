// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of sequence_svg.hpp.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>
#include <heddle/systems/flexsp/sequence_svg.hpp>
#include <heddle/trace/internal/number.hpp>
#include <heddle/trace/internal/svg_writer.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// Checks what a picture of the plan needs: its groups, their ranks, sequences and times.
inline void check(const SequencePlan& plan) {
  constexpr const char* where = "heddle::systems::to_svg";
  const auto expect = [&](bool good, const char* what, auto&&... numbers) {
    expects(good, [&] { return ErrorInfo{where, what, text(numbers...)}; });
  };
  expect(plan.ranks >= 1, "the plan needs at least one rank", plan.ranks, " ranks");
  heddle::impl::expect_time(where, "SequencePlan::time", plan.time);
  for (std::size_t i = 0; i < plan.lengths.size(); ++i)
    expect(plan.lengths[i] >= 0, "a length is negative", "lengths[", i, "] = ", plan.lengths[i]);
  for (std::size_t m = 0; m < plan.microbatches.size(); ++m) {
    const SequenceMicrobatch& microbatch = plan.microbatches[m];
    heddle::impl::expect_time(where, "SequenceMicrobatch::time", microbatch.time);
    for (std::size_t g = 0; g < microbatch.groups.size(); ++g) {
      const SequenceGroup& group = microbatch.groups[g];
      heddle::impl::expect_time(where, "SequenceGroup::time", group.time);
      expect(group.degree >= 1 && +group.first < static_cast<std::size_t>(plan.ranks) &&
                 group.degree <= plan.ranks - static_cast<int>(+group.first),
             "a group has ranks that do not exist", "group ", g, " of microbatch ", m, ": ",
             group.degree, " ranks from rank ", group.first, ", there are ", plan.ranks);
      for (const std::size_t sequence : group.sequences)
        expect(sequence < plan.lengths.size(), "a group has a sequence that does not exist",
               "group ", g, " of microbatch ", m, ": sequence ", sequence, " of ",
               plan.lengths.size());
    }
  }
}

/// One to_svg() call.
class SequencePicture {
 public:
  SequencePicture(const SequencePlan& plan, const SequenceSvgOptions& options)
      : m_plan(plan),
        m_options(options),
        m_unit(trace::impl::unit_for(plan.time)),
        m_row(std::clamp(384.0 / plan.ranks, 2.0, 32.0)),
        m_right(options.width - margin),
        m_scale(plan.time > 0 ? (m_right - left) / plan.time : 0) {}

  [[nodiscard]] std::string draw() && {
    const double bottom = top + m_row * m_plan.ranks;
    const std::string width = text(m_options.width), tall = trace::impl::fixed(bottom + 64, 2);
    const std::string title = m_options.title.empty() ? "sequence groups" : m_options.title;
    m_svg.open("svg", "xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" +
                          tall + "\" viewBox=\"0 0 " + width + " " + tall +
                          "\" role=\"img\" font-family=\"ui-sans-serif, system-ui, 'Segoe UI', "
                          "Roboto, Helvetica, Arial, sans-serif\"");
    m_svg.raw("<title>" + trace::impl::xml(title) + "</title>\n");
    m_svg.rect({0.5, 0.5, m_options.width - 1.0, bottom + 63},
               "rx=\"8\" fill=\"#ffffff\" stroke=\"#d0d7de\"");
    m_svg.text(margin, 31, title, "font-size=\"17\" font-weight=\"600\" fill=\"#1f2328\"");
    m_svg.text(margin, 51,
               text(m_plan.lengths.size(), " sequences, ", m_plan.tokens(), " tokens, ",
                    trace::impl::time_text(m_plan.time, m_unit), " on ", m_plan.ranks, " ranks"),
               "font-size=\"13\" fill=\"#59636e\"");
    for (const int rank : {0, m_plan.ranks - 1})
      m_svg.text(left - 8, top + m_row * (rank + 0.5) + 4.5, text("rank ", rank),
                 "font-size=\"12\" fill=\"#1f2328\" text-anchor=\"end\"");
    Seconds start = 0;
    for (std::size_t m = 0; m < m_plan.microbatches.size(); ++m) {
      microbatch(m, start);
      start += m_plan.microbatches[m].time;
    }
    legend(bottom + 36);
    m_svg.close("svg");
    return std::move(m_svg).take();
  }

 private:
  static constexpr double margin = 20;
  static constexpr double left = 84;
  static constexpr double top = 68;
  static constexpr double font = 11;

  [[nodiscard]] double x(Seconds time) const { return left + time * m_scale; }

  /// A colour for each degree, which carries white text.
  [[nodiscard]] static const char* fill(int degree) {
    constexpr std::array fills = {"#4b5f7a", "#0f7b83", "#2b7d46", "#b45309",
                                  "#a63d57", "#8a4baf", "#2f6fd0", "#6b7280"};
    return fills[static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(degree))) %
                 fills.size()];
  }

  void microbatch(std::size_t m, Seconds start) {
    const SequenceMicrobatch& microbatch = m_plan.microbatches[m];
    const double from = x(start), to = x(start + microbatch.time);
    m_svg.open("g", "class=\"microbatch\"");
    m_svg.rect({from, top, to - from, m_row * m_plan.ranks}, "fill=\"#e9edf2\"");
    for (const SequenceGroup& group : microbatch.groups)
      if (!group.sequences.empty()) box(group, start);
    m_svg.line(to, top - 4, to, top + m_row * m_plan.ranks + 4, "stroke=\"#1f2328\"");
    m_svg.text((from + to) / 2, top + m_row * m_plan.ranks + 16,
               trace::impl::time_text(microbatch.time, m_unit),
               "font-size=\"12\" fill=\"#59636e\" text-anchor=\"middle\"");
    m_svg.close("g");
  }

  void box(const SequenceGroup& group, Seconds start) {
    m_degrees.insert(group.degree);
    const trace::impl::Box box{x(start), top + m_row * static_cast<double>(+group.first) + 0.5,
                               group.time * m_scale, m_row * group.degree - 1};
    std::string lengths;
    for (const std::size_t sequence : group.sequences)
      lengths += text(lengths.empty() ? "" : ", ", m_plan.lengths[sequence]);
    m_svg.rect(box, text("fill=\"", fill(group.degree), "\""),
               text("ranks ", group.first, " to ",
                    +group.first + static_cast<std::size_t>(group.degree) - 1, ", ",
                    trace::impl::time_text(group.time, m_unit), ": ", lengths));
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i + 1 < group.sequences.size(); ++i) {
      tokens += m_plan.lengths[group.sequences[i]];
      const double at =
          box.x + box.width * (static_cast<double>(tokens) / static_cast<double>(group.tokens));
      m_svg.line(at, box.y, at, box.y + box.height, "stroke=\"#ffffff\" stroke-opacity=\"0.4\"");
    }
    const std::string name = text(group.sequences.size(), ": ", group.tokens);
    if (box.height >= font + 1 && trace::impl::text_width(name.size(), font) + 3 <= box.width)
      m_svg.text(box.x + box.width / 2, box.y + box.height / 2 + 0.35 * font, name,
                 text("fill=\"#ffffff\" text-anchor=\"middle\" font-size=\"", font, "\""));
  }

  void legend(double at) {
    double from = left;
    const auto entry = [&](const char* colour, const std::string& meaning) {
      m_svg.rect({from, at, 13, 13}, text("rx=\"2\" fill=\"", colour, "\""));
      m_svg.text(from + 19, at + 11, meaning, "font-size=\"12\" fill=\"#1f2328\"");
      from += 39 + trace::impl::text_width(meaning.size(), 12);
    };
    for (const int degree : m_degrees) entry(fill(degree), text("degree ", degree));
    entry("#e9edf2", "idle");
  }

  const SequencePlan& m_plan;
  const SequenceSvgOptions& m_options;
  trace::impl::TimeUnit m_unit;
  double m_row;  ///< height of a rank
  double m_right;
  double m_scale;
  std::set<int> m_degrees = {};
  trace::impl::SvgWriter m_svg = {};
};

}  // namespace impl

HEDDLE_INLINE std::string to_svg(const SequencePlan& plan, const SequenceSvgOptions& options) {
  constexpr const char* where = "heddle::systems::to_svg";
  expects(options.width >= 240, [&] {
    return ErrorInfo{where, "the picture must be at least 240 pixels wide",
                     text("width = ", options.width)};
  });
  impl::check(plan);
  return impl::SequencePicture(plan, options).draw();
}

}  // namespace heddle::inline v0::systems
