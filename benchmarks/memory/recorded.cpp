// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core
// preloads: heddle_malloc

/// @file
/// The allocations of programs that know nothing of Heddle, recorded by libheddle_malloc.so and
/// replayed: by malloc() of glibc as it is and told to keep what it has, and by memory::Pool. The
/// programs: g++ -O2, `git gc` and x264, each on what is made here. The first byte of every 4 KiB
/// is written. Times are those of whole replays, reading the trace included.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <malloc.h>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/trace/replay.hpp>
#include <heddle/memory/trace/trace.hpp>

#include "../../tools/memory/read_events.hpp"
#include "../support.hpp"
#include "support/resident_pages.hpp"

namespace {

namespace memory = heddle::memory;
namespace files = std::filesystem;

constexpr const char* name = "memory/recorded";

struct ByMalloc {
  void* allocate(std::size_t bytes, std::size_t alignment) {
    void* block = nullptr;
    if (alignment <= alignof(std::max_align_t))
      block = std::malloc(bytes);
    else if (posix_memalign(&block, alignment, bytes) != 0)
      block = nullptr;
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
  void deallocate(void* block, std::size_t, std::size_t) noexcept { std::free(block); }
};

/// A folder that goes with it.
class Folder {
 public:
  Folder() : m_path(files::temp_directory_path() / heddle::text("heddle_recorded_", ::getpid())) {
    files::create_directory(m_path);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    files::remove_all(m_path, ignored);
  }
  [[nodiscard]] const files::path& path() const { return m_path; }

 private:
  files::path m_path;
};

/// Sources with what a compiler, and a history of commits with what git, has to do.
void write_inputs(const files::path& folder) {
  std::ofstream(folder / "program.cpp")
      << "#include <algorithm>\n#include <iostream>\n#include <map>\n#include <regex>\n"
         "#include <string>\n#include <vector>\nint main() {\n  std::map<std::string, "
         "std::vector<int>> all;\n  const std::regex word(\"[a-z]+(-[a-z]+)*\");\n  std::string "
         "s;\n  while (std::cin >> s)\n    if (std::regex_match(s, word)) "
         "all[s].push_back(static_cast<int>(s.size()));\n  for (auto& [key, values] : all) {\n    "
         "std::sort(values.begin(), values.end());\n    std::cout << key << values.size();\n  "
         "}\n}\n";
  std::mt19937 random(1);
  std::ofstream history(folder / "history");
  for (int commit = 1; commit <= 1000; ++commit) {
    history << "commit refs/heads/main\ncommitter A <a@b> " << 1700000000 + commit
            << " +0000\ndata 1\nc\n";
    for (int file = 0; file < 5; ++file) {
      std::string content;
      for (int line = 0; line < 200; ++line)
        content += heddle::text("line ", line, " of ", random() % 50, '\n');
      history << "M 100644 inline f" << random() % 300 << "\ndata " << content.size() << '\n'
              << content << '\n';
    }
  }
  // 60 pictures that move.
  constexpr std::size_t width = 640, height = 360, pictures = 60;
  std::ofstream video(folder / "video.y4m", std::ios::binary);
  video << "YUV4MPEG2 W" << width << " H" << height << " F25:1 Ip A1:1 C420jpeg\n";
  for (std::size_t picture = 0; picture < pictures; ++picture) {
    std::string bytes;
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x) bytes += static_cast<char>(x * (y + picture));
    bytes.append(width * height / 2, '\x80');
    video << "FRAME\n" << bytes;
  }
}

/// What the largest process of a shell command takes and gives back; nothing where it fails.
memory::Trace record(const files::path& folder, const std::string& prepare,
                     const std::string& command) {
  const auto run = [&](const std::string& line) {
    return std::system(
               heddle::text("cd '", folder.string(), "' && { ", line, "; } > /dev/null 2>&1")
                   .c_str()) == 0;
  };
  if (!run(prepare)) return {};
  const bool done = run(heddle::text("HEDDLE_MALLOC_TRACE='", (folder / "events").string(),
                                     "' LD_PRELOAD='", HEDDLE_PRELOADED, "' ", command));
  files::path largest;
  std::vector<files::path> all;
  for (const auto& entry : files::directory_iterator(folder))
    if (entry.path().stem() == "events") all.push_back(entry.path());
  for (const files::path& path : all)
    if (largest.empty() || files::file_size(path) > files::file_size(largest)) largest = path;
  memory::Trace trace;
  if (done && !largest.empty()) trace = memory_tool::read_events(largest);
  for (const files::path& path : all) files::remove(path);
  return trace;
}

constexpr int replays = 22;

/// The most that a pool has of the system, as both say, over the most bytes that are live, of 22
/// replays in one pool: where blocks lie, and by that what fits, depends on what the pool had
/// before, so that this is done with 11 pools, in which none to 100 small blocks are live all the
/// time.
void print_peak(const std::string& what, const memory::Trace& trace) {
  std::vector<double> over_live;
  for (std::size_t before = 0; before <= 100; before += 10) {
    heddle::test::ResidentPages system;
    memory::Pool pool(system);
    std::mt19937_64 random(before);
    std::vector<std::pair<void*, std::size_t>> blocks(before);
    std::size_t live = 0;
    for (auto& [block, bytes] : blocks) {
      live += bytes = 16 + random() % 1000;
      block = pool.allocate(bytes, alignof(std::max_align_t));
    }
    for (int round = 0; round < replays; ++round) {
      const memory::Replayed found = memory::replay(trace, pool, memory::Touch::pages);
      bench::require_equal("the number of refused blocks", found.refused, std::uint64_t{0});
    }
    // Nothing goes back before trim().
    over_live.push_back(static_cast<double>(std::max(pool.reserved(), system.resident())) /
                        static_cast<double>(trace.peak() + live));
    for (const auto& [block, bytes] : blocks)
      pool.deallocate(block, bytes, alignof(std::max_align_t));
  }
  bench::print_value(name, what + "_peak_over_live", bench::summarise(over_live), "x");
}

/// Paired replays of one trace, the first of each unmeasured: memory is there then.
void compare(const std::string& what, const memory::Trace& trace, const std::string& peer) {
  memory::Pool pool;
  ByMalloc by_malloc;
  std::vector<double> theirs, ours;
  for (int round = 0; round < replays; ++round) {
    const auto replayed = [&](auto& resource) {
      const memory::Replayed found = memory::replay(trace, resource, memory::Touch::pages);
      bench::require_equal("the number of refused blocks", found.refused, std::uint64_t{0});
      return found.seconds;
    };
    const bool first = round % 2 == 0;
    double mine = first ? replayed(pool) : 0;
    const double other = replayed(by_malloc);
    if (!first) mine = replayed(pool);
    if (round < 2) continue;
    theirs.push_back(other);
    ours.push_back(mine);
  }
  bench::print_ratio(name, what + '_' + peer, bench::ratios(theirs, ours));
}

/// malloc() keeps what it has from now on.
void keep_all() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 64 << 20);
}

/// malloc() learns from what it has seen: what comes next shall see none of it.
template <class Work>
void in_a_process_of_its_own(Work&& work) {
  std::cout << std::flush;
  const pid_t child = ::fork();
  if (child < 0) throw heddle::communication_error({name, "no child process"});
  if (child == 0) {
    const int status = bench::status_of(name, work);
    std::cout << std::flush;
    ::_exit(status);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0)
    throw heddle::communication_error({name, "a process failed", heddle::text("status ", status)});
}

}  // namespace

int main() {
  return bench::status_of(name, [&] {
    const Folder folder;
    write_inputs(folder.path());
    struct Program {
      std::string_view what, prepare, command;
    };
    std::vector<std::pair<std::string, memory::Trace>> traces;
    for (const Program& program :
         {Program{"g++", "true", "g++ -O2 -S program.cpp"},
          Program{"git_gc", "git init --bare repository && git -C repository fast-import < history",
                  "git -C repository -c pack.threads=1 gc --aggressive"},
          Program{"x264", "true", "x264 --threads 1 -o out.264 video.y4m"}}) {
      memory::Trace trace =
          record(folder.path(), std::string(program.prepare), std::string(program.command));
      if (trace.blocks() == 0)
        std::cout << "skip " << name << ' ' << program.what << " does not run here\n";
      else
        traces.emplace_back(program.what, std::move(trace));
    }
    for (const auto& [what, trace] : traces) {
      std::cout << what << ": " << trace.blocks() << " blocks, " << trace.peak() << " B at once\n";
      in_a_process_of_its_own([&, &what = what, &trace = trace] { print_peak(what, trace); });
      for (const bool retained : {false, true})
        in_a_process_of_its_own([&, &what = what, &trace = trace] {
          if (retained) keep_all();
          compare(what, trace, retained ? "glibc_retained" : "glibc");
        });
    }
  });
}
