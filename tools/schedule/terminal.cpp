// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <spawn.h>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <system_error>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>

#include "terminal.hpp"

extern char** environ;

namespace tool {

using namespace heddle;

namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

bool has_colours() {
  return isatty(STDOUT_FILENO) == 1 && variable("NO_COLOR").empty() && !variable("TERM").empty() &&
         variable("TERM") != "dumb";
}

/// The colour of a pass, or nothing.
std::string_view colour(char pass) {
  switch (pass) {
    case 'F': return "\033[94m";
    case 'I': return "\033[33m";
    case 'W': return "\033[36m";
    case 'B': return "\033[35m";
    default: return {};
  }
}

/// The cells of a line. The number of the stage stands before the letter of its pass; what follows
/// has the colour of the letter, up to the next cell.
std::string cells_in_colours(std::string_view cells) {
  std::string out;
  std::string_view now;
  const auto change = [&](std::string_view to) {
    if (to == now) return;
    if (!now.empty()) out += "\033[0m";
    out += to;
    now = to;
  };
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const char before = i == 0 ? ' ' : cells[i - 1];
    if (cells[i] == ' ' || cells[i] == '.') {
      change({});
    } else if (before == ' ' || before == '.' || before == '-' || !colour(cells[i]).empty()) {
      const std::size_t letter = cells.find_first_not_of("0123456789", i);
      if (letter != cells.npos && !colour(cells[letter]).empty()) change(colour(cells[letter]));
    }
    out += cells[i];
  }
  change({});
  return out;
}

/// The page of the explorer.
std::string explorer_page() {
  namespace fs = std::filesystem;
  if (const std::string_view named = variable("HEDDLE_EXPLORER"); !named.empty()) {
    if (fs::exists(named)) return fs::absolute(named).string();
    throw format_error(
        {"--open", text("HEDDLE_EXPLORER names '", named, "', which does not exist")});
  }
  std::error_code unknown;
  const fs::path folder = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  for (const fs::path& page :
       {folder / "../../explorer/index.html", fs::path("build/explorer/index.html")})
    if (fs::exists(page)) return fs::absolute(page).lexically_normal().string();
  throw format_error({"--open", "the page of the explorer is not there",
                      "there is no build/explorer/index.html",
                      "build it by scripts/explorer, or name it in HEDDLE_EXPLORER"});
}

/// The URL of a file.
std::string url_of(std::string_view path) {
  constexpr std::string_view hex = "0123456789ABCDEF", plain = "/-._~";
  std::string url = "file://";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (letter || plain.find(c) != plain.npos)
      url += c;
    else
      url += text('%', hex[byte / 16], hex[byte % 16]);
  }
  return url;
}

/// Starts `xdg-open path` where there is a desktop. Returns true if it did its work.
bool opens(std::string path) {
  if (variable("DISPLAY").empty() && variable("WAYLAND_DISPLAY").empty()) return false;
  std::string program = "xdg-open";
  char* const words[] = {program.data(), path.data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, words[0], nullptr, nullptr, words, environ) != 0) return false;
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::string in_colours(const std::string& grid) {
  if (!has_colours()) return grid;
  std::string out;
  for (std::size_t begin = 0; begin < grid.size();) {
    const std::size_t end = std::min(grid.find('\n', begin), grid.size());
    const std::string_view line = std::string_view(grid).substr(begin, end - begin);
    const std::size_t cells = line.starts_with("rank ") ? line.find("  ") : line.npos;
    out += line.substr(0, cells);
    if (cells != line.npos) out += cells_in_colours(line.substr(cells));
    if (end < grid.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

std::string live_chart(const Priced& priced, int columns) {
  constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuvwxyz";
  const Seconds makespan = priced.timeline.makespan();
  std::string out = "live activations of stages over time\n";
  const std::string last = text(priced.live.size() - 1);
  for (std::size_t rank = 0; rank < priced.live.size(); ++rank) {
    std::vector<std::uint64_t> most(static_cast<std::size_t>(columns), 0);
    const auto column = [&](Seconds at) {
      const double share = makespan > 0 ? at / makespan * columns : 0;
      return std::min(static_cast<std::size_t>(share), most.size() - 1);
    };
    const auto& curve = priced.live[rank];
    for (std::size_t i = 0; i < curve.size(); ++i) {
      const Seconds end = i + 1 < curve.size() ? curve[i + 1].at : makespan;
      for (std::size_t c = column(curve[i].at); c <= column(end); ++c) {
        // A step that begins with the next column is not in this one.
        if (c > column(curve[i].at) && !(static_cast<double>(c) * makespan < end * columns)) break;
        most[c] = std::max(most[c], curve[i].holds.parts);
      }
    }
    const std::string number = text(rank);
    out += text("rank ", number, std::string(last.size() - number.size() + 2, ' '));
    for (const std::uint64_t parts : most) out += parts < digits.size() ? digits[parts] : '+';
    out += text("  most ", *std::ranges::max_element(most), '\n');
  }
  return out;
}

std::string exact(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, std::end(digits), value).ptr};
}

std::string explorer_url(const CommandLine& command, const Settings& s) {
  std::string hash = "#schedules=" + s.names.at(0);
  const auto add = [&](const char* key, const auto& value) {
    if (!command.given(key)) return;
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>)
      hash += text('&', key, '=', exact(value));
    else
      hash += text('&', key, '=', value);
  };
  add("ranks", s.shape.ranks);
  add("microbatches", s.shape.microbatches);
  add("stages-per-rank", s.shape.stages_per_rank);
  add("group", s.shape.group);
  add("pairs", s.shape.pairs);
  add("most-live", s.shape.most_live);
  if (s.backward != std::vector<double>{0})
    throw command.error("--open shows whole backwards that take I + W", "leave --B or --open out");
  for (const auto& [key, times] :
       {std::pair{"F", &s.forward}, {"I", &s.backward_input}, {"W", &s.backward_weight}}) {
    if (times->size() != 1)
      throw command.error("--open shows one time for all stages", "give one, or leave --open out");
    add(key, times->front());
  }
  add("FB", s.forward_backward);
  add("latency", s.latency);
  add("bandwidth", s.bandwidth);
  add("depth", s.depth);
  add("activation", s.activation);
  add("saved", s.saved);
  add("parameters", s.parameters);
  return url_of(explorer_page()) + hash;
}

void open_page(const std::string& name, const std::string& url) {
  // Not all programs that open files take a URL with a hash, hence a page that leads there.
  const std::filesystem::path page =
      std::filesystem::temp_directory_path() / text("heddle-", name, '-', getuid(), ".html");
  std::string escaped;
  for (const char c : url) escaped += c == '&' ? "&amp;" : std::string(1, c);
  write_file(page.string(),
             text("<!doctype html>\n<meta charset=\"utf-8\">\n<title>", name,
                  "</title>\n<meta http-equiv=\"refresh\" content=\"0; url=", escaped,
                  "\">\n<a href=\"", escaped, "\">", name, " in the schedule explorer</a>\n"));
  if (opens(page.string()))
    std::cout << "opened " << page.string() << '\n';
  else
    std::cout << "open " << page.string() << " in a browser\n";
}

}  // namespace tool
