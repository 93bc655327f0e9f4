// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 6 8
// program: its own
// space: its own

// Attention around a ring, alone and inside of Ulysses (USP), against attention on one rank, for
// every order, number of ways and division of the ranks; the bytes that it sends and allocates.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>

#include <Kokkos_Core.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel.hpp>
#include <heddle/sequence.hpp>

#include "support/sent_bytes.hpp"
#include "support/sequence_case.hpp"
#include "support/world.hpp"

namespace test_ring {

namespace hd = heddle;
namespace hk = heddle::kernel;
using namespace hd::test::sequence;
using hd::test::count_sent_bytes;
using hd::test::sent_bytes;
using hd::test::world_size;
namespace Tools = Kokkos::Tools::Experimental;

namespace {

/// Calls visit(mesh, method) for every division of the ranks into a ring axis and a heads axis.
template <class Visit>
void for_each_division(const Visit& visit) {
  for (int heads = 1; heads <= world_size(); ++heads) {
    if (world_size() % heads != 0) continue;
    const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", world_size() / heads}, {"heads", heads}});
    INFO("heads axis of " << heads << " ranks");
    visit(mesh, heads == 1 ? hd::SequenceMethod::ring : hd::SequenceMethod::usp);
  }
}

struct Counted {
  std::uint64_t forward = 0, backward = 0;
};

/// While it lives, it counts the bytes of Views that are allocated, by label.
class AllocatedBytes {
 public:
  AllocatedBytes() : m_before(Tools::get_callbacks()) {
    all().clear();
    Tools::set_callbacks({});
    Tools::set_allocate_data_callback(
        [](const Kokkos_Profiling_SpaceHandle, const char* name, const void*,
           const std::uint64_t size) { all()[name] += static_cast<std::size_t>(size); });
  }
  AllocatedBytes(const AllocatedBytes&) = delete;
  AllocatedBytes& operator=(const AllocatedBytes&) = delete;
  ~AllocatedBytes() { Tools::set_callbacks(m_before); }

  /// Bytes of the labels that begin with `head`.
  [[nodiscard]] static std::size_t of(std::string_view head) {
    std::size_t sum = 0;
    for (const auto& [label, bytes] : all())
      if (std::string_view(label).starts_with(head)) sum += bytes;
    return sum;
  }

 private:
  static std::map<std::string, std::size_t>& all() {
    static std::map<std::string, std::size_t> bytes;
    return bytes;
  }
  Tools::EventSet m_before;
};

/// The matrices of this rank, with any numbers.
struct Matrices {
  Real2<double> qkv, output, grad;
  Real1<double> saved;
  Matrices(const hd::SequenceLine<double, Exec>& line, const hd::SequenceShape& shape)
      : qkv(random<double>("qkv", line.rows(shape), shape.qkv_columns())),
        output("output", line.rows(shape), shape.heads.query_columns()),
        grad("grad", line.rows(shape), shape.qkv_columns()),
        saved("saved", line.saved_size(shape)) {}
};

/// Bytes that all ranks send.
Counted sent_by_all(const hd::SequenceLine<double, Exec>& line, const hd::SequenceShape& shape) {
  const std::size_t rows = line.rows(shape);
  const auto qkv = random<double>("qkv", rows, shape.qkv_columns());
  const Real2<double> output("output", rows, shape.heads.query_columns()),
      grad("grad", rows, shape.qkv_columns());
  const Real1<double> saved("saved", line.saved_size(shape));
  Counted sent;
  count_sent_bytes();
  hd::sequence_attention_forward(line, Exec{}, shape, qkv, saved, output);
  sent.forward = sent_bytes;
  count_sent_bytes();
  hd::sequence_attention_backward(line, Exec{}, shape, qkv, saved, output, grad);
  sent.backward = sent_bytes;
  MPI_Allreduce(MPI_IN_PLACE, &sent, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return sent;
}

}  // namespace

TEMPLATE_TEST_CASE("ring and usp: equal attention on one rank", "", double, float) {
  const hd::SequenceLine<TestType, Exec> alone;
  for_each_division([&](const hd::DeviceMesh& mesh, hd::SequenceMethod method) {
    for (const hd::ShardOrder& order :
         {hd::ShardOrder(), hd::ShardOrder::zigzag(), hd::ShardOrder::cyclic()})
      for (const int ways : {1, 2}) {
        // The schedules do not depend on the type, so float need not see all of them.
        if (std::is_same_v<TestType, float> && (ways == 1 || order != hd::ShardOrder::zigzag()))
          continue;
        const hd::SequenceLine<TestType, Exec> line(
            mesh["heads"], mesh["ring"], {.method = method, .order = order, .ways = ways});
        const hd::SequenceShape shapes[] = {{2, 37, {16, 8, 3}},
                                            {1, 3, {9, 9, 2}},
                                            {1, 48, {8, 8, 4}, {.causal = false}},
                                            {1, 41, {32, 8, 2}, {true, {5, 6, 29}}},
                                            {2, 0, {8, 8, 2}}};
        for (const hd::SequenceShape& shape : shapes) {
          INFO(hd::text(method, ", ", order, ", ", ways, " ways, ", shape));
          const Input<TestType> all(shape);
          check_equal(line, shape, divided(line, shape, all),
                      attention(alone, shape, all.qkv, all.output_grad));
        }
      }
  });
}

TEST_CASE("ring and usp: send what the closed forms say") {
  for_each_division([&](const hd::DeviceMesh& mesh, hd::SequenceMethod method) {
    const auto u = static_cast<std::uint64_t>(mesh["heads"].size());
    const auto r = static_cast<std::uint64_t>(mesh["ring"].size());
    const std::uint64_t p = u * r;
    for (const std::size_t group : {1, 2})
      for (const int ways : {1, 2}) {
        const hd::SequenceLine<double, Exec> line(mesh["heads"], mesh["ring"],
                                                  {.method = method, .ways = ways});
        const std::size_t kv_heads = 8 * static_cast<std::size_t>(u);
        const hd::SequenceShape shape{1,
                                      static_cast<std::int64_t>(4 * p),
                                      {group * kv_heads, kv_heads, 2},
                                      {.causal = false}};
        INFO(hd::text(u, " x ", r, ", ", ways, " ways, ", shape));
        // All ranks together: units of N d elements, times U G.
        const std::uint64_t unit = 8 * 4 * p * shape.heads.query_columns();
        const Counted sent = sent_by_all(line, shape);
        CHECK(sent.forward * u * group == unit * ((2 * group + 2) * (u - 1) + 2 * (r - 1) * u));
        CHECK(sent.backward * u * group == unit * ((2 * group + 2) * (u - 1) + 4 * (r - 1) * u));
      }
  });
}

TEST_CASE("usp: with one rank on the heads axis it is ring, bit by bit") {
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", world_size()}, {"heads", 1}});
  const auto order = hd::ShardOrder::zigzag();
  const hd::SequenceLine<double, Exec> ring(mesh["heads"], mesh["ring"],
                                            {.method = hd::SequenceMethod::ring, .order = order}),
      usp(mesh["heads"], mesh["ring"], {.method = hd::SequenceMethod::usp, .order = order});
  const hd::SequenceShape shape{2, 23, {4, 2, 3}};
  const Input<double> all(shape);
  const Results<double> a = divided(ring, shape, all), b = divided(usp, shape, all);
  for (std::size_t i = 0; i < a.output.size(); ++i)
    REQUIRE(a.output.data()[i] == b.output.data()[i]);
  for (std::size_t i = 0; i < a.qkv_grad.size(); ++i)
    REQUIRE(a.qkv_grad.data()[i] == b.qkv_grad.data()[i]);
}

TEST_CASE("ring: a causal mask leaves 1/2 in contiguous order, and of zigzag 1 - 1/(2P) or 3/4") {
  const auto p = static_cast<std::uint64_t>(world_size());
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", world_size()}, {"heads", 1}});
  const hd::SequenceShape shape{1, static_cast<std::int64_t>(4 * p), {2, 2, 4}};
  const std::uint64_t unmasked = 2 * (p - 1) * 8 * 4 * p * 8;
  const auto forward = [&](const hd::ShardOrder& order, int ways) {
    const hd::SequenceLine<double, Exec> line(
        mesh["heads"], mesh["ring"],
        {.method = hd::SequenceMethod::ring, .order = order, .ways = ways});
    return sent_by_all(line, shape).forward;
  };
  CHECK(2 * forward(hd::ShardOrder(), 1) == unmasked);
  CHECK(2 * p * forward(hd::ShardOrder::zigzag(), 1) == (2 * p - 1) * unmasked);
  CHECK(4 * forward(hd::ShardOrder::zigzag(), 2) == 3 * unmasked);
}

TEST_CASE("ring: at a fixed number of rows a rank, memory does not grow with the context") {
  // 24 rows of every rank. The context grows with the ranks that this test runs on; what is kept
  // and what is allocated is the same on 2 to 8 ranks.
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", world_size()}, {"heads", 1}});
  const std::size_t rows = 24, width = 8, row_bytes = 2 * width * sizeof(double);
  const hd::SequenceShape shape{1, static_cast<std::int64_t>(rows) * world_size(), {4, 2, width}};
  const std::size_t kv_block = 2 * rows * row_bytes;  // K and V, of two heads
  for (const int ways : {1, 2}) {
    const hd::SequenceLine<double, Exec> line(
        mesh["heads"], mesh["ring"],
        {.method = hd::SequenceMethod::ring, .order = hd::ShardOrder::zigzag(), .ways = ways});
    // An output and one number for each row and head; q, k and v are the caller's.
    CHECK(line.saved_size(shape) == rows * 4 * (width + 2));
    const Matrices m(line, shape);
    const auto allocated = [&](const auto& call) {
      const AllocatedBytes bytes;
      call();
      return AllocatedBytes::of("heddle::sequence::") +
             AllocatedBytes::of("heddle::kernel::visible_keys");
    };
    const auto forward = [&] {
      hd::sequence_attention_forward(line, Exec{}, shape, m.qkv, m.saved, m.output);
    };
    const auto backward = [&] {
      hd::sequence_attention_backward(line, Exec{}, shape, m.qkv, m.saved, m.output, m.grad);
    };
    // The scores and, backward, their gradients: tiles of a size that the library chooses.
    constexpr hk::AttentionTile tile = hk::attention_tile<Exec>;
    const std::size_t tiles = tile.scratch_rows() * tile.keys * sizeof(double);
    // Which keys a query sees: of its own piece, of its other piece, or of all others alike.
    const bool alone = world_size() == 1;
    const std::size_t tables = (alone ? rows : 3 * (rows / 2)) * sizeof(hk::KeyRange);
    const std::size_t blocks = alone ? 0 : 1;
    CHECK(allocated(forward) == tiles + tables + 2 * blocks * kv_block);
    CHECK(allocated(forward) == 0);  // all of it is kept
    // Backward there are also the gradients of this rank's block, and those that come and go.
    const std::size_t steps = std::min<std::size_t>(2, static_cast<std::size_t>(world_size() - 1));
    CHECK(allocated(backward) == blocks * (tables + (2 + 1 + 2 * steps) * kv_block));
    CHECK(allocated(backward) == 0);
  }
}

}  // namespace test_ring
