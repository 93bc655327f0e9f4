// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GptBatcher: decides which rows of which requests every step of a generation computes. Requests
/// enter and end at steps (continuous batching, Yu et al., "Orca", OSDI 2022), and long prompts
/// enter in pieces beside the tokens of others (Agrawal et al., "Sarathi", 2023). It needs neither
/// Kokkos nor MPI.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

namespace examples {

/// A text to continue.
struct GptRequest {
  std::uint32_t number = 0;  ///< names the request; see GptSampler
  std::string prompt = {};   ///< at least one byte, at most the context
  int tokens = 0;            ///< the tokens to generate
  int stop = -1;             ///< a token after which the text ends; -1: none
  std::int64_t arrival = 0;  ///< the first step at which the request may enter
};

/// Consecutive rows of one request in a batch. A step with several segments is a packed batch: the
/// rows of all segments follow one another without gaps.
struct GptSegment {
  std::uint32_t slot;     ///< the place of the request in the cache
  std::uint32_t request;  ///< its number
  std::uint32_t first;    ///< the position of the first row; 0: the slot has a new text
  std::uint32_t rows;     ///< 0: the text of the slot has ended
  std::uint32_t index;    ///< the index of the token that is drawn from the last row
  std::uint32_t draws;    ///< 1: a token is drawn, 0: more rows of the text follow
};

/// What a batch moves between stages: a row of activations for each row, and a token for each draw.
struct GptBatchShape {
  std::size_t rows = 0;
  std::size_t draws = 0;
};

/// The sizes of the batches.
struct GptBatchSizes {
  std::uint32_t groups = 1;    ///< batches that are in flight at once: as many as stages or more
  std::uint32_t requests = 4;  ///< requests of a group at once
  std::uint32_t rows = 16;     ///< rows of a group in a step, at least its requests
  std::uint32_t context = 64;  ///< the most positions of a text
  /// The tokens that stay when a text grows beyond the context. Its positions then begin anew, so
  /// these tokens are computed again. 0: half the context. With the whole context every further
  /// token computes all positions.
  std::uint32_t keep = 0;
  std::uint32_t block = 16;  ///< tokens of a block of the cache
  std::size_t blocks = 0;    ///< blocks of the cache; 0: enough for all requests at once

  /// The requests of all groups at once.
  [[nodiscard]] std::uint32_t slots() const { return groups * requests; }
  /// The blocks of so many tokens of one text.
  [[nodiscard]] std::size_t blocks_of(std::size_t tokens) const {
    return (std::min<std::size_t>(tokens, context) + block - 1) / block;
  }
  /// The tokens that stay.
  [[nodiscard]] std::uint32_t kept() const { return keep == 0 ? (context + 1) / 2 : keep; }
  /// The blocks of the cache.
  [[nodiscard]] std::size_t all_blocks() const {
    return blocks == 0 ? slots() * blocks_of(context) : blocks;
  }
};

/// Throws contract_error naming the first size that is out of range.
inline void validate(const GptBatchSizes& sizes) {
  const auto need = [](bool good, const char* what, std::string got, const char* remedy) {
    heddle::expects(good, [&] {
      return heddle::ErrorInfo{"GptBatchSizes", what, std::move(got), remedy};
    });
  };
  need(sizes.groups > 0 && sizes.requests > 0 && sizes.context > 0 && sizes.block > 0,
       "groups, requests, the context and blocks need at least 1",
       heddle::text(sizes.groups, " groups, ", sizes.requests, " requests, context ", sizes.context,
                    ", blocks of ", sizes.block),
       "use positive numbers");
  need(sizes.rows >= sizes.requests, "a step has fewer rows than requests",
       heddle::text(sizes.rows, " rows, ", sizes.requests, " requests"),
       "give a step at least one row for each request");
  need(sizes.keep <= sizes.context, "more tokens stay than the context has",
       heddle::text("keep ", sizes.keep, ", context ", sizes.context), "keep at most the context");
}

/// The requests of a generation: those that wait, those in the slots, and the texts of all.
class GptBatcher {
 public:
  /// Constructs a batcher without requests. @throws contract_error as validate() does.
  explicit GptBatcher(const GptBatchSizes& sizes) : m_sizes(sizes), m_groups(sizes.groups) {
    validate(sizes);
    for (Group& group : m_groups) {
      group.slots.resize(sizes.requests);
      group.segments.reserve(2 * sizes.requests);
      group.tokens.reserve(sizes.rows);
    }
  }

  /// Appends a request. @throws contract_error if its prompt is empty or longer than the context,
  /// if it asks for no token, if its number was used before, or if the cache cannot hold it.
  void submit(GptRequest request) {
    const auto need = [&](bool good, const char* what, std::string got, const char* remedy) {
      heddle::expects(good, [&] {
        return heddle::ErrorInfo{heddle::text("GptBatcher: request ", request.number), what,
                                 std::move(got), remedy};
      });
    };
    need(!request.prompt.empty(), "the prompt is empty", {},
         "begin with at least one byte, such as a newline");
    need(request.prompt.size() <= m_sizes.context, "the prompt is longer than the context",
         heddle::text(request.prompt.size(), " bytes, context ", m_sizes.context),
         "shorten the prompt, or train a model with a longer context");
    need(request.tokens > 0, "no token is asked for", heddle::text("tokens ", request.tokens),
         "ask for at least one");
    need(!m_texts.contains(request.number), "the number is already used", {},
         "give every request a number of its own");
    need(blocks_of(request) <= m_sizes.all_blocks(), "the cache is too small for the text",
         heddle::text(blocks_of(request), " blocks of ", m_sizes.block, " tokens, the cache has ",
                      m_sizes.all_blocks()),
         "give the cache more blocks, or ask for fewer tokens");
    std::string& text = m_texts[request.number];
    text.reserve(request.prompt.size() + static_cast<std::size_t>(request.tokens));
    text = request.prompt;
    m_waiting.push_back(std::move(request));
  }

  /// Takes the tokens that the last step of a group has drawn, one for each segment with `draws`,
  /// in their order. Before the first step there are none.
  void take(std::size_t group, std::span<const std::uint8_t> drawn) {
    Group& its = m_groups[group];
    std::size_t next = 0;
    for (const GptSegment& segment : its.segments) {
      if (segment.draws == 0) continue;
      Slot& slot = its.slots[segment.slot - group * m_sizes.requests];
      slot.text->push_back(static_cast<char>(drawn[next]));
      ++slot.drawn;
      slot.ended = slot.drawn == slot.tokens || drawn[next] == slot.stop;
      ++next;
      if (slot.ended || slot.text->size() - slot.start <= m_sizes.context) continue;
      slot.start = slot.text->size() - m_sizes.kept();
      slot.fed = 0;
    }
    its.segments.clear();
  }

  /// Returns the segments of the group's next step; tokens() has their tokens. Ended texts leave
  /// their slots first, and waiting requests enter. An empty step is over at once.
  [[nodiscard]] std::span<const GptSegment> next(std::size_t group) {
    Group& its = m_groups[group];
    its.segments.clear();
    its.tokens.clear();
    for (std::size_t i = 0; i < its.slots.size(); ++i)
      if (its.slots[i].ended) leave(its, number(group, i), its.slots[i]);
    enter(its);
    ++its.step;
    std::size_t left = m_sizes.rows;
    for (Slot& slot : its.slots) left -= (slot.rows = slot.text != nullptr && slot.due() == 1);
    for (Slot& slot : its.slots) {
      if (slot.text == nullptr || slot.rows > 0) continue;
      left -= slot.rows = std::min(slot.due(), left);
    }
    for (std::size_t i = 0; i < its.slots.size(); ++i)
      if (its.slots[i].rows > 0) feed(its, number(group, i), its.slots[i]);
    return its.segments;
  }
  /// Returns the tokens of the rows of the last next().
  [[nodiscard]] std::span<const std::uint8_t> tokens(std::size_t group) const {
    return m_groups[group].tokens;
  }

  /// Returns the segments of the last next().
  [[nodiscard]] std::span<const GptSegment> segments(std::size_t group) const {
    return m_groups[group].segments;
  }
  /// Returns the rows and the draws of the last next().
  [[nodiscard]] GptBatchShape shape(std::size_t group) const {
    GptBatchShape shape{.rows = m_groups[group].tokens.size()};
    for (const GptSegment& segment : m_groups[group].segments) shape.draws += segment.draws;
    return shape;
  }

  /// Returns the shapes of all batches that the waiting requests need if every text gets all of its
  /// tokens: those of the groups of the first step, then those of the second step, and so on.
  /// @throws contract_error if a request is in a slot.
  [[nodiscard]] std::vector<GptBatchShape> passes() const {
    heddle::expects(m_active == 0, [&] {
      return heddle::ErrorInfo{"GptBatcher::passes", "texts are in their slots",
                               heddle::text(m_active, " texts"), "call it before the first step"};
    });
    GptBatcher ahead(*this);
    for (GptRequest& each : ahead.m_waiting) each.stop = -1;
    const std::vector<std::uint8_t> drawn(m_sizes.requests);
    std::vector<GptBatchShape> shapes;
    while (ahead.busy())
      for (std::size_t group = 0; group < m_groups.size(); ++group) {
        ahead.take(group, drawn);
        static_cast<void>(ahead.next(group));
        shapes.push_back(ahead.shape(group));
      }
    return shapes;
  }

  /// Ends all texts at once. The steps are counted on.
  void clear() {
    for (Group& group : m_groups) {
      std::ranges::fill(group.slots, Slot{});
      group.segments.clear();
      group.tokens.clear();
      group.active = 0;
    }
    m_waiting.clear();
    m_active = m_reserved = 0;
  }

  /// Returns true if a request waits or is in a slot.
  [[nodiscard]] bool busy() const { return !m_waiting.empty() || m_active > 0; }
  /// Returns the prompt and the tokens of a request so far.
  [[nodiscard]] const std::string& text(std::uint32_t request) const { return m_texts.at(request); }
  /// Returns the texts of all requests by their numbers.
  [[nodiscard]] const std::map<std::uint32_t, std::string>& texts() const { return m_texts; }

 private:
  struct Slot {
    std::string* text = nullptr;  ///< null: the slot is free
    std::uint32_t request = 0;
    std::size_t start = 0;  ///< the byte of the text that has position 0
    std::size_t fed = 0;    ///< positions whose rows were computed
    std::size_t rows = 0;   ///< rows of this step
    int drawn = 0, tokens = 0, stop = -1;
    std::size_t blocks = 0;  ///< reserved
    bool ended = false;

    /// Rows that the text lacks.
    [[nodiscard]] std::size_t due() const { return text->size() - start - fed; }
  };
  struct Group {
    std::vector<Slot> slots = {};
    std::vector<GptSegment> segments = {};
    std::vector<std::uint8_t> tokens = {};
    std::size_t active = 0;
    std::int64_t step = 0;
  };

  [[nodiscard]] std::uint32_t number(std::size_t group, std::size_t slot) const {
    return static_cast<std::uint32_t>(group * m_sizes.requests + slot);
  }
  /// The last token of a text needs no row.
  [[nodiscard]] std::size_t blocks_of(const GptRequest& request) const {
    return m_sizes.blocks_of(request.prompt.size() + static_cast<std::size_t>(request.tokens) - 1);
  }

  void leave(Group& group, std::uint32_t place, Slot& slot) {
    group.segments.push_back({place, slot.request, 0, 0, 0, 0});
    m_reserved -= slot.blocks;
    slot = {};
    --group.active;
    --m_active;
  }

  /// Requests enter in the order of their submission. The groups share them evenly.
  void enter(Group& group) {
    const auto arrived = static_cast<std::size_t>(std::ranges::count_if(
        m_waiting, [&](const GptRequest& each) { return each.arrival <= group.step; }));
    const std::size_t share = (m_active + arrived + m_sizes.groups - 1) / m_sizes.groups;
    for (Slot& slot : group.slots) {
      if (slot.text != nullptr) continue;
      const auto request = std::ranges::find_if(
          m_waiting, [&](const GptRequest& each) { return each.arrival <= group.step; });
      if (request == m_waiting.end() || group.active >= share) return;
      const std::size_t blocks = blocks_of(*request);
      if (m_reserved + blocks > m_sizes.all_blocks()) return;
      slot = {.text = &m_texts[request->number],
              .request = request->number,
              .tokens = request->tokens,
              .stop = request->stop,
              .blocks = blocks};
      m_reserved += blocks;
      ++group.active;
      ++m_active;
      m_waiting.erase(request);
    }
  }

  static void feed(Group& group, std::uint32_t place, Slot& slot) {
    const auto from = slot.text->begin() + static_cast<std::ptrdiff_t>(slot.start + slot.fed);
    group.tokens.insert(group.tokens.end(), from, from + static_cast<std::ptrdiff_t>(slot.rows));
    const std::uint32_t draws = slot.rows == slot.due() ? 1 : 0;
    group.segments.push_back({place, slot.request, static_cast<std::uint32_t>(slot.fed),
                              static_cast<std::uint32_t>(slot.rows),
                              static_cast<std::uint32_t>(slot.drawn), draws});
    slot.fed += slot.rows;
  }

  GptBatchSizes m_sizes;
  std::vector<Group> m_groups;
  std::deque<GptRequest> m_waiting;
  std::map<std::uint32_t, std::string> m_texts;
  std::size_t m_active = 0, m_reserved = 0;
};

}  // namespace examples
