// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of svg.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/internal/check_spans.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/trace/impl/box_lanes.hpp>
#include <heddle/trace/impl/kind_style.hpp>
#include <heddle/trace/impl/labels.hpp>
#include <heddle/trace/impl/memory_rows.hpp>
#include <heddle/trace/impl/shades.hpp>
#include <heddle/trace/internal/svg_writer.hpp>
#include <heddle/trace/named_timeline.hpp>
#include <heddle/trace/svg.hpp>

namespace heddle::inline v0::trace {

namespace impl {

// Opens an svg element of so many pixels, `y` pixels below the upper end of the one around it.
inline void open_svg(SvgWriter& svg, int width, double height, double y) {
  const std::string tall = fixed(height, 2);
  svg.open("svg", text("xmlns=\"http://www.w3.org/2000/svg\"",
                       y > 0 ? text(" y=\"", fixed(y, 2), "\"") : "", " width=\"", width,
                       "\" height=\"", tall, "\" viewBox=\"0 0 ", width, " ", tall,
                       "\" role=\"img\" font-family=\"ui-sans-serif, system-ui, 'Segoe UI', "
                       "Roboto, Helvetica, Arial, sans-serif\""));
}

// The place of a picture in its document.
struct SvgFrame {
  Seconds length = 0;  // the time that the width shows, if it is more than the makespan
  double y = 0;        // of the picture's upper end
  bool last = true;    // the last picture has the legend
};

// The picture of one timeline.
class SvgPicture {
 public:
  SvgPicture(const Timeline& timeline, const SvgOptions& options, const SvgFrame& frame)
      : m_timeline(timeline),
        m_schedule(timeline.schedule()),
        m_shades(m_schedule),
        m_lanes(timeline),
        m_options(options),
        m_frame(frame),
        m_begin(timeline.begin()),
        m_makespan(timeline.makespan()),
        m_length(std::max(frame.length, m_makespan)),
        m_unit(unit_for(m_length, options.unit)) {
    m_left = margin + text_width(rank_label(0, m_schedule.ranks()).size(), 13) + 12;
    if (options.memory) m_memory.emplace(timeline);
    m_right = options.width - margin - 4 - (m_memory ? memory_labels() : 0);
    m_scale = m_length > 0 ? (m_right - m_left) / m_length : 0;
    m_title = options.title.empty() ? name_or(m_schedule, "timeline") : options.title;
    m_caption = "makespan " + time_text(m_makespan, m_unit) + ", bubble ratio " +
                percent_text(timeline.bubble_ratio());
    // Title and caption share a line where there is room for both.
    const double both = text_width(m_title.size(), 19) + text_width(m_caption.size(), 13);
    m_narrow = both + 2 * margin + 16 > options.width;
    if (m_narrow) m_top += 20;
  }

  // Appends the picture to `out` and returns its height.
  double draw(std::string& out) && {
    double below = bottom() + 14 + (m_memory ? memory_pitch * m_schedule.ranks() + 8 : 4);
    if (m_frame.last)
      below = legend(bottom() + 30 + (m_memory ? memory_pitch * m_schedule.ranks() : 0));
    SvgWriter legend_part = std::exchange(m_svg, {});
    open_svg(m_svg, m_options.width, below + 14, m_frame.y);
    m_svg.raw("<title>" + xml(m_title) + "</title>\n");
    // The picture has its own white page, so that it is legible on dark backgrounds too.
    m_svg.rect({0.5, 0.5, m_options.width - 1.0, below + 13},
               "rx=\"8\" fill=\"#ffffff\" stroke=\"#d0d7de\"");
    m_svg.text(margin, 31, m_title, "font-size=\"17\" font-weight=\"600\" fill=\"#1f2328\"");
    m_svg.text(
        m_narrow ? margin : m_options.width - margin - 4, m_narrow ? 51 : 31, m_caption,
        text("font-size=\"13\" fill=\"#59636e\" text-anchor=\"", m_narrow ? "start" : "end", "\""));
    rows();
    axis();
    memory_rows();
    boxes();
    if (m_options.arrows) arrows();
    texts();
    m_svg.raw(std::move(legend_part).take());
    m_svg.close("svg");
    out += std::move(m_svg).take();
    return below + 14;
  }

 private:
  static constexpr double margin = 20;
  static constexpr double row_height = 32;
  static constexpr double row_pitch = 38;
  static constexpr double memory_pitch = 30;
  static constexpr double memory_gap = 6;  // between a row and what it says
  static constexpr double box_font = 11;
  static constexpr const char* idle_fill = "#e9edf2";

  // Returns the width of the labels beside the memory rows.
  [[nodiscard]] double memory_labels() const {
    std::size_t longest = 0;
    for (std::size_t rank = 0; rank < m_memory->ranks(); ++rank)
      longest = std::max(longest, m_memory->label(rank).size());
    return memory_gap + text_width(longest, box_font);
  }

  [[nodiscard]] double bottom() const { return m_top + row_pitch * m_schedule.ranks(); }
  [[nodiscard]] double x(Seconds time) const { return m_left + (time - m_begin) * m_scale; }
  [[nodiscard]] double y(Rank rank) const { return m_top + row_pitch * rank.value; }

  void rows() {
    for (int rank = 0; rank < m_schedule.ranks(); ++rank) {
      const double at = y(Rank{rank});
      m_svg.text(m_left - 10, at + row_height / 2 + 4.5, text("rank ", rank),
                 "font-size=\"13\" fill=\"#1f2328\" text-anchor=\"end\"");
      m_svg.rect({m_left, at, m_right - m_left, row_height},
                 text("rx=\"3\" fill=\"", idle_fill, "\""));
    }
  }

  void axis() {
    const double end = bottom();
    const double step = tick_step(m_length * m_unit.per_second, (m_options.width - m_left) / 64.0);
    m_svg.open("g", "font-size=\"12\" fill=\"#59636e\" stroke=\"none\" text-anchor=\"middle\"");
    const double last = m_length * m_unit.per_second * (1 + 1e-9);
    for (int tick = 0; tick == 0 || (step > 0 && tick * step <= last); ++tick) {
      const double at = m_left + tick * step / m_unit.per_second * m_scale;
      m_svg.line(at, end - 4, at, end + 1, "stroke=\"#8c959f\"");
      m_svg.text(at, end + 15, tick == 0 ? time_text(0, m_unit) : fixed(tick * step, 9));
    }
    m_svg.close("g");
  }

  void memory_rows() {
    for (int rank = 0; m_memory && rank < m_schedule.ranks(); ++rank) {
      const auto number = static_cast<std::size_t>(rank);
      const Box box{m_left, bottom() + 26 + memory_pitch * rank, m_right - m_left,
                    memory_pitch - 6};
      m_svg.text(m_left - 10, box.y + box.height / 2 + 4.5, text("rank ", rank),
                 "font-size=\"13\" fill=\"#1f2328\" text-anchor=\"end\"");
      m_svg.open("g", "class=\"memory\"");
      m_svg.rect(box, "fill=\"#f3f5f8\"");
      m_memory->draw(m_svg, number, box, [this](Seconds time) { return x(time); });
      m_svg.text(m_right + memory_gap, box.y + 16, m_memory->label(number),
                 text("font-size=\"", box_font, "\" fill=\"#1f2328\""));
      m_svg.close("g");
    }
  }

  void boxes() {
    for (std::size_t k = 0; k < kind_count; ++k) {
      const Kind kind{static_cast<std::uint8_t>(k)};
      if (m_lanes.boxes(kind).empty()) continue;
      m_svg.open("g", text("class=\"", kind, "\" fill=\"", style(kind).fill, "\""));
      for (const BoxLanes::Place& place : m_lanes.boxes(kind)) draw_box(place);
      m_svg.close("g");
    }
  }

  // Draws the names of all boxes in front of the arrows, with a margin around each.
  void texts() {
    const char* const margin_around =
        m_options.arrows ? " stroke-width=\"4\" stroke-linejoin=\"round\" paint-order=\"stroke\""
                         : "";
    m_svg.open("g", text("fill=\"#ffffff\" font-size=\"", box_font,
                         "\" text-anchor=\"middle\" pointer-events=\"none\"", margin_around));
    const bool passes = whole_names_fit(Kind::forward, Kind::backward);
    for (std::size_t k = 0; k < kind_count; ++k) {
      const Kind kind{static_cast<std::uint8_t>(k)};
      const bool whole = kind <= Kind::backward ? passes : whole_names_fit(kind, kind);
      for (const BoxLanes::Place& place : m_lanes.boxes(kind)) draw_text(place, whole);
    }
    m_svg.close("g");
  }

  [[nodiscard]] Box box_of(const BoxLanes::Place& place) const {
    // The boxes of a fused pair are above each other, over the time of the pair.
    const bool first = m_schedule[place.id].flags & flag::with_next;
    const bool second =
        +place.id > 0 && m_schedule[ActionId{+place.id - 1}].flags & flag::with_next;
    const double height = row_height / m_lanes.lanes(place.rank) / (first || second ? 2 : 1);
    const double from = x(m_timeline[ActionId{+place.id - second}].start);
    const double to = x(m_timeline[ActionId{+place.id + first}].end);
    const double top = y(place.rank) + row_height / m_lanes.lanes(place.rank) * place.lane;
    return {from, top + (second ? height : 0), to - from, height};
  }

  // Returns the colour of an action: that of its kind, darker by its shade.
  [[nodiscard]] std::string fill_of(ActionId id) const {
    const char* const fill = style(m_schedule[id].kind).fill;
    const double brightness = m_shades.brightness(id);
    return brightness < 1 ? darker(fill, brightness) : fill;
  }

  void draw_box(const BoxLanes::Place& place) {
    const ActionId id = place.id;
    Box box = box_of(place);
    // Neighbours have a white gap between them, if the box is wide enough.
    const double gap = box.width >= 4 ? 1 : box.width / 4;
    box.x += gap / 2;
    box.width -= gap;
    const Span& span = m_timeline[id];
    const std::string fill = fill_of(id);
    const bool other = fill != style(m_schedule[id].kind).fill;  // than that of its group
    m_svg.rect(box, other ? text("rx=\"2\" fill=\"", fill, "\"") : "rx=\"2\"",
               schedule::action_text(m_schedule, id) + ": " +
                   time_text(span.start - m_begin, m_unit) + " to " +
                   time_text(span.end - m_begin, m_unit));
  }

  // Returns true if at least nine of ten boxes of these kinds have room for their whole names. All
  // boxes of the kinds then have names of one form.
  [[nodiscard]] bool whole_names_fit(Kind first, Kind last) const {
    std::size_t boxes = 0, with_room = 0;
    for (auto k = static_cast<std::size_t>(first); k <= static_cast<std::size_t>(last); ++k)
      for (const BoxLanes::Place& place : m_lanes.boxes(Kind{static_cast<std::uint8_t>(k)})) {
        ++boxes;
        with_room += fits(schedule::action_text(m_schedule, place.id), box_of(place));
      }
    return 10 * with_room >= 9 * boxes;
  }

  [[nodiscard]] static bool fits(const std::string& name, const Box& box) {
    return text_width(name.size(), box_font) + 3 <= box.width;
  }

  // Returns the microbatch of a pass, or "1P0" for 1PREFETCH0.
  [[nodiscard]] std::string short_name(ActionId id) const {
    const Action& action = m_schedule[id];
    if (action.kind <= Kind::backward) return text(action.item);
    std::string name;
    for (const char c : schedule::action_text(m_schedule, id)) {
      const bool digit = c >= '0' && c <= '9';
      if (digit || name.empty() || (name.back() >= '0' && name.back() <= '9')) name += c;
    }
    return name;
  }

  void draw_text(const BoxLanes::Place& place, bool whole) {
    const ActionId id = place.id;
    const Box box = box_of(place);
    const std::string name = whole ? schedule::action_text(m_schedule, id) : short_name(id);
    if (box.height < box_font + 1 || !fits(name, box)) return;
    m_svg.text(box.x + box.width / 2, box.y + box.height / 2 + 0.35 * box_font, name,
               m_options.arrows ? text("stroke=\"", fill_of(id), "\"") : "");
  }

  void arrows() {
    if (m_frame.y == 0)
      m_svg.raw(  // the first picture defines it for all
          "<defs><marker id=\"tip\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" markerWidth=\"4.5\" "
          "markerHeight=\"4.5\" orient=\"auto\"><path d=\"M0,0 L6,3 L0,6 z\" "
          "fill=\"#1f2328\"/></marker></defs>\n");
    m_svg.open("g", "class=\"MOVE\" stroke=\"#1f2328\" stroke-opacity=\"0.55\"");
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      if (!is_message(ActionId{i})) continue;
      const Queue& queue = m_schedule[m_schedule[ActionId{i}].queue];
      const Span& span = m_timeline[ActionId{i}];
      const bool down = queue.from < queue.to;
      m_svg.line(x(span.start), y(queue.from) + (down ? row_height : 0), x(span.arrival),
                 y(queue.to) + (down ? 0 : row_height), "marker-end=\"url(#tip)\"");
    }
    m_svg.close("g");
  }

  [[nodiscard]] bool is_message(ActionId id) const {
    return m_schedule[id].kind == Kind::move && !m_schedule[m_schedule[id].queue].local();
  }

  // Draws the legend of colours and arrows from `at` downwards and returns its end.
  double legend(double at) {
    double left = m_left;
    // An entry is a sample of 13 by 13 pixels, drawn by sample(x, y), and its meaning.
    const auto entry = [&](const std::string& meaning, auto&& sample) {
      const double width = 19 + text_width(meaning.size(), 12);
      if (left > m_left && left + width > m_options.width - margin) {
        left = m_left;
        at += 20;
      }
      sample(left, at);
      m_svg.text(left + 19, at + 11, meaning);
      left += width + 20;
    };
    const auto filled = [&](const std::string& fill, const std::string& meaning) {
      entry(meaning, [&](double x, double y) {
        m_svg.rect({x, y, 13, 13}, text("rx=\"2\" fill=\"", fill, "\""));
      });
    };
    m_svg.open("g", "font-size=\"12\" fill=\"#1f2328\"");
    for (std::size_t k = 0; k < kind_count; ++k) {
      const Kind kind{static_cast<std::uint8_t>(k)};
      if (!m_lanes.boxes(kind).empty()) filled(style(kind).fill, style(kind).meaning);
    }
    if (m_shades.size() > 1)
      filled(darker(style(Kind::forward).fill, 0.6), text("darker: ", m_shades.meaning()));
    filled(idle_fill, "idle");
    bool messages = false;
    for (std::size_t i = 0; m_options.arrows && i < m_schedule.size(); ++i)
      messages = messages || is_message(ActionId{i});
    if (messages)
      entry("message, from its start to its arrival", [&](double x, double y) {
        m_svg.line(x, y + 6.5, x + 13, y + 6.5,
                   "stroke=\"#1f2328\" stroke-opacity=\"0.55\" marker-end=\"url(#tip)\"");
      });
    if (m_memory) filled(MemoryRows::activations_fill, "live activations");
    if (m_memory && m_memory->sized()) {
      filled(MemoryRows::all_fill, "all memory");
      entry("weights, all versions", [&](double x, double y) {
        m_svg.line(x, y + 6.5, x + 13, y + 6.5,
                   text("stroke=\"", MemoryRows::weights_line, "\" stroke-width=\"1.5\""));
      });
    }
    m_svg.close("g");
    return at + 16;
  }

  const Timeline& m_timeline;
  const Schedule& m_schedule;
  Shades m_shades;
  BoxLanes m_lanes;
  const SvgOptions& m_options;
  SvgFrame m_frame;
  Seconds m_begin;
  Seconds m_makespan;
  Seconds m_length;  // the time that the width shows
  TimeUnit m_unit;
  std::string m_title;
  std::string m_caption;
  bool m_narrow = false;  // the caption has a line of its own
  double m_top = 48;
  double m_left = 0;   // where time 0 is
  double m_right = 0;  // where the last action ends
  double m_scale = 0;  // pixels per second
  std::optional<MemoryRows> m_memory;
  SvgWriter m_svg;
};

inline void check_svg(const Timeline& timeline, const SvgOptions& options) {
  expects(options.width >= 240, [&] {
    return ErrorInfo{"heddle::trace::to_svg", "the picture is too narrow for its labels",
                     text("width = ", options.width), "use a width of at least 240 pixels"};
  });
  heddle::impl::check_spans("heddle::trace::to_svg", timeline);
}

}  // namespace impl

HEDDLE_INLINE std::string to_svg(const Timeline& timeline, const SvgOptions& options) {
  impl::check_svg(timeline, options);
  std::string out;
  impl::SvgPicture(timeline, options, {}).draw(out);
  return out;
}

HEDDLE_INLINE std::string to_svg(std::span<const NamedTimeline> timelines,
                                 const SvgOptions& options) {
  Seconds length = 0;
  for (const NamedTimeline& named : timelines) {
    impl::check_svg(named.timeline, options);
    length = std::max(length, named.timeline.makespan());
  }
  std::string pictures;
  double y = 0;
  for (std::size_t i = 0; i < timelines.size(); ++i) {
    SvgOptions each = options;
    each.title = std::string(timelines[i].name);
    if (i == 0 && !options.title.empty()) each.title = options.title + ", " + each.title;
    const impl::SvgFrame frame{length, y, i + 1 == timelines.size()};
    y += impl::SvgPicture(timelines[i].timeline, each, frame).draw(pictures);
  }
  impl::SvgWriter svg;
  impl::open_svg(svg, options.width, std::max(y, 1.0), 0);
  svg.raw(pictures);
  svg.close("svg");
  return std::move(svg).take();
}

}  // namespace heddle::inline v0::trace
