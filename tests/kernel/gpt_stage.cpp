// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/pipeline/stage.hpp>

#include "../../examples/common/gpt.hpp"
#include "support.hpp"

namespace test_gpt_stage {

using Catch::Matchers::ContainsSubstring;
using examples::GptConfig;
using examples::GptStage;
using heddle::Item;

static_assert(heddle::PipelineStage<GptStage<float>> && heddle::PipelineStage<GptStage<double>>);

namespace {

const GptConfig small{
    .layers = 3, .width = 6, .heads = 3, .context = 5, .sequences = 2, .vocabulary = 7};

std::vector<std::uint8_t> batch(const GptConfig& config, int microbatches) {
  const auto size =
      static_cast<std::size_t>(microbatches * config.sequences * (config.context + 1));
  std::vector<std::uint8_t> tokens(size);
  const heddle::Random random(11, "batch");
  for (std::size_t i = 0; i < size; ++i)
    tokens[i] =
        static_cast<std::uint8_t>(random.below(i, static_cast<std::uint64_t>(config.vocabulary)));
  return tokens;
}

/// A device buffer for one of the pipeline's arrays.
template <class Real>
using Buffer = Kokkos::View<Real*, kernel_test::Exec::memory_space>;

template <class Real>
std::vector<Real> to_host(const Real* data, std::size_t size) {
  std::vector<Real> host(size);
  using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
  Kokkos::deep_copy(
      Kokkos::View<Real*, Kokkos::HostSpace, Unmanaged>(host.data(), size),
      Kokkos::View<const Real*, kernel_test::Exec::memory_space, Unmanaged>(data, size));
  return host;
}

template <class Real>
void set(Real* data, std::size_t index, Real value) {
  Kokkos::deep_copy(
      Kokkos::View<Real, kernel_test::Exec::memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
          data + index),
      value);
}

/// The stages of a model and, per microbatch, the memory that a pipeline would keep.
template <class Real>
class Chain {
 public:
  /// `cuts` are the first blocks of the stages after the first.
  Chain(const GptConfig& config, std::vector<int> cuts, int microbatches)
      : m_microbatches(static_cast<std::uint32_t>(microbatches)) {
    cuts.insert(cuts.begin(), 0);
    cuts.push_back(config.layers);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
      stages.emplace_back(config, cuts[i], cuts[i + 1], 5);
    for (auto& stage : stages)
      for (std::uint32_t m = 0; m < m_microbatches; ++m)
        m_memory.push_back({Buffer<Real>("input", stage.input_size()),
                            Buffer<Real>("output", stage.output_size()),
                            Buffer<Real>("saved", stage.saved_size()),
                            Buffer<Real>("output_grad", stage.output_size()),
                            Buffer<Real>("input_grad", stage.input_size()),
                            Buffer<Real>("delta", stage.delta_size())});
  }

  void begin(double weight = 0.25) {
    const auto tokens = batch(stages[0].config(), static_cast<int>(m_microbatches));
    for (auto& stage : stages) {
      stage.begin_step(tokens, weight);
      stage.zero_gradients();
    }
  }
  void forward(std::uint32_t m) {
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (s > 0) Kokkos::deep_copy(at(s, m).input, at(s - 1, m).output);
      stages[s].forward({.item = Item{m},
                         .input = at(s, m).input.data(),
                         .output = at(s, m).output.data(),
                         .saved = at(s, m).saved.data()});
      stages[s].fence();
    }
  }
  void backward_input(std::uint32_t m) {
    for (std::size_t s = stages.size(); s-- > 0;) {
      if (s + 1 < stages.size()) Kokkos::deep_copy(at(s, m).output_grad, at(s + 1, m).input_grad);
      stages[s].backward_input({.item = Item{m},
                                .input = at(s, m).input.data(),
                                .saved = at(s, m).saved.data(),
                                .output_grad = at(s, m).output_grad.data(),
                                .input_grad = at(s, m).input_grad.data(),
                                .delta = at(s, m).delta.data()});
      stages[s].fence();
    }
  }
  void backward_weight(std::uint32_t m) {
    for (std::size_t s = 0; s < stages.size(); ++s)
      stages[s].backward_weight({.item = Item{m},
                                 .input = at(s, m).input.data(),
                                 .saved = at(s, m).saved.data(),
                                 .output_grad = at(s, m).output_grad.data(),
                                 .delta = at(s, m).delta.data()});
  }
  /// Forward, then both backward calls, microbatch after microbatch.
  void step() {
    begin();
    for (std::uint32_t m = 0; m < m_microbatches; ++m) {
      forward(m);
      backward_input(m);
      backward_weight(m);
    }
  }

  std::vector<double> losses() const {
    std::vector<double> found;
    for (std::uint32_t m = 0; m < m_microbatches; ++m) found.push_back(stages.back().loss(Item{m}));
    return found;
  }
  double loss() {
    begin();
    double sum = 0;
    for (std::uint32_t m = 0; m < m_microbatches; ++m) forward(m);
    for (const double one : losses()) sum += one;
    return sum;
  }
  std::vector<Real> gradients() {
    return joined([](auto& stage) { return stage.gradients(); });
  }
  std::vector<Real> parameters() {
    return joined([](auto& stage) { return stage.parameters(); });
  }

  std::vector<GptStage<Real>> stages;

 private:
  struct Memory {
    Buffer<Real> input, output, saved, output_grad, input_grad, delta;
  };
  Memory& at(std::size_t stage, std::uint32_t m) { return m_memory[stage * m_microbatches + m]; }

  template <class Get>
  std::vector<Real> joined(const Get& get) {
    std::vector<Real> all;
    for (auto& stage : stages) {
      stage.fence();
      const auto part = to_host<Real>(get(stage), stage.parameter_count());
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  std::uint32_t m_microbatches;
  std::vector<Memory> m_memory;
};

template <class Real>
double largest_difference(const std::vector<Real>& a, const std::vector<Real>& b) {
  REQUIRE(a.size() == b.size());
  double found = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    found = std::max(found, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return found;
}

}  // namespace

TEST_CASE("GPT stage: every parameter's gradient equals a central difference of the loss") {
  // Weights near 1 over the root of their inputs, so that no gradient vanishes; the step and the
  // tolerance are those of check_gradient. Two microbatches, so that the gradients' sum counts.
  Chain<double> whole(small, {}, 2);
  whole.step();
  const auto gradients = whole.gradients(), parameters = whole.parameters();
  double size = 0;
  for (const double g : gradients) size = std::max(size, std::abs(g));
  for (const auto& tensor : whole.stages[0].tensors()) {
    INFO(tensor.name);
    double norm = 0;
    for (std::size_t i = 0; i < tensor.size; ++i) {
      const std::size_t at = tensor.offset + i;
      norm = std::max(norm, std::abs(gradients[at]));
      if (i % 3 != 0) continue;  // a third of them: each costs two forwards of the model
      const double above = parameters[at] + 6e-6, below = parameters[at] - 6e-6;
      set(whole.stages[0].parameters(), at, above);
      const double upper = whole.loss();
      set(whole.stages[0].parameters(), at, below);
      const double lower = whole.loss();
      set(whole.stages[0].parameters(), at, parameters[at]);
      const double numeric = (upper - lower) / (above - below);
      INFO("element " << i << ": finite difference " << numeric << ", gradient " << gradients[at]);
      REQUIRE(std::abs(numeric - gradients[at]) <= 1e-8 * std::max(size, 0.1));
    }
    CHECK(norm > 0);
  }
}

TEST_CASE(
    "GPT stage: however the blocks are divided, parameters are equal, losses and gradients agree") {
  constexpr int microbatches = 3;
  Chain<double> whole(small, {}, microbatches);
  Chain<double> split(small, GENERATE(std::vector{1}, std::vector{2}, std::vector{1, 2}),
                      microbatches);
  CHECK(whole.parameters() == split.parameters());
  std::vector<std::string> names, expected;
  for (const auto& tensor : whole.stages[0].tensors()) expected.push_back(tensor.name);
  for (const auto& stage : split.stages)
    for (const auto& tensor : stage.tensors()) names.push_back(tensor.name);
  CHECK(names == expected);
  for (int step = 0; step < 3; ++step) {
    INFO("step " << step);
    whole.step();
    split.step();
    // The same kernels on the same numbers: only a library that sums by alignment could differ.
    CHECK(largest_difference(whole.losses(), split.losses()) <= 1e-14);
    CHECK(largest_difference(whole.gradients(), split.gradients()) <= 1e-13);
    for (auto& stage : whole.stages) stage.update();
    for (auto& stage : split.stages) stage.update();
  }
}

TEST_CASE(
    "GPT stage: backward in two halves far apart equals backward at once, in any interleaving") {
  constexpr std::uint32_t microbatches = 3;
  Chain<double> together(small, {2}, microbatches), apart(small, {2}, microbatches);
  together.step();
  apart.begin();
  for (std::uint32_t m = 0; m < microbatches; ++m) apart.forward(m);
  for (std::uint32_t m = microbatches; m-- > 0;) apart.backward_input(m);
  CHECK(largest_difference(apart.gradients(), std::vector<double>(apart.gradients().size())) == 0);
  for (std::uint32_t m = 0; m < microbatches; ++m) apart.backward_weight(m);
  CHECK(together.losses() == apart.losses());
  CHECK(together.gradients() == apart.gradients());
}

TEST_CASE("GPT stage: the losses weigh as told and float agrees with double") {
  Chain<double> exact(small, {1}, 2);
  Chain<float> single(small, {1}, 2);
  const double twice = [&] {
    exact.begin(0.5);
    exact.forward(0);
    return exact.losses()[0];
  }();
  exact.step();
  single.step();
  CHECK(std::abs(twice - 2 * exact.losses()[0]) <= 1e-15);
  CHECK(largest_difference(exact.losses(), single.losses()) <= 1e-6);
  const auto gradients = single.gradients();
  CHECK(largest_difference(exact.gradients(),
                           std::vector<double>(gradients.begin(), gradients.end())) <= 1e-5);
  // Nearly equal odds at the start: log(7) each, weighted by 1/4.
  CHECK(std::abs(exact.losses()[0] - 0.25 * std::log(7.0)) < 0.05);
  CHECK(exact.stages[0].loss(Item{0}) == 0);
}

TEST_CASE("GPT stage: training lowers the loss, and the trained model continues its text") {
  const GptConfig config{
      .layers = 1, .width = 16, .heads = 2, .context = 8, .sequences = 4, .vocabulary = 128};
  GptStage<float> model(config, 0, 1, 1, {.learning_rate = 1e-2});
  const std::string pattern = "abcdabcdabcd";
  std::vector<std::uint8_t> tokens;
  for (int sequence = 0; sequence < config.sequences; ++sequence)
    for (int i = 0; i <= config.context; ++i)
      tokens.push_back(
          static_cast<std::uint8_t>(pattern[static_cast<std::size_t>((sequence + i) % 4)]));
  const Buffer<float> saved("saved", model.saved_size()), delta("delta", model.delta_size());
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    model.begin_step(tokens, 1);
    model.zero_gradients();
    model.forward({.item = Item{0}, .saved = saved.data()});
    model.backward_input({.item = Item{0}, .saved = saved.data(), .delta = delta.data()});
    model.backward_weight({.item = Item{0}, .saved = saved.data(), .delta = delta.data()});
    model.update();
    (step == 0 ? first : last) = model.loss(Item{0});
  }
  CHECK(first > 4);
  CHECK(last < 0.1);
  const auto before = to_host<float>(model.parameters(), model.parameter_count());
  CHECK(model.generate("ab", 20, 0, 1) == "cdabcdabcdabcdabcdab");
  CHECK(model.generate("abcdabcdabcdabcda", 3, 0, 1) == "bcd");  // longer than the context
  CHECK(model.generate("ab", 0, 1, 1).empty());
  CHECK(model.generate("", 5, 1, 3).size() == 5);
  CHECK(model.generate("ab", 20, 8, 1) == model.generate("ab", 20, 8, 1));
  CHECK(model.generate("ab", 20, 8, 1) != model.generate("ab", 20, 8, 2));
  CHECK(to_host<float>(model.parameters(), model.parameter_count()) == before);
  CHECK_THROWS_WITH(model.generate("a", 1, -1, 1),
                    ContainsSubstring("the temperature is negative"));
}

TEST_CASE("GPT stage: sizes are zero at the ends of the model and equal between the stages") {
  const GptStage<float> first(small, 0, 1), middle(small, 1, 2), last(small, 2, 3),
      whole(small, 0, 3);
  CHECK(first.input_size() == 0);
  CHECK(first.output_size() == 2 * 5 * 6);
  CHECK(middle.input_size() == first.output_size());
  CHECK(last.input_size() == middle.output_size());
  CHECK(last.output_size() == 0);
  CHECK(whole.input_size() + whole.output_size() == 0);
  CHECK(first.parameter_count() + middle.parameter_count() + last.parameter_count() ==
        whole.parameter_count());
  // N (14 w + 2) + sequences heads context^2 per block; head N (w + 1 + vocabulary).
  CHECK(middle.saved_size() == 10 * (14 * 6 + 2) + 2 * 3 * 25);
  CHECK(last.saved_size() == middle.saved_size() + 10 * (6 + 1 + 7));
  CHECK(middle.delta_size() == 10 * 10 * 6);
}

TEST_CASE("GPT stage: bad sizes, ranges and tokens are refused by name") {
  const auto make = [](GptConfig config, int first, int last) {
    return GptStage<float>(config, first, last);
  };
  CHECK_THROWS_WITH(
      make({.width = 10, .heads = 4}, 0, 4),
      ContainsSubstring("the width must be a multiple of the number of heads (width 10, heads 4)"));
  CHECK_THROWS_WITH(make({.layers = 0}, 0, 0), ContainsSubstring("layers must be positive"));
  CHECK_THROWS_WITH(make({.width = -1}, 0, 4), ContainsSubstring("width is -1"));
  CHECK_THROWS_WITH(make({.heads = 0}, 0, 4), ContainsSubstring("heads must be positive"));
  CHECK_THROWS_WITH(make({.context = 0}, 0, 4), ContainsSubstring("context must be positive"));
  CHECK_THROWS_WITH(make({.sequences = 0}, 0, 4), ContainsSubstring("sequences must be positive"));
  CHECK_THROWS_WITH(make({.vocabulary = 0}, 0, 4),
                    ContainsSubstring("vocabulary must be positive"));
  CHECK_THROWS_WITH(make({.vocabulary = 257}, 0, 4), ContainsSubstring("vocabulary is 257"));
  CHECK_THROWS_WITH(make({}, 2, 2), ContainsSubstring("blocks [2, 2) of 4"));
  CHECK_THROWS_WITH(make({}, -1, 2), ContainsSubstring("there is no such range of blocks"));
  CHECK_THROWS_AS(make({}, 3, 5), heddle::contract_error);

  GptStage<float> stage(small, 0, 3), part(small, 1, 3);
  auto tokens = batch(small, 2);
  CHECK_THROWS_WITH(stage.forward({.item = Item{0}}),
                    ContainsSubstring("this step has no such microbatch (microbatch 0 of 0)"));
  CHECK_THROWS_WITH(stage.begin_step({}, 1), ContainsSubstring("not whole microbatches"));
  CHECK_THROWS_WITH(stage.begin_step(std::span(tokens).first(23), 1),
                    ContainsSubstring("23 tokens, a microbatch has 2 x (5 + 1) = 12") &&
                        ContainsSubstring("begin a step with 12 or 24 tokens"));
  tokens[13] = 7;
  CHECK_THROWS_WITH(stage.begin_step(tokens, 1),
                    ContainsSubstring("token 13 is 7, the vocabulary has 7"));
  tokens[13] = 6;
  stage.begin_step(tokens, 1);
  CHECK_THROWS_WITH(stage.loss(Item{2}), ContainsSubstring("microbatch 2 of 2"));
  const std::vector<std::int64_t> large{3, 1}, smaller{2, 1};
  CHECK_THROWS_WITH(stage.begin_step(tokens, 1, large),
                    ContainsSubstring("microbatch 0 has 3, expected 1 to 2"));
  CHECK_THROWS_WITH(stage.begin_step(tokens, 1, smaller),
                    ContainsSubstring("24 tokens, a microbatch has at most 2"));
  CHECK(stage.microbatches() == 2);  // as before
  stage.begin_step(std::span(tokens).first(18), 1, smaller);
  CHECK_THROWS_WITH(stage.forward({.item = Item{1}, .samples = 2}),
                    ContainsSubstring("2 samples in the schedule, 1 sequences in the step"));
  CHECK_THROWS_WITH(part.generate("a", 1, 1, 1),
                    ContainsSubstring("the stage does not hold the whole model (2 of 3 blocks, "));
}

namespace {

/// What Kokkos reported since the counts were cleared.
struct Seen {
  std::vector<std::string> kernels;
  int allocations = 0, products = 0;
};
Seen seen;

}  // namespace

TEST_CASE("GPT stage: a step allocates nothing, and every kernel carries a label of this library") {
  namespace tools = Kokkos::Tools::Experimental;
  Chain<float> chain(small, {1}, 2);
  chain.begin();
  const auto tokens = batch(small, 2);
  const auto saved = tools::get_callbacks();
  seen = {};
  tools::set_begin_parallel_for_callback(
      [](const char* name, std::uint32_t, std::uint64_t*) { seen.kernels.emplace_back(name); });
  tools::set_allocate_data_callback([](Kokkos_Profiling_SpaceHandle, const char*, const void*,
                                       std::uint64_t) { ++seen.allocations; });
  tools::set_push_region_callback([](const char* name) {
    if (std::string(name) == "heddle::kernel::gemm") ++seen.products;
  });
  for (auto& stage : chain.stages) {
    stage.begin_step(tokens, 1);
    stage.zero_gradients();
  }
  chain.forward(0);
  chain.backward_input(0);
  chain.backward_weight(0);
  for (auto& stage : chain.stages) stage.update();
  tools::set_callbacks(saved);

  CHECK(seen.allocations == 0);
  // Per block: 4 linears in three products each, and 6 per sequence and head; the vocabulary 3.
  CHECK(seen.products == 3 * (12 + 6 * 2 * 3) + 3);
  for (const std::string& name : seen.kernels) {
    INFO(name);
    CHECK((name.starts_with("heddle::kernel::") || name.starts_with("Kokkos::")));
  }
  for (const char* label :
       {"embedding_forward", "layer_norm_forward", "linear_forward_bias",
        "attention_forward_softmax", "gelu_forward", "residual_add", "cross_entropy_forward",
        "cross_entropy_forward_sum", "cross_entropy_backward_input", "layer_norm_backward_input",
        "gelu_backward_input", "attention_backward_input_softmax", "layer_norm_output",
        "linear_backward_weight_bias", "layer_norm_backward_weight_scale",
        "layer_norm_backward_weight_shift", "embedding_backward_weight_token",
        "embedding_backward_weight_position", "adam_update"}) {
    INFO(label);
    CHECK(std::ranges::count(seen.kernels, std::string("heddle::kernel::") + label) > 0);
  }
}

}  // namespace test_gpt_stage
