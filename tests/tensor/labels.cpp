// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2
// space: its own

// What a profiler shows of tensors: "heddle::room::thing".

#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/tensor.hpp>

#include "support/label_recorder.hpp"

namespace test_labels {

namespace hd = heddle;
using hd::test::LabelRecorder;

TEST_CASE("what tensors do on the device has labels of the rooms that do it") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", 2}});
  const LabelRecorder recorder;
  // Large enough for kernels: parts of sums, packed, and columns of a halo.
  const hd::Sharded<double**, Exec> parts(mesh, {300, 301}, {hd::Partial{}});
  const auto columns = hd::redistribute(parts, {hd::Shard{1, {}, 1}});
  const auto rows = hd::redistribute(columns, {hd::Shard{0}});
  hd::Halo halo(columns);
  halo.exchange(Exec{}, columns);
  CHECK(LabelRecorder::strangers({"tensor", "kernel", "collective", "comm"}) ==
        std::vector<std::string>{});
  const auto ours = LabelRecorder::ours();
  for (const char* const label : {"heddle::tensor::sharded", "heddle::tensor::packed",
                                  "heddle::tensor::redistribute", "heddle::tensor::halo"})
    CHECK(ours.contains(label));
}

}  // namespace test_labels
