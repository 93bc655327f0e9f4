// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SiteStages: the dynamic programme of HGTrainer, over the layers and the ranks of sites.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/internal/kept_by_stage.hpp>
#include <heddle/plan/internal/search_watch.hpp>
#include <heddle/plan/internal/sites.hpp>
#include <heddle/plan/internal/stage_memory.hpp>
#include <heddle/plan/internal/stage_shape.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/systems/hgtrainer/impl/site_grain.hpp>
#include <heddle/systems/hgtrainer/impl/site_orders.hpp>

namespace heddle::inline v0::systems::impl {

/// Finds the stages for orders of sites and one number of microbatches. Stages are added from the
/// last layer to the first. A partial plan has the last layers of the model, and is kept unless
/// another one with the same first stage is as good in every respect.
class SiteStages {
 public:
  /// If `least_memory`, plans may exceed the memory, and the one that lacks least is the best.
  SiteStages(plan::impl::LayerTable& table, const SiteOrders& sites, int microbatches, int window,
             bool least_memory, plan::impl::SearchWatch& watch)
      : m_watch(watch),
        m_table(table),
        m_problem(table.problem()),
        m_sites(sites),
        m_pricer(table.problem()),
        m_codecs(table.problem().options().codecs),
        m_microbatches(microbatches),
        m_samples(table.problem().options().batch / microbatches),
        m_window(window),
        m_layers(table.problem().layers()),
        m_least_memory(least_memory) {
    if (m_codecs.empty()) m_codecs.emplace_back();
    const Machine& machine = m_problem.machine();
    for (int r = 0; r < machine.ranks(); ++r)
      m_limited = m_limited || plan::impl::capacity_of(machine.device(Rank{r})) != 0;
    find_kept();
  }

  /// Returns the best plan for an order of sites, or nothing if there is none, or none with a time
  /// below `*below`.
  [[nodiscard]] std::optional<Plan> best(const std::vector<std::size_t>& order,
                                         const Seconds* below) {
    m_order = order;
    m_below = below != nullptr ? *below : std::numeric_limits<Seconds>::infinity();
    if (std::cmp_greater(order.size(), m_layers)) return {};
    m_bounds.find(m_sites, order, m_samples, m_window, m_codecs, m_problem);
    if (!promising({}, m_layers)) return {};
    if (m_coarse) m_grain = choose_grain(sizes(), m_bounds, m_samples, m_watch.left(), m_problem);
    m_nodes.clear();
    m_watch.release();
    Fronts next;
    for (std::size_t p = order.size(); p-- > 0;) next = fronts_of_site(p, next);
    if (m_watch.ended()) return {};
    std::size_t found = none;
    for (const auto& [shape, by_layer] : next)
      for (const std::size_t node : by_layer[0])
        if (allowed(m_nodes[node].stages) &&
            (found == none || time_of(m_nodes[node]) < time_of(m_nodes[found])))
          found = node;
    if (found == none) return {};
    m_value = time_of(m_nodes[found]);
    return plan_of(found);
  }

  /// Lets best() take ranks and layers in blocks, and keep few partial plans, such that an order
  /// costs no more than is left of the budget.
  void set_coarse() noexcept { m_coarse = true; }
  /// Returns the least effort of best() for an order if all ranks and layers are tried.
  [[nodiscard]] SiteEffort effort(const std::vector<std::size_t>& order) {
    if (std::cmp_greater(order.size(), m_layers)) return {};
    m_order = order;
    m_bounds.find(m_sites, order, m_samples, m_window, m_codecs, m_problem);
    return site_effort({}, sizes(), m_bounds, m_samples, m_problem);
  }

  /// Returns the value of the last best plan: its time, or what it lacks of memory.
  [[nodiscard]] double value() const noexcept { return m_value; }
  /// Returns the number of partial plans that were priced.
  [[nodiscard]] std::size_t candidates() const noexcept { return m_candidates; }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t most_kept = 8;  ///< partial plans of a front in coarse searches

  /// A shape, and its prices by layers, which are computed when they are first needed.
  struct PricedShape {
    plan::impl::StageShape shape;
    std::vector<Seconds> gradient_sums;
  };

  /// A stage and the partial plan behind it.
  struct Node {
    Seconds slowest = 0;  ///< the longest stage or message; if least_memory, the bytes that lack
    Seconds sum = 0;      ///< all stages and messages
    Seconds gradient_sum = 0;
    int stages = 0;
    PricedShape* shape = nullptr;
    LayerRange layers = {};
    bool recompute = false;
    std::size_t codec = 0;
    std::size_t next = none;
  };
  using Front = std::vector<std::size_t>;  ///< places in m_nodes
  /// By first stage and its first layer: the partial plans that begin there.
  using Fronts = std::vector<std::pair<PricedShape*, std::vector<Front>>>;

  /// Finds the most that a stage keeps, by the number of stages behind it.
  void find_kept() {
    const int most = std::min(m_problem.machine().ranks(), m_layers);
    for (int stages = 1; stages <= most; ++stages) {
      std::uint64_t listed = 0;
      const auto kept =
          plan::impl::kept_by_stage(m_problem.options().schedule, stages, m_microbatches, &listed);
      m_watch.spend(listed);
      m_allowed.push_back(kept.has_value());
      m_most.push_back(m_most.empty() ? plan::impl::KeptMicrobatches{} : m_most.back());
      for (std::size_t behind = 0; kept && behind < m_most.size(); ++behind)
        m_most[behind] = plan::impl::most_of(m_most[behind], kept->at(m_most.size() - 1 - behind));
    }
    m_any_number = std::ranges::find(m_allowed, false) == m_allowed.end();
  }
  [[nodiscard]] bool allowed(int stages) const {
    return m_allowed[static_cast<std::size_t>(stages) - 1];
  }

  /// Returns whether a partial plan behind `layers` layers can become better than the best one.
  [[nodiscard]] bool promising(const Node& node, int layers) const {
    if (m_least_memory) return true;
    const Seconds work = static_cast<double>(m_samples) * m_sites.work(layers);
    Seconds slowest = std::max(node.slowest, work / m_bounds.speed);
    Seconds sum = node.sum + work / m_bounds.fastest;
    if (node.stages == 0) {
      slowest = std::max(slowest, m_bounds.longest_cut);
      sum += m_bounds.cuts;
    }
    constexpr double rounding = 1 - 1e-12;
    return ((m_microbatches - 1) * slowest + sum + node.gradient_sum) * rounding < m_below;
  }

  [[nodiscard]] double time_of(const Node& node) const {
    if (m_least_memory) return node.slowest;
    return (m_microbatches - 1) * node.slowest + node.sum + node.gradient_sum;
  }

  /// Returns the numbers of ranks of the order's sites.
  [[nodiscard]] std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> counts;
    for (const std::size_t site : m_order) counts.push_back(m_sites.sites()[site].size());
    return counts;
  }

  // --- The programme.

  /// Returns the shape of the stage with ranks [first, first + count) of a site, or nullptr if the
  /// profile does not have it or there are too few samples.
  [[nodiscard]] PricedShape* shape(std::size_t site, std::size_t first, std::size_t count,
                                   int degree) {
    const auto [place, inserted] = m_shapes.try_emplace({site, first, count, degree});
    if (!inserted) return place->second.get();
    const auto begin = m_sites.sites()[site].begin() + static_cast<std::ptrdiff_t>(first);
    std::vector<Rank> ranks(begin, begin + static_cast<std::ptrdiff_t>(count));
    for (const Rank rank : ranks)
      if (!m_table.has_degree(rank, degree)) return nullptr;
    auto samples = plan::impl::balanced_samples(m_table, ranks, degree, m_samples);
    if (!samples) return nullptr;
    const auto layers = static_cast<std::size_t>(m_layers) + 1;
    m_watch.spend(100 + 20 * ranks.size() + layers * layers / 2);
    m_watch.hold(layers * layers * sizeof(Seconds));
    place->second = std::make_unique<PricedShape>(
        PricedShape{plan::impl::StageShape(m_table, std::move(ranks), std::move(*samples), degree),
                    std::vector<Seconds>(layers * layers, -1)});
    return place->second.get();
  }

  [[nodiscard]] Seconds gradient_sum(PricedShape& shape, LayerRange range) const {
    Seconds& sum =
        shape.gradient_sums[static_cast<std::size_t>(range.first * (m_layers + 1) + range.last)];
    if (sum < 0) sum = shape.shape.gradient_sum(range);
    return sum;
  }

  /// Returns the partial plans that begin with the first rank of the site at place `p`. `behind`
  /// are those of the site behind it.
  [[nodiscard]] Fronts fronts_of_site(std::size_t p, const Fronts& behind) {
    const std::size_t site = m_order[p];
    const std::size_t count = m_sites.sites()[site].size();
    std::vector<Fronts> by_rank(count);
    for (std::size_t first = count; first-- > 0;) {
      if (first % m_grain.ranks != 0) continue;
      for (const int degree : m_problem.options().tensor_degrees)
        each_size(m_grain, count, first, degree, [&](std::size_t size) {
          PricedShape* const priced = shape(site, first, size, degree);
          if (priced == nullptr || m_watch.ended()) return;
          auto& [_, fronts] = by_rank[first].emplace_back(
              priced, std::vector<Front>(static_cast<std::size_t>(m_layers) + 1));
          if (p + 1 == m_order.size()) {
            extend(fronts, p, first, *priced, m_layers, {}, 0, nullptr);
          } else {
            for (const auto& next : behind)
              for (int l = m_bounds.low[p + 1]; l <= m_bounds.high[p + 1]; ++l)
                cross(fronts, p, first, *priced, next, l, true);
          }
          if (first + size < count)
            for (const auto& next : by_rank[first + size])
              for (int l = m_bounds.low[p] + 1; l < m_bounds.high[p + 1]; ++l)
                if (at_block(l)) cross(fronts, p, first, *priced, next, l, false);
        });
    }
    return std::move(by_rank[0]);
  }

  /// Returns whether a stage may end in front of a layer that is no cut between sites.
  [[nodiscard]] bool at_block(int layer) const {
    return static_cast<std::size_t>(layer) % m_grain.layers == 0;
  }

  /// Puts a stage in front of the partial plans that begin with layer `layer`.
  void cross(std::vector<Front>& fronts, std::size_t p, std::size_t first, PricedShape& priced,
             const std::pair<PricedShape*, std::vector<Front>>& next, int layer, bool encoded) {
    const Front& front = next.second[static_cast<std::size_t>(layer)];
    if (front.empty() ||
        m_watch.spend(50 + 2 * priced.shape.ranks().size() + 2 * next.first->shape.ranks().size()))
      return;
    plan::impl::CutTimes times;
    std::size_t codec = none;
    if (!encoded) {
      times = m_pricer.times(priced.shape, next.first->shape, layer, {});
    } else {
      for (std::size_t c = 0; c < m_codecs.size(); ++c) {
        const plan::impl::CutTimes other =
            m_pricer.times(priced.shape, next.first->shape, layer, m_codecs[c]);
        if (codec != none && !(other.both() < times.both())) continue;
        times = other;
        codec = c;
      }
    }
    extend(fronts, p, first, priced, layer, times, codec, &front);
  }

  /// Puts a stage that ends in front of `layer` before each partial plan of `behind`, or at the end
  /// of the pipeline if there are none.
  void extend(std::vector<Front>& fronts, std::size_t p, std::size_t first, PricedShape& priced,
              int layer, const plan::impl::CutTimes& cut, std::size_t codec, const Front* behind) {
    // The first stage of a site begins at its cut.
    const int low = m_bounds.low[p], high = first == 0 ? m_bounds.high[p] : m_layers;
    for (int begin = low; begin < layer && begin <= high; ++begin) {
      if (first != 0 && !at_block(begin)) continue;
      const LayerRange range{begin, layer};
      Front& front = fronts[static_cast<std::size_t>(begin)];
      const std::size_t count = behind == nullptr ? 1 : behind->size();
      if (m_watch.spend(count * (3 + front.size() / 2))) return;
      for (std::size_t i = 0; i < count; ++i) {
        ++m_candidates;
        const std::size_t next = behind == nullptr ? none : (*behind)[i];
        const Node before = next == none ? Node{} : m_nodes[next];
        Node node{.stages = before.stages + 1,
                  .shape = &priced,
                  .layers = range,
                  .codec = codec,
                  .next = next};
        const Bytes lacking = find_memory(node);
        if (m_least_memory) {
          node.slowest = std::max(before.slowest, static_cast<double>(lacking));
        } else {
          if (lacking > 0) continue;
          const Seconds time = priced.shape.time(range, node.recompute);
          node.slowest = std::max({before.slowest, time, cut.longer()});
          node.sum = before.sum + time + cut.both();
          node.gradient_sum = std::max(before.gradient_sum, gradient_sum(priced, range));
          if (!promising(node, begin)) continue;
        }
        insert(front, node);
      }
    }
  }

  /// Decides whether a stage recomputes. Returns the bytes that a rank needs and does not have.
  [[nodiscard]] Bytes find_memory(Node& node) const {
    if (!m_limited) return 0;
    const auto behind = static_cast<std::size_t>(node.stages) - 1;
    const plan::impl::StageShape& shape = node.shape->shape;
    const Bytes whole = shape.lacking(node.layers, m_most[behind]);
    if (whole == 0) return 0;
    const Bytes again = shape.lacking(node.layers, m_most[behind], true);
    node.recompute = again < whole;
    return std::min(whole, again);
  }

  /// Returns whether `a` is as good as `b` in every respect.
  [[nodiscard]] bool dominates(const Node& a, const Node& b) const {
    if (m_limited && a.stages > b.stages) return false;
    if (!m_any_number && a.stages != b.stages) return false;
    return a.slowest <= b.slowest && a.sum <= b.sum && a.gradient_sum <= b.gradient_sum;
  }

  void insert(Front& front, const Node& node) {
    for (const std::size_t other : front)
      if (dominates(m_nodes[other], node)) return;
    std::erase_if(front, [&](std::size_t other) { return dominates(node, m_nodes[other]); });
    front.push_back(m_nodes.size());
    m_nodes.push_back(node);
    m_watch.hold(sizeof(Node) + sizeof(std::size_t));
    if (!m_coarse || front.size() <= most_kept) return;
    front.erase(std::ranges::max_element(front, {},
                                         [&](std::size_t each) { return time_of(m_nodes[each]); }));
  }

  [[nodiscard]] Plan plan_of(std::size_t node) const {
    Plan plan;
    plan.microbatches = m_microbatches;
    plan.schedule = m_problem.options().schedule;
    bool encoded = false;
    for (; node != none; node = m_nodes[node].next) {
      const Node& at = m_nodes[node];
      plan.stages.push_back({.layers = at.layers,
                             .ranks = at.shape->shape.ranks(),
                             .samples = at.shape->shape.samples(),
                             .tensor = at.shape->shape.tensor(),
                             .recompute = at.recompute});
      if (at.next == none) break;
      plan.casts.push_back(at.codec == none ? std::nullopt : m_codecs[at.codec]);
      encoded = encoded || plan.casts.back().has_value();
    }
    if (!encoded) plan.casts.clear();
    return plan;
  }

  plan::impl::SearchWatch& m_watch;
  plan::impl::LayerTable& m_table;
  const plan::PlanProblem& m_problem;
  const SiteOrders& m_sites;
  plan::impl::CutPricer m_pricer;
  std::vector<std::optional<Codec>> m_codecs;
  int m_microbatches;
  std::int64_t m_samples;  ///< samples of a microbatch
  int m_window;
  int m_layers;
  bool m_least_memory;
  bool m_coarse = false;
  SiteGrain m_grain = {};
  bool m_limited = false;  ///< whether a capacity is known

  std::vector<plan::impl::KeptMicrobatches> m_most;  ///< by stages behind
  std::vector<bool> m_allowed;                       ///< by stages - 1
  bool m_any_number = true;                          ///< whether all numbers of stages are allowed

  std::vector<std::size_t> m_order;
  Seconds m_below = 0;
  SiteBounds m_bounds;

  std::map<std::tuple<std::size_t, std::size_t, std::size_t, int>, std::unique_ptr<PricedShape>>
      m_shapes;
  std::vector<Node> m_nodes;
  double m_value = 0;
  std::size_t m_candidates = 0;
};

}  // namespace heddle::inline v0::systems::impl
