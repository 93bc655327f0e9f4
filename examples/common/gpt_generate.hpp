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
#include <heddle/schedule/schedule.hpp>

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

/// One rank of a generation. The first stage composes every batch from the texts. All stages plan
/// the same batches from the lengths, so a message between stages has the activations of the rows
/// of its batch and nothing else. A stop token ends a text at a time that nobody can plan. While a
/// request with a stop token is not over, messages therefore have room for the most rows, and the
/// segments of the batch stand behind. The last stage draws the tokens, which go back to the first.
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
        m_plan(m_serving.sizes),
        m_sampler(m_serving.sampling, static_cast<std::size_t>(config.vocabulary)),
        m_front(front_bytes(m_serving.sizes)),
        m_drawn(m_serving.sizes.slots()) {}

  /// Appends a request. All ranks call it between two steps with the same lengths and stop tokens,
  /// and all reject the same requests. The first stage has the text.
  /// @throws contract_error as GptBatcher::submit() does.
  void submit(GptRequest request) {
    const bool stops = request.stop >= 0;
    GptRequest planned;
    if (m_serving.stages > 1) planned = request;
    m_batcher.submit(std::move(request));
    if (m_serving.stages > 1) {
      if (!m_busy) {  // all texts are over, however they ended
        m_plan.clear();
        m_stops = false;
      }
      planned.stop = -1;
      m_plan.submit(std::move(planned));
      m_stops = m_stops || stops;
    }
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
    for (std::uint32_t m = 0; m < m_serving.sizes.groups; ++m) {
      const Batch batch = begin_batch(m, nullptr);
      m_decoder.forward(batch.segments, batch.tokens, nullptr, nullptr);
      end_batch(m, batch.segments, nullptr);
    }
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

  // Called by a GptWindow: a batch in pieces. The messages are null if there is one stage.

  /// Returns the shapes of the batches that the submitted requests need; see GptBatcher::passes().
  [[nodiscard]] std::vector<GptBatchShape> passes() const {
    return m_serving.stages > 1 ? m_plan.passes() : m_batcher.passes();
  }
  [[nodiscard]] const GptServing& serving() const { return m_serving; }
  /// Returns the first block of a stage, or the number of all blocks for the stage behind the last.
  [[nodiscard]] int first_block(int stage) const { return block(m_decoder.config(), stage); }
  void begin_group(std::uint32_t m, const std::byte* from, std::byte* to) {
    if (m_serving.stages > 1) plan(m);
    m_batch = begin_batch(m, from);
    m_decoder.begin_step(m_batch.segments, m_batch.tokens, input(from), output(to));
  }
  void compute_half(std::size_t half, Real* weights) { m_decoder.compute_half(half, weights); }
  void end_group(std::uint32_t m, std::byte* to) {
    m_decoder.end_step();
    end_batch(m, m_batch.segments, to);
  }

  // Called by a Runner.

  /// Returns the sizes of the messages, which are those of the largest batch.
  [[nodiscard]] GenerationSizes message_sizes() const {
    return {.stages = m_serving.stages,
            .groups = static_cast<int>(m_serving.sizes.groups),
            .activation = front_offset() + front_bytes(m_serving.sizes),
            .tokens = m_serving.sizes.requests};
  }
  /// Returns the Schedule of a step over all stages.
  [[nodiscard]] heddle::Schedule schedule() const { return generation_schedule(message_sizes()); }
  /// Plans the batches of a step.
  void begin_step() {
    if (m_serving.stages == 1) return;
    for (std::uint32_t m = 0; m < m_serving.sizes.groups; ++m) plan(m);
  }
  /// Returns the bytes of a message with which the last stage, or another one, ends a batch.
  [[nodiscard]] heddle::Bytes message_bytes(const GptBatchShape& shape, bool last) const {
    if (m_stops) return last ? m_serving.sizes.requests : message_sizes().activation;
    return last ? shape.draws : shape.rows * m_decoder.width() * sizeof(Real);
  }
  /// Returns the bytes of a message in this step.
  [[nodiscard]] heddle::Bytes used_bytes(const heddle::Action& action, const heddle::Buffer& buffer,
                                         std::uint32_t part) const {
    if (action.kind != heddle::Kind::move) return heddle::schedule::part_bytes(buffer, part, 1);
    return message_bytes(m_plan.shape(+action.item),
                         +action.stage + 1 == static_cast<std::uint32_t>(m_serving.stages));
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
    const Batch batch = begin_batch(m, from);
    m_decoder.forward(batch.segments, batch.tokens, input(from), output(to));
    end_batch(m, batch.segments, to);
  }

 private:
  /// What stands behind the activations of a message if batches cannot be planned: this, then the
  /// segments.
  struct Front {
    std::uint32_t segments;
    std::uint32_t busy;
  };
  /// A batch of a group. A stage that does not embed has no tokens.
  struct Batch {
    std::span<const GptSegment> segments = {};
    std::span<const std::uint8_t> tokens = {};
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
  [[nodiscard]] static std::size_t front_bytes(const GptBatchSizes& sizes) {
    return sizeof(Front) + 2 * sizes.requests * sizeof(GptSegment);
  }
  /// Where the front begins in a message: behind the activations of the most rows.
  [[nodiscard]] std::size_t front_offset() const {
    return m_decoder.activation_size() * sizeof(Real);
  }
  [[nodiscard]] const Real* input(const std::byte* from) const {
    return m_decoder.embeds() ? nullptr : reinterpret_cast<const Real*>(from);
  }
  [[nodiscard]] Real* output(std::byte* to) const {
    return m_decoder.predicts() ? nullptr : reinterpret_cast<Real*>(to);
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

  /// Plans the next batch of a group from the lengths of its texts: any tokens are drawn.
  void plan(std::uint32_t m) {
    m_plan.take(m, drawn(m));
    static_cast<void>(m_plan.next(m));
  }

  /// Begins the next batch of a group. The first stage composes it from the tokens at `from`, or
  /// from those that it has drawn itself if `from` is null.
  Batch begin_batch(std::uint32_t m, const std::byte* from) {
    if (m_decoder.embeds()) {
      if (from != nullptr) to_host(from, drawn(m));
      m_batcher.take(m, drawn(m));
      const auto segments = m_batcher.next(m);
      m_busy = m_batcher.busy();
      if (m_stops) {
        const Front front{static_cast<std::uint32_t>(segments.size()), m_busy ? 1U : 0U};
        std::memcpy(m_front.data(), &front, sizeof(Front));
        std::memcpy(m_front.data() + sizeof(Front), segments.data(), segments.size_bytes());
      }
      return {segments, m_batcher.tokens(m)};
    }
    if (!m_stops) {
      m_busy = m_plan.busy();
      return {m_plan.segments(m), {}};
    }
    to_host(from + front_offset(), std::span(m_front));
    Front front;
    std::memcpy(&front, m_front.data(), sizeof(Front));
    m_busy = front.busy != 0;
    return {{reinterpret_cast<const GptSegment*>(m_front.data() + sizeof(Front)), front.segments},
            {}};
  }
  /// Ends a batch: the last stage draws its tokens, and the others describe it to the next stage.
  void end_batch(std::uint32_t m, std::span<const GptSegment> segments, std::byte* to) {
    if (m_decoder.predicts()) {
      draw(m, segments);
      if (to != nullptr) from_host(std::span<const std::uint8_t>(drawn(m)), to);
    } else if (m_stops) {
      from_host(std::span<const std::byte>(m_front), to + front_offset());
    }
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
  GptBatcher m_plan;  ///< as m_batcher, of texts of which only the lengths count
  GptSampler m_sampler;
  std::vector<std::byte> m_front;
  std::vector<std::uint8_t> m_drawn;  ///< tokens of all groups
  Batch m_batch = {};                 ///< of begin_group()
  bool m_stops = false;               ///< a request that is not over has a stop token
  bool m_busy = true;
};

}  // namespace examples
