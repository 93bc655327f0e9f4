// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Training the GPT of gpt.hpp: its stages for a Runner, the batches of a step, and the same
/// training on one rank without any schedule, which is what the distributed runs are compared with.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/comm/planned_mesh.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/heddle.hpp>
#include <heddle/kernel/residual.hpp>
#include <heddle/schedule/pass/group.hpp>

#include "gpt.hpp"
#include "gpt_lengths.hpp"
#include "gpt_packed.hpp"
#include "host_copy.hpp"
#include "space.hpp"
#include "text.hpp"

namespace examples {

struct GptTraining {
  GptConfig model = {};
  int microbatches = 8;  ///< per replica and step
  /// The sequences of each microbatch, if they differ. model.sequences is the largest number.
  std::vector<std::int64_t> sizes = {};
  int replicas = 1;
  std::uint64_t seed = 1;
  heddle::kernel::AdamOptions optimizer = {};
  Lengths lengths = Lengths::equal;  ///< of the sequences; the context is the longest

  /// Sequences per replica and step.
  [[nodiscard]] int batch() const {
    if (sizes.empty()) return microbatches * model.sequences;
    return static_cast<int>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
  }
};

/// Returns the lengths of a replica's sequences in step `step`.
[[nodiscard]] inline std::vector<std::int64_t> batch_lengths(const GptTraining& training, int step,
                                                             int replica) {
  std::vector<std::int64_t> lengths;
  for (int i = 0; i < training.batch(); ++i)
    lengths.push_back(draw_length(training.lengths, training.model.context, training.seed, step,
                                  replica * training.batch() + i));
  return lengths;
}

template <class Real>
using Gpt = heddle::Stages<GptStage<Real>>;

/// The axes of a mesh along which ranks hold the same parameters, as far as the mesh has them.
inline constexpr std::array<std::string_view, 3> replica_axes = {"data", "ring", "heads"};

/// Returns the StagesOptions::shard_axes of a model with a `room`: those of replica_axes that
/// `mesh` has.
[[nodiscard]] inline std::vector<std::string> shard_axes(const heddle::MeshShape& mesh) {
  std::vector<std::string> axes;
  for (const heddle::MeshShape::Axis& axis : mesh.axes())
    if (std::ranges::find(replica_axes, axis.name) != replica_axes.end()) axes.push_back(axis.name);
  return axes;
}

/// The model for a Runner on a mesh. Where the mesh has an axis "tensor", the ranks along it divide
/// every stage: `line` is theirs. Where it has axes "ring" and "heads", the ranks along them divide
/// the sequences: `sequence` is theirs. Where there is a `room`, the ranks along shard_axes() of
/// the mesh, which `options` name, divide the parameters as it says, and sum gradients themselves.
/// With shapes `packed` a step takes packed sequences.
template <class Real>
[[nodiscard]] Gpt<Real> make_gpt(const GptTraining& training, heddle::StagesOptions options = {},
                                 const typename GptStage<Real>::Line& line = {},
                                 std::shared_ptr<typename GptStage<Real>::Room> room = nullptr,
                                 const typename GptStage<Real>::Sequence& sequence = {},
                                 const std::vector<GptBlockShape>& packed = {}) {
  if (line.size() > 1) options.shard_axes.emplace_back("tensor");
  return Gpt<Real>(
      training.model.layers,
      [training, line, room, sequence, packed](int first, int last) {
        return GptStage<Real>(training.model, first, last, training.seed, training.optimizer, {},
                              line, room, sequence, packed);
      },
      std::move(options));
}

/// Returns the tokens of step `step` for one replica. Runner::step takes them together with
/// weight() and GptTraining::sizes. They depend on the number of the sequence only, not on the
/// microbatch that it is in.
[[nodiscard]] inline std::vector<std::uint8_t> batch(const GptTraining& training, const Text& text,
                                                     int step, int replica) {
  return text.microbatch(static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(replica),
                         static_cast<std::size_t>(training.batch()),
                         static_cast<std::size_t>(training.model.context), training.seed);
}

/// Returns the tokens of the sequences [begin, end) of every microbatch of a step.
[[nodiscard]] inline std::vector<std::uint8_t> batch_of(const GptTraining& training,
                                                        const Text& text, int step,
                                                        heddle::SampleRange range) {
  const std::vector<std::uint8_t> all = batch(training, text, step, 0);
  const auto each = static_cast<std::int64_t>(training.model.context) + 1;
  std::vector<std::uint8_t> own;
  for (std::int64_t m = 0; m < training.microbatches; ++m) {
    const std::int64_t first = m * training.model.sequences;
    own.insert(own.end(), all.begin() + (first + range.begin) * each,
               all.begin() + (first + range.end) * each);
  }
  return own;
}

/// The model for a Runner on a PlannedMesh. Each rank holds what the plan of the mesh gives it; if
/// that has a sharding, the ranks with the same weights divide them, and sum gradients themselves:
/// `options` must not ask the library to sum then. The plan may change between two steps, but
/// `sequence` stays.
template <class Real>
[[nodiscard]] Gpt<Real> make_planned_gpt(const GptTraining& training,
                                         heddle::StagesOptions options = {},
                                         const typename GptStage<Real>::Sequence& sequence = {}) {
  if (options.gradient_sum == heddle::GradientSum::ring)
    options.gradient_sum = heddle::GradientSum::stages;
  const auto make = [training, sequence](const heddle::StagePlace& place) {
    const heddle::PlannedMesh& mesh = *place.mesh;
    std::shared_ptr<typename GptStage<Real>::Room> room;
    if (const heddle::Plan& plan = mesh.plan(); !plan.sharding.empty()) {
      room = std::make_shared<typename GptStage<Real>::Room>();
      room->sharding = heddle::ParameterSharding::find(plan.sharding);
      room->group = std::make_shared<heddle::ShardGroup>(
          mesh.data(), plan.shard_node == 0 ? mesh.data().size() : plan.shard_node,
          std::max(plan.shard_pair, 1));
    }
    GptConfig config = training.model;
    config.sequences = static_cast<int>(mesh.samples().size());  // of the group
    return GptStage<Real>(config, place.layers.first, place.layers.last, training.seed,
                          training.optimizer, {}, typename GptStage<Real>::Line(mesh.tensor()),
                          room, sequence);
  };
  return Gpt<Real>(training.model.layers, make, std::move(options));
}

/// The weight of the loss of a microbatch with all sequences: the losses' sum is then the mean over
/// all tokens of a step.
[[nodiscard]] inline double weight(const GptTraining& training) {
  return training.model.sequences / static_cast<double>(training.batch() * training.replicas);
}

/// Returns sequence `index` of a replica's batch(): its tokens and the one behind them.
[[nodiscard]] inline std::span<const std::uint8_t> batch_sequence(
    std::span<const std::uint8_t> tokens, int context, std::size_t index, std::int64_t length) {
  return tokens.subspan(index * (static_cast<std::size_t>(context) + 1),
                        static_cast<std::size_t>(length) + 1);
}

/// Returns the same training in microbatches of one sequence, if they had unequal sizes.
[[nodiscard]] inline GptTraining in_equal_microbatches(GptTraining training) {
  if (training.sizes.empty()) return training;
  training.microbatches = training.batch();
  training.model.sequences = 1;
  training.sizes.clear();
  return training;
}

/// The whole model on one rank, trained microbatch after microbatch: the reference. If
/// microbatches have unequal sizes, or sequences unequal lengths, it trains one sequence after
/// another.
template <class Real>
class SerialGpt {
 public:
  explicit SerialGpt(const GptTraining& training)
      : m_training(in_equal_microbatches(training)),
        m_stage(m_training.model, 0, training.model.layers, training.seed, training.optimizer, {},
                {}, nullptr, {}, shapes(m_training)),
        m_saved("examples::saved", m_stage.saved_size()),
        m_delta("examples::delta", m_stage.delta_size()) {}

  /// One step over the microbatches of all replicas, in order, the first of which is replica
  /// `first` of the text. Returns the loss.
  double step(const Text& text, int number, int first = 0) {
    begin(text, number, first);
    m_stage.zero_gradients();
    double loss = 0;
    for (std::size_t m = 0; m < m_stage.microbatches(); ++m) {
      const heddle::Item item{static_cast<std::uint32_t>(m)};
      m_stage.forward({.item = item, .saved = m_saved.data()});
      m_stage.backward_input({.item = item, .saved = m_saved.data(), .delta = m_delta.data()});
      m_stage.backward_weight({.item = item, .saved = m_saved.data(), .delta = m_delta.data()});
      m_stage.fence();
      loss += m_stage.loss(item);
    }
    if (const auto tied = m_stage.tied_parameters(); !tied.empty()) {
      using Exec = typename GptStage<Real>::execution_space;
      const auto copy = [&](std::size_t i) {
        return heddle::kernel::Matrix<Real, Exec>(m_stage.gradients() + tied[i].first, 1,
                                                  tied[i].count);
      };
      const Exec exec;
      heddle::kernel::residual_add(exec, copy(1), copy(0));
      Kokkos::deep_copy(exec, copy(1), copy(0));
      exec.fence("examples::tied");
    }
    m_stage.update();
    m_stage.fence();
    return loss;
  }

  [[nodiscard]] GptStage<Real>& stage() { return m_stage; }
  /// Those of the last step.
  [[nodiscard]] std::vector<Real> gradients() {
    return copy_to_host<Space>(m_stage.gradients(), m_stage.parameter_count());
  }

 private:
  using Buffer = Kokkos::View<Real*, typename GptStage<Real>::memory_space>;
  using Packed = GptPacked<Real, typename GptStage<Real>::execution_space>;

  /// One sequence alone.
  [[nodiscard]] static Packed alone(const GptTraining& training, std::int64_t length) {
    return Packed(training.model, typename GptStage<Real>::Line(), {}, {&length, 1}, false);
  }
  [[nodiscard]] static std::vector<GptBlockShape> shapes(const GptTraining& training) {
    if (training.lengths == Lengths::equal) return {};
    return {alone(training, training.model.context).shape};
  }

  void begin(const Text& text, int number, int first) {
    std::vector<std::uint8_t> tokens;
    std::vector<std::int64_t> lengths;
    for (int d = first; d < first + m_training.replicas; ++d) {
      const auto each = batch(m_training, text, number, d);
      const auto its = batch_lengths(m_training, number, d);
      tokens.insert(tokens.end(), each.begin(), each.end());
      lengths.insert(lengths.end(), its.begin(), its.end());
    }
    if (m_training.lengths == Lengths::equal) return m_stage.begin_step(tokens, weight(m_training));
    const auto all = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    std::vector<Packed> sequences;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const auto sequence = batch_sequence(tokens, m_training.model.context, i, lengths[i]);
      sequences.push_back(alone(m_training, lengths[i]));
      sequences.back().take({&sequence, 1}, all);
    }
    m_stage.begin_step(sequences);
  }

  GptTraining m_training;
  GptStage<Real> m_stage;
  Buffer m_saved;
  Buffer m_delta;
};

/// One value per parameter of the whole model, in its order, on every rank: `values(stage)` points
/// to those of a stage, in its memory. `first` is whether this rank is the first of those with the
/// same parameters. Collective over the transport.
template <class Real, class Values>
[[nodiscard]] std::vector<Real> gather(Gpt<Real>& model, const GptConfig& config,
                                       heddle::MpiTransport& transport, bool first,
                                       Values&& values) {
  struct Piece {
    heddle::LayerRange blocks;
    GptPart part;
    heddle::Share own;
  };
  std::vector<Piece> pieces;
  std::vector<Real> mine;
  model.for_each([&](heddle::Stage, GptStage<Real>& stage) {
    const bool divided = stage.owned().count < stage.shards().count();
    if (!first && !divided) return;
    pieces.push_back({stage.blocks(), stage.part(), stage.owned()});
    const auto host = copy_to_host<Space>(values(stage), stage.parameter_count());
    mine.insert(mine.end(), host.begin(), host.end());
  });
  const auto everyones = heddle::all_gather<Piece>(transport, pieces);
  const auto data = heddle::all_gather<Real>(transport, mine);
  const GptTable whole(config, 0, config.layers);
  std::vector<Real> values_of_all(whole.size);
  for (std::size_t r = 0; r < everyones.size(); ++r) {
    const Real* next = data[r].data();
    for (const Piece& piece : everyones[r]) {
      const GptTable part(config, piece.blocks.first, piece.blocks.last, piece.part);
      for_each_owned(part, piece.own, whole,
                     [&](std::size_t at, std::size_t place) { values_of_all[place] = next[at]; });
      next += piece.own.count;
    }
  }
  return values_of_all;
}

/// The same over a mesh, whose ranks all have stages.
template <class Real, class Values>
[[nodiscard]] std::vector<Real> gather(Gpt<Real>& model, heddle::DeviceMesh& mesh,
                                       Values&& values) {
  GptConfig config;
  model.for_each([&](heddle::Stage, GptStage<Real>& stage) { config = stage.config(); });
  const bool first = std::ranges::all_of(replica_axes, [&](std::string_view axis) {
    return !mesh.shape().has(axis) || mesh.coordinate(axis) == 0;
  });
  return gather<Real>(model, config, mesh.transport(), first, std::forward<Values>(values));
}

/// `difference`, or infinity where it is not a number: that is the largest difference of all, and
/// a maximum keeps it.
[[nodiscard]] inline double finite_or_infinity(double difference) {
  return std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity();
}

/// How far gradients are apart: the largest of |a - b| over a tensor, divided by
/// max(|b| of the tensor, 1e-3 |b| of the model), all in the maximum norm; over all tensors.
template <class Real>
struct GradientDifference {
  double worst = 0;
  std::string where;  ///< the name of that tensor

  GradientDifference(const std::vector<Real>& ours, const std::vector<Real>& reference,
                     const std::vector<GptTensor>& tensors) {
    double model = 0;
    for (std::size_t i = 0; i < ours.size(); ++i)
      model = std::max(model, std::abs(static_cast<double>(reference[i])));
    for (const GptTensor& tensor : tensors) {
      double size = 0;
      double apart = 0;
      for (std::size_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
        const auto theirs = static_cast<double>(reference[i]);
        size = std::max(size, std::abs(theirs));
        apart =
            std::max(apart, finite_or_infinity(std::abs(static_cast<double>(ours[i]) - theirs)));
      }
      const double relative = finite_or_infinity(apart / std::max(size, 1e-3 * model));
      if (relative <= worst) continue;
      worst = relative;
      where = tensor.name;
    }
  }
};

}  // namespace examples
