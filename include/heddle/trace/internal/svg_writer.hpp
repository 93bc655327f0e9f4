// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SvgWriter: appends the SVG elements that pictures consist of.

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <heddle/trace/internal/number.hpp>

namespace heddle::inline v0::trace::impl {

/// Returns `raw` as XML text or attribute value. Characters that XML 1.0 excludes become '?'.
[[nodiscard]] inline std::string xml(std::string_view raw) {
  std::string out;
  for (const char c : raw) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\t':
      case '\n':
      case '\r': out += ' '; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

/// A rectangle in pixels; y grows downwards.
struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

/// Returns the width of text in pixels, for a font whose glyphs are about 0.58 em wide.
[[nodiscard]] constexpr double text_width(std::size_t characters, double size) noexcept {
  return static_cast<double>(characters) * size * 0.58;
}

/// Returns the distance of the axis marks: 1, 2 or 5 times a power of ten, with at most `most`
/// marks.
[[nodiscard]] inline double tick_step(double length, double most) {
  if (!(length > 0)) return 0;
  const double least = length / most;
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double step : {1.0, 2.0, 5.0})
    if (step * power >= least * (1 - 1e-9)) return step * power;
  return 10 * power;
}

/// The writer of one SVG document.
class SvgWriter {
 public:
  void open(std::string_view element, std::string_view attributes) {
    m_out.append("<").append(element).append(" ").append(attributes).append(">\n");
  }
  void close(std::string_view element) { m_out.append("</").append(element).append(">\n"); }

  /// Appends a rectangle. A browser shows `title`, if it is not empty, at the pointer.
  void rect(const Box& box, std::string_view attributes, std::string_view title = {}) {
    m_out += "<rect";
    number("x", box.x);
    number("y", box.y);
    number("width", box.width);
    number("height", box.height);
    attribute(attributes);
    if (title.empty())
      m_out += "/>\n";
    else
      m_out.append("><title>").append(xml(title)).append("</title></rect>\n");
  }
  void line(double x1, double y1, double x2, double y2, std::string_view attributes = {}) {
    m_out += "<line";
    number("x1", x1);
    number("y1", y1);
    number("x2", x2);
    number("y2", y2);
    attribute(attributes);
    m_out += "/>\n";
  }
  /// Appends a path of SVG commands, such as "M0,1H2V3Z".
  void path(std::string_view commands, std::string_view attributes) {
    m_out.append("<path d=\"").append(commands).append("\"");
    attribute(attributes);
    m_out += "/>\n";
  }
  /// Appends text; `y` is the base line.
  void text(double x, double y, std::string_view content, std::string_view attributes = {}) {
    m_out += "<text";
    number("x", x);
    number("y", y);
    attribute(attributes);
    m_out.append(">").append(xml(content)).append("</text>\n");
  }
  void raw(std::string_view svg) { m_out += svg; }

  [[nodiscard]] std::string take() && { return std::move(m_out); }

 private:
  void number(std::string_view name, double value) {
    m_out.append(" ").append(name).append("=\"");
    append_fixed(m_out, value, 2);
    m_out += '"';
  }
  void attribute(std::string_view attributes) {
    if (!attributes.empty()) m_out.append(" ").append(attributes);
  }

  std::string m_out;
};

}  // namespace heddle::inline v0::trace::impl
