// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ParameterShards: the weights, gradients and optimiser's data of one stage, divided over its
/// replicas. They are gathered and summed when the stage computes. It is for stages of models.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/collective/internal/joiner.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/kernel/adam.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/parameter_sharding.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/tensor/shard_group.hpp>
#include <heddle/tensor/shard_place.hpp>

namespace heddle::inline v0 {

/// The memory that the stages of one rank share: the group of replicas, how they divide data, and
/// room for the complete weights and gradients of the one stage that computes.
template <std::floating_point Real, kernel::ExecutionSpace Exec>
struct ShardRoom {
  std::shared_ptr<const ShardGroup> group = std::make_shared<ShardGroup>();  ///< the replicas
  ParameterSharding sharding = {};  ///< the levels of the division
  /// The complete weights of the largest stage. Empty if every stage has its own memory.
  Kokkos::View<Real*, typename Exec::memory_space> weights = {};
  /// The complete gradients of the largest stage. Empty if every stage has its own memory.
  Kokkos::View<Real*, typename Exec::memory_space> gradients = {};
  const void* holder = nullptr;  ///< the stage whose weights the room holds
};

/// The n parameters of a stage, divided among its replicas. The optimiser's share is n_w of them,
/// weights are stored in shares of n_v elements and gradients in shares of n_g. With one rank all
/// three are n, and there is no communication.
///
/// Elements stored: 3 n_w (weights, mean, square), n_v more if the weights are divided among fewer
/// ranks, n_g of gradients, and a second copy if there is one. All stages of a rank share one
/// ShardRoom, which holds the complete weights and gradients while a stage computes: n elements of
/// the largest stage for each. kept() does not count the ShardRoom.
///
/// All replicas make the same calls in the same order. Kernels and messages follow the order of the
/// given instance. Calls that gather data return when the data have arrived.
template <std::floating_point Real, kernel::ExecutionSpace Exec>
class ParameterShards {
 public:
  using Vector = Kokkos::View<Real*, typename Exec::memory_space>;  ///< a vector
  using Room = ShardRoom<Real, Exec>;                               ///< shared by the stages

  /// Constructs the shards of `count` parameters, which are 0. All stages of a rank must get the
  /// same `room`. Without a room, the stage has one replica.
  /// @throws contract_error if the room has no group, or if its sharding is invalid.
  ParameterShards(std::size_t count, const Exec& exec, std::shared_ptr<Room> room = nullptr)
      : m_count(count), m_room(room ? std::move(room) : std::make_shared<Room>()) {
    using enum ShardLevel;
    constexpr const char* where = "heddle::ParameterShards";
    expects(m_room->group != nullptr, [] {
      return ErrorInfo{where, "the room has no replicas", "ShardRoom::group is null",
                       "leave the default, which is one replica"};
    });
    const ParameterSharding& sharding = m_room->sharding;
    impl::expect_enumerator(where, "weights", sharding.weights, world);
    impl::expect_enumerator(where, "gradients", sharding.gradients, world);
    if (sharding.backward) impl::expect_enumerator(where, "backward", *sharding.backward, world);
    if (sharding.weight_codec) check(*sharding.weight_codec);
    if (sharding.gradient_codec) check(*sharding.gradient_codec);
    expects(
        sharding.weights <= sharding.gradients &&
            (!sharding.backward || *sharding.backward <= sharding.weights),
        [&] {
          return ErrorInfo{
              where,
              "the shards of the gradients or of the second copy do not fit those of the weights",
              text("weights by ", sharding.weights, ", gradients by ", sharding.gradients),
              "divide gradients at least as finely as weights, and a second copy at most as "
              "finely"};
        });
    m_masters = make("heddle::tensor::masters", exec, world);
    m_mean = make("heddle::tensor::mean", exec, world);
    m_square = make("heddle::tensor::square", exec, world);
    m_gradients = make("heddle::tensor::gradients", exec, sharding.gradients);
    m_weights = alone(sharding.weights) ? m_masters
                                        : make("heddle::tensor::weights", exec, sharding.weights);
    if (sharding.backward) m_backward = make("heddle::tensor::backward", exec, *sharding.backward);
    if (travels(sharding.weights)) grow("heddle::tensor::room_weights", m_room->weights);
    if (travels(sharding.gradients)) grow("heddle::tensor::room_gradients", m_room->gradients);
  }

  /// Moves the memory. Copies are not possible, because they would share it.
  ParameterShards(ParameterShards&&) = default;
  /// Moves the shards.
  ParameterShards& operator=(ParameterShards&&) = default;

  /// Returns the number of parameters, n.
  [[nodiscard]] std::size_t count() const { return m_count; }
  /// Returns the optimiser's share of the parameters.
  [[nodiscard]] Share owned() const { return share(ShardLevel::world); }
  /// Returns this rank's weights in the optimiser, owned().count elements.
  [[nodiscard]] Real* weights() const { return m_masters.data(); }
  /// Returns the gradients of the weights(). After update() they are sums over all replicas, before
  /// it partial sums.
  [[nodiscard]] Real* gradients() const {
    return m_gradients.data() +
           m_room->group->within(m_room->sharding.gradients, ShardLevel::world, m_count).first;
  }
  /// Returns the gradients that backward passes have added on this rank. They may be more than the
  /// optimiser's share, gradients(), which is a part of them. The gradients of another copy of the
  /// stage may be added to them before update().
  [[nodiscard]] std::span<Real> added_gradients() const {
    return {m_gradients.data(), m_gradients.size()};
  }
  /// Returns the mean of the gradients, which the optimiser keeps.
  [[nodiscard]] Real* mean() const { return m_mean.data(); }
  [[nodiscard]] Real* square() const { return m_square.data(); }  ///< mean square of the gradients

  /// Returns the number of steps of the optimiser. It may be set when the optimiser's data are
  /// restored.
  [[nodiscard]] std::uint64_t& steps() { return m_steps; }

  /// Returns the bytes that this stage stores, without the room.
  [[nodiscard]] Bytes kept() const {
    const ParameterSharding& sharding = m_room->sharding;
    return sizeof(Real) * (3 * m_masters.size() + m_gradients.size() + m_backward.size() +
                           (alone(sharding.weights) ? 0 : m_weights.size()));
  }
  /// Returns the traffic that one replica sends in a step of `passes` forward and backward passes.
  [[nodiscard]] ShardPlace::Traffic step_traffic(std::size_t passes) const {
    return m_room->group->step_traffic(m_room->sharding, m_count, sizeof(Real), passes);
  }

  /// Distributes weights() to the shares of the weights, after every replica has written its own
  /// weights().
  void started(const Exec& exec) { publish(exec); }

  /// Returns all weights for a forward pass. They are valid until another stage of the rank gathers
  /// its own.
  [[nodiscard]] Real* forward_weights(const Exec& exec) {
    const ParameterSharding& how = m_room->sharding;
    if (!travels(how.weights)) return m_weights.data();
    gather(exec, m_weights, how.weights, how.weight_codec);
    if (how.backward)
      Kokkos::deep_copy(exec, m_backward, part(m_room->weights, share(*how.backward)));
    return m_room->weights.data();
  }
  /// Gathers the weights for a backward pass after the stage's forward pass of the same step.
  [[nodiscard]] Real* backward_weights(const Exec& exec) {
    const ParameterSharding& how = m_room->sharding;
    if (!travels(how.weights)) return m_weights.data();
    if (how.backward)
      gather(exec, m_backward, *how.backward, {});
    else
      gather(exec, m_weights, how.weights, how.weight_codec);
    return m_room->weights.data();
  }
  /// Returns all weights. If the room still holds those of the stage's last pass, nothing is sent;
  /// otherwise they are gathered as for a backward pass.
  [[nodiscard]] Real* last_weights(const Exec& exec) {
    return m_room->holder == this ? m_room->weights.data() : backward_weights(exec);
  }

  /// Prepares the gradients before the first backward pass of a step.
  void zero_gradients(const Exec& exec) {
    Kokkos::deep_copy(exec, m_gradients, Real(0));
    m_summed = false;
  }
  /// Returns the room to which a backward pass adds the gradients of all parameters; add() follows.
  [[nodiscard]] Real* begin_gradients(const Exec& exec) {
    if (!travels(m_room->sharding.gradients)) return m_gradients.data();
    const auto all = part(m_room->gradients, {0, m_count});
    Kokkos::deep_copy(exec, all, Real(0));
    return all.data();
  }
  /// Sums the gradients of a backward pass over the replicas that divide gradients among
  /// themselves.
  void add(const Exec& exec);

  /// Sums gradients() over all replicas. The update() after it does not sum them again, so that
  /// they may be changed between both, for example by the gradients of a tied parameter.
  void sum_gradients(const Exec& exec);
  /// Performs one step of Adam with the gradients summed over all replicas, and sends the new
  /// weights to the shares of the weights.
  void update(const Exec& exec, const kernel::AdamOptions& options);

 private:
  [[nodiscard]] Share share(ShardLevel level) const { return m_room->group->share(level, m_count); }
  /// Returns true if the data of a level are not all on this rank.
  [[nodiscard]] bool travels(ShardLevel level) const { return m_room->group->ranks(level) > 1; }
  /// Returns true if the share at a level is the optimiser's share.
  [[nodiscard]] bool alone(ShardLevel level) const {
    return m_room->group->ranks(level) == m_room->group->ranks(ShardLevel::world);
  }

  [[nodiscard]] Vector make(const std::string& label, const Exec& exec, ShardLevel level) const {
    return Vector(Kokkos::view_alloc(exec, label), share(level).count);
  }
  void grow(const std::string& label, Vector& room) const {
    if (room.size() < m_count)
      room = Vector(Kokkos::view_alloc(Kokkos::WithoutInitializing, label), m_count);
  }
  [[nodiscard]] static Vector part(const Vector& of, const Share& share) {
    return Kokkos::subview(of, std::pair(share.first, share.end()));
  }

  /// Gathers all weights from the shares of a level into the room.
  void gather(const Exec& exec, const Vector& shares, ShardLevel level,
              const std::optional<Codec>& codec);

  /// Sends the optimiser's weights to the shares of the weights.
  void publish(const Exec& exec);

  std::size_t m_count;
  std::shared_ptr<Room> m_room;
  Vector m_masters, m_mean, m_square, m_gradients, m_weights, m_backward;
  std::uint64_t m_steps = 0;
  bool m_summed = false;  ///< true if gradients() are sums over all replicas
};

// Apart from the class, and not inline, so that a source of its own may hold them: they take a
// compiler some time.

template <std::floating_point Real, kernel::ExecutionSpace Exec>
void ParameterShards<Real, Exec>::add(const Exec& exec) {
  const ParameterSharding& how = m_room->sharding;
  if (!travels(how.gradients)) return;
  m_room->group->reduce(exec, m_room->gradients.data(), m_count, ShardLevel::rank, how.gradients,
                        how.gradient_codec);
  const auto mine = part(m_room->gradients, share(how.gradients));
  Kokkos::parallel_for(
      "heddle::tensor::add_gradients",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, mine.size()),
      impl::JoinTo<Sum, Real>{{}, m_gradients.data(), mine.data(), m_gradients.data()});
}

template <std::floating_point Real, kernel::ExecutionSpace Exec>
void ParameterShards<Real, Exec>::sum_gradients(const Exec& exec) {
  const ParameterSharding& how = m_room->sharding;
  m_room->group->reduce(exec, m_gradients.data(), m_count, how.gradients, ShardLevel::world,
                        how.gradient_codec);
  m_summed = true;
}

template <std::floating_point Real, kernel::ExecutionSpace Exec>
void ParameterShards<Real, Exec>::update(const Exec& exec, const kernel::AdamOptions& options) {
  kernel::impl::expect_valid(options,
                             "heddle::ParameterShards::update");  // before anything is sent
  if (!m_summed) sum_gradients(exec);
  m_summed = false;
  const kernel::Vector<const Real, Exec> sum(gradients(), owned().count);
  kernel::adam_update(exec, options, ++m_steps, sum, m_mean, m_square, m_masters);
  publish(exec);
}

template <std::floating_point Real, kernel::ExecutionSpace Exec>
void ParameterShards<Real, Exec>::gather(const Exec& exec, const Vector& shares, ShardLevel level,
                                         const std::optional<Codec>& codec) {
  Kokkos::deep_copy(exec, part(m_room->weights, share(level)), shares);
  m_room->group->gather(exec, m_room->weights.data(), m_count, level, ShardLevel::rank, codec);
  m_room->holder = this;
}

template <std::floating_point Real, kernel::ExecutionSpace Exec>
void ParameterShards<Real, Exec>::publish(const Exec& exec) {
  const ParameterSharding& how = m_room->sharding;
  if (m_room->holder == this) m_room->holder = nullptr;
  if (alone(how.weights)) return;
  const Share mine = m_room->group->within(how.weights, ShardLevel::world, m_count);
  Kokkos::deep_copy(exec, part(m_weights, mine), m_masters);
  m_room->group->gather(exec, m_weights.data(), m_count, ShardLevel::world, how.weights,
                        how.weight_codec);
}

}  // namespace heddle::inline v0
