// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <filesystem>
#include <string>

#include <heddle/core/file.hpp>
#include <heddle/schedule.hpp>
#include <heddle/trace.hpp>

#include "commands.hpp"
#include "settings.hpp"

namespace tool {

using namespace heddle;

namespace {

constexpr const char* head =
    "# Gallery of schedules\n"
    "\n"
    "Every schedule of the catalogue, for 4 ranks and 8 microbatches. A forward, a backward for "
    "the "
    "inputs\n"
    "and a backward for the weights take 1 each, on the share of the model that a rank has when "
    "each has one;\n"
    "transfers take no time. Live activations are the most that the ranks keep for backward "
    "passes, "
    "in\n"
    "those of a microbatch on such a share.\n"
    "\n"
    "`schedule gallery docs` writes this page and its pictures; `schedule show NAME` draws "
    "others.\n";

}  // namespace

int gallery(std::span<char*> arguments) {
  const Arguments line = read(arguments, {.name = "gallery", .what = "the name of a folder"});
  if (line.help) return 0;
  const Settings& settings = line.settings;
  const std::filesystem::path folder = line.names[0];
  const std::filesystem::path pictures = std::filesystem::path("pictures") / "gallery";
  std::error_code ignored;  // write_file says it better
  std::filesystem::create_directories(folder / pictures, ignored);
  std::string page = head;
  for (const auto& entry : schedule::catalogue()) {
    const Priced priced = price(entry.orders(settings.shape), settings);
    const std::string file = text(entry.name, ".svg");
    const std::string title(entry.name);
    write_file(folder / pictures / file,
               trace::to_svg(priced.timeline, {.title = title, .unit = "F"}));
    page += text("\n## ", entry.name, "\n\n", entry.about, "\n\n", "Makespan ",
                 number(priced.timeline.makespan()), " F, bubble ratio ",
                 percent(priced.timeline.bubble_ratio()), ", live activations ",
                 of_ranks(priced.activations), ", ", priced.messages, " messages.\n\n", "![",
                 entry.name, "](", (pictures / file).generic_string(), ")\n");
  }
  write_file(folder / "gallery.md", page);
  return 0;
}

}  // namespace tool
