// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of step_prover.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/proof/impl/step_prover.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::impl {

/// Returns true if a / b == c / d.
inline bool same_ratio(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  const std::uint64_t ab = std::gcd(a, b), cd = std::gcd(c, d);
  return ab != 0 && cd != 0 && a / ab == c / cd && b / ab == d / cd;
}

HEDDLE_INLINE StepProver::StepProver(const Schedule& schedule, const schedule::SerialStep& step)
    : m_schedule(schedule),
      m_step(step),
      m_store(schedule),
      m_terms(m_store.terms()),
      m_in(static_cast<std::size_t>(step.graph.stages)),
      m_out(m_in.size()),
      m_version_parts(schedule.buffers().size(), 0),
      m_applied(m_terms, step) {
  const auto ranks = static_cast<std::size_t>(schedule.ranks());
  expects(step.places.empty() || step.places.size() == ranks, [&] {
    return ErrorInfo{
        "heddle::schedule::why_not_equivalent", "the step is not of these ranks",
        text("SerialStep::places has ", step.places.size(), " entries for ", ranks, " ranks")};
  });
  for (std::uint32_t e = 0; e < step.graph.edges.size(); ++e) {
    m_in[+step.graph.edges[e].to].push_back(e);
    m_out[+step.graph.edges[e].from].push_back(e);
  }
}

HEDDLE_INLINE SampleRange StepProver::samples(const Place& place, Stage stage, Item item) const {
  if (!divides() || m_step.shares.stages[+stage].size() == 1)
    return m_applied.all_samples(item.value);
  const std::vector<Rank>& ranks = m_step.ranks[+stage];
  const auto share = std::ranges::find(ranks, place.rank) - ranks.begin();
  if (static_cast<std::size_t>(share) == ranks.size()) return {};  // a rank that has no share
  return m_step.shares.range(stage, static_cast<std::size_t>(share),
                             m_step.shares.samples_of(item));
}

HEDDLE_INLINE std::string StepProver::run() {
  begin();
  for (std::size_t i = 0; i < m_schedule.size(); ++i) {
    const ActionId id{i};
    std::string fault = perform(id);
    if (fault.empty()) continue;
    fault = text(schedule::action_text(m_schedule, id), " on rank ",
                 m_schedule[m_schedule[id].queue].from, ' ', fault);
    if (!m_step.trains) return fault;
    spoil(id, std::move(fault));
  }
  return finish();
}

// A wrong value is a difference only if an update depends on it.
HEDDLE_INLINE void StepProver::spoil(ActionId id, std::string fault) {
  constexpr std::size_t enough = 1000;  // further differences share the last text
  for (const Use& use : m_schedule.uses(id))
    if (const auto fault_read = m_terms.fault_of(use.reads() ? m_store.read(use) : 0))
      m_earlier = std::min(*fault_read, m_earlier.value_or(*fault_read));
  if (!m_earlier && m_faults.size() == enough)
    m_faults.push_back(text("more than ", enough, " actions differ"));
  if (!m_earlier && m_faults.size() < enough) m_faults.push_back(std::move(fault));
  const std::size_t number = m_earlier ? *m_earlier : m_faults.size() - 1;
  m_earlier.reset();
  for (const Use& use : m_schedule.uses(id)) {
    if (!use.writes()) continue;
    const std::uint64_t width = m_store.width(use);
    m_store.write(use, m_terms.add({.kind = Term::Kind::value,
                                    .role = Term::Role::wrong,
                                    .stage = static_cast<std::uint32_t>(number),
                                    .end = width,
                                    .total = width}));
  }
}

HEDDLE_INLINE std::string StepProver::first_fault(TermId term, std::string otherwise) {
  m_earlier = m_terms.fault_of(term);
  return m_earlier ? m_faults[*m_earlier] : otherwise;
}

HEDDLE_INLINE void StepProver::begin() {
  for (std::size_t b = 0; b < m_version_parts.size(); ++b) {
    const Buffer& buffer = m_schedule[BufferId{b}];
    if (!buffer.transient && m_schedule[buffer.label] == role::weights)
      m_version_parts[b] = buffer.parts;
  }
  // The passes read the parts of one version. The parts of all others have no value yet.
  for (std::size_t i = 0; i < m_schedule.size(); ++i)
    if (m_schedule[ActionId{i}].kind <= Kind::backward)
      for (const Use& use : m_schedule.uses(ActionId{i})) {
        std::uint32_t& parts = m_version_parts[+use.buffer];
        if (parts > use.count) parts = use.count;
      }
  for (std::size_t b = 0; b < m_version_parts.size(); ++b) {
    if (m_version_parts[b] == 0) continue;
    const Buffer& buffer = m_schedule[BufferId{b}];
    const Use newest = schedule::read(BufferId{b}, 0, m_version_parts[b]);
    const std::uint64_t width = m_store.width(newest);
    m_store.write(newest, m_terms.add({.kind = Term::Kind::value,
                                       .role = Term::Role::weights,
                                       .stage = buffer.stage.value,
                                       .line = place_of(buffer.rank).shard,
                                       .end = width,
                                       .total = width}));
  }
}

HEDDLE_INLINE std::string StepProver::perform(ActionId id) {
  const Action& action = m_schedule[id];
  switch (action.kind) {
    case Kind::move:
    case Kind::combine:
    case Kind::cast:
    case Kind::group: return m_store.transfer(id);
    case Kind::user: return "does work that a serial step does not have";
    default: break;
  }
  if (+action.stage >= m_in.size()) return text("is of no stage; there are ", m_in.size());
  if (action.kind == Kind::update) return update(id);
  if (+action.item >= static_cast<std::size_t>(m_step.microbatches))
    return text("is of no microbatch; there are ", m_step.microbatches);
  return compute(id);
}

HEDDLE_INLINE std::string StepProver::expect(const Use& use, Term wanted, SampleRange samples) {
  TermId held = m_store.read(use);
  if (m_step.rounds) held = m_terms.unrounded(held);
  const Term& has = m_terms[held];
  const bool absolute = divides() && wanted.role != Term::Role::weights;
  wanted.kind = Term::Kind::value;
  wanted.begin = absolute ? static_cast<std::uint64_t>(samples.begin) : 0;
  wanted.end = absolute ? static_cast<std::uint64_t>(samples.end) : has.total;
  wanted.total = absolute ? 0 : has.total;
  if (has == wanted) return {};
  if (wanted.total == 0 && !absolute) wanted.end = wanted.total = 1;
  return first_fault(held, text("reads ", m_terms.describe(held), "; expected ",
                                m_terms.describe(m_terms.add(wanted))));
}

HEDDLE_INLINE std::string StepProver::name(const Use& use, Term value, SampleRange samples) {
  const std::uint64_t width = m_store.width(use);
  value.kind = Term::Kind::value;
  value.begin = divides() ? static_cast<std::uint64_t>(samples.begin) : 0;
  value.end = value.begin + width;
  value.total = divides() ? 0 : width;
  if (divides() && width != static_cast<std::uint64_t>(samples.size()))
    return text("writes ", width, " samples; expected ", samples.size());
  m_store.write(use, m_terms.add(value));
  return {};
}

HEDDLE_INLINE std::string StepProver::contribute(const Use& use, Term value) {
  value.kind = Term::Kind::value;
  value.total = m_store.width(use);
  for (std::uint32_t part = use.first; part < use.first + use.count; ++part) {
    value.end = value.begin + m_store.width(use.buffer, part);
    if (value.width() == 0) continue;
    TermId& content = m_store.at(use.buffer, part);
    const TermId more = m_terms.add(value);
    if (use.reads() && content == 0) return "adds to gradients that have no value";
    content = use.reads() ? m_terms.sum(content, more) : more;
    value.begin = value.end;
  }
  return {};
}

HEDDLE_INLINE std::string StepProver::compute(ActionId id) {
  const Action& action = m_schedule[id];
  const auto& edges = m_step.graph.edges;
  const Place place = place_of(m_schedule[action.queue].from);
  const SampleRange own = samples(place, action.stage, action.item);
  const auto uses = m_schedule.uses(id);
  std::string fault;
  std::size_t read = 0, written = 0;
  const auto term = [&](Term::Role role, std::uint32_t stage) {
    return Term{.role = role, .stage = stage, .item = action.item.value, .line = place.line};
  };
  const auto reads = [&](const Term& wanted) {
    while (read < uses.size() && uses[read].writes()) ++read;
    if (!fault.empty()) return;
    fault = read == uses.size() ? "reads too few values" : expect(uses[read++], wanted, own);
  };
  const auto next_written = [&]() -> const Use* {
    while (written < uses.size() && !uses[written].writes()) ++written;
    if (written == uses.size() && fault.empty()) fault = "writes too few values";
    return fault.empty() ? &uses[written++] : nullptr;
  };
  const auto writes = [&](const Term& value) {
    if (const Use* const use = next_written()) fault = name(*use, value, own);
  };
  const auto exchanges = [&](std::uint32_t e) { return edges[e].at == Kind::backward; };
  const std::uint32_t stage = action.stage.value;
  const bool forward = action.kind == Kind::forward;
  for (const std::uint32_t e : m_in[stage])
    if (!exchanges(e)) reads(term(Term::Role::output, edges[e].from.value));
  if (!forward) {
    reads(term(Term::Role::saved, stage));
    for (const std::uint32_t e : m_out[stage])
      if (!exchanges(e)) {
        Term gradient = term(Term::Role::input_grad, edges[e].to.value);
        gradient.edge = e;
        reads(gradient);
      }
    for (const std::uint32_t e : m_in[stage])
      if (exchanges(e)) reads(term(Term::Role::output, edges[e].from.value));
  }
  reads({.role = Term::Role::weights,
         .stage = stage,
         .item = m_step.versions.empty() ? 0 : m_step.versions[stage][+action.item],
         .line = place.shard});
  if (action.kind == Kind::backward_weight) reads(term(Term::Role::delta, stage));
  if (forward && !m_out[stage].empty()) writes(term(Term::Role::output, stage));
  if (forward && m_step.trains) writes(term(Term::Role::saved, stage));
  if (!forward && action.kind != Kind::backward_weight)
    for (const std::uint32_t e : m_in[stage])
      if (!exchanges(e)) {
        Term gradient = term(Term::Role::input_grad, stage);
        gradient.edge = e;
        writes(gradient);
      }
  if (action.kind == Kind::backward_input) writes(term(Term::Role::delta, stage));
  const auto first = static_cast<std::uint32_t>(own.begin);
  const auto last = static_cast<std::uint32_t>(own.end);
  if (action.kind == Kind::backward || action.kind == Kind::backward_weight)
    if (const Use* const use = next_written()) {
      Term part = term(Term::Role::contribution, stage);
      part.first_sample = first;
      part.last_sample = last;
      fault = contribute(*use, part);
    }
  if (forward && !m_step.trains)
    m_forwards.push_back({stage, place.line, action.item.value, first, last});
  if (!fault.empty()) return fault;
  while (read < uses.size() && uses[read].writes()) ++read;
  while (written < uses.size() && !uses[written].writes()) ++written;
  if (read != uses.size()) return "reads too many values";
  return written == uses.size() ? "" : "writes too many values";
}

HEDDLE_INLINE std::string StepProver::update(ActionId id) {
  const Action& action = m_schedule[id];
  const auto uses = m_schedule.uses(id);
  const bool in_place = uses.size() == 2 && uses[1].access() == Access::update;
  if (!in_place && (uses.size() != 3 || uses[1].writes() || !uses[2].writes()))
    return "does not read gradients and weights and write weights, in this order";
  const std::uint32_t stage = action.stage.value;
  const std::uint32_t shard = place_of(m_schedule[action.queue].from).shard;
  const TermId held = m_store.read(uses[1]);
  Term weights = m_terms[held];
  if (weights.kind != Term::Kind::value || weights.role != Term::Role::weights ||
      weights.stage != stage || weights.line != shard)
    return first_fault(held, text("updates ", m_terms.describe(held)));
  const std::uint64_t all =
      m_store.width(schedule::read(uses[0].buffer, 0, m_schedule[uses[0].buffer].parts));
  const std::uint64_t at = m_store.width(schedule::read(uses[0].buffer, 0, uses[0].first));
  const std::uint64_t width = m_store.width(uses[0]);
  if (width == 0 && weights.width() == 0) return {};
  if (m_store.width(uses.back()) != weights.width()) return "writes weights of another size";
  if (!same_ratio(at, all, weights.begin, weights.total) ||
      !same_ratio(width, all, weights.width(), weights.total))
    return text("updates ", m_terms.describe(held), " with the gradients ", at, " to ", at + width,
                " of ", all);
  const std::uint32_t newest = m_applied.updates(uses[1].buffer, weights.begin);
  if (weights.item != newest)
    return text("updates ", m_terms.describe(held), "; expected version ", newest);
  const TermId gradients = m_store.read(uses[0]);
  if (gradients == 0) return "applies gradients that have no value";
  m_applied.add(uses[1].buffer, weights, at, gradients);
  ++weights.item;
  for (std::uint32_t part = 0; part < uses[0].count; ++part)
    m_store.at(uses[0].buffer, uses[0].first + part) = 0;  // no other update may apply them
  m_store.write(uses.back(), m_terms.add(weights));
  return {};
}

HEDDLE_INLINE std::string StepProver::finish() {
  if (!m_step.trains) return missing_forward();
  if (const AppliedGradients::Difference found = m_applied.difference(); !found.what.empty())
    return first_fault(found.term, found.what);
  return wrong_weights();
}

HEDDLE_INLINE std::string StepProver::missing_forward() {
  std::ranges::sort(m_forwards);
  std::vector<std::vector<AppliedGradients::Piece>> of_stage(m_in.size());
  for (const auto& piece : m_forwards) of_stage[piece.stage].push_back(piece);
  for (std::uint32_t stage = 0; stage < m_in.size(); ++stage)
    for (const auto& [shard, lines] : m_applied.lines())
      if (std::string fault = m_applied.not_once(of_stage[stage], stage, stage, shard);
          !fault.empty())
        return text("the output", fault);
  return {};
}

HEDDLE_INLINE std::string StepProver::wrong_weights() {
  std::vector<bool> held(m_in.size(), false);
  for (std::size_t b = 0; b < m_version_parts.size(); ++b) {
    if (m_version_parts[b] == 0) continue;
    const Buffer& buffer = m_schedule[BufferId{b}];
    if (+buffer.stage >= m_in.size()) continue;
    held[+buffer.stage] = true;
    const Use newest = schedule::read(BufferId{b}, 0, m_version_parts[b]);
    if (std::string fault = expect(newest,
                                   {.role = Term::Role::weights,
                                    .stage = buffer.stage.value,
                                    .item = m_applied.updates(buffer.stage),
                                    .line = place_of(buffer.rank).shard},
                                   {});
        !fault.empty())
      return m_earlier ? fault : text("the next step on rank ", buffer.rank, ' ', fault);
  }
  for (std::size_t stage = 0; stage < held.size(); ++stage)
    if (!held[stage]) return text("no rank holds the weights of stage ", stage);
  return {};
}

}  // namespace heddle::inline v0::impl
