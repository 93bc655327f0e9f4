// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SequenceLine: the ranks that a sequence is sharded over, and the method of their attention. It
/// is for contexts that do not fit one device. Compare TensorLine, whose ranks divide the layers.

#include <concepts>
#include <cstddef>
#include <memory>
#include <utility>

#include <heddle/collective/internal/instance_in.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/units.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/schedule/attention/head_exchange.hpp>
#include <heddle/sequence/impl/attention_performer.hpp>
#include <heddle/sequence/impl/head_exchange.hpp>
#include <heddle/sequence/impl/sequence_workspace.hpp>
#include <heddle/sequence/sequence_axes.hpp>
#include <heddle/sequence/sequence_options.hpp>
#include <heddle/sequence/sequence_shape.hpp>
#include <heddle/tensor/internal/exchange_performer.hpp>

namespace heddle::inline v0 {

/// The ranks that attention over a sharded sequence is computed by: U ranks of a heads axis times R
/// ranks of a ring axis. The ring axis deals the positions out by the order, and the heads axis
/// deals each of these shares out in even blocks; neither need divide. Every rank has the rows of
/// its positions, in ascending order.
///
/// All ranks must make the same calls in the same order. Copies share their scratch memory, so
/// calls through a line and its copies must not overlap. A line constructed without communicators
/// has one rank; it sends nothing and does not call MPI.
template <std::floating_point Real, kernel::ExecutionSpace Exec>
class SequenceLine : public SequenceAxes {
 public:
  using Matrix = kernel::Matrix<Real, Exec>;       ///< a matrix that is written
  using Input = kernel::Matrix<const Real, Exec>;  ///< a matrix that is read
  using Vector = kernel::Vector<Real, Exec>;       ///< a vector that is written

  /// Makes a line of one rank.
  SequenceLine() : SequenceAxes(scalar_of<Real>) {}

  /// Makes a line of the ranks of a mesh that differ on these two axes, see
  /// DeviceMesh::operator[]. The communicators outlive the line. All of these ranks make it
  /// together, and compare their options by a few short messages.
  /// @throws contract_error on every rank if methods or orders differ between ranks, if the method
  ///         cannot use the axes, or if an option of a rank is invalid.
  SequenceLine(const Communicator& heads, const Communicator& ring, SequenceOptions options = {})
      : SequenceAxes(scalar_of<Real>, heads, ring, std::move(options)) {}

  /// Returns the performer of ring_form(), which is kept with the ring axis. `kept` is what forward
  /// leaves for backward of the first sequence.
  template <class Performer>
  [[nodiscard]] Performer& ring_performer(const SequenceShape& shape, bool backward,
                                          Real* kept) const {
    return ring()->template attached<impl::AttentionPerformers>().template find<Performer>(
        method(shape), ring_form(shape, backward), kept);
  }

  /// Moves a matrix of all heads and this rank's rows to one of own_heads() and ring_rows(), or
  /// back if `to_tokens`. The columns are Q | K | V if `qkv`, and otherwise the heads of Q. Both
  /// matrices are dense. With several ranks on the heads axis only.
  void exchange(const Exec& exec, const SequenceShape& shape, bool qkv, bool to_tokens,
                const Real* from, Real* to) const {
    const schedule::HeadExchange wanted{.sequences = shape.sequences,
                                        .tokens = ring_positions(shape.context, ring_rank()).size(),
                                        .heads = shape.heads.heads,
                                        .kv_heads = shape.heads.kv_heads,
                                        .head_width = shape.heads.head_width,
                                        .qkv = qkv,
                                        .to_tokens = to_tokens};
    using MemorySpace = typename Exec::memory_space;
    // The array "from" is only read.
    heads()->template attached<impl::HeadExchanges>().run(
        impl::InstanceIn<Exec, MemorySpace>(exec), impl::exchange_space<MemorySpace>, wanted,
        scalar_of<Real>,
        {reinterpret_cast<std::byte*>(const_cast<Real*>(from)), reinterpret_cast<std::byte*>(to)},
        execute());
  }

  /// Returns the scratch memory, which this line shares with its copies.
  [[nodiscard]] impl::SequenceWorkspace<Real, Exec>& workspace() const { return *m_workspace; }

 private:
  std::shared_ptr<impl::SequenceWorkspace<Real, Exec>> m_workspace =
      std::make_shared<impl::SequenceWorkspace<Real, Exec>>();
};

}  // namespace heddle::inline v0
