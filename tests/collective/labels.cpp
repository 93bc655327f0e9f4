// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2
// space: its own

#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>

#include "support/label_recorder.hpp"

namespace test_labels {

namespace hd = heddle;
using hd::test::LabelRecorder;
using Exec = Kokkos::DefaultHostExecutionSpace;

TEST_CASE("what a sum does on the device has labels of its room") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  // A mirror is named after its View.
  const Kokkos::View<double*, Kokkos::HostSpace> view("heddle::collective::summed", 5);
  const LabelRecorder recorder;
  hd::all_reduce(Exec{}, view, hd::Sum{}, comm);
  CHECK(LabelRecorder::strangers({"collective"}) == std::vector<std::string>{});
  // That of the fence, which host spaces need not.
  CHECK(LabelRecorder::ours().contains("heddle::collective::all_reduce") ==
        !hd::done_at_once<Exec>);
}

TEST_CASE("so has what a sum by a schedule does, and the staging of its messages") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  // A mirror is named after its View.
  const Kokkos::View<double*, Kokkos::HostSpace> view("heddle::collective::summed", 5);
  const LabelRecorder recorder;
  hd::all_reduce(Exec{}, view, hd::Sum{}, comm,
                 {.algorithm = hd::schedule::Algorithm::ring, .path = hd::DevicePath::staged});
  CHECK(LabelRecorder::strangers({"collective", "comm"}) == std::vector<std::string>{});
  const auto ours = LabelRecorder::ours();
  for (const char* const label :
       {"heddle::collective::scratch", "heddle::comm::staged", "heddle::comm::staging"})
    CHECK(ours.contains(label));
  CHECK(ours.contains("heddle::collective::all_reduce") == !hd::done_at_once<Exec>);
}

}  // namespace test_labels
