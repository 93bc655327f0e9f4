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
#include "gpt_tiers.hpp"

namespace examples {

/// Options of a GptWindow.
struct GptWindowOptions {
  int window = 2;            ///< halves of blocks in memory at once
  heddle::Bytes memory = 0;  ///< bytes for them; 0: unknown
  GptPart part = {};         ///< this rank among those that divide the layers
};

/// The model of a Runner on one stage. A step of the Runner generates all submitted texts: a use of
/// the window computes one half of a block for one batch, and a pass computes one batch.
template <class Real, class Space = examples::Space>
class GptWindow {
 public:
  using Generator = GptGenerator<Real, Space>;

  /// Refers to the generator, which has one stage and GptWeightsOf::ends, and to the tier with the
  /// halves of all blocks (see write_halves()). All requests were submitted before.
  /// @throws contract_error if the tier lacks a half or has one of another size, if nothing was
  ///         submitted, or if the host cannot access the memory of the model. Also the errors of
  ///         prefetch_window(), such as infeasible if the window is larger than the memory.
  GptWindow(Generator& generator, heddle::tier::Objects& tier, const GptWindowOptions& options)
      : m_generator(&generator), m_schedule(make(generator, tier, options)) {
    m_mover.attach_reader(heddle::BufferId{0},
                          heddle::tier::reader_of(tier, ids(generator, tier, options)));
  }

  /// Returns the Schedule of all passes.
  [[nodiscard]] const heddle::Schedule& schedule() const { return m_schedule; }
  /// Returns the options of the Runner, which refer to this object.
  [[nodiscard]] heddle::RunOptions options() {
    heddle::RunOptions options{.fold = false};  // the window has its slots
    options.execute.mover = m_mover;
    return options;
  }
  /// Returns the bytes of the slots.
  [[nodiscard]] heddle::Bytes slot_bytes() const { return m_schedule[heddle::BufferId{1}].bytes; }

  // Called by a Runner.

  [[nodiscard]] std::shared_ptr<std::byte> allocate(heddle::Bytes bytes) const {
    return m_generator->allocate(bytes);
  }
  void operator()(const heddle::Task& task) {
    const auto half = static_cast<std::size_t>(+task.stage());
    const auto group = static_cast<std::uint32_t>(+task.item() % m_generator->groups());
    if (half == 0) m_generator->begin_group(group);
    m_generator->compute_half(half, reinterpret_cast<Real*>(task.uses().front().data));
    if (half + 1 == m_generator->decoder().table().halves()) m_generator->end_group(group);
  }

 private:
  [[nodiscard]] static std::vector<heddle::tier::ObjectId> ids(const Generator& generator,
                                                               const heddle::tier::Objects& tier,
                                                               const GptWindowOptions& options) {
    const GptTable& table = generator.decoder().table();
    std::vector<heddle::tier::ObjectId> all;
    for (std::size_t h = 0; h < table.halves(); ++h) {
      const heddle::tier::ObjectId id = tier.find(half_name(h, options.part));
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

  [[nodiscard]] static heddle::Schedule make(const Generator& generator,
                                             const heddle::tier::Objects& tier,
                                             const GptWindowOptions& options) {
    using Memory = typename Generator::memory_space;
    heddle::expects(Kokkos::SpaceAccessibility<Kokkos::HostSpace, Memory>::accessible, [] {
      return heddle::ErrorInfo{"GptWindow", "the host cannot access the memory of the model",
                               Memory::name(), "keep all weights in the memory of the device"};
    });
    const std::size_t passes = generator.steps() * generator.groups();
    heddle::expects(passes > 0, [] {
      return heddle::ErrorInfo{"GptWindow",
                               "there is nothing to generate",
                               {},
                               "submit all requests before the window is made"};
    });
    return heddle::schedule::prefetch_window(
        {.objects = heddle::tier::sizes_of(tier, ids(generator, tier, options)),
         .window = options.window,
         .passes = static_cast<int>(passes),
         .capacity = options.memory});
  }

  Generator* m_generator;
  heddle::Schedule m_schedule;
  heddle::ThreadMover m_mover;
};

}  // namespace examples
