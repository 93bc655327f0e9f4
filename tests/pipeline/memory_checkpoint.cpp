// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1
// space: its own

// MemoryCheckpoint without a training: which state a rank keeps, saves of two timelines, and errors
// of one rank. Ranks are threads here; tests/pipeline/survive.cpp trains.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/pipeline/memory_checkpoint.hpp>
#include <heddle/pipeline/state.hpp>

#include "support/complaint.hpp"

namespace test_memory_checkpoint {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// An array of one layer.
struct Arrays {
  int layer;
  std::vector<double>* values;
  template <class Visitor>
  void visit_state(Visitor&& visitor) {
    visitor(hd::whole_array<Kokkos::HostSpace>(layer, "w", values->data(), values->size()));
  }
};

/// The same, and it may throw when its state was written.
struct Written : Arrays {
  bool throws = false;
  void state_written() const {
    if (throws) throw std::runtime_error("it broke");
  }
};

/// Ends the test of all threads; Catch2 knows only one of them.
void expect_on_thread(bool holds) {
  if (!holds) throw std::logic_error("a check on a thread has failed");
}

}  // namespace

TEST_CASE("a rank keeps its state and that of the ranks before it, and replicas need no copies") {
  constexpr std::int64_t elements = 12;
  for (const int copies : {0, 1, 2, 7}) {
    hd::run_threads(3, [&](hd::ThreadTransport& transport) {
      const bool replica = transport.rank() == 1;  // of rank 0
      std::vector<double> own(elements, replica ? 0 : transport.rank().value);
      Arrays model{replica ? 0 : static_cast<int>(transport.rank().value), &own};
      hd::MemoryCheckpoint kept(copies);
      kept.save(model, transport, 3);
      // Rank 0 has layers 0 and 2, rank 1 layer 0 twice, rank 2 layers 2 and 0.
      const hd::Bytes layers_kept = copies == 0 || (copies == 1 && replica) ? 1 : 2;
      expect_on_thread(kept.bytes() == layers_kept * elements * sizeof(double));
      std::fill(own.begin(), own.end(), -1);
      expect_on_thread(kept.restore(model, transport) == 3);
      expect_on_thread(own[elements - 1] == (replica ? 0 : transport.rank().value));
    });
  }
  CHECK_THAT(hd::test::message_of<hd::contract_error>([] { hd::MemoryCheckpoint(-1); }),
             ContainsSubstring("copies = -1"));
}

TEST_CASE("a save that only one rank has made is not mixed with a later one of its step") {
  // Rank 0 saves step 1, rank 1 does not come to its end. Both begin anew, with other values.
  std::vector<std::vector<double>> restored(2);
  hd::run_threads(2, [&](hd::ThreadTransport& transport) {
    const std::size_t self = +transport.rank();
    hd::MemoryCheckpoint kept(0);
    std::vector<double> values(3, 10);
    Arrays model{static_cast<int>(self), &values};
    if (self == 0) {
      hd::run_threads(1, [&](hd::ThreadTransport& alone) { kept.save(model, alone, 1); });
      expect_on_thread(kept.bytes() > 0);
    }
    expect_on_thread(!kept.restore(model, transport));
    expect_on_thread(kept.bytes() == 0);
    std::fill(values.begin(), values.end(), 20);
    kept.save(model, transport, 1);
    std::fill(values.begin(), values.end(), 0);
    expect_on_thread(kept.restore(model, transport) == 1);
    restored[self] = values;
  });
  for (const std::vector<double>& values : restored) CHECK(values == std::vector<double>(3, 20));
}

TEST_CASE("a save of a wrong step is an error of all ranks, and the ranks go on") {
  std::vector<std::string> errors(2);
  hd::run_threads(2, [&](hd::ThreadTransport& transport) {
    const std::size_t self = +transport.rank();
    hd::MemoryCheckpoint kept;
    std::vector<double> values(3), none;
    Arrays model{static_cast<int>(self), &values}, empty{static_cast<int>(self), &none};
    const auto error = [&](std::int64_t step) {
      try {
        kept.save(model, transport, step);
      } catch (const hd::contract_error& caught) {
        errors[self] += std::string(caught.what()) + "\n";
      }
    };
    error(self == 0 ? 1 : 2);
    error(-1);
    kept.save(model, transport, 2);
    error(2);
    kept.save(model, transport, 3);
    expect_on_thread(kept.restore(model, transport) == 3);
    kept.save(empty, transport, 4);  // arrays without elements and memory
    expect_on_thread(kept.restore(empty, transport) == 4);
  });
  for (const std::string& error : errors)
    CHECK_THAT(error,
               ContainsSubstring("step = 1 after -1 on rank 0, 2 after -1 on rank 1") &&
                   ContainsSubstring("must be at least 0 (step = -1)") &&
                   ContainsSubstring("above that of the last save (step = 2, last save after 2)"));
}

TEST_CASE("a model that throws when its state was written ends the other ranks") {
  std::vector<std::string> errors(2);
  hd::run_threads(2, [&](hd::ThreadTransport& transport) {
    const std::size_t self = +transport.rank();
    std::vector<double> values(3);
    Written model{{static_cast<int>(self), &values}};
    hd::MemoryCheckpoint kept;
    kept.save(model, transport, 1, {.watchdog = 0});
    model.throws = self == 1;
    try {
      (void)kept.restore(model, transport, {.watchdog = 0});
    } catch (const std::runtime_error& caught) {
      errors[self] = caught.what();
    }
  });
  CHECK(errors[1] == "it broke");
  CHECK_THAT(
      errors[0],
      ContainsSubstring("rank 1 failed at heddle::MemoryCheckpoint::restore: it broke") ||
          ContainsSubstring("rank 1 failed at heddle::MemoryCheckpoint::restore (it broke)"));
}

}  // namespace test_memory_checkpoint
