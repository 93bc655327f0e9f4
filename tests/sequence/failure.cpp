// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3 4
// space: its own

// A rank that throws inside of attention over a sharded sequence, or does not come: the others name
// it and do not wait for ever.

#include <chrono>
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

/// While it lives, matrix product number `number` of this rank throws.
class BrokenProduct {
 public:
  explicit BrokenProduct(int number) : m_before(Tools::get_callbacks()) {
    Tools::set_callbacks({});
    products = 0;
    broken = number;
    Tools::set_push_region_callback([](const char* name) {
      if (std::strcmp(name, "heddle::kernel::gemm") == 0 && ++products == broken)
        throw std::runtime_error("a broken block");
    });
  }
  BrokenProduct(const BrokenProduct&) = delete;
  BrokenProduct& operator=(const BrokenProduct&) = delete;
  ~BrokenProduct() { Tools::set_callbacks(m_before); }

 private:
  static inline int products = 0, broken = 0;
  Tools::EventSet m_before;
};

/// This rank's matrices, and one call forward or backward.
struct Call {
  hd::SequenceShape shape{1, 12, {4, 4, 2}, {.causal = false}};
  Real2<double> qkv, output, grad;
  Real1<double> saved;
  const hd::SequenceLine<double, Exec>& line;
  bool backward = false;
  explicit Call(const hd::SequenceLine<double, Exec>& l)
      : qkv("qkv", l.rows(shape), shape.qkv_columns()),
        output("output", l.rows(shape), shape.heads.query_columns()),
        grad("grad", l.rows(shape), shape.qkv_columns()),
        saved("saved", l.saved_size(shape)),
        line(l) {}
  void operator()() const {
    if (backward)
      hd::sequence_attention_backward(line, Exec{}, shape, qkv, saved, output, grad);
    else
      hd::sequence_attention_forward(line, Exec{}, shape, qkv, saved, output);
  }
};

/// What the error says that ends the calls of a rank which does not fail itself. It may be done
/// with one call before it hears.
std::string heard(const Call& call) {
  try {
    for (int calls = 0; calls < 2; ++calls) call();
  } catch (const hd::communication_error& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("where a rank throws inside of a ring, the others name it and its block") {
  const int broken = world_size() - 1, before = broken - 1;
  // The action of queries of rank q with keys of rank k has the text "qFk" or "qBk". In its second
  // step the broken rank has the keys of the rank before it, or with token_ring its queries.
  struct Case {
    hd::SequenceMethod method;
    bool backward;
    int products;  // of a block of four heads
    int queries, keys;
  };
  const Case cases[] = {{hd::SequenceMethod::ring, false, 8, broken, before},
                        {hd::SequenceMethod::ring, true, 20, broken, before},
                        {hd::SequenceMethod::rsa, false, 4, broken, before},
                        {hd::SequenceMethod::rsa, true, 8, broken, before},
                        {hd::SequenceMethod::token_ring, false, 8, before, broken}};
  for (const Case& each : cases) {
    INFO(hd::text(each.method, each.backward ? " backward" : " forward"));
    const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", world_size()}, {"heads", 1}});
    const hd::SequenceLine<double, Exec> line(mesh["heads"], mesh["ring"], {.method = each.method});
    Call call(line);
    if (each.backward) call();
    MPI_Barrier(MPI_COMM_WORLD);  // a rank must not hear of the error in an earlier call
    call.backward = each.backward;
    const auto begin = std::chrono::steady_clock::now();
    if (world_rank() == broken) {
      const BrokenProduct product(each.products + 2);
      CHECK_THAT(message_of<std::exception>(call), ContainsSubstring("a broken block"));
    } else {
      const auto kind = each.backward ? hd::Kind::backward : hd::Kind::forward;
      CHECK_THAT(
          heard(call),
          ContainsSubstring(hd::text("rank ", broken)) && ContainsSubstring("a broken block") &&
              ContainsSubstring(hd::text(hd::Stage{each.queries}, kind, hd::Item{each.keys})));
    }
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("where a rank throws inside of a ring, ranks of the heads axis name it too") {
  if (world_size() != 4) return;
  const int broken = 3;  // in a ring with rank 1, and beside rank 2 on the heads axis
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", 2}, {"heads", 2}});
  const hd::SequenceLine<double, Exec> line(mesh["heads"], mesh["ring"],
                                            {.method = hd::SequenceMethod::usp});
  const Call call(line);
  call();  // the exchanges and the schedules are made
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = std::chrono::steady_clock::now();
  if (world_rank() == broken) {
    const BrokenProduct product(6);  // in the second block of two heads
    CHECK_THAT(message_of<std::exception>(call), ContainsSubstring("a broken block"));
  } else {
    CHECK_THAT(heard(call), ContainsSubstring("a broken block"));
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
         .wait = {.watchdog = 5}});
    const Call call(line);
    call();  // what is made at the first call, all ranks make
    const hd::SequenceLine<double, Exec> impatient(
        mesh["heads"], mesh["ring"], {.method = line.method(), .wait = {.watchdog = 0.3}});
    const Call again(impatient);
    const auto begin = std::chrono::steady_clock::now();
    if (world_rank() != world_size() - 1)
      CHECK_THAT(message_of<hd::communication_error>(again), ContainsSubstring("rank "));
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

}  // namespace test_sequence_failure
