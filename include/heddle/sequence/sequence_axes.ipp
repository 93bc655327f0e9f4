// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of sequence_axes.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/kernel/attention_state.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/shard_order.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/sequence_choice.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/sequence_method.hpp>
#include <heddle/sequence/impl/attention_performer.hpp>
#include <heddle/sequence/impl/head_exchange.hpp>
#include <heddle/sequence/impl/prediction_hash.hpp>
#include <heddle/sequence/sequence_axes.hpp>

namespace heddle::inline v0 {

struct SequenceAxes::Choices : std::vector<std::pair<SequenceShape, Choice>> {};

HEDDLE_FULL_INLINE SequenceAxes::SequenceAxes(Scalar element)
    : m_element(element), m_choices(std::make_shared<Choices>()) {}

HEDDLE_FULL_INLINE SequenceAxes::SequenceAxes(Scalar element, const Communicator& heads,
                                              const Communicator& ring, SequenceOptions options)
    : m_element(element),
      m_heads(&heads),
      m_ring(&ring),
      m_options(std::move(options)),
      m_choices(std::make_shared<Choices>()) {
  expect_agreement();
  expect_axes();
  // Made here, because an error in one axis must reach the ranks of the other at any time.
  if (heads_size() > 1) static_cast<void>(heads.attached<impl::HeadExchanges>());
  if (ring_size() > 1) static_cast<void>(ring.attached<impl::AttentionPerformers>());
}

HEDDLE_FULL_INLINE void SequenceAxes::tell_failure(const char* doing, const char* reason) const {
  if (heads_size() > 1)
    heddle::impl::tell_failure(m_heads->attached<impl::HeadExchanges>().transport(), doing, reason);
  if (ring_size() > 1)
    heddle::impl::tell_failure(m_ring->attached<impl::AttentionPerformers>().transport(), doing,
                               reason);
}

HEDDLE_FULL_INLINE void SequenceAxes::check_call(const char* call,
                                                 const SequenceShape& shape) const {
  const auto described = [&] { return impl::CollectiveCall{call, {{"shape", text(shape)}}}; };
  if (m_heads != nullptr) impl::check_agreement(*m_heads, described);
  if (m_ring != nullptr) impl::check_agreement(*m_ring, described);
}

HEDDLE_FULL_INLINE SequenceMethod SequenceAxes::method(const SequenceShape& shape) const {
  return choice(shape).method;
}

HEDDLE_FULL_INLINE SequenceExplanation SequenceAxes::explain(const SequenceShape& shape,
                                                             const Machine& machine) const {
  impl::expect_valid(shape, where);
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
    explanation.note = "without a causal mask a zigzag balances nothing: every rank has equal work";
  return explanation;
}

HEDDLE_FULL_INLINE IndexSet SequenceAxes::ring_positions(std::int64_t context,
                                                         std::size_t rank) const {
  return order().share(context, static_cast<std::int64_t>(ring_size()),
                       static_cast<std::int64_t>(rank));
}

HEDDLE_FULL_INLINE IndexSet SequenceAxes::positions(std::int64_t context) const {
  const IndexSet of_ring = ring_positions(context, ring_rank());
  return of_ring.at(ShardOrder().share(of_ring.size(), static_cast<std::int64_t>(heads_size()),
                                       static_cast<std::int64_t>(heads_rank())));
}

HEDDLE_FULL_INLINE std::size_t SequenceAxes::rows(const SequenceShape& shape) const {
  impl::expect_valid(shape, where);
  return shape.sequences * static_cast<std::size_t>(positions(shape.context).size());
}

HEDDLE_FULL_INLINE std::size_t SequenceAxes::ring_rows(const SequenceShape& shape) const {
  impl::expect_valid(shape, where);
  return shape.sequences *
         static_cast<std::size_t>(ring_positions(shape.context, ring_rank()).size());
}

HEDDLE_FULL_INLINE kernel::AttentionHeads SequenceAxes::own_heads(
    const kernel::AttentionHeads& heads) const {
  kernel::impl::expect_attention_heads(where, heads);
  expects(heads_size() <= heads.kv_heads, [&] {
    return ErrorInfo{where, "there are more heads ranks than K,V heads",
                     text(heads_size(), " heads ranks; expected at most ", heads.kv_heads),
                     "use the ring axis for the other ranks"};
  });
  return impl::share_of_heads(heads, heads_size(), heads_rank());
}

HEDDLE_FULL_INLINE std::size_t SequenceAxes::saved_size(const SequenceShape& shape) const {
  const kernel::AttentionHeads own = own_heads(shape.heads);
  if (ring_size() == 1 || shape.context == 0)
    return saved_qkv_size(shape) + kernel::impl::attention_state_size(own, ring_rows(shape));
  return saved_qkv_size(shape) + shape.sequences * ring_state_size(shape);
}

HEDDLE_FULL_INLINE std::size_t SequenceAxes::saved_qkv_size(const SequenceShape& shape) const {
  if (heads_size() == 1) return 0;
  const kernel::AttentionHeads own = own_heads(shape.heads);
  return ring_rows(shape) * (own.query_columns() + 2 * own.kv_columns());
}

HEDDLE_FULL_INLINE std::size_t SequenceAxes::ring_state_size(const SequenceShape& shape) const {
  return kept_size(method(shape), ring_form(shape, false));
}

HEDDLE_FULL_INLINE schedule::AttentionForm SequenceAxes::ring_form(const SequenceShape& shape,
                                                                   bool backward) const {
  return form_of(shape, ring_size(), ways(shape), backward, own_heads(shape.heads));
}

HEDDLE_FULL_INLINE std::size_t SequenceAxes::size_of(const Communicator* axis) {
  return axis == nullptr ? 1 : static_cast<std::size_t>(axis->size());
}

HEDDLE_FULL_INLINE std::size_t SequenceAxes::rank_of(const Communicator* axis) {
  return axis == nullptr ? 0 : +axis->rank();
}

HEDDLE_FULL_INLINE void SequenceAxes::expect_agreement() const {
  const auto described = [&](std::string heads) {
    expect_options();
    impl::CollectiveCall call{where,
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
    impl::check_agreement(
        *m_heads, [&] { return described("compared"); }, ContractLevel::communication,
        execute().watchdog);
  } catch (const contract_error& error) {
    differ = error;
  }
  impl::check_agreement(
      *m_ring, [&] { return described(differ ? "with ranks that differ" : "alike"); },
      ContractLevel::communication, execute().watchdog);
  if (differ) throw contract_error(*differ);
}

HEDDLE_FULL_INLINE void SequenceAxes::expect_options() const {
  impl::expect_enumerator(where, "method", method(), SequenceMethod::automatic);
  impl::expect_enumerator(where, "near", m_options.near, plan::NearAxis::ring);
  impl::expect_valid(execute(), where);
}

HEDDLE_FULL_INLINE void SequenceAxes::expect_axes() const {
  expect_options();  // which axes of one rank have not compared
  const auto refuse = [&](const char* what, const char* remedy) {
    return ErrorInfo{
        where, what,
        text("method ", method(), ", ", heads_size(), " heads ranks, ", ring_size(), " ring ranks"),
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
    return refuse("ulysses uses no ring axis", "choose the method usp, or a ring axis of one rank");
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

HEDDLE_FULL_INLINE schedule::AttentionForm SequenceAxes::form_of(
    const SequenceShape& shape, std::size_t ranks, int ways, bool backward,
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
          .type = m_element};
}

HEDDLE_FULL_INLINE std::size_t SequenceAxes::kept_size(SequenceMethod method,
                                                       const schedule::AttentionForm& form) {
  return method == SequenceMethod::rsa ? impl::rsa_kept_size(form) : impl::ring_kept_size(form);
}

HEDDLE_FULL_INLINE std::string SequenceAxes::saves_too_much(
    const SequenceShape& shape, const plan::SequenceCandidate& candidate) const {
  if (m_options.saved_limit == 0 || ring_size() == 1 || shape.context == 0) return {};
  // The first rank of the heads axis has the most heads.
  const schedule::AttentionForm form = form_of(shape, ring_size(), candidate.ways, false,
                                               impl::share_of_heads(shape.heads, heads_size(), 0));
  const Bytes saved =
      shape.sequences * kept_size(candidate.method, form) * heddle::size_of(m_element);
  if (saved <= m_options.saved_limit) return {};
  return text("saves ", saved, " bytes around the ring; the limit is ", m_options.saved_limit);
}

HEDDLE_FULL_INLINE SequenceAxes::Choice SequenceAxes::choice(const SequenceShape& shape) const {
  impl::expect_valid(shape, where);
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

}  // namespace heddle::inline v0
