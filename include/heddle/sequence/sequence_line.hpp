// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SequenceLine: the ranks that a sequence is sharded over, and the method of their attention. It
/// is for contexts that do not fit one device. Compare TensorLine, whose ranks divide the layers.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/kernel/block_attention.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/shard_order.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/sequence_choice.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/attention/head_exchange.hpp>
#include <heddle/schedule/sequence_method.hpp>
#include <heddle/sequence/impl/attention_performer.hpp>
#include <heddle/sequence/impl/head_exchange.hpp>
#include <heddle/sequence/impl/prediction_hash.hpp>
#include <heddle/sequence/impl/ring_performer.hpp>
#include <heddle/sequence/impl/rsa_performer.hpp>
#include <heddle/sequence/impl/sequence_workspace.hpp>
#include <heddle/sequence/sequence_explanation.hpp>
#include <heddle/sequence/sequence_options.hpp>
#include <heddle/sequence/sequence_shape.hpp>

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
class SequenceLine {
 public:
  using Matrix = kernel::Matrix<Real, Exec>;       ///< a matrix that is written
  using Input = kernel::Matrix<const Real, Exec>;  ///< a matrix that is read
  using Vector = kernel::Vector<Real, Exec>;       ///< a vector that is written

  /// Makes a line of one rank.
  SequenceLine() = default;

  /// Makes a line of the ranks of a mesh that differ on these two axes, see
  /// DeviceMesh::operator[]. The communicators outlive the line. All of these ranks make it
  /// together, and compare their options by a few short messages.
  /// @throws contract_error on every rank if methods or orders differ between ranks, or if the
  ///         method cannot use the axes.
  SequenceLine(const Communicator& heads, const Communicator& ring, SequenceOptions options = {})
      : m_heads(&heads), m_ring(&ring), m_options(std::move(options)) {
    expect_agreement();
    expect_axes();
    // Made here, because an error in one axis must reach the ranks of the other at any time.
    if (heads_size() > 1) static_cast<void>(heads.template attached<impl::HeadExchanges>());
    if (ring_size() > 1) static_cast<void>(ring.template attached<impl::AttentionPerformers>());
  }

  /// Number of ranks of the heads axis, U.
  [[nodiscard]] std::size_t heads_size() const { return size_of(m_heads); }
  /// This rank's number on the heads axis.
  [[nodiscard]] std::size_t heads_rank() const { return rank_of(m_heads); }
  /// Number of ranks of the ring axis, R.
  [[nodiscard]] std::size_t ring_size() const { return size_of(m_ring); }
  /// This rank's number on the ring axis.
  [[nodiscard]] std::size_t ring_rank() const { return rank_of(m_ring); }
  /// Number of ranks, U R.
  [[nodiscard]] std::size_t size() const { return heads_size() * ring_size(); }
  /// Returns the method of the options, which may be automatic.
  [[nodiscard]] SequenceMethod method() const { return m_options.method; }
  /// Returns the method of calls of this shape, which is not automatic. The first call for a shape
  /// predicts the times of the methods that the axes can serve; all ranks find the same.
  /// @throws contract_error if none of them can compute attention of this shape.
  [[nodiscard]] SequenceMethod method(const SequenceShape& shape) const {
    return choice(shape).method;
  }
  /// Returns the number of ways around the ring of calls of this shape, 1 or 2.
  /// @throws contract_error as method().
  [[nodiscard]] int ways(const SequenceShape& shape) const { return choice(shape).ways; }

  /// Returns the methods for attention of `shape` over as many ranks as this line has, with the
  /// bytes and messages of a rank and the times that simulate() predicts on `machine`: see
  /// plan::sequence_choice(). The ranks of the machine stand for the ranks of the line as in
  /// SequenceOptions. A method of these axes that saves more than SequenceOptions::saved_limit is
  /// refused. Sends no message.
  /// @throws contract_error if the machine has fewer ranks than the line, or as
  ///         plan::sequence_choice().
  [[nodiscard]] SequenceExplanation explain(const SequenceShape& shape,
                                            const Machine& machine) const {
    plan::AttentionWork work = m_options.work;
    work.sequences = std::max<std::size_t>(shape.sequences, 1);
    SequenceExplanation explanation{static_cast<int>(heads_size()), static_cast<int>(ring_size())};
    for (plan::SequenceCandidate& each : plan::sequence_choice(
             form_of(shape, size(), 1, m_options.trains, shape.heads), machine, work)) {
      const bool here = each.heads == explanation.heads_ranks &&
                        each.ring == explanation.ring_ranks &&
                        (each.method != SequenceMethod::usp || each.near == m_options.near);
      if (here && each.refused.empty()) each.refused = saves_too_much(shape, each);
      (here ? explanation.here : explanation.other).push_back(std::move(each));
    }
    std::ranges::stable_partition(
        explanation.here, [](const plan::SequenceCandidate& each) { return each.refused.empty(); });
    if (m_options.order == ShardOrder::zigzag() && !shape.mask.causal)
      explanation.note =
          "without a causal mask a zigzag balances nothing: every rank has equal work";
    return explanation;
  }
  /// Returns the order in which the ring axis divides the positions of a sequence.
  [[nodiscard]] const ShardOrder& order() const { return m_options.order; }
  /// Returns the options of the messages.
  [[nodiscard]] const ExecuteOptions& execute() const { return m_options.execute; }

  /// Returns the positions, out of `context`, that the ranks with the number `rank` on the ring
  /// axis have together. They are the ranks of one heads axis.
  [[nodiscard]] IndexSet ring_positions(std::int64_t context, std::size_t rank) const {
    return order().share(context, static_cast<std::int64_t>(ring_size()),
                         static_cast<std::int64_t>(rank));
  }
  /// Returns the positions of this rank, out of `context`.
  [[nodiscard]] IndexSet positions(std::int64_t context) const {
    const IndexSet of_ring = ring_positions(context, ring_rank());
    return of_ring.at(ShardOrder().share(of_ring.size(), static_cast<std::int64_t>(heads_size()),
                                         static_cast<std::int64_t>(heads_rank())));
  }
  /// Returns the number of rows of this rank's matrices: its positions in all sequences.
  [[nodiscard]] std::size_t rows(const SequenceShape& shape) const {
    return shape.sequences * static_cast<std::size_t>(positions(shape.context).size());
  }
  /// Returns the rows of a matrix sharded by heads: all positions of the ranks of this heads axis.
  [[nodiscard]] std::size_t ring_rows(const SequenceShape& shape) const {
    return shape.sequences *
           static_cast<std::size_t>(ring_positions(shape.context, ring_rank()).size());
  }

  /// Returns the heads that this rank computes: an even share of the K,V heads, and the heads of Q
  /// that they serve.
  /// @throws contract_error if there are more heads ranks than K,V heads.
  [[nodiscard]] kernel::AttentionHeads own_heads(const kernel::AttentionHeads& heads) const {
    kernel::expect_attention_heads(where, heads);
    expects(heads_size() <= heads.kv_heads, [&] {
      return ErrorInfo{where, "there are more heads ranks than K,V heads",
                       text(heads_size(), " heads ranks; expected at most ", heads.kv_heads),
                       "use the ring axis for the other ranks"};
    });
    return impl::share_of_heads(heads, heads_size(), heads_rank());
  }

  /// Returns the number of elements that forward saves for backward: the AttentionState of
  /// all rows and heads, and Q | K | V after the exchange if the heads axis has several ranks. If a
  /// rank has a fixed number of rows, it does not grow with the context. But the method rsa saves
  /// the output and all probabilities, and these grow with it.
  /// @throws contract_error as own_heads().
  [[nodiscard]] std::size_t saved_size(const SequenceShape& shape) const {
    const kernel::AttentionHeads own = own_heads(shape.heads);
    if (ring_size() == 1 || shape.context == 0)
      return saved_qkv_size(shape) + kernel::attention_state_size(own, ring_rows(shape));
    return saved_qkv_size(shape) + shape.sequences * ring_state_size(shape);
  }
  /// Returns the part of saved_size() that is Q | K | V.
  [[nodiscard]] std::size_t saved_qkv_size(const SequenceShape& shape) const {
    if (heads_size() == 1) return 0;
    const kernel::AttentionHeads own = own_heads(shape.heads);
    return ring_rows(shape) * (own.query_columns() + 2 * own.kv_columns());
  }

  /// Elements that forward leaves for backward of one sequence around a ring of several ranks. By
  /// the method rsa these are the output and all probabilities, which grow with the context. By the
  /// other methods they are a state; every piece of a rank's block has as much room as the longest
  /// one, so that messages can take each other's place.
  [[nodiscard]] std::size_t ring_state_size(const SequenceShape& shape) const {
    return kept_size(method(shape), ring_form(shape, false));
  }
  /// Returns the form of attention around the ring for one sequence, which is not empty.
  [[nodiscard]] schedule::AttentionForm ring_form(const SequenceShape& shape, bool backward) const {
    return form_of(shape, ring_size(), ways(shape), backward, own_heads(shape.heads));
  }
  /// Returns the performer of ring_form(), which is kept with the ring axis. `kept` is what forward
  /// leaves for backward of the first sequence.
  template <class Performer>
  [[nodiscard]] Performer& ring_performer(const SequenceShape& shape, bool backward,
                                          Real* kept) const {
    return m_ring->template attached<impl::AttentionPerformers>().template find<Performer>(
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
    m_heads->template attached<impl::HeadExchanges>().template run<Real>(exec, wanted, from, to,
                                                                         execute());
  }

  /// Compares a call between the ranks, at the contract level "communication".
  void check_call(const char* call, const SequenceShape& shape) const {
    const auto described = [&] { return CollectiveCall{call, {{"shape", text(shape)}}}; };
    if (m_heads != nullptr) check_agreement(*m_heads, described);
    if (m_ring != nullptr) check_agreement(*m_ring, described);
  }

  /// Calls `call`. If it throws, the ranks of both axes are told that this rank failed while
  /// `doing`; see heddle::abort_on_error(). So an error in a ring reaches also ranks that wait for
  /// an exchange of heads.
  template <class Call>
  void abort_on_error(const char* doing, Call&& call) const {
    report_on_error(call, [&](const char* reason) {
      if (heads_size() > 1)
        tell_failure(m_heads->template attached<impl::HeadExchanges>().transport(), doing, reason);
      if (ring_size() > 1)
        tell_failure(m_ring->template attached<impl::AttentionPerformers>().transport(), doing,
                     reason);
    });
  }

  /// Returns the scratch memory, which this line shares with its copies.
  [[nodiscard]] impl::SequenceWorkspace<Real, Exec>& workspace() const { return *m_workspace; }

 private:
  static constexpr const char* where = "heddle::SequenceLine";

  [[nodiscard]] static std::size_t size_of(const Communicator* axis) {
    return axis == nullptr ? 1 : static_cast<std::size_t>(axis->size());
  }
  [[nodiscard]] static std::size_t rank_of(const Communicator* axis) {
    return axis == nullptr ? 0 : +axis->rank();
  }

  /// Compares the calls along the heads axis, then along the ring axis. It does the second even if
  /// the first has failed, because the other ranks of the ring wait for this one and are told of
  /// the failure.
  void expect_agreement() const {
    const auto described = [&](std::string heads) {
      CollectiveCall call{where,
                          {{"method", text(method())},
                           {"order", text(order())},
                           {"ways", text(m_options.ways)},
                           {"heads axis", std::move(heads)}}};
      if (method() == SequenceMethod::automatic) {
        const auto& machine = m_options.machine;
        call.terms.push_back(
            {"machine and work",
             machine ? text(impl::prediction_hash(*machine, m_options.work)) : "none"});
        call.terms.push_back({"trains", m_options.trains ? "yes" : "no"});
        call.terms.push_back({"saved limit", text(m_options.saved_limit)});
        call.terms.push_back(
            {"near axis", m_options.near == plan::NearAxis::heads ? "heads" : "ring"});
      }
      return call;
    };
    std::optional<contract_error> differ;
    try {
      check_agreement(
          *m_heads, [&] { return described("compared"); }, ContractLevel::communication,
          execute().watchdog);
    } catch (const contract_error& error) {
      differ = error;
    }
    check_agreement(
        *m_ring, [&] { return described(differ ? "with ranks that differ" : "alike"); },
        ContractLevel::communication, execute().watchdog);
    if (differ) throw contract_error(*differ);
  }

  void expect_axes() const {
    const auto refuse = [&](const char* what, const char* remedy) {
      return ErrorInfo{where, what,
                       text("method ", method(), ", ", heads_size(), " heads ranks, ", ring_size(),
                            " ring ranks"),
                       remedy};
    };
    if (method() == SequenceMethod::automatic) {
      const auto& machine = m_options.machine;
      expects(machine.has_value() && machine->ranks() >= static_cast<int>(size()), [&] {
        return refuse(machine ? "the machine has fewer ranks than the line"
                              : "the method automatic needs a machine to predict times",
                      "set SequenceOptions::machine, for example to measure_links(mesh)");
      });
      return;
    }
    expects(method() != SequenceMethod::ulysses || ring_size() == 1, [&] {
      return refuse("ulysses uses no ring axis",
                    "choose the method usp, or a ring axis of one rank");
    });
    expects(
        method() == SequenceMethod::ulysses || method() == SequenceMethod::usp || heads_size() == 1,
        [&] {
          return refuse("the method uses no heads axis",
                        "choose the method usp, or a heads axis of one rank");
        });
    expects(m_options.ways == 1 || m_options.ways == 2, [&] {
      return ErrorInfo{where, "K,V blocks go around a ring in one way or in two",
                       text("expected 1 or 2, got ways = ", m_options.ways)};
    });
    expects(m_options.ways == 1 ||
                (method() != SequenceMethod::rsa && method() != SequenceMethod::token_ring),
            [&] {
              return refuse("blocks of this method go around in one way",
                            "set ways to 1, or choose the method ring");
            });
  }

  [[nodiscard]] schedule::AttentionForm form_of(const SequenceShape& shape, std::size_t ranks,
                                                int ways, bool backward,
                                                const kernel::AttentionHeads& heads) const {
    return {.ranks = static_cast<int>(ranks),
            .order = order(),
            .ways = ways,
            .mask = shape.mask,
            .backward = backward,
            .tokens = shape.context,
            .heads = static_cast<int>(heads.heads),
            .kv_heads = static_cast<int>(heads.kv_heads),
            .head_width = static_cast<int>(heads.head_width),
            .type = scalar_of<Real>};
  }
  [[nodiscard]] static std::size_t kept_size(SequenceMethod method,
                                             const schedule::AttentionForm& form) {
    return method == SequenceMethod::rsa ? impl::RsaPerformer<Real, Exec>::kept_size(form)
                                         : impl::RingPerformer<Real, Exec>::kept_size(form);
  }

  /// Why `candidate` is refused by the limit of what is saved, the same on all ranks; empty if it
  /// is not.
  [[nodiscard]] std::string saves_too_much(const SequenceShape& shape,
                                           const plan::SequenceCandidate& candidate) const {
    if (m_options.saved_limit == 0 || ring_size() == 1 || shape.context == 0) return {};
    // The first rank of the heads axis has the most heads.
    const schedule::AttentionForm form =
        form_of(shape, ring_size(), candidate.ways, false,
                impl::share_of_heads(shape.heads, heads_size(), 0));
    const Bytes saved = shape.sequences * kept_size(candidate.method, form) * sizeof(Real);
    if (saved <= m_options.saved_limit) return {};
    return text("saves ", saved, " bytes around the ring; the limit is ", m_options.saved_limit);
  }

  /// The method and ways of a shape.
  struct Choice {
    SequenceMethod method;
    int ways;
  };
  [[nodiscard]] Choice choice(const SequenceShape& shape) const {
    if (method() != SequenceMethod::automatic) return {method(), m_options.ways};
    if (ring_size() == 1) return {SequenceMethod::ulysses, 1};
    if (shape.context == 0) return {SequenceMethod::usp, 1};
    for (const auto& [known, chosen] : *m_choices)
      if (known == shape) return chosen;
    const SequenceExplanation explained = explain(shape, *m_options.machine);
    expects(!explained.here.empty() && explained.here.front().refused.empty(), [&] {
      return ErrorInfo{
          where, "no method can compute this attention along these axes",
          explained.here.empty() ? text(shape) : text(shape, ": ", explained.here.front().refused)};
    });
    const plan::SequenceCandidate& best = explained.here.front();
    constexpr std::size_t most = 64;  // choices that are kept
    if (m_choices->size() == most) m_choices->erase(m_choices->begin());
    m_choices->emplace_back(shape, Choice{best.method, best.ways});
    return m_choices->back().second;
  }

  const Communicator* m_heads = nullptr;
  const Communicator* m_ring = nullptr;
  SequenceOptions m_options = {};
  std::shared_ptr<std::vector<std::pair<SequenceShape, Choice>>> m_choices =
      std::make_shared<std::vector<std::pair<SequenceShape, Choice>>>();
  std::shared_ptr<impl::SequenceWorkspace<Real, Exec>> m_workspace =
      std::make_shared<impl::SequenceWorkspace<Real, Exec>>();
};

}  // namespace heddle::inline v0
