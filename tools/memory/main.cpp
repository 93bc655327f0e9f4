// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core
// package: core

/// @file
/// The program `memory`: what a run took and gave back, which composition of resources would have
/// been the best for it, and a picture of it. See usage.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <iostream>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/stats.hpp>
#include <heddle/memory/trace/replay.hpp>
#include <heddle/memory/trace/trace.hpp>

#include "../common/command_line.hpp"
#include "../common/progress.hpp"
#include "../common/streams.hpp"
#include "picture.hpp"
#include "read_events.hpp"

namespace hd = heddle;
namespace memory = heddle::memory;

namespace {

/// malloc(), whosever it is.
struct Malloc {
  void* allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) return nullptr;
    void* block = nullptr;
    if (alignment <= alignof(std::max_align_t))
      block = std::malloc(bytes);
    else if (posix_memalign(&block, alignment, bytes) != 0)
      block = nullptr;
    if (block == nullptr) throw hd::out_of_memory({"malloc", hd::text("no ", bytes, " B")});
    return block;
  }
  void deallocate(void* block, std::size_t, std::size_t) noexcept { std::free(block); }
};

/// Each block in pages of its own, of which the system gives whole ones.
struct InPages {
  memory::Stats<memory::Pages>& pages;

  void* allocate(std::size_t bytes, std::size_t alignment) {
    if (whole(bytes) < bytes) throw hd::out_of_memory({"pages", hd::text("no ", bytes, " B")});
    return pages.allocate(whole(bytes), alignment);
  }
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    pages.deallocate(block, whole(bytes), alignment);
  }
  [[nodiscard]] static std::size_t whole(std::size_t bytes) noexcept {
    return (bytes + memory::Pages::page() - 1) / memory::Pages::page() * memory::Pages::page();
  }
};

void show(const memory::Trace& trace) {
  const std::vector<std::uint64_t> live = trace.live();
  const auto at = std::max_element(live.begin(), live.end()) - live.begin();
  std::cout << trace.blocks() << " blocks, peak " << trace.peak() << " B\n";
  struct Of {
    std::uint64_t blocks = 0, bytes = 0;
  };
  std::vector<Of> labels(trace.labels().size());
  std::vector<const hd::memory::Trace::Event*> taken(trace.blocks());
  for (std::ptrdiff_t e = 0; e <= at && !live.empty(); ++e) {
    const memory::Trace::Event& event = trace.events()[static_cast<std::size_t>(e)];
    if (event.taken) taken[event.block] = &event;
    Of& of = labels[taken[event.block]->label];
    const std::uint64_t bytes = taken[event.block]->bytes;
    of.blocks += event.taken ? 1 : ~std::uint64_t{0};
    of.bytes += event.taken ? bytes : -bytes;
  }
  std::vector<std::size_t> order;
  for (std::size_t l = 0; l < labels.size(); ++l)
    if (labels[l].blocks > 0) order.push_back(l);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return labels[a].bytes > labels[b].bytes; });
  for (const std::size_t l : order)
    std::cout << std::setw(14) << labels[l].bytes << " B in " << labels[l].blocks << " blocks  "
              << (trace.labels()[l].empty() ? "(no label)" : trace.labels()[l]) << '\n';
}

/// What a composition did in its second replay, with what it had left of the first.
struct Row {
  std::string name;
  hd::Seconds seconds;
  std::uint64_t peak, again;  ///< bytes of the system, at most and in the second; 0 if not known
};

template <class R>
hd::Seconds second_replay(const memory::Trace& trace, R& resource, memory::Touch touch,
                          const std::function<void()>& between) {
  (void)memory::replay(trace, resource, touch);
  between();
  return memory::replay(trace, resource, touch).seconds;
}

void replay(const memory::Trace& trace, memory::Touch touch) {
  std::vector<Row> rows;
  std::optional<tool::ProgressLine> line(std::in_place, "replaying");
  Malloc by_malloc;
  rows.push_back({"malloc", second_replay(trace, by_malloc, touch, [] {}), 0, 0});
  const auto measure = [&](const std::string& name, const auto& system, auto& resource) {
    std::uint64_t before = 0;
    const hd::Seconds seconds =
        second_replay(trace, resource, touch, [&] { before = system.usage().total_bytes; });
    const memory::Usage all = system.usage();
    rows.push_back({name, seconds, all.peak, all.total_bytes - before});
  };
  memory::Stats pages{memory::Pages(memory::HugePages::no)};
  InPages each{pages};
  measure("Pages", pages, each);
  for (const auto huge : {memory::HugePages::no, memory::HugePages::yes}) {
    memory::Stats beneath(memory::Pages(huge, std::size_t{64} << 30));
    memory::Pool pool(beneath);
    measure(huge == memory::HugePages::yes ? "Pool of huge Pages" : "Pool of Pages", beneath, pool);
  }
  line.reset();
  const std::uint64_t live = trace.peak();
  std::cout << trace.blocks() << " blocks, peak " << live << " B; the second of two replays\n"
            << "composition                 time       peak B  peak/live    B of the system\n";
  for (const Row& row : rows) {
    std::cout << std::left << std::setw(20) << row.name << std::right << std::setw(10)
              << std::setprecision(4) << row.seconds * 1e3 << " ms";
    if (row.peak > 0)
      std::cout << std::setw(13) << row.peak << std::setw(11)
                << static_cast<double>(row.peak) /
                       static_cast<double>(std::max<std::uint64_t>(live, 1))
                << std::setw(21) << row.again;
    std::cout << '\n';
  }
  // What malloc() takes is not known.
  std::erase_if(rows, [](const Row& row) { return row.peak == 0; });
  const auto faster = [](const Row& a, const Row& b) { return a.seconds < b.seconds; };
  const std::uint64_t least = rows.empty() ? 0 : std::ranges::min(rows, {}, &Row::peak).peak;
  std::erase_if(rows, [&](const Row& row) { return row.peak > least + least / 4; });
  if (rows.empty()) return;
  std::cout << "to use: " << std::ranges::min(rows, faster).name
            << ", the fastest of those that take at most 1.25 times the least memory\n";
}

memory::Touch touch_of(const tool::CommandLine& command, std::string_view word) {
  if (word == "none") return memory::Touch::none;
  if (word == "pages") return memory::Touch::pages;
  if (word == "all") return memory::Touch::all;
  throw command.no_such("way to write", word, {"none", "pages", "all"});
}

}  // namespace

int main(int argc, char** argv) {
  std::string trace, events, picture, touch = "pages";
  tool::CommandLine program(
      "memory", "Shows and replays what a program allocated and deallocated, as a trace says.");
  program
      .add_command("show", "Prints what is live at the peak, by label.",
                   [&](const tool::CommandLine&) { show(memory::Trace::load(trace)); })
      .add_input("TRACE", &trace, "a trace file, from memory::Trace::save() or memory import");
  tool::CommandLine& replayed =
      program.add_command("replay", "Times the same allocations with other resources.",
                          [&](const tool::CommandLine& command) {
                            const memory::Touch written = touch_of(command, touch);
                            replay(memory::Trace::load(trace), written);
                          });
  replayed.add_input("TRACE", &trace, "a trace file");
  replayed.add_argument("WRITTEN", &touch,
                        "what replay writes: none, pages (a byte of each page of a block) or all",
                        false);
  tool::CommandLine& drawn =
      program.add_command("picture", "Draws live memory over time.", [&](const tool::CommandLine&) {
        tool::write_output(picture,
                           memory_tool::picture(memory::Trace::load(trace),
                                                std::filesystem::path(trace).stem().string()));
      });
  drawn.add_input("TRACE", &trace, "a trace file");
  drawn.add_output("FILE.svg", picture, "the picture");
  tool::CommandLine& imported =
      program.add_command("import", "Makes a trace of the events of libheddle_malloc.so.",
                          [&](const tool::CommandLine&) {
                            tool::write_output(trace, memory_tool::read_events(events).content());
                          });
  imported.add_input("EVENTS", &events,
                     "FILE.<process>, which HEDDLE_MALLOC_TRACE=FILE tells it to write");
  imported.add_output("TRACE", trace, "the file to write");
  return program.run(argc, argv);
}
