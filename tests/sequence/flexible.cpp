// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// space: its own

// FlexSP executed: a batch is planned, each group computes attention over its sequences along a
// SequenceLine of its own communicator, and gradients that are weighted by tokens equal those of
// one rank.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/sequence.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>
#include <heddle/systems/flexsp/sequence_costs.hpp>
#include <heddle/systems/flexsp/sequence_groups.hpp>

#include "support/cases.hpp"
#include "support/sequence_case.hpp"
#include "support/world.hpp"

namespace test_flexible {

namespace hd = heddle;
using namespace hd::test::sequence;
using Line = hd::SequenceLine<double, Exec>;

namespace {

constexpr std::size_t width = 5;  ///< columns of a token

/// Q | K | V = x W, the output y is attention, and the loss of a token is |y|^2 / 2.
class Model {
 public:
  Model() : m_weights(random<double>("weights", width, shape(0).qkv_columns())) {}

  [[nodiscard]] static hd::SequenceShape shape(std::int64_t context) {
    return {1, context, {4, 4, 2}};
  }
  [[nodiscard]] Real2<double> no_gradient() const {
    return Real2<double>("gradient", m_weights.extent(0), m_weights.extent(1));
  }
  /// Adds to the gradient of W `weight` times those of the losses of this rank's tokens.
  void add(const Line& line, std::size_t sequence, std::int64_t length, double weight,
           const Real2<double>& gradient) const {
    const hd::SequenceShape shape = Model::shape(length);
    const Real2<double> x =
        rows_of(random<double>(hd::text("x", sequence), static_cast<std::size_t>(length), width), 1,
                line.positions(length));
    const std::size_t rows = x.extent(0);
    const Real2<double> qkv("qkv", rows, shape.qkv_columns()),
        qkv_grad("qkv_grad", rows, shape.qkv_columns()),
        output("output", rows, shape.heads.query_columns());
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < qkv.extent(1); ++c)
        for (std::size_t k = 0; k < width; ++k) qkv(r, c) += x(r, k) * m_weights(k, c);
    const Real1<double> saved("saved", line.saved_size(shape));
    hd::sequence_attention_forward(line, Exec{}, shape, qkv, saved, output);
    Exec{}.fence();
    const Real2<double> output_grad("output_grad", rows, output.extent(1));
    for (std::size_t i = 0; i < output.size(); ++i)
      output_grad.data()[i] = weight * output.data()[i];
    hd::sequence_attention_backward(line, Exec{}, shape, qkv, saved, output_grad, qkv_grad);
    Exec{}.fence();
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < qkv.extent(1); ++c)
        for (std::size_t k = 0; k < width; ++k) gradient(k, c) += x(r, k) * qkv_grad(r, c);
  }

 private:
  Real2<double> m_weights;
};

/// A plan for a random batch: short sequences, and one that needs all ranks or so.
hd::systems::SequencePlan plan_of(std::uint64_t seed) {
  const hd::Random random(seed, "flexible");
  hd::systems::SequenceCosts costs{hd::test::world_size(), 24, {}};
  double slower = 1;
  for (int degree = 1; degree <= costs.ranks; degree *= 2) {
    costs.degrees.push_back({degree, 0.01 * random.uniform(1), 1e-3 * slower / degree, 0});
    slower *= 1 + random.uniform(2 + static_cast<std::uint64_t>(degree));
  }
  const auto widest = static_cast<std::uint64_t>(costs.degrees.back().degree * 24);
  std::vector<std::int64_t> lengths{1 + static_cast<std::int64_t>(random.below(20, widest))};
  for (std::uint64_t i = 0; i < 3 + random.below(3, 6); ++i)
    lengths.push_back(1 + static_cast<std::int64_t>(random.below(30 + i, 24)));
  return hd::systems::plan_sequence_groups(lengths, costs);
}

}  // namespace

TEST_CASE("flexible: gradients of a batch in groups of several sizes equal those of one rank") {
  const Model model;
  const hd::Communicator world(MPI_COMM_WORLD);
  const hd::systems::SequenceGroups groups(world);
  std::set<int> degrees;
  for (const auto method : {hd::SequenceMethod::ulysses, hd::SequenceMethod::ring}) {
    std::map<int, Line> lines;  // by degree: made when a plan first has it, and kept
    for (std::uint64_t seed = 0; seed < hd::test::cases(6, 60); ++seed) {
      const hd::systems::SequencePlan plan = plan_of(seed);
      const Real2<double> serial = model.no_gradient(), ours = model.no_gradient();
      for (std::size_t s = 0; s < plan.lengths.size(); ++s)
        model.add(Line(), s, plan.lengths[s], 1 / static_cast<double>(plan.tokens()), serial);
      for (const hd::systems::SequenceMicrobatch& microbatch : plan.microbatches) {
        const hd::systems::SequenceGroup& group = microbatch.groups[groups.number_of(microbatch)];
        degrees.insert(group.degree);
        const bool ring = method == hd::SequenceMethod::ring;
        const hd::Communicator &all = groups.group(microbatch), &one = groups.level(0);
        const auto order = ring ? hd::ShardOrder::zigzag() : hd::ShardOrder::even();
        const Line& line = lines
                               .try_emplace(group.degree, ring ? one : all, ring ? all : one,
                                            hd::SequenceOptions{.method = method, .order = order})
                               .first->second;
        std::int64_t tokens = 0;
        for (const std::size_t s : group.sequences)
          tokens += line.positions(plan.lengths[s]).size();
        // Every rank has the mean over its own tokens, or nothing.
        const double weight = hd::systems::token_weight(tokens, plan.tokens());
        for (const std::size_t s : group.sequences)
          model.add(line, s, plan.lengths[s],
                    weight / static_cast<double>(std::max<std::int64_t>(tokens, 1)), ours);
      }
      MPI_Allreduce(MPI_IN_PLACE, ours.data(), static_cast<int>(ours.size()), MPI_DOUBLE, MPI_SUM,
                    world.get());
      INFO(method << ", seed " << seed << ": " << plan);
      check_close(ours, serial, serial);
    }
  }
  // Some rank is in a group of each size at some time.
  for (int degree = 1; degree <= hd::test::world_size(); degree *= 2) {
    int found = degrees.contains(degree) ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_INT, MPI_MAX, world.get());
    CHECK(found == 1);
  }
}

}  // namespace test_flexible
