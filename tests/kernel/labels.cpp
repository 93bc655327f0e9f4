// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// What a profiler shows of our kernels, Views, fences and regions: "heddle::room::thing".

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/kernel.hpp>

#include "../../examples/common/gpt.hpp"
#include "support.hpp"
#include "support/label_recorder.hpp"

namespace test_labels {

using heddle::test::LabelRecorder;
using kernel_test::Exec;
using kernel_test::Tensor;
namespace hk = heddle::kernel;

namespace {

/// Those of `wanted` that are not among `seen`.
std::vector<std::string> missing(const std::set<std::string>& wanted,
                                 const std::set<std::string>& seen) {
  std::vector<std::string> found;
  std::set_difference(wanted.begin(), wanted.end(), seen.begin(), seen.end(),
                      std::back_inserter(found));
  return found;
}

/// One step of a model that has every layer, and a text from it.
void train_and_generate() {
  examples::GptStage<double> stage(
      {.layers = 2, .width = 6, .heads = 3, .context = 5, .sequences = 2, .vocabulary = 7}, 0, 2,
      1);
  using Buffer = Kokkos::View<double*, Exec::memory_space>;
  const auto buffer = [](std::size_t size) { return Buffer("heddle::test::buffer", size); };
  const Buffer saved = buffer(stage.saved_size());
  const Buffer delta = buffer(stage.delta_size());
  const heddle::Item m{0};
  stage.begin_step(std::vector<std::uint8_t>(12, 1), 1);
  stage.zero_gradients();
  stage.forward({.item = m, .saved = saved.data()});
  stage.backward_input({.item = m, .saved = saved.data(), .delta = delta.data()});
  stage.backward_weight({.item = m, .saved = saved.data(), .delta = delta.data()});
  stage.fence();
  stage.update();
  (void)stage.loss(m);
  (void)stage.generate("\1", 1, 1, 1);
}

struct Twice {
  KOKKOS_FUNCTION double operator()(double x) const { return 2 * x; }
};

struct Left {
  template <class Neighbourhood>
  KOKKOS_FUNCTION double operator()(const Neighbourhood& u) const {
    return u(0, -1);
  }
};

}  // namespace

TEST_CASE("every label of ours names its room and itself") {
  Tensor<double> a(3, 4, "a"), b(4, 2, "b"), c(3, 2, "c"), moved(3, 4);
  const Tensor<double> none(3, 0), nothing(0, 2);
  double sum = 0;
  const LabelRecorder recorder;
  train_and_generate();
  hk::team_gemm(Exec{}, hk::Transpose::no, hk::Transpose::no, 1, a.view(), b.view(), 0, c.view());
  hk::map(Exec{}, Twice{}, a.view(), a.view());
  hk::reduce(Exec{}, Kokkos::Sum<double>(sum), Twice{}, a.view());

  hk::stencil(Exec{}, 1, Left{}, moved.view(), a.view());
  hk::gemm(Exec{}, hk::Transpose::no, hk::Transpose::no, 1, none.view(), nothing.view(), 2,
           c.view());

  // The model of the examples stands beside the rooms; mirrors that are distinct are of device/.
  CHECK(LabelRecorder::strangers({"device", "kernel", "gpt", "tensor", "test"}) ==
        std::vector<std::string>{});
  std::set<std::string> wanted = {
      "heddle::gpt::begin_step",
      "heddle::gpt::fence",
      "heddle::gpt::generate",
      "heddle::gpt::loss",
      "heddle::gpt::losses",
      "heddle::gpt::row_loss",
      "heddle::gpt::row_partials",
      "heddle::gpt::scratch",
      "heddle::gpt::tokens",
      "heddle::kernel::adam_update",
      "heddle::kernel::attention_backward_input_softmax",
      "heddle::kernel::attention_forward_softmax",
      "heddle::kernel::cross_entropy_backward_input",
      "heddle::kernel::cross_entropy_forward",
      "heddle::kernel::cross_entropy_forward_sum",
      "heddle::kernel::embedding_backward_weight_position",
      "heddle::kernel::embedding_backward_weight_token",
      "heddle::kernel::embedding_forward",
      "heddle::kernel::gelu_backward_input",
      "heddle::kernel::gelu_forward",
      "heddle::kernel::gemm",
      "heddle::kernel::gemm_scale",
      "heddle::kernel::layer_norm_backward_input",
      "heddle::kernel::layer_norm_backward_weight_scale",
      "heddle::kernel::layer_norm_backward_weight_shift",
      "heddle::kernel::layer_norm_forward",
      "heddle::kernel::layer_norm_output",
      "heddle::kernel::linear_backward_weight_bias",
      "heddle::kernel::linear_forward_bias",
      "heddle::kernel::map",
      "heddle::kernel::reduce",
      "heddle::kernel::reduce_partial",
      "heddle::kernel::residual_add",
      "heddle::kernel::stencil",
      "heddle::kernel::team_gemm",
      "heddle::tensor::gradients",
      "heddle::tensor::masters",
      "heddle::tensor::mean",
      "heddle::tensor::square",
  };
  // On a GPU Kokkos has the memory of a reduction.
  if constexpr (heddle::staging<Exec>::scratch == heddle::Scratch::shared)
    wanted.erase("heddle::kernel::reduce_partial");
  CHECK(missing(wanted, LabelRecorder::ours()) == std::vector<std::string>{});
}

TEST_CASE("a label that is missing or of no room is found") {
  const LabelRecorder recorder;
  const auto strangers = [] { return LabelRecorder::strangers({"test"}); };
  const Kokkos::View<int*, Exec::memory_space> named("heddle::test::named", 3);
  Kokkos::fence("heddle::test::fence");
  CHECK(strangers().empty());
  CHECK(missing({"heddle::test::fence", "heddle::test::named"}, LabelRecorder::ours()).empty());

  const Kokkos::View<int*, Exec::memory_space> elsewhere("heddle::attic::view", 3);
  CHECK(strangers() == std::vector<std::string>{"heddle::attic::view"});
  const Kokkos::View<int*, Exec::memory_space> unnamed("", 3);
  CHECK(strangers().size() == 2);
  Exec{}.fence();
  CHECK(strangers().size() == 3);
  Kokkos::fence();
  CHECK(strangers().size() == 4);
  Kokkos::deep_copy(Kokkos::View<double*, Exec::memory_space>("heddle::test::copy", 3), 1.0);
  CHECK(strangers().size() == 4);
}

}  // namespace test_labels
