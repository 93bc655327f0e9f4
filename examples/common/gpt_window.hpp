// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GptWindow: a generation whose blocks are in a slower memory tier. A window of them moves through
/// memory ahead of their use, as schedule::prefetch_window() lists it.
///
///     tier::Store store({.file = "weights.tier", .model = store_model(weights, 1)});
///     GptGenerator<float> generator(config, {.weights = GptWeightsOf::ends}, parameters);
///     generator.submit({.number = 0, .prompt = "#include", .tokens = 200});
///     GptWindow window(generator, store, {.window = 3});
///     Runner run(window, window.schedule(), transport, window.options());
///     run.step();  // all texts

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/execute/thread_mover.hpp>
#include <heddle/schedule/generator/prefetch_window.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/tier/object_reader.hpp>
#include <heddle/tier/objects.hpp>

#include "gpt_config.hpp"
#include "gpt_generate.hpp"
#include "gpt_requests.hpp"
#include "gpt_tiers.hpp"
#include "gpt_window_schedule.hpp"

namespace examples {

/// Options of a GptWindow.
struct GptWindowOptions {
  int window = 2;            ///< halves of blocks in memory at once
  heddle::Bytes memory = 0;  ///< bytes for them; 0: unknown
  GptPart part = {};         ///< this rank among those that divide the layers
};

/// The model of a Runner on one stage, or on each stage of a pipeline. A step of the Runner
/// generates all submitted texts: a use of the window computes one half of a block for one batch,
/// and a pass computes one batch. Every stage has a window over its own blocks.
template <class Real, class Space = examples::Space>
class GptWindow {
 public:
  using Generator = GptGenerator<Real, Space>;

  /// Refers to the generator, which has GptWeightsOf::ends, and to the tier with the halves of all
  /// blocks (see write_halves()). All requests were submitted before.
  /// @throws contract_error if the tier lacks a half or has one of another size, if nothing was
  ///         submitted, or if the host cannot access the memory of the model. Also the errors of
  ///         prefetch_window(), such as infeasible if the window is larger than the memory.
  GptWindow(Generator& generator, heddle::tier::Objects& tier, const GptWindowOptions& options)
      : m_generator(&generator),
        m_part(options.part),
        m_passes(passes(generator)),
        m_first(halves_before(generator, generator.serving().stage)),
        m_halves(generator.decoder().table().halves()),
        m_objects(ids(tier)),
        m_schedule(make(options)) {
    m_mover.attach_reader(buffer(0), heddle::tier::reader_of(tier, m_objects));
  }

  /// Returns the Schedule of all passes.
  [[nodiscard]] const heddle::Schedule& schedule() const { return m_schedule; }
  /// Returns the options of the Runner, which refer to this object.
  [[nodiscard]] heddle::RunOptions options() {
    heddle::RunOptions options{.fold = false};  // the window has its slots
    options.execute.mover = m_mover;
    return options;
  }
  /// Returns the bytes of the slots of this stage.
  [[nodiscard]] heddle::Bytes slot_bytes() const { return m_schedule[buffer(1)].bytes; }
  /// Returns the number of batches.
  [[nodiscard]] std::size_t passes() const { return m_passes.size(); }

  // Called by a Runner.

  [[nodiscard]] std::shared_ptr<std::byte> allocate(heddle::Bytes bytes) const {
    return m_generator->allocate(bytes);
  }
  /// Returns the bytes that an action uses of a part: all of them, except in messages.
  [[nodiscard]] heddle::Bytes used_bytes(const heddle::Action& action, const heddle::Buffer& buffer,
                                         std::uint32_t part) const {
    const heddle::Queue& queue = m_schedule[action.queue];
    if (queue.local()) return heddle::schedule::part_bytes(buffer, part, 1);
    return m_generator->message_bytes(
        m_passes[+action.item], +queue.from + 1 == static_cast<std::size_t>(m_schedule.ranks()));
  }
  void operator()(const heddle::Task& task) {
    const std::size_t half = +task.stage() - m_first;
    const std::uint32_t group = task.item().value % m_generator->serving().sizes.groups;
    const auto uses = task.uses();
    const bool alone = m_schedule.ranks() == 1;  // without messages
    if (half == 0)
      m_generator->begin_group(group, alone ? nullptr : uses[1].data,
                               alone ? nullptr : uses[2].data);
    m_generator->compute_half(half, reinterpret_cast<Real*>(uses.front().data));
    if (half + 1 == m_halves) m_generator->end_group(group, alone ? nullptr : uses.back().data);
  }

 private:
  [[nodiscard]] static std::vector<GptBatchShape> passes(const Generator& generator) {
    using Memory = typename Generator::memory_space;
    heddle::expects(Kokkos::SpaceAccessibility<Kokkos::HostSpace, Memory>::accessible, [] {
      return heddle::ErrorInfo{"GptWindow", "the host cannot access the memory of the model",
                               Memory::name(), "keep all weights in the memory of the device"};
    });
    auto passes = generator.passes();
    heddle::expects(!passes.empty(), [] {
      return heddle::ErrorInfo{"GptWindow",
                               "there is nothing to generate",
                               {},
                               "submit all requests before the window is made"};
    });
    return passes;
  }
  [[nodiscard]] static std::size_t halves_before(const Generator& generator, int stage) {
    return 2 * static_cast<std::size_t>(generator.first_block(stage));
  }
  /// Returns buffer 0, the objects of this stage, or buffer 1, its slots.
  [[nodiscard]] heddle::BufferId buffer(int number) const {
    return heddle::BufferId{2 * m_generator->serving().stage + number};
  }

  [[nodiscard]] std::vector<heddle::tier::ObjectId> ids(const heddle::tier::Objects& tier) const {
    const GptTable& table = m_generator->decoder().table();
    std::vector<heddle::tier::ObjectId> all;
    for (std::size_t h = 0; h < m_halves; ++h) {
      const heddle::tier::ObjectId id = tier.find(half_name(m_first + h, m_part));
      const heddle::Bytes expected = table.half(h).count * sizeof(Real);
      heddle::expects(tier.object(id).bytes == expected, [&] {
        return heddle::ErrorInfo{"GptWindow", "an object is not a half of this model",
                                 heddle::text("'", tier.object(id).name, "' has ",
                                              tier.object(id).bytes, " bytes, expected ", expected),
                                 "write the weights of this model with write_halves()"};
      });
      all.push_back(id);
    }
    return all;
  }

  /// Returns the Schedule of all stages, which all ranks know.
  [[nodiscard]] heddle::Schedule make(const GptWindowOptions& options) const {
    const GptConfig& config = m_generator->decoder().config();
    const GptTable whole(config, 0, config.layers, m_part);
    std::vector<heddle::schedule::PrefetchWindowOptions> windows;
    for (int stage = 0; stage < m_generator->serving().stages; ++stage) {
      windows.push_back({.window = options.window,
                         .passes = static_cast<int>(m_passes.size()),
                         .capacity = options.memory});
      for (std::size_t h = halves_before(*m_generator, stage);
           h < halves_before(*m_generator, stage + 1); ++h)
        windows.back().objects.push_back(whole.half(h).count * sizeof(Real));
    }
    return window_schedule(m_generator->message_sizes(), windows);
  }

  Generator* m_generator;
  GptPart m_part;
  std::vector<GptBatchShape> m_passes;
  std::size_t m_first, m_halves;  ///< of this stage among those of the model
  std::vector<heddle::tier::ObjectId> m_objects;
  heddle::Schedule m_schedule;
  heddle::ThreadMover m_mover;
};

}  // namespace examples
