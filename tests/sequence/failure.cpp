// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3
// space: its own

// A rank that throws inside of attention over a sharded sequence, or does not come: the others name
// it and do not wait for ever.

#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/sequence.hpp>

#include "support/complaint.hpp"
#include "support/sequence_case.hpp"
#include "support/world.hpp"

namespace test_sequence_failure {

namespace hd = heddle;
using namespace hd::test::sequence;
using Catch::Matchers::ContainsSubstring;
using hd::test::message_of;
using hd::test::world_rank;
using hd::test::world_size;
namespace Tools = Kokkos::Tools::Experimental;

namespace {

/// While it lives, the second block of this rank's attention throws.
class BrokenBlock {
 public:
  BrokenBlock() : m_before(Tools::get_callbacks()) {
    Tools::set_callbacks({});
    blocks = 0;
    Tools::set_begin_parallel_for_callback(
        [](const char* name, const std::uint32_t, std::uint64_t*) {
          if (std::strcmp(name, "heddle::kernel::block_attention_forward_softmax") == 0 &&
              ++blocks == 2)
            throw std::runtime_error("a broken block");
        });
  }
  BrokenBlock(const BrokenBlock&) = delete;
  BrokenBlock& operator=(const BrokenBlock&) = delete;
  ~BrokenBlock() { Tools::set_callbacks(m_before); }

 private:
  static inline int blocks = 0;
  Tools::EventSet m_before;
};

/// This rank's matrices, and one call.
struct Call {
  hd::SequenceShape shape{1, 12, {3, 3, 2}, {.causal = false}};
  Real2<double> qkv, output;
  Real1<double> saved;
  const hd::SequenceLine<double, Exec>& line;
  explicit Call(const hd::SequenceLine<double, Exec>& l)
      : qkv("qkv", l.rows(shape), shape.qkv_columns()),
        output("output", l.rows(shape), shape.heads.query_columns()),
        saved("saved", l.saved_size(shape)),
        line(l) {}
  void operator()() const {
    hd::sequence_attention_forward(line, Exec{}, shape, qkv, saved, output);
  }
};

}  // namespace

TEST_CASE("where a rank throws inside of a ring, the others name it and its block") {
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", world_size()}, {"heads", 1}});
  const hd::SequenceLine<double, Exec> line(mesh["heads"], mesh["ring"],
                                            {.method = hd::SequenceMethod::ring});
  const Call call(line);
  const auto begin = std::chrono::steady_clock::now();
  const int broken = world_size() - 1;
  if (world_rank() == broken) {
    const BrokenBlock block;
    CHECK_THAT(message_of<std::exception>(call), ContainsSubstring("a broken block"));
  } else {
    // F of stage q and item k: queries of rank q, keys of rank k.
    std::string said;
    try {
      for (int calls = 0; calls < 2; ++calls) call();  // it may be done before it hears
    } catch (const hd::communication_error& error) {
      said = error.what();
    }
    CHECK_THAT(said, ContainsSubstring(hd::text("rank ", broken)) &&
                         ContainsSubstring("a broken block") &&
                         ContainsSubstring(hd::text(hd::Stage{broken}, hd::Kind::forward)));
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a rank that does not come is named within the watchdog's time") {
  for (const bool ring : {true, false}) {
    const int ranks = world_size();
    const hd::DeviceMesh mesh(MPI_COMM_WORLD,
                              {{"ring", ring ? ranks : 1}, {"heads", ring ? 1 : ranks}});
    const hd::SequenceLine<double, Exec> line(
        mesh["heads"], mesh["ring"],
        {.method = ring ? hd::SequenceMethod::ring : hd::SequenceMethod::ulysses,
         .execute = {.watchdog = 5}});
    const Call call(line);
    call();  // what is made at the first call, all ranks make
    const hd::SequenceLine<double, Exec> impatient(
        mesh["heads"], mesh["ring"], {.method = line.method(), .execute = {.watchdog = 0.3}});
    const Call again(impatient);
    const auto begin = std::chrono::steady_clock::now();
    if (world_rank() != world_size() - 1)
      CHECK_THAT(message_of<hd::communication_error>(again), ContainsSubstring("rank "));
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

}  // namespace test_sequence_failure
