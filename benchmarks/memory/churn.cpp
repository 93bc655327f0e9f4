// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core

/// @file
/// memory::Pool against malloc() of glibc, jemalloc, mimalloc and tcmalloc, each in a process of
/// its own: random blocks that replace one another, threads that do so, and the tensors of a
/// training step. Competitors take turns, with their default settings and told to keep what they
/// have; the page faults of each show whether it did. Of blocks that are touched the first byte of
/// every 4 KiB is written. Sizes are drawn so that their logarithms are evenly spread.

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <thread>
#include <utility>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/source/pages.hpp>

#include "../support.hpp"
#include "support/resident_pages.hpp"

namespace {

namespace memory = heddle::memory;

constexpr const char* name = "memory/churn";
constexpr std::size_t page = 4096;

/// Who gives the blocks: in this process the pool, or malloc(), whosever that is.
class ByPool {
 public:
  void* take(std::size_t bytes) { return m_pool.allocate(bytes, alignof(std::max_align_t)); }
  void give(void* block, std::size_t bytes) {
    m_pool.deallocate(block, bytes, alignof(std::max_align_t));
  }

 private:
  memory::Pool<memory::Pages> m_pool;
};
struct ByMalloc {
  void* take(std::size_t bytes) { return std::malloc(bytes); }
  void give(void* block, std::size_t) { std::free(block); }
};
/// A stack over one mapping: what no allocator can be faster than.
class ByArena {
 public:
  explicit ByArena(memory::HugePages huge) : m_pages(huge) {}
  void* take(std::size_t bytes) {
    if (m_begin == nullptr) m_begin = static_cast<std::byte*>(m_pages.allocate(size, page));
    void* const block = m_begin + m_used;
    m_used += (bytes + page - 1) / page * page;
    if (m_used > size) std::abort();
    return block;
  }
  void give(void* block, std::size_t) {
    m_used = static_cast<std::size_t>(static_cast<std::byte*>(block) - m_begin);
  }

 private:
  static constexpr std::size_t size = std::size_t{8} << 30;
  memory::Pages m_pages;
  std::byte* m_begin = nullptr;
  std::size_t m_used = 0;
};

/// The bytes that a block has, in it: what comes back must be what was given. The last line keeps
/// what was written: a compiler that knows malloc() leaves out what nobody reads before free().
void touch(void* block, std::size_t bytes, bool pages) {
  auto* const begin = static_cast<std::byte*>(block);
  for (std::size_t at = page; pages && at < bytes; at += page) begin[at] = std::byte{1};
  *static_cast<std::size_t*>(block) = bytes;
  asm volatile("" : : "r"(block) : "memory");
}
void expect(const void* block, std::size_t bytes) {
  if (*static_cast<const std::size_t*>(block) != bytes) std::abort();
}

/// The pages that the system has had to give this process since it began.
double faults_so_far() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_minflt);
}
double pages_of(std::size_t bytes) { return static_cast<double>((bytes + page - 1) / page); }

/// What a load took, when all that it needs had been there once.
struct Load {
  double time;    ///< in ns
  double faults;  ///< for each page that was touched: about 0 if the memory had been kept
};

struct Sizes {
  double least, most;
  [[nodiscard]] std::size_t operator()(std::mt19937_64& random) const {
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    return static_cast<std::size_t>(least * std::pow(most / least, u));
  }
};

/// Blocks that replace one another at random.
struct Churn {
  const char* name;
  Sizes sizes;
  std::size_t live;
  std::size_t steps;
  bool pages;  ///< all of them are touched
};
constexpr std::array churns = {
    Churn{"64B_to_4KB", {64, 4096}, 10000, 200000, false},
    Churn{"4KB_to_256KB", {4096, 262144}, 500, 40000, true},
    Churn{"1MB_to_32MB", {1 << 20, 32 << 20}, 16, 300, true},
};

/// The time is the processor time of a step, of the second time that all of them are done.
template <class By>
Load churn(By& by, const Churn& work) {
  std::mt19937_64 random(1);
  std::vector<std::pair<std::size_t, std::size_t>> steps(work.steps);
  for (auto& [slot, bytes] : steps) {
    slot = random() % work.live;
    bytes = work.sizes(random);
  }
  std::vector<std::pair<void*, std::size_t>> blocks(work.live);
  double seconds = 0, faults = 0, pages = 0;
  for (const auto& [slot, bytes] : steps) pages += work.pages ? pages_of(bytes) : 1;
  for (int time = 0; time < 2; ++time) {
    faults = -faults_so_far();
    seconds = bench::processor_seconds_of([&] {
      for (const auto& [slot, bytes] : steps) {
        auto& [block, had] = blocks[slot];
        if (block != nullptr) {
          expect(block, had);
          by.give(block, had);
        }
        block = by.take(had = bytes);
        touch(block, bytes, work.pages);
      }
    });
    faults += faults_so_far();
  }
  for (const auto& [block, bytes] : blocks)
    if (block != nullptr) by.give(block, bytes);
  return {seconds / static_cast<double>(work.steps) * 1e9, faults / pages};
}

/// The most that a pool has of the system, as both say, over the most bytes that are live, of 31
/// such loads. All pages are touched.
void print_peak(const Churn& work) {
  std::vector<double> over_live;
  for (std::uint64_t seed = 1; seed <= 31; ++seed) {
    heddle::test::ResidentPages system;
    memory::Pool pool(system);
    std::mt19937_64 random(seed);
    std::vector<std::pair<void*, std::size_t>> blocks(work.live);
    std::size_t live = 0, most_live = 0;
    for (std::size_t step = 0; step < 20 * work.live; ++step) {
      auto& [block, bytes] = blocks[random() % work.live];
      pool.deallocate(block, bytes, alignof(std::max_align_t));
      live -= bytes;
      bytes = work.sizes(random);
      block = pool.allocate(bytes, alignof(std::max_align_t));
      touch(block, bytes, true);
      live += bytes;
      most_live = std::max(most_live, live);
    }
    // Nothing goes back before trim().
    over_live.push_back(static_cast<double>(std::max(pool.reserved(), system.resident())) /
                        static_cast<double>(most_live));
    for (const auto& [block, bytes] : blocks)
      pool.deallocate(block, bytes, alignof(std::max_align_t));
  }
  bench::print_value(name, heddle::text(work.name, "_peak_over_live"), bench::summarise(over_live),
                     "x");
}

/// Two threads, wall time in ns for a block: `larson`, whose threads end and leave their blocks to
/// the next; `xmalloc`, where one takes and the other gives; `mstress`, of which half the blocks
/// change hands.
template <class By>
double threads(By& by, std::string_view load) {
  constexpr std::size_t count = 2, live = 1000, steps = 100000, rounds = 4;
  using Blocks = std::vector<std::pair<void*, std::size_t>>;
  const auto replace = [&by](Blocks& blocks, std::uint64_t seed, std::size_t times, Sizes sizes) {
    std::mt19937_64 random(seed);
    for (std::size_t step = 0; step < times; ++step) {
      auto& [block, had] = blocks[random() % blocks.size()];
      if (block != nullptr) {
        expect(block, had);
        by.give(block, had);
      }
      block = by.take(had = sizes(random));
      touch(block, had, false);
    }
  };
  std::array<Blocks, count> blocks;
  for (Blocks& of : blocks) of.resize(live);
  const auto together = [&](auto&& work) {
    std::vector<std::thread> all;
    for (std::size_t t = 0; t < count; ++t) all.emplace_back([&, t] { work(t); });
    for (std::thread& thread : all) thread.join();
  };
  const double seconds = bench::seconds_of([&] {
    if (load == "xmalloc") {
      // Batches of blocks through a mailbox of 16.
      constexpr std::size_t batch = 64;
      std::array<std::atomic<Blocks*>, 16> box{};
      together([&](std::size_t t) {
        std::mt19937_64 random(t);
        for (std::size_t b = 0; b < rounds * steps / batch; ++b) {
          std::atomic<Blocks*>& slot = box[b % box.size()];
          if (t == 0) {
            auto made = std::make_unique<Blocks>();
            for (std::size_t i = 0; i < batch; ++i) {
              const std::size_t bytes = Sizes{16, 512}(random);
              made->emplace_back(by.take(bytes), bytes);
              touch(made->back().first, bytes, false);
            }
            while (slot.load(std::memory_order_acquire) != nullptr) std::this_thread::yield();
            slot.store(made.release(), std::memory_order_release);
          } else {
            Blocks* taken = nullptr;
            while ((taken = slot.exchange(nullptr, std::memory_order_acquire)) == nullptr)
              std::this_thread::yield();
            const std::unique_ptr<Blocks> owner(taken);
            for (const auto& [block, bytes] : *owner) {
              expect(block, bytes);
              by.give(block, bytes);
            }
          }
        }
      });
    } else {
      for (std::size_t round = 0; round < rounds; ++round) {
        together([&](std::size_t t) {
          const Sizes sizes = load == "larson" ? Sizes{16, 1024} : Sizes{16, 65536};
          replace(blocks[t], round * count + t, steps, sizes);
        });
        if (load == "larson") {
          std::swap(blocks[0], blocks[1]);
        } else {
          for (std::size_t b = 0; b < live; b += 2) std::swap(blocks[0][b], blocks[1][b]);
        }
      }
    }
  });
  for (const Blocks& of : blocks)
    for (const auto& [block, bytes] : of)
      if (block != nullptr) by.give(block, bytes);
  return seconds / static_cast<double>(count * rounds * steps) * 1e9;
}

/// 200 tensors of 1 to 64 MB, their logarithms evenly spread: the forward pass takes them, the
/// backward pass takes a gradient as large as each and gives both back, the last tensor first. The
/// time is the processor time of an iteration, the median of those after the first; all pages
/// touched, or all bytes written.
template <class By>
Load training(By& by, bool whole) {
  constexpr std::size_t tensors = 200, iterations = 6;
  std::mt19937_64 random(7);
  std::vector<std::size_t> sizes(tensors);
  for (std::size_t& bytes : sizes) bytes = Sizes{1e6, 64e6}(random);
  const auto write = [whole](void* block, std::size_t bytes) {
    if (whole) std::memset(block, 1, bytes);
    touch(block, bytes, !whole);
  };
  std::vector<double> times;
  std::vector<void*> blocks(tensors);
  double faults = 0, pages = 0;
  for (std::size_t iteration = 0; iteration < iterations; ++iteration) {
    const double seconds = bench::processor_seconds_of([&] {
      for (std::size_t t = 0; t < tensors; ++t) write(blocks[t] = by.take(sizes[t]), sizes[t]);
      for (std::size_t t = tensors; t-- > 0;) {
        void* const gradient = by.take(sizes[t]);
        write(gradient, sizes[t]);
        expect(gradient, sizes[t]);
        by.give(gradient, sizes[t]);
        expect(blocks[t], sizes[t]);
        by.give(blocks[t], sizes[t]);
      }
    });
    if (iteration == 0) {
      faults = -faults_so_far();
      continue;
    }
    times.push_back(seconds * 1e9);
    for (const std::size_t bytes : sizes) pages += 2 * pages_of(bytes);
  }
  return {bench::summarise(times).median, (faults + faults_so_far()) / pages};
}

/// What a process does: prints the time in ns, the page faults, and the most memory it had, in
/// bytes.
template <class By>
void work(By& by, std::string_view what) {
  Load load{};
  if (what == "training" || what == "training_written") {
    load = training(by, what == "training_written");
  } else if (what == "larson" || what == "xmalloc" || what == "mstress") {
    load.time = threads(by, what);
  } else {
    for (const Churn& each : churns)
      if (what == each.name) load = churn(by, each);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%.17g %.17g %ld\n", load.time, load.faults, usage.ru_maxrss * 1024);
}

/// A process with other settings.
struct Competitor {
  const char* name;
  const char* how;          ///< of this program
  const char* environment;  ///< `NAME=value ...`
  const char* library;      ///< the start of its file's name; none for glibc
};
constexpr std::array competitors = {
    Competitor{"heddle", "pool", "", ""},
    Competitor{"glibc", "malloc", "", ""},
    Competitor{"glibc_retained", "malloc",
               "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4294967296:"
               "glibc.malloc.trim_threshold=1099511627776:glibc.malloc.top_pad=67108864",
               ""},
    Competitor{"jemalloc", "malloc", "", "libjemalloc.so.2"},
    Competitor{"jemalloc_retained", "malloc",
               // Blocks may come out of free ones of any size, or it maps more while it has some.
               "MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0,"
               "lg_extent_max_active_fit:63",
               "libjemalloc.so.2"},
    Competitor{"glibc_mapping", "malloc", "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4096", ""},
    Competitor{"mimalloc", "malloc", "", "libmimalloc.so.2.0"},
    Competitor{"mimalloc_retained", "malloc",
               // It maps blocks above 16 MiB one by one unless they fit in memory reserved for it.
               "MIMALLOC_RESERVE_OS_MEMORY=12GiB MIMALLOC_ALLOW_DECOMMIT=0 MIMALLOC_PAGE_RESET=0 "
               "MIMALLOC_SEGMENT_RESET=0",
               "libmimalloc.so.2.0"},
    Competitor{"tcmalloc", "malloc", "", "libtcmalloc_minimal.so.4"},
    Competitor{"tcmalloc_retained", "malloc", "TCMALLOC_RELEASE_RATE=0",
               "libtcmalloc_minimal.so.4"},
    Competitor{"arena", "arena", "", ""},
    Competitor{"arena_huge_pages", "arena_huge", "", ""},
};

/// Where the library is; empty where it is not.
std::string found(std::string_view library) {
  for (const char* const folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib",
                                   "/usr/local/lib", "/usr/lib/aarch64-linux-gnu"})
    if (const auto path = std::filesystem::path(folder) / library; std::filesystem::exists(path))
      return path.string();
  return {};
}

struct Measured {
  double time, faults, memory;
};

Measured run(const Competitor& competitor, std::string_view what) {
  std::ostringstream command;
  command << "env " << competitor.environment;
  if (*competitor.library != 0) command << " LD_PRELOAD=" << found(competitor.library);
  command << ' ' << std::filesystem::read_symlink("/proc/self/exe") << ' ' << competitor.how << ' '
          << what;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.str().c_str(), "r"), pclose);
  Measured measured{};
  if (!pipe || std::fscanf(pipe.get(), "%lg %lg %lg", &measured.time, &measured.faults,
                           &measured.memory) != 3)
    throw heddle::communication_error({name, "a process failed", command.str()});
  return measured;
}

/// The pool and the named others in turn, `rounds` times; then ratios of times and of memory.
void compare(std::string_view what, int rounds, const std::vector<std::string_view>& others) {
  std::vector<const Competitor*> present;
  for (const Competitor& competitor : competitors) {
    if (std::ranges::find(others, competitor.name) == others.end() &&
        &competitor != &competitors[0])
      continue;
    if (*competitor.library == 0 || !found(competitor.library).empty())
      present.push_back(&competitor);
    else
      std::cout << "skip " << name << " a library to compare with was not found: " << what << '_'
                << competitor.name << '\n';
  }
  std::vector<std::vector<double>> times(present.size()), faults(times), memories(times);
  for (int round = 0; round < rounds; ++round)
    for (std::size_t c = 0; c < present.size(); ++c) {
      const std::size_t turn = (c + static_cast<std::size_t>(round)) % present.size();
      const Measured measured = run(*present[turn], what);
      times[turn].push_back(measured.time);
      faults[turn].push_back(measured.faults);
      memories[turn].push_back(measured.memory);
    }
  for (std::size_t c = 0; c < present.size(); ++c) {
    const std::string line = heddle::text(what, '_', present[c]->name);
    bench::print_value(name, line + "_time", bench::summarise(times[c]), "ns");
    // Who is said to keep what it has shows it: see the bars.
    if (line.ends_with("_retained"))
      bench::print_value(name, line + "_faults", bench::summarise(faults[c]), "a_page");
    if (c == 0) continue;
    bench::print_ratio(name, line, bench::ratios(times[c], times[0]));
    bench::print_ratio(name, line + "_memory", bench::ratios(memories[c], memories[0]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return bench::status_of(name, [&] {
    if (argc == 3) {
      const std::string_view how = argv[1];
      ByPool pool;
      ByMalloc by_malloc;
      ByArena arena(memory::HugePages::no), huge(memory::HugePages::yes);
      if (how == "pool") work(pool, argv[2]);
      if (how == "malloc") work(by_malloc, argv[2]);
      if (how == "arena") work(arena, argv[2]);
      if (how == "arena_huge") work(huge, argv[2]);
      return;
    }
    const std::vector<std::string_view> defaults{"glibc", "jemalloc", "mimalloc", "tcmalloc"};
    const std::vector<std::string_view> retained{"glibc_retained", "jemalloc_retained",
                                                 "mimalloc_retained", "tcmalloc_retained"};
    for (const Churn& each : churns) {
      print_peak(each);
      compare(each.name, each.live < 100 ? 11 : 31, defaults);
      if (each.live < 100) compare(each.name, 11, retained);
    }
    for (const char* const load : {"larson", "xmalloc", "mstress"}) compare(load, 41, defaults);
    compare("training", 7, defaults);
    compare("training", 3, {"glibc_mapping"});
    // These are near, and soon done.
    std::vector<std::string_view> near = retained;
    near.insert(near.end(), {"arena", "arena_huge_pages"});
    compare("training", 15, near);
    compare("training_written", 3, {"glibc", "glibc_retained", "mimalloc", "tcmalloc", "arena"});
  });
}
