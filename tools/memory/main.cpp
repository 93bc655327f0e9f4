// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core

/// @file
/// The program `memory`: what a run took and gave back, which composition of resources would have
/// been the best for it, and a picture of it. See usage.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/memory/pages.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/replay.hpp>
#include <heddle/memory/trace.hpp>

#include "picture.hpp"
#include "read_events.hpp"

namespace hd = heddle;
namespace memory = heddle::memory;

namespace {

constexpr std::string_view usage =
    "usage: memory show TRACE                    what is live at the peak, by label\n"
    "       memory replay TRACE [none|pages|all] the same blocks from other resources, of which "
    "nothing,\n"
    "                                            a byte of each page (the default) or all is "
    "written\n"
    "       memory picture TRACE FILE.svg        live memory over time\n"
    "       memory import EVENTS TRACE           of what libheddle_malloc.so wrote to the file "
    "that\n"
    "                                            HEDDLE_MALLOC_TRACE names\n";

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

/// Pages, of which it is counted how many bytes were out at once, and how often they were asked
/// for.
struct Source {
  memory::Pages pages;
  std::uint64_t calls = 0, bytes = 0, peak = 0;

  void* allocate(std::size_t size, std::size_t alignment) {
    void* const block = pages.allocate(size, alignment);
    more(size);
    return block;
  }
  void deallocate(void* block, std::size_t size, std::size_t alignment) noexcept {
    if (block != nullptr) bytes -= size;
    pages.deallocate(block, size, alignment);
  }
  bool extend(void* block, std::size_t size, std::size_t by) noexcept {
    if (!pages.extend(block, size, by)) return false;
    more(by);
    return true;
  }
  void shrink(void* block, std::size_t size, std::size_t less) noexcept {
    bytes -= less;
    pages.shrink(block, size, less);
  }

 private:
  void more(std::size_t by) noexcept {
    ++calls;
    peak = std::max<std::uint64_t>(peak, bytes += by);
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
  std::vector<const hd::memory::TraceEvent*> taken(trace.blocks());
  for (std::ptrdiff_t e = 0; e <= at && !live.empty(); ++e) {
    const memory::TraceEvent& event = trace.events()[static_cast<std::size_t>(e)];
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
  std::uint64_t peak, calls;  ///< of what it has from the system; 0 where that is not known
};

/// `made`: calls that the second one made of all.
template <class R>
hd::Seconds second_replay(const memory::Trace& trace, R& resource, memory::Touch touch,
                          const std::uint64_t& calls, std::uint64_t& made) {
  (void)memory::replay(trace, resource, touch);
  const std::uint64_t before = calls;
  const hd::Seconds seconds = memory::replay(trace, resource, touch).seconds;
  made = calls - before;
  return seconds;
}

void replay(const memory::Trace& trace, memory::Touch touch) {
  std::vector<Row> rows;
  Malloc by_malloc;
  std::uint64_t none = 0;
  rows.push_back({"malloc", second_replay(trace, by_malloc, touch, none, none), 0, 0});
  for (const auto huge : {memory::HugePages::no, memory::HugePages::yes}) {
    const char* const kind = huge == memory::HugePages::yes ? "huge Pages" : "Pages";
    Source pages{memory::Pages(huge)};
    std::uint64_t calls = 0;
    if (huge == memory::HugePages::no) {
      const hd::Seconds seconds = second_replay(trace, pages, touch, pages.calls, calls);
      rows.push_back({kind, seconds, pages.peak, calls});
    }
    Source beneath{memory::Pages(huge, std::size_t{64} << 30)};
    memory::Pool pool(beneath);
    const hd::Seconds seconds = second_replay(trace, pool, touch, beneath.calls, calls);
    rows.push_back({hd::text("Pool of ", kind), seconds, beneath.peak, calls});
  }
  const std::uint64_t live = trace.peak();
  std::cout << trace.blocks() << " blocks, peak " << live << " B; the second of two replays\n"
            << "composition                 time       peak B  peak/live  calls of the system\n";
  const Row* best = &rows.front();
  for (const Row& row : rows) {
    std::cout << std::left << std::setw(20) << row.name << std::right << std::setw(10)
              << std::setprecision(4) << row.seconds * 1e3 << " ms";
    if (row.peak > 0)
      std::cout << std::setw(13) << row.peak << std::setw(11)
                << static_cast<double>(row.peak) /
                       static_cast<double>(std::max<std::uint64_t>(live, 1))
                << std::setw(21) << row.calls;
    std::cout << '\n';
    if (row.seconds < best->seconds) best = &row;
  }
  std::cout << "fastest: " << best->name << '\n';
}

memory::Touch touch_of(std::string_view word) {
  if (word == "none") return memory::Touch::none;
  if (word == "pages") return memory::Touch::pages;
  if (word == "all") return memory::Touch::all;
  throw hd::contract_error({"memory replay", hd::text("there is no '", word, "'"),
                            "none, pages or all of a block is written"});
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  try {
    if (words.size() == 2 && words[0] == "show") {
      show(memory::Trace::load(words[1]));
    } else if ((words.size() == 2 || words.size() == 3) && words[0] == "replay") {
      const memory::Touch touch = touch_of(words.size() == 3 ? words[2] : "pages");
      replay(memory::Trace::load(words[1]), touch);
    } else if (words.size() == 3 && words[0] == "picture") {
      hd::write_file(words[2],
                     memory_tool::picture(memory::Trace::load(words[1]),
                                          std::filesystem::path(words[1]).stem().string()));
    } else if (words.size() == 3 && words[0] == "import") {
      memory_tool::read_events(words[1]).save(words[2]);
    } else {
      std::cerr << usage;
      return 2;
    }
  } catch (const std::exception& error) {
    std::cerr << "memory: " << error.what() << '\n';
    return 1;
  }
}
