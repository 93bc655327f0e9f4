// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <filesystem>
#include <memory>
#include <string>

#include <heddle/core/file.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
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
    "Under the ranks of a picture is what they hold over time, where the activations of a\n"
    "microbatch and the weights take 100 MB each on such a share. The line is that of the "
    "weights,\n"
    "in all the versions and copies that a rank keeps; \"live\" counts the activations of single "
    "stages.\n"
    "\n"
    "`schedule gallery docs` writes this page and its pictures; `schedule show NAME` draws "
    "others.\n";

/// A product and the collective behind it, and overlap() of the two. Not of the catalogue, which
/// has whole steps. @returns the text, after its pictures are written.
std::string overlap_section(const std::filesystem::path& folder,
                            const std::filesystem::path& pictures) {
  constexpr int ranks = 4;
  constexpr Bytes row = 8;
  const Schedule pair =
      schedule::with_product(schedule::Collective::reduce_scatter, schedule::Algorithm::ring,
                             {.ranks = ranks, .bytes = ranks * row}, row);
  const double message = 0.5 / (ranks - 1);  // the ring takes half as long as the product
  std::string page =
      "\n## overlap\n\n"
      "A matrix product in front of a reduce-scatter that takes half as long: as they stand in the "
      "list, and\npart by part by the pass `overlap()`. 0F3 is the product's part 3; every rank "
      "makes first what its\nneighbour needs first (T3).\n";
  const auto add = [&](const char* name, const Schedule& schedule, double product) {
    const Timeline timeline = simulate(schedule, {.forward = product, .latency = message});
    const std::string file = text(name, ".svg");
    write_file(folder / pictures / file,
               trace::to_svg(timeline, {.title = name, .unit = "F", .arrows = true}));
    page += text("\nMakespan ", number(timeline.makespan()), " F.\n\n", "![", name, "](",
                 (pictures / file).generic_string(), ")\n");
  };
  add("gemm-reduce-scatter", pair, 1);
  add("gemm-reduce-scatter-overlapped", schedule::overlap(pair), 1.0 / ranks);
  return page;
}

void gallery(const std::filesystem::path& folder) {
  const Settings settings{.saved = 100'000'000, .parameters = 100'000'000};
  const std::filesystem::path pictures = std::filesystem::path("pictures") / "gallery";
  std::error_code ignored;  // write_file says it better
  std::filesystem::create_directories(folder / pictures, ignored);
  std::string page = head;
  for (const auto& entry : schedule::catalogue()) {
    const Priced priced = price(entry.orders(settings.shape), settings);
    const std::string file = text(entry.name, ".svg");
    const std::string title(entry.name);
    write_file(folder / pictures / file,
               trace::to_svg(priced.timeline, {.title = title, .unit = "F", .memory = true}));
    page += text("\n## ", entry.name, "\n\n", entry.about, "\n\n", "Makespan ",
                 number(priced.timeline.makespan()), " F, bubble ratio ",
                 percent(priced.timeline.bubble_ratio()), ", live activations ",
                 of_ranks(priced.activations), ", ", priced.messages, " messages.\n\n", "![",
                 entry.name, "](", (pictures / file).generic_string(), ")\n");
  }
  page += overlap_section(folder, pictures);
  write_file(folder / "gallery.md", page);
}

}  // namespace

void add_gallery(CommandLine& program) {
  const auto folder = std::make_shared<std::string>();
  program
      .add_command("gallery", "Writes gallery.md and its pictures.",
                   [folder](const CommandLine&) { gallery(*folder); })
      .add_argument("FOLDER", folder.get(), "for the page; the pictures lie below it");
}

}  // namespace tool
