// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// Tracking: each fault has its sentence, and the upstream sees none of them.

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/label.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/tracking.hpp>

#include "memory/conformance.hpp"
#include "memory/failing.hpp"
#include "support/complaint.hpp"

namespace test_tracking {

namespace hd = heddle;
namespace memory = heddle::memory;
using hd::test::message_of;

namespace {

/// What a tracking told, with addresses as they were.
struct Faults {
  std::vector<std::string> told;
  [[nodiscard]] auto handler() {
    return [this](const hd::contract_error& fault) { told.emplace_back(fault.what()); };
  }
  /// The only one so far, which is forgotten.
  [[nodiscard]] std::string only() {
    const auto all = std::exchange(told, {});
    return all.size() == 1 ? all.front() : hd::text(all.size(), " faults");
  }
};

constexpr const char* named = "heddle::memory::Tracking: ";

}  // namespace

TEST_CASE("tracked blocks conform, and have no faults") {
  memory_test::Failing heap;
  Faults faults;
  {
    memory::Tracking tracking(heap, faults.handler());
    memory_test::conforms(tracking, 1 << 18);
    for (const std::size_t guard : {0, 24, 100}) {
      memory::Tracking other(heap, faults.handler(), guard);
      memory_test::conforms(other, 1 << 18);
    }
  }
  CHECK(heap.blocks() == 0);
  CHECK(heap.wrong() == 0);
  CHECK(faults.told.empty());
}

TEST_CASE("every fault is named, and goes no further") {
  memory_test::Failing heap;
  Faults faults;
  {
    memory::Tracking tracking(heap, faults.handler());
    auto* const block = static_cast<char*>([&] {
      const memory::Label label("weights");
      return tracking.allocate(100, 32);
    }());
    const std::string name = hd::text("block 'weights' of 100 B at ", static_cast<void*>(block));
    CHECK(tracking.owns(block));

    SECTION("a foreign block") {
      int other = 0;
      tracking.deallocate(&other, 4, 4);
      CHECK(faults.only() == hd::text(named, "the block at ", static_cast<void*>(&other),
                                      " is deallocated but was never allocated (4 B)"));
      tracking.deallocate(block + 5, 95, 1);
      CHECK(faults.only() ==
            hd::text(named, "the block at ", static_cast<void*>(block + 5),
                     " is deallocated but was never allocated (95 B, it is byte 5 of ", name, ")"));
      tracking.deallocate(block, 100, 32);
    }
    SECTION("twice") {
      tracking.deallocate(block, 100, 32);
      tracking.deallocate(block, 100, 32);
      CHECK(faults.only() == named + name + " is deallocated twice");
    }
    SECTION("as another one") {
      tracking.deallocate(block, 99, 16);
      CHECK(faults.only() ==
            named + name +
                " is deallocated with a wrong size or alignment (as 99 B aligned to "
                "16 B, allocated as 100 B aligned to 32 B)");
    }
    SECTION("written behind, seen by check() and when it comes back") {
      block[130] = 'x';
      block[103] = 'x';
      tracking.check();
      const std::string fault = named + name + " was written past its end (byte 103 of 100)";
      CHECK(faults.only() == fault);
      tracking.deallocate(block, 100, 32);
      CHECK(faults.only() == fault);
      tracking.check();
    }
    SECTION("written before") {
      block[-64] = 'x';
      block[-2] = 'x';
      tracking.deallocate(block, 100, 32);
      CHECK(faults.only() == named + name + " was written before its begin (byte -2)");
    }
    SECTION("several at once") {
      block[-1] = block[100] = 'x';
      tracking.deallocate(block, 101, 32);
      CHECK(faults.told.size() == 3);
      faults.told.clear();
    }
    SECTION("never given back, as check_returned() and the end find") {
      tracking.check_returned();
      CHECK(faults.only() == named + name + " is never deallocated");
      auto moved = std::move(tracking);
      moved.check_returned();
      CHECK(faults.only() == named + name + " is never deallocated");
      moved.deallocate(block, 100, 32);
    }
    CHECK(heap.blocks() == 0);
    CHECK(heap.wrong() == 0);
    void* const leaked = tracking.allocate(7, 1);
    tracking.deallocate(leaked, 7, 1);
    CHECK(faults.told.empty());
  }
  CHECK(faults.told.empty());
}

TEST_CASE("a leak is a fault at the end") {
  memory_test::Failing heap;
  Faults faults;
  void* block = nullptr;
  std::size_t begins_before = 0;
  {
    memory::Tracking tracking(heap, faults.handler(), 16);
    block = tracking.allocate(5, 64);
    begins_before = heap.bytes_of(static_cast<std::byte*>(block) - 64);
  }
  CHECK(faults.only() == hd::text(named, "a block of 5 B at ", block, " is never deallocated"));
  CHECK(begins_before == 64 + 5 + 16);
  heap.deallocate(static_cast<std::byte*>(block) - 64, begins_before, 64);
  CHECK(heap.blocks() == 0);
}

TEST_CASE("without a handler check() throws, and deallocate() ends the program") {
  memory::Tracking tracking(memory::Pages{});
  auto* const block = static_cast<char*>(tracking.allocate(10, 1));
  CHECK_NOTHROW(tracking.check());
  const char before = std::exchange(block[10], 'x');
  CHECK(message_of<hd::contract_error>([&] { tracking.check(); }) ==
        hd::text(named, "a block of 10 B at ", static_cast<void*>(block),
                 " was written past its end (byte 10 of 10)"));
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    static_cast<void>(std::freopen("/dev/null", "w", stderr));
    tracking.deallocate(block, 10, 1);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
  block[10] = before;
  tracking.deallocate(block, 10, 1);
}

TEST_CASE("a handler may use what it hears of") {
  memory::Tracking<memory::Pages>* self = nullptr;
  int faults = 0;
  memory::Tracking tracking(memory::Pages{}, [&](const hd::contract_error&) {
    ++faults;
    self->deallocate(self->allocate(10, 1), 10, 1);
  });
  self = &tracking;
  tracking.deallocate(&faults, 1, 1);
  CHECK(faults == 1);
}

TEST_CASE("a failure below what is tracked loses nothing, and is no fault") {
  CHECK(memory_test::each_failure([](memory_test::Failing& heap) {
          memory::Tracking tracking(heap);
          memory_test::use_some(tracking);
        }) == 12);
  memory::Tracking tracking(memory::Pages{});
  CHECK(message_of<hd::out_of_memory>([&] { (void)tracking.allocate(SIZE_MAX - 100, 64); }) ==
        hd::text(named, "cannot allocate ", SIZE_MAX - 100, " B (and guards of 128 B)"));
}

}  // namespace test_tracking
