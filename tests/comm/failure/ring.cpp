// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// ring stop|kill RUN WATCHDOG: as program.cpp, for ranks that compute attention over a sharded
/// sequence in a ring, forward and backward. One leaves inside of a block, before a matrix product.

#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/sequence.hpp>

#include "failure.hpp"

namespace {

namespace hd = heddle;
using Exec = Kokkos::DefaultHostExecutionSpace;
using Matrix = Kokkos::View<double**, Kokkos::LayoutRight, Exec::memory_space>;

/// Of this rank: the matrix products that it has begun, and when and how it leaves.
std::uint64_t products = 0;
std::uint64_t lives_for = std::numeric_limits<std::uint64_t>::max();
int leaves_by = 0;
hd::Rank me;

void leave_at_a_product(const char* region) {
  if (std::strcmp(region, "heddle::kernel::gemm") == 0 && products++ == lives_for)
    failing::leave(me, leaves_by);
}

void attend(const failing::Run& run) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"ring", ranks}, {"heads", 1}});
  me = mesh["ring"].rank();
  leaves_by = run.signal;
  const hd::Random random(8, "kill");
  const auto draw = [&](std::uint64_t what, std::uint64_t below) {
    return random.below(3 * run.number + what, below);
  };
  const hd::SequenceLine<double, Exec> line(
      mesh["heads"], mesh["ring"],
      {.method = draw(0, 2) == 0 ? hd::SequenceMethod::ring : hd::SequenceMethod::rsa,
       .wait = {.watchdog = run.watchdog,
                .log = [](std::string_view reason) { failing::name(me, reason); }}});
  const hd::SequenceShape shape{1, 37, {4, 4, 2}, {.causal = false}};
  const Matrix qkv("qkv", line.rows(shape), shape.qkv_columns());
  const Matrix output("output", line.rows(shape), shape.heads.query_columns());
  const Matrix gradient("gradient", line.rows(shape), shape.qkv_columns());
  const Kokkos::View<double*, Exec::memory_space> saved("saved", line.saved_size(shape));
  const auto step = [&] {
    hd::sequence_attention_forward(line, Exec{}, shape, qkv, saved, output);
    hd::sequence_attention_backward(line, Exec{}, shape, qkv, saved, output, gradient);
  };
  Kokkos::Tools::Experimental::set_push_region_callback(&leave_at_a_product);
  // The first step counts the products of one. The last misses the rank, whoever it is.
  failing::let_others_speak([&] {
    step();
    if (+me == draw(1, static_cast<std::uint64_t>(ranks)))
      lives_for = products + draw(2, 2 * products);
    for (int again = 0; again < 3; ++again) step();
  });
}

}  // namespace

int main(int argc, char** argv) { return failing::status_of(argc, argv, &attend); }
