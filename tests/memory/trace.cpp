// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// Traces: recorded, written, read again, replayed; and files that are none.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/memory/label.hpp>
#include <heddle/memory/limit.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/trace/replay.hpp>
#include <heddle/memory/trace/trace.hpp>

#include "conformance.hpp"
#include "failing.hpp"

namespace test_trace {

namespace memory = heddle::memory;
using Catch::Matchers::ContainsSubstring;

memory::Trace small_trace() {
  memory::Trace trace;
  const auto a = trace.take(0, 100, 8, "weights \"w\"");
  const auto b = trace.take(0.25, 4096, 64);
  trace.give(0.5, a);
  trace.take(0.75, 7, 1, "weights \"w\"");
  trace.give(1.0000005, b);
  return trace;
}

TEST_CASE("a recorder gives what its upstream gives, and writes it down") {
  memory::Pool pool;
  memory::Recorder recorder(pool);
  memory_test::conforms(recorder, std::size_t{1} << 20);
  const memory::Trace trace = recorder.trace();
  CHECK(trace.live().back() == 0);
  CHECK(trace.events().size() == 2 * trace.blocks());

  memory::Recorder other(memory::Pages{});
  void* block = nullptr;
  {
    const memory::Label label("weights");
    block = other.allocate(100, 8);
  }
  other.deallocate(block, 100, 8);
  CHECK(other.trace().labels() == std::vector<std::string>{"weights"});
  CHECK(other.trace().peak() == 100);
}

TEST_CASE("a block comes back once") {
  memory::Trace trace;
  trace.give(1, trace.take(0, 5, 8));
  CHECK_THROWS_AS(trace.give(2, 0), heddle::contract_error);
  CHECK_THROWS_AS(trace.give(2, 1), heddle::contract_error);
  CHECK(trace.live() == std::vector<std::uint64_t>{5, 0});
}

TEST_CASE("what a resource throws in a replay loses nothing") {
  struct Throwing : memory_test::Failing {
    void* allocate(std::size_t bytes, std::size_t alignment) {
      if (bytes == 7) throw std::string("something else");
      return Failing::allocate(bytes, alignment);
    }
  };
  Throwing heap;
  memory::Trace trace;
  trace.take(0, 5, 8);
  trace.take(0, 7, 8);
  CHECK_THROWS_AS(memory::replay(trace, heap), std::string);
  CHECK(heap.blocks() == 0);
}

TEST_CASE("what upstream refuses is not in the trace, and nothing is lost") {
  CHECK(memory_test::each_failure([](memory_test::Failing& failing) {
          memory::Recorder recorder(failing);
          memory_test::use_some(recorder);
        }) > 0);
}

TEST_CASE("live bytes and their peak") {
  const memory::Trace trace = small_trace();
  CHECK(trace.live() == std::vector<std::uint64_t>{100, 4196, 4096, 4103, 7});
  CHECK(trace.peak() == 4196);
  CHECK(memory::Trace().peak() == 0);
}

TEST_CASE("a trace is read as it was written") {
  memory::Trace lines;
  lines.take(0, 5, 8, "two\nlines");
  CHECK(lines.labels() == std::vector<std::string>{"two lines"});
  for (const memory::Trace& trace : {small_trace(), memory::Trace(), lines}) {
    const memory::Trace read = memory::Trace::parse(trace.content(), "here");
    CHECK(read.labels() == trace.labels());
    CHECK(read.live() == trace.live());
    CHECK(read.content() == trace.content());
  }
  const auto path = std::filesystem::temp_directory_path() / "heddle_trace_test.trace";
  small_trace().save(path);
  CHECK(memory::Trace::load(path).content() == small_trace().content());
  std::filesystem::remove(path);
  CHECK_THROWS_AS(memory::Trace::load(path), heddle::format_error);
}

TEST_CASE("a text that is no trace names its line") {
  const std::string good = small_trace().content();
  const auto message = [](const std::string& content) -> std::string {
    try {
      (void)memory::Trace::parse(content, "file");
    } catch (const heddle::format_error& error) {
      return error.what();
    }
    return "it was read";
  };
  CHECK_THAT(message(""), ContainsSubstring("file line 1"));
  CHECK_THAT(message("heddle memory trace 2\n"), ContainsSubstring("line 1"));
  const auto replaced = [&](const std::string& what, const std::string& by) {
    std::string content = good;
    return content.replace(content.find(what), what.size(), by);
  };
  CHECK_THAT(message(replaced("4096 64", "4096 63")), ContainsSubstring("not a power of two"));
  CHECK_THAT(message(replaced("4096 64", "4097 64")), ContainsSubstring("another checksum"));
  CHECK_THAT(message(replaced("- 500000 0", "- 500000 9")), ContainsSubstring("no such block"));
  CHECK_THAT(message(replaced("- 1000001 1", "- 1000001 0")), ContainsSubstring("no such block"));
  CHECK_THAT(message(replaced("- 500000 0", "* 500000 0")), ContainsSubstring("unknown kind"));
  CHECK_THAT(message(replaced("- 500000 0", "- 500000")), ContainsSubstring("words are"));
  CHECK_THAT(message(replaced("- 500000 0", "- 500000 0 1")), ContainsSubstring("words are"));
  CHECK_THAT(message(good + "- 1 2\n"), ContainsSubstring("after the checksum"));
  for (std::size_t length = 0; length < good.size(); ++length)
    CHECK(message(good.substr(0, length)) != "it was read");
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    INFO(at);
    CHECK(message(flipped) != "it was read");
  }
}

TEST_CASE("a replay takes and gives back the same, and goes without what is refused") {
  memory_test::Failing heap;
  {
    memory::Limit little(heap, 4100);
    const memory::Replayed replayed = memory::replay(small_trace(), little, memory::Touch::all);
    CHECK(replayed.refused == 1);  // 4096 B beside 100
    CHECK(replayed.peak_live == 4196);
    CHECK(little.used() == 0);
  }
  CHECK(heap.blocks() == 0);
  CHECK(heap.wrong() == 0);
  memory::Pool pool;
  for (const memory::Touch touch : {memory::Touch::none, memory::Touch::pages, memory::Touch::all})
    CHECK(memory::replay(small_trace(), pool, touch).refused == 0);
}

TEST_CASE("blocks that were never taken do not come back") {
  memory::Trace trace;
  CHECK_THROWS_AS(trace.give(0, 0), heddle::contract_error);
}

}  // namespace test_trace
