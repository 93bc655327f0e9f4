// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A Runner on a Machine with memories: buffers of uneven parts lie in an arena, and a tier that is
// too small by one byte is named on every rank before anything is allocated.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/execute/fit_memory.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/stage_storage.hpp>

#include "support/complaint.hpp"

namespace test_fit_memory {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::array<Bytes, 5> sizes = {64, 256, 64, 256, 192};

/// Values of several sizes that rank 0 writes and reads at once, and whose reads it counts in 8
/// bytes that stay. Rank 1 does the same.
Schedule uneven() {
  Builder builder("uneven", 2);
  for (int r = 0; r < 2; ++r) {
    Buffer made{.rank = Rank{r}, .label = builder.label("made")};
    std::vector<Bytes> ends;
    for (const Bytes size : sizes) ends.push_back((ends.empty() ? 0 : ends.back()) + size);
    made.parts = static_cast<std::uint32_t>(sizes.size());
    made.bytes = ends.back();
    made.ends = std::make_shared<const std::vector<Bytes>>(ends);
    const BufferId values = builder.add_buffer(made);
    const BufferId count = builder.add_buffer(
        {.rank = Rank{r}, .label = builder.label("count"), .transient = false, .bytes = 8});
    for (std::uint32_t k = 0; k < sizes.size(); ++k) {
      builder.add({.kind = Kind::forward, .queue = builder.local(Rank{r}), .item = Item{k}},
                  {schedule::write(values, k)});
      builder.add({.kind = Kind::user, .queue = builder.local(Rank{r}), .item = Item{k}},
                  {schedule::read(values, k), schedule::update(count)});
    }
  }
  return std::move(builder).build();
}

Machine machine_of(Bytes capacity) {
  return Machine::uniform(2, {.memories = {{.name = "HBM", .capacity = capacity}}}, {});
}

struct Outcome {
  std::array<std::string, 2> errors = {};
  std::array<Bytes, 2> allocated = {};
  std::atomic<int> wrong{0};
  std::atomic<int> allocations{0};
};

void run(Outcome& outcome, RunOptions options) {
  struct Model {
    Outcome* outcome;
    std::shared_ptr<std::byte> allocate(Bytes bytes) {
      ++outcome->allocations;
      return std::shared_ptr<std::byte>(new std::byte[bytes](),
                                        [](const std::byte* old) { delete[] old; });
    }
    void operator()(const Task& task) {
      const BoundUse& value = task.uses()[0];
      if (value.bytes != sizes[+task.item()]) ++outcome->wrong;
      for (std::size_t i = 0; i < value.bytes; ++i)
        if (task.kind() == Kind::forward)
          value.data[i] = static_cast<std::byte>(+task.item() + i);
        else if (value.data[i] != static_cast<std::byte>(+task.item() + i))
          ++outcome->wrong;
    }
  };
  run_threads(2, [&](ThreadTransport& transport) {
    try {
      Runner run(Model{&outcome}, uneven(), transport, options);
      run.step();
      run.step();
      run.drain();
      outcome.allocated[+transport.rank()] = run.allocated();
    } catch (const infeasible& error) {
      outcome.errors[+transport.rank()] = error.what();
    }
  });
}

}  // namespace

TEST_CASE("a Runner folds uneven parts to an arena where a machine is given") {
  Outcome plain, fits, short_by_one, live, unfolded;
  run(plain, {});
  CHECK(plain.allocated == std::array<Bytes, 2>{832 + 8, 832 + 8});
  // One value lives at a time, so the largest one decides.
  run(fits, {.machine = machine_of(256 + 8)});
  CHECK(fits.errors == std::array<std::string, 2>{});
  CHECK(fits.allocated == std::array<Bytes, 2>{256 + 8, 256 + 8});
  for (const Outcome* each : {&plain, &fits}) CHECK(each->wrong == 0);

  run(short_by_one, {.machine = machine_of(256 + 7)});
  for (const std::string& error : short_by_one.errors)
    CHECK_THAT(error, ContainsSubstring("heddle::schedule::check_capacity") &&
                          ContainsSubstring("does not fit in tier 0 ('HBM') of rank 0") &&
                          ContainsSubstring("264 bytes live there; it has 263, so 1 bytes lack"));
  CHECK(short_by_one.allocations == 0);

  // What lives would fit, but all buffers together do not.
  run(unfolded, {.fold = false, .machine = machine_of(832 + 7)});
  for (const std::string& error : unfolded.errors)
    CHECK_THAT(error, ContainsSubstring("the buffers of 'uneven' do not fit in tier 0 ('HBM') of "
                                        "rank 0 (they have 840 bytes, the tier 839, so 1 bytes "
                                        "lack; fewer live at once)"));
  CHECK(unfolded.allocations == 0);
  run(live, {.fold = false, .machine = machine_of(832 + 8)});
  CHECK(live.allocated == plain.allocated);
}

TEST_CASE("a machine without memories, or of unknown capacity, has room for everything") {
  for (const Machine& machine : {machine_of(0), Machine::uniform(2, {}, {})}) {
    Outcome outcome;
    run(outcome, {.machine = machine});
    CHECK(outcome.errors == std::array<std::string, 2>{});
  }
  CHECK_THAT(test::message_of<contract_error>(
                 [] { heddle::impl::expect_fits(uneven(), Machine::uniform(1, {}, {})); }),
             ContainsSubstring("the machine has too few ranks"));
}

}  // namespace test_fit_memory
