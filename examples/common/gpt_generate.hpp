// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GptGenerator: continues texts with the GPT, on one rank or as a model for a Runner over the
/// stages of a pipeline. Every position is computed once (see GptDecoder), and requests enter and
/// end at every step (see GptBatcher). The text of a request does not depend on the others.
///
///     GptGenerator<float> generator(config, {.sampling = {.temperature = 0.7}}, parameters);
///     generator.submit({.number = 0, .prompt = "#include", .tokens = 200});
///     generator.run();
///     std::cout << generator.text(0);

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/device_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/memory/message_memory.hpp>

#include "gpt_decoder.hpp"
#include "gpt_generation_schedule.hpp"
#include "gpt_requests.hpp"
#include "gpt_sampling.hpp"
#include "space.hpp"

namespace examples {

/// Options of a GptGenerator.
struct GptServing {
  GptSampling sampling = {};
  GptBatchSizes sizes = {};                    ///< the context is that of the model
  int stages = 1;                              ///< ranks of the pipeline
  int stage = 0;                               ///< this rank's place
  GptWeightsOf weights = GptWeightsOf::whole;  ///< ends: a GptWindow has the blocks
};

/// One rank of a generation. The first stage has the requests and composes every batch. What the
/// other stages must know of it, its segments, travels in front of its activations. The last stage
/// draws the tokens, which go back to the first.
template <class Real, class Space = examples::Space>
class GptGenerator {
 public:
  using Decoder = GptDecoder<Real, Space>;
  using Line = typename Decoder::Line;
  using memory_space = typename Decoder::memory_space;

  /// Constructs the generator of a rank. All ranks take the same options, except for `stage`, and
  /// the `parameters` of the whole model. @throws contract_error if an option is out of range.
  GptGenerator(const GptConfig& config, GptServing serving, std::span<const Real> parameters,
               const Line& line = {})
      : m_serving(completed(std::move(serving), config)),
        m_decoder(config, block(config, m_serving.stage), block(config, m_serving.stage + 1),
                  m_serving.sizes, parameters, line, m_serving.weights),
        m_batcher(m_serving.sizes),
        m_sampler(m_serving.sampling, static_cast<std::size_t>(config.vocabulary)),
        m_front(front_bytes(m_serving.sizes)),
        m_drawn(m_serving.sizes.slots()) {}

  /// Appends a request. All ranks call it between two steps, and all reject the same requests. The
  /// first stage has the text. @throws contract_error as GptBatcher::submit() does.
  void submit(GptRequest request) {
    m_batcher.submit(std::move(request));
    m_busy = true;
  }

  /// Generates all texts on one rank.
  void run() {
    heddle::expects(m_serving.stages == 1, [&] {
      return heddle::ErrorInfo{"GptGenerator::run", "there are other stages",
                               heddle::text(m_serving.stages, " stages"),
                               "run it with a Runner: while (generator.busy()) runner.step();"};
    });
    while (busy()) step();
  }
  /// Computes one step of all groups on one rank.
  void step() {
    for (std::uint32_t m = 0; m < m_serving.sizes.groups; ++m) compose(m, nullptr);
  }

  /// Returns whether another step is needed. All ranks get the same answer.
  [[nodiscard]] bool busy() const { return m_busy; }
  /// Returns the prompt and the tokens of a request, on the first stage.
  [[nodiscard]] const std::string& text(std::uint32_t request) const {
    return m_batcher.text(request);
  }
  /// Returns all texts by the numbers of their requests, on the first stage.
  [[nodiscard]] const std::map<std::uint32_t, std::string>& texts() const {
    return m_batcher.texts();
  }
  [[nodiscard]] const Decoder& decoder() const { return m_decoder; }

  // Called by a GptWindow, on one rank: a step of one group in pieces.

  /// Returns the steps that the submitted requests need; see GptBatcher::steps().
  [[nodiscard]] std::size_t steps() const { return m_batcher.steps(); }
  [[nodiscard]] std::uint32_t groups() const { return m_serving.sizes.groups; }
  void begin_group(std::uint32_t m) {
    const auto segments = compose_front(m);
    m_decoder.begin_step(segments, m_batcher.tokens(m), nullptr, nullptr);
  }
  void compute_half(std::size_t half, Real* weights) { m_decoder.compute_half(half, weights); }
  void end_group(std::uint32_t m) {
    m_decoder.end_step();
    m_busy = m_batcher.busy();
    draw(m, front_segments());
  }

  // Called by a Runner.

  /// Returns the Schedule of a step over all stages.
  [[nodiscard]] heddle::Schedule schedule() const {
    return generation_schedule(
        {.stages = m_serving.stages,
         .groups = static_cast<int>(m_serving.sizes.groups),
         .activation = front_bytes(m_serving.sizes) + m_decoder.activation_size() * sizeof(Real),
         .tokens = m_serving.sizes.requests});
  }
  /// Allocates a buffer in the memory in which the model computes, filled with zeros.
  [[nodiscard]] std::shared_ptr<std::byte> allocate(heddle::Bytes bytes) const {
    const auto view = heddle::memory::message_buffer<memory_space>("heddle::gpt::message", bytes);
    Kokkos::deep_copy(view, std::byte{});
    return {view.data(), [view](std::byte*) {}};
  }
  /// Returns the transport of messages between such memory.
  template <heddle::Transport T>
  [[nodiscard]] auto carrier(T& transport, const heddle::ExecuteOptions&) const {
    return heddle::DeviceTransport<T, memory_space>(transport);
  }
  /// Computes a group on this stage.
  void operator()(const heddle::Task& task) {
    const auto m = static_cast<std::uint32_t>(+task.item());
    std::byte *const from = task.uses().front().data, *const to = task.uses().back().data;
    if (m_decoder.embeds()) {
      to_host(from, drawn(m));
      compose(m, to);
    } else {
      to_host(from, std::span(m_front));
      compute(m, from, to);
    }
    if (m_decoder.predicts()) from_host(std::span<const std::uint8_t>(drawn(m)), to);
  }

 private:
  /// The first bytes of a message between stages; segments follow, then activations.
  struct Front {
    std::uint32_t segments;
    std::uint32_t busy;
  };

  [[nodiscard]] static GptServing completed(GptServing serving, const GptConfig& config) {
    serving.sizes.context = static_cast<std::uint32_t>(config.context);
    heddle::expects(
        0 <= serving.stage && serving.stage < serving.stages && serving.stages <= config.layers,
        [&] {
          return heddle::ErrorInfo{"GptGenerator", "there is no such stage",
                                   heddle::text("stage ", serving.stage, " of ", serving.stages,
                                                ", ", config.layers, " layers"),
                                   "use at most as many stages as layers"};
        });
    return serving;
  }
  /// The first block of a stage.
  [[nodiscard]] int block(const GptConfig& config, int stage) const {
    return config.layers * stage / m_serving.stages;
  }
  /// Bytes in front of the activations: whole cache lines.
  [[nodiscard]] static std::size_t front_bytes(const GptBatchSizes& sizes) {
    return (sizeof(Front) + 2 * sizes.requests * sizeof(GptSegment) + 63) / 64 * 64;
  }
  [[nodiscard]] std::span<std::uint8_t> drawn(std::uint32_t m) {
    return std::span(m_drawn).subspan(m * m_serving.sizes.requests, m_serving.sizes.requests);
  }
  template <class T, class Memory>
  using Bytes = Kokkos::View<T*, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  /// Fills `host` from the memory of the model.
  template <class T>
  static void to_host(const std::byte* data, std::span<T> host) {
    Kokkos::deep_copy(Bytes<T, Kokkos::HostSpace>(host.data(), host.size()),
                      Bytes<const T, memory_space>(reinterpret_cast<const T*>(data), host.size()));
  }
  /// Copies `host` to the memory of the model.
  template <class T>
  static void from_host(std::span<const T> host, std::byte* data) {
    Kokkos::deep_copy(Bytes<T, memory_space>(reinterpret_cast<T*>(data), host.size()),
                      Bytes<const T, Kokkos::HostSpace>(host.data(), host.size()));
  }

  /// Takes the drawn tokens of a group and describes its next batch, on the first stage.
  std::span<const GptSegment> compose_front(std::uint32_t m) {
    m_batcher.take(m, drawn(m));
    const auto segments = m_batcher.next(m);
    const Front front{static_cast<std::uint32_t>(segments.size()), m_batcher.busy() ? 1U : 0U};
    std::memcpy(m_front.data(), &front, sizeof(Front));
    std::memcpy(m_front.data() + sizeof(Front), segments.data(), segments.size_bytes());
    return segments;
  }
  /// Takes the drawn tokens of a group and computes its next batch, on the first stage.
  void compose(std::uint32_t m, std::byte* to) {
    static_cast<void>(compose_front(m));
    compute(m, nullptr, to);
  }

  [[nodiscard]] Front front() const {
    Front front;
    std::memcpy(&front, m_front.data(), sizeof(Front));
    return front;
  }
  [[nodiscard]] std::span<const GptSegment> front_segments() const {
    return {reinterpret_cast<const GptSegment*>(m_front.data() + sizeof(Front)), front().segments};
  }

  /// Computes the batch that m_front describes.
  void compute(std::uint32_t m, const std::byte* from, std::byte* to) {
    m_busy = front().busy != 0;
    const std::span segments = front_segments();
    const auto input =
        reinterpret_cast<const Real*>(from == nullptr ? from : from + m_front.size());
    const auto output =
        m_decoder.predicts() ? nullptr : reinterpret_cast<Real*>(to + m_front.size());
    m_decoder.forward(segments,
                      m_decoder.embeds() ? m_batcher.tokens(m) : std::span<const std::uint8_t>(),
                      input, output);
    if (!m_decoder.predicts()) return from_host(std::span<const std::byte>(m_front), to);
    draw(m, segments);
  }
  /// Draws the tokens of a group from the logits of its last rows.
  void draw(std::uint32_t m, std::span<const GptSegment> segments) {
    std::size_t next = 0;
    for (const GptSegment& segment : segments)
      if (segment.draws != 0) {
        drawn(m)[next] = m_sampler.draw(m_decoder.logits(next), segment.request, segment.index);
        ++next;
      }
  }

  GptServing m_serving;
  Decoder m_decoder;
  GptBatcher m_batcher;
  GptSampler m_sampler;
  std::vector<std::byte> m_front;
  std::vector<std::uint8_t> m_drawn;  ///< tokens of all groups
  bool m_busy = true;
};

}  // namespace examples
