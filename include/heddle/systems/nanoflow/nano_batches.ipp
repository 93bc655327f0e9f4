// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of nano_batches.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/schedule/samples_of.hpp>
#include <heddle/systems/nanoflow/nano_batches.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE void NanoLayer::check() const {
  const auto complain = [&](std::string what, std::string why, std::string fix = {}) {
    return ErrorInfo{text("heddle::systems::NanoLayer, '", name, "'"), std::move(what),
                     std::move(why), std::move(fix)};
  };
  expects(samples >= 1 && units >= 1 && units <= 0xffff && !operations.empty(), [&] {
    return complain(
        "a layer has samples, operations and 1 to 65535 units",
        text("samples = ", samples, ", ", operations.size(), " operations, units = ", units));
  });
  for (std::size_t r = 0; r < performance.size(); ++r) {
    expects(performance[r].size() == static_cast<std::size_t>(units), [&] {
      return complain(
          "a resource needs one speed for each number of units",
          text("resource ", r, " has ", performance[r].size(), " speeds, units = ", units),
          "make the row by performance_between()");
    });
    for (const double speed : performance[r])
      expects(speed > 0 && speed <= 1, [&] {
        return complain("a speed is above 0 and at most 1, the speed of the whole device",
                        text("resource ", r, " has the speed ", speed));
      });
  }
  for (std::size_t o = 0; o < operations.size(); ++o) {
    const NanoOperation& operation = operations[o];
    const std::string which = text("operation ", o, " '", operation.name, "'");
    expects(operation.resource < performance.size(), [&] {
      return complain(
          "the resource of an operation has no speeds",
          text(which, " uses resource ", operation.resource, " of ", performance.size()));
    });
    for (const std::uint32_t input : operation.inputs)
      expects(input < o, [&] {
        return complain("an input is an earlier operation", text(which, " reads ", input),
                        "write operations after their inputs");
      });
    expects(heddle::impl::is_time(operation.batch) && heddle::impl::is_time(operation.piece), [&] {
      return complain("a time is finite and at least 0",
                      text(which, ": batch ", operation.batch, ", piece ", operation.piece));
    });
  }
}

HEDDLE_INLINE std::vector<double> performance_between(
    int units, const std::vector<std::pair<double, double>>& points) {
  expects(units >= 1, [&] {
    return ErrorInfo{"heddle::systems::performance_between", "a device has at least one unit",
                     text("units = ", units)};
  });
  std::vector<std::pair<double, double>> line = {{0, 0}};
  line.insert(line.end(), points.begin(), points.end());
  line.emplace_back(1, 1);
  for (std::size_t i = 1; i < line.size(); ++i)
    expects(line[i - 1].first < line[i].first && line[i - 1].second <= line[i].second &&
                line[i].second > 0,
            [&] {
              return ErrorInfo{"heddle::systems::performance_between",
                               "the points must ascend between (0, 0) and (1, 1)",
                               text("(", line[i].first, ", ", line[i].second, ") follows (",
                                    line[i - 1].first, ", ", line[i - 1].second, ")")};
            });
  std::vector<double> speeds;
  std::size_t next = 1;
  for (int u = 1; u < units; ++u) {
    const double share = static_cast<double>(u) / units;
    while (line[next].first < share) ++next;
    const auto [x0, y0] = line[next - 1];
    const auto [x1, y1] = line[next];
    speeds.push_back(y1 - (y1 - y0) * (x1 - share) / (x1 - x0));
  }
  speeds.push_back(1);
  return speeds;
}

HEDDLE_INLINE NanoPlan serial_nano_plan(const NanoLayer& layer, std::vector<std::int64_t> pieces) {
  layer.check();
  NanoPlan plan;
  for (std::uint32_t o = 0; o < layer.operations.size(); ++o)
    for (std::uint32_t p = 0; p < pieces.size(); ++p)
      plan.order.push_back({o, p, static_cast<std::uint16_t>(layer.units)});
  plan.pieces.samples = layer.samples;
  plan.pieces.stages.assign(layer.operations.size(), std::move(pieces));
  return plan;
}

}  // namespace heddle::inline v0::systems

namespace heddle::inline v0::systems::impl {

/// A layer that is cut into pieces, and its granules.
class CutLayer {
 public:
  CutLayer(const NanoLayer& layer, const NanoPlan& plan) : m_layer(layer), m_plan(plan) {
    const StageShares& pieces = plan.pieces;
    pieces.check();
    expects(pieces.samples == layer.samples && pieces.stages.size() == layer.operations.size() &&
                pieces.microbatches.empty(),
            [&] {
              return complaint(
                  "the pieces are not those of the layer",
                  text("shares of ", pieces.stages.size(), " operations and ", pieces.samples,
                       " samples, the layer has ", layer.operations.size(), " and ", layer.samples),
                  "give every operation its shares, and no microbatches");
            });
    for (std::uint32_t o = 0; o < pieces.stages.size(); ++o)
      for (std::uint32_t p = 0; p < pieces.stages[o].size(); ++p)
        m_ends.push_back(range({o, p}).end);
    std::ranges::sort(m_ends);
    m_ends.erase(std::unique(m_ends.begin(), m_ends.end()), m_ends.end());
    auto granules = std::make_shared<std::vector<std::int64_t>>(m_ends);
    std::adjacent_difference(granules->begin(), granules->end(), granules->begin());
    m_granules = std::move(granules);
  }

  [[nodiscard]] Buffer buffer(Stage stage, LabelId label, bool transient) const {
    Buffer result{.stage = stage, .label = label, .transient = transient};
    result.parts = static_cast<std::uint32_t>(m_ends.size());
    result.granules = m_granules;
    heddle::impl::size_by_samples(result, m_layer.sample_bytes);
    return result;
  }

  [[nodiscard]] Use use(Access access, BufferId buffer, const NanoPiece& piece) const {
    const SampleRange samples = range(piece);
    const auto part_of = [&](std::int64_t boundary) {
      if (boundary == 0) return std::uint32_t{0};
      return static_cast<std::uint32_t>(std::ranges::lower_bound(m_ends, boundary) -
                                        m_ends.begin() + 1);
    };
    const std::uint32_t first = part_of(samples.begin);
    return schedule::use(access, buffer, first, part_of(samples.end) - first);
  }

  /// Checks the order: all pieces once, each after those that it depends on.
  void check_order() const {
    std::vector<std::vector<bool>> done;
    std::size_t all = 0;
    for (const auto& shares : m_plan.pieces.stages) {
      done.emplace_back(shares.size(), false);
      all += shares.size();
    }
    for (const NanoPiece& piece : m_plan.order) {
      const auto [o, p, units] = piece;
      expects(o < done.size() && p < done[o].size() && !done[o][p], [&] {
        return complaint("the order has a piece that does not exist, or one twice",
                         text("piece ", p, " of operation ", o));
      });
      expects(units >= 1 && units <= m_layer.units, [&] {
        return complaint("a piece needs at least one unit of the device, and at most all",
                         text(name(piece), " has ", units, " of ", m_layer.units, " units"));
      });
      for (const std::uint32_t input : m_layer.operations[o].inputs)
        for (std::uint32_t q = 0; q < done[input].size(); ++q)
          expects(done[input][q] || overlap(range({input, q}), range(piece)).size() == 0, [&] {
            return complaint("a piece stands before one that it depends on",
                             text(name(piece), " reads ", name({input, q})));
          });
      done[o][p] = true;
    }
    expects(m_plan.order.size() == all, [&] {
      return complaint("the order lacks pieces", text(m_plan.order.size(), " of ", all));
    });
  }

 private:
  [[nodiscard]] SampleRange range(const NanoPiece& piece) const {
    return m_plan.pieces.range(Stage{piece.operation}, piece.piece, m_plan.pieces.samples);
  }
  [[nodiscard]] std::string name(const NanoPiece& piece) const {
    return text("piece ", piece.piece, " of '", m_layer.operations[piece.operation].name, "'");
  }
  [[nodiscard]] ErrorInfo complaint(std::string what, std::string why, std::string fix = {}) const {
    return {text("heddle::systems::nano_schedule, '", m_layer.name, "'"), std::move(what),
            std::move(why), std::move(fix)};
  }

  const NanoLayer& m_layer;
  const NanoPlan& m_plan;
  std::vector<std::int64_t> m_ends;  ///< of the granules
  std::shared_ptr<const std::vector<std::int64_t>> m_granules;
};

}  // namespace heddle::inline v0::systems::impl

namespace heddle::inline v0::systems {

HEDDLE_INLINE Schedule nano_schedule(const NanoLayer& layer, const NanoPlan& plan) {
  layer.check();
  const impl::CutLayer cut(layer, plan);
  cut.check_order();
  Builder builder(layer.name, 1);
  std::vector<bool> read(layer.operations.size(), false);
  bool begins = false;
  for (const NanoOperation& operation : layer.operations) {
    for (const std::uint32_t input : operation.inputs) read[input] = true;
    begins = begins || operation.inputs.empty();
  }
  BufferId input;
  if (begins) input = builder.add_buffer(cut.buffer(Stage{}, builder.label("input"), false));
  std::vector<BufferId> outputs;
  for (std::size_t o = 0; o < layer.operations.size(); ++o)
    outputs.push_back(builder.add_buffer(cut.buffer(Stage{o}, builder.label("output"), read[o])));
  std::vector<Use> uses;
  for (const NanoPiece& piece : plan.order) {
    const NanoOperation& operation = layer.operations[piece.operation];
    uses.clear();
    for (const std::uint32_t each : operation.inputs)
      uses.push_back(cut.use(Access::read, outputs[each], piece));
    if (uses.empty()) uses.push_back(cut.use(Access::read, input, piece));
    uses.push_back(cut.use(Access::write, outputs[piece.operation], piece));
    builder.add({.kind = Kind::forward,
                 .queue = builder.local(Rank{0}, Lane{operation.resource}),
                 .stage = Stage{piece.operation},
                 .item = Item{piece.piece},
                 .units = piece.units},
                uses);
  }
  return std::move(builder).build();
}

HEDDLE_INLINE InterferenceCosts::InterferenceCosts(NanoLayer layer)
    : m_layer(std::move(layer)),
      m_machine(Machine::uniform(1, {.units = (m_layer.check(), m_layer.units)}, {})) {}

HEDDLE_INLINE Seconds InterferenceCosts::time(const Schedule& schedule, ActionId id) const {
  const Action& action = schedule[id];
  if (action.kind != Kind::forward) return 0;
  expects(+action.stage < m_layer.operations.size() && action.units >= 1 &&
              action.units <= m_layer.units,
          [&] {
            return ErrorInfo{"heddle::systems::InterferenceCosts",
                             "the schedule is not one of this layer",
                             text("action ", id, " is of operation ", action.stage, " of ",
                                  m_layer.operations.size(), " and has ", action.units, " of ",
                                  m_layer.units, " units")};
          });
  const NanoOperation& operation = m_layer.operations[+action.stage];
  const double share = static_cast<double>(schedule::samples_of(schedule, id)) /
                       static_cast<double>(m_layer.samples);
  return (operation.batch * share + operation.piece) /
         m_layer.performance[operation.resource][action.units - 1u];
}

HEDDLE_INLINE Schedule in_streams(const Timeline& timeline, int units) {
  const Schedule& device = timeline.schedule();
  const auto complaint = [&](std::string what, std::string why) {
    return ErrorInfo{text("heddle::systems::in_streams, '", device.name(), "'"), std::move(what),
                     std::move(why)};
  };
  expects(device.ranks() == 1 && units >= 1, [&] {
    return complaint("streams are the queues of one device with units",
                     text(device.ranks(), " ranks, units = ", units));
  });
  const int streams = static_cast<int>(device.queues().size());
  Builder builder(device.name(), std::max(streams, 1));
  builder.share_memory(std::vector<std::uint32_t>(static_cast<std::size_t>(builder.ranks()), 0));
  for (const std::string& label : device.labels()) (void)builder.label(label);
  // A buffer lies with the first stream that writes it, or else with the first one.
  std::vector<Rank> home(device.buffers().size(), Rank{0});
  for (std::size_t i = device.size(); i-- > 0;)
    for (const Use& use : device.uses(ActionId{i}))
      if (use.writes()) home[+use.buffer] = Rank{+device[ActionId{i}].queue};
  for (std::size_t b = 0; b < home.size(); ++b) {
    Buffer buffer = device[BufferId{b}];
    buffer.rank = home[b];
    (void)builder.add_buffer(buffer);
  }
  const auto parts = static_cast<std::uint32_t>(units);
  const BufferId pool = builder.add_buffer(
      {.parts = parts, .label = builder.label("units"), .transient = false, .bytes = parts});
  // The list order is kept among actions that start together: those without duration come first.
  std::vector<std::uint32_t> order(device.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const Span& x = timeline[ActionId{a}];
    const Span& y = timeline[ActionId{b}];
    return x.start != y.start ? x.start < y.start : x.end == x.start && y.end != y.start;
  });
  std::vector<Seconds> free(parts, timeline.begin());
  std::vector<Use> uses;
  for (const std::uint32_t i : order) {
    const Action& action = device[ActionId{i}];
    const Span& span = timeline[ActionId{i}];
    expects(action.kind != Kind::move && (action.flags & flag::with_next) == 0, [&] {
      return complaint("streams have neither moves nor fused pairs", text("action ", i));
    });
    const auto own = device.uses(ActionId{i});
    uses.assign(own.begin(), own.end());
    std::uint32_t wanted = action.units;
    for (std::uint32_t u = 0; u < parts && wanted > 0; ++u) {
      if (free[u] > span.start) continue;
      free[u] = span.end;
      uses.push_back(schedule::update(pool, u));
      --wanted;
    }
    expects(wanted == 0, [&] {
      return complaint("the actions of the timeline occupy more units than there are",
                       text("action ", i, " starts with ", action.units, " units, ",
                            action.units - wanted, " of ", units, " are free"));
    });
    builder.add({action.kind, builder.local(Rank{+action.queue}), action.stage, action.item,
                 action.flags, action.units},
                uses);
  }
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::systems
