// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The memory that plan_memory() predicts against the bytes of all buffers that a Runner allocates
// for the plan's Schedule, which are counted here: never less, and equal for whole backwards.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/codec.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/plan_schedule.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/pass/expand.hpp>
#include <heddle/schedule/pass/shard_updates.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>

#include "support/cases.hpp"

namespace test_plan_memory {

namespace hd = heddle;
namespace hp = heddle::plan;

namespace {

constexpr int layers = 6;
constexpr int ranks = 5;
constexpr double state = 2;  // weights and gradients, which are buffers of the Schedule, too

/// Returns layers with random bytes of whole elements. Gradients have parts of equal sizes for up
/// to three ranks, or of any sizes.
hd::plan::Profile random_profile(std::mt19937_64& random, bool equal_parts) {
  const auto bytes = [&](hd::Bytes most) { return 4 * (1 + random() % most); };
  hd::plan::Profile profile{.model = "random", .input = bytes(30), .reference = "gpu"};
  for (int l = 0; l < layers; ++l)
    profile.layers.push_back({.output = 60 + bytes(40),  // encoded, at most half of this
                              .saved = bytes(60),
                              .delta = bytes(20),
                              .parameters = bytes(80) * (equal_parts ? 6 : 1),
                              .measured = {{"gpu", 1, 1, {1, 1, 1, 0}}}});
  return profile;
}

/// Returns stages of random layers, ranks and shares. Each microbatch has `samples` samples.
hd::Plan random_plan(std::mt19937_64& random, const std::string& schedule, std::int64_t samples) {
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  hd::Plan plan{.microbatches = static_cast<int>(1 + below(7)), .schedule = schedule};
  std::vector<hd::Rank> free;
  for (int r = 0; r < ranks; ++r) free.push_back(hd::Rank{r});
  std::ranges::shuffle(free, random);
  const std::size_t stages = 1 + below(3);
  int first = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    const auto behind = static_cast<int>(stages - 1 - s);
    const int last =
        behind == 0
            ? layers
            : first + 1 +
                  static_cast<int>(below(static_cast<std::size_t>(layers - first - behind)));
    const std::size_t spare = free.size() - static_cast<std::size_t>(behind);
    const std::size_t count =
        1 + below(std::min({spare, std::size_t{3}, static_cast<std::size_t>(samples)}));
    hd::PlanStage stage{.layers = {first, last}};
    for (std::size_t i = 0; i < count; ++i) {
      stage.ranks.push_back(free.back());
      free.pop_back();
      stage.samples.push_back(1);
    }
    for (auto left = samples - static_cast<std::int64_t>(count); left > 0; --left)
      ++stage.samples[below(count)];
    plan.stages.push_back(std::move(stage));
    first = last;
  }
  return plan;
}

/// Returns the bytes of all buffers by rank, if rings sum the gradients or replicas divide updates.
std::vector<hd::Bytes> buffers_of(const hd::Plan& plan, const hd::plan::Profile& profile) {
  const hd::Schedule made = hp::schedule(plan, profile, {.ranks = ranks});
  const hd::Schedule folded = hd::schedule::fold(
      plan.sharding.empty() ? hd::schedule::expand(made, hd::schedule::CollectiveForm{})
                            : hd::schedule::shard_updates(made));
  std::vector<hd::Bytes> bytes(ranks);
  for (const hd::Buffer& buffer : folded.buffers()) bytes[+buffer.rank] += buffer.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("a Runner allocates what plan_memory() predicts, and never more") {
  const hd::Machine machine = hd::Machine::uniform(ranks, {"gpu"}, {});
  const std::vector<std::string> whole{"1f1b", "gpipe", "dapple", "kfkb"};
  const std::vector<std::string> split{"zb-h1", "zb-h2", "2bp-1f1b", "2bp-gpipe"};
  std::size_t equal = 0, above = 0, shares = 0, buckets = 0;
  double all_predicted = 0, all_allocated = 0;
  for (std::uint64_t seed = 0; seed < hd::test::cases(400, 4000); ++seed) {
    std::mt19937_64 random(seed);
    const bool splits = seed % 2 == 1;
    const std::string name = splits ? split[seed / 2 % 4] : whole[seed / 2 % 4];
    const bool equal_parts = seed % 5 != 0;
    const hd::plan::Profile profile = random_profile(random, equal_parts);
    hd::Plan plan = random_plan(random, name, static_cast<std::int64_t>(1 + random() % 5));
    if (name == "kfkb") plan.microbatches *= 2;  // whole groups of two
    bool changed = false;
    if (seed % 7 < 3) {
      plan.buckets = static_cast<int>(2 + random() % 3);
      if (random() % 2 == 0) plan.sharding = "zero1";
      changed = plan.bucket_count() > 1;
      if (!changed) plan.sharding.clear();  // then stages sum without a buffer
    }
    if (seed % 3 == 2) {
      for (hd::PlanStage& stage : plan.stages)
        if (!splits) stage.recompute = random() % 2 == 0;
      plan.casts.resize(plan.stages.size() - 1);
      for (auto& cast : plan.casts)
        if (random() % 2 == 0)
          cast = random() % 2 == 0 ? hd::Codec{.type = hd::Scalar::f16}
                                   : hd::Codec{.type = hd::Scalar::i8, .block = 16};
      changed = true;
    }
    const hp::PlanProblem problem(profile, machine,
                                  {.batch = plan.batch(), .state_per_parameter = state});
    const std::vector<hd::Bytes> predicted = hp::plan_memory(plan, problem);
    const std::vector<hd::Bytes> allocated = buffers_of(plan, profile);
    INFO("seed " << seed << ": " << plan);
    for (std::size_t r = 0; r < predicted.size(); ++r) {
      INFO("rank " << r << ": predicted " << predicted[r] << ", allocated " << allocated[r]);
      CHECK(allocated[r] <= predicted[r]);
      if (!splits && !changed && equal_parts) CHECK(allocated[r] == predicted[r]);
      ++(allocated[r] == predicted[r] ? equal : above);
      all_predicted += static_cast<double>(predicted[r]);
      all_allocated += static_cast<double>(allocated[r]);
    }
    buckets += plan.bucket_count() > 1 ? 1u : 0u;
    for (const hd::PlanStage& stage : plan.stages) shares += stage.ranks.size() > 1 ? 1u : 0u;
  }
  INFO(equal << " ranks equal, " << above << " below; " << all_allocated << " of "
             << all_predicted);
  CHECK(shares >= 50);
  CHECK(buckets >= 50);
  CHECK(equal > above);
  CHECK(all_allocated >= 0.9 * all_predicted);
}

}  // namespace test_plan_memory
