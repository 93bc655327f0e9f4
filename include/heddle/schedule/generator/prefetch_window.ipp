// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of prefetch_window.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/generator/prefetch_window.hpp>
#include <heddle/schedule/impl/window_slots.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

// The numbers of a window: its slots, and the loads and uses of the whole list.
struct WindowShape {
  std::size_t window = 1;
  std::size_t loads = 1;
  std::size_t uses = 1;

  WindowShape(const PrefetchWindowOptions& options, std::size_t wanted) {
    const std::size_t objects = options.objects.size();
    uses = objects * static_cast<std::size_t>(options.passes);
    window = std::min(wanted, objects);
    loads = window == objects ? objects : uses;
  }
  [[nodiscard]] heddle::impl::WindowSlots slots(const PrefetchWindowOptions& options) const {
    return {options.objects, window, std::min(loads, window * options.objects.size())};
  }
};

inline WindowShape checked_window(const PrefetchWindowOptions& options) {
  constexpr const char* where = "heddle::schedule::prefetch_window";
  expects(options.window >= 1, [&] {
    return ErrorInfo{where, "the window must hold at least one object",
                     text("window = ", options.window),
                     "2 loads an object while the one before it is used"};
  });
  expects(options.passes >= 1, [&] {
    return ErrorInfo{where, "there must be at least one pass", text("passes = ", options.passes)};
  });
  expects(!options.objects.empty(), [&] {
    return ErrorInfo{where, "there is no object", "`objects` is empty",
                     "give the bytes of every object, in the order of use"};
  });
  Bytes sum = 0;
  for (std::size_t k = 0; k < options.objects.size(); ++k) {
    expects(options.objects[k] > 0, [&] {
      return ErrorInfo{where, text("object ", k, " is empty"), "it has 0 bytes",
                       "leave it out, or join it with the next one"};
    });
    expects(!__builtin_add_overflow(sum, options.objects[k], &sum), [&] {
      return ErrorInfo{where, "the objects have more bytes than fit in 64 bits",
                       text("object ", k, " has ", options.objects[k], " bytes")};
    });
  }
  return {options, static_cast<std::size_t>(options.window)};
}

inline void check_window_fits(const PrefetchWindowOptions& options, Bytes needed) {
  constexpr const char* where = "heddle::schedule::prefetch_window";
  const auto largest = std::ranges::max_element(options.objects);
  if (*largest > options.capacity)
    throw infeasible(
        {where, text("object ", largest - options.objects.begin(), " is larger than the fast tier"),
         text("the object has ", *largest, " bytes, the tier ", options.capacity),
         "divide the object into smaller ones"});
  std::size_t fits = static_cast<std::size_t>(options.window);
  while (fits > 1 && WindowShape(options, fits).slots(options).bytes() > options.capacity) --fits;
  throw infeasible({where, text("a window of ", options.window, " does not fit in the fast tier"),
                    text("its slots have ", needed, " bytes, the tier ", options.capacity),
                    text("the largest window that fits is ", fits)});
}

}  // namespace impl

HEDDLE_INLINE Bytes PrefetchWindowOptions::slot_bytes() const {
  return impl::checked_window(*this).slots(*this).bytes();
}

HEDDLE_INLINE Schedule prefetch_window(const PrefetchWindowOptions& options) {
  const impl::WindowShape shape = impl::checked_window(options);
  const heddle::impl::WindowSlots slots = shape.slots(options);
  if (options.capacity != 0 && slots.bytes() > options.capacity)
    impl::check_window_fits(options, slots.bytes());
  const std::size_t objects = options.objects.size();
  Builder builder(text("window of ", shape.window, " of ", objects, " objects, ", options.passes,
                       options.passes == 1 ? " pass" : " passes"),
                  1);
  builder.reserve_actions(shape.loads + shape.uses, 2 * shape.loads + shape.uses);
  Buffer all{.label = builder.label(role::weights), .tier = window::slow, .transient = false};
  heddle::impl::cut_in_parts(all, options.objects);
  Buffer fast{.label = builder.label(window::slots), .tier = window::fast};
  heddle::impl::cut_in_parts(fast, slots.parts());
  const BufferId from = builder.add_buffer(all);
  const BufferId to = builder.add_buffer(fast);
  const auto add = [&](Kind kind, Lane lane, std::size_t i, std::initializer_list<Use> uses) {
    builder.add({.kind = kind,
                 .queue = builder.local(Rank{0}, lane),
                 .stage = Stage{i % objects},
                 .item = Item{i / objects}},
                uses);
  };
  const auto load = [&](std::size_t i) {
    if (i < shape.loads)
      add(Kind::move, window::load, i,
          {read(from, static_cast<std::uint32_t>(i % objects)), slots.use(Access::write, to, i)});
  };
  builder.local(Rank{0}, window::compute);  // the first queue, so that pictures show it first
  for (std::size_t i = 0; i < shape.window; ++i) load(i);
  for (std::size_t i = 0; i < shape.uses; ++i) {
    // If all objects have a slot, the slot of a use is that of the first pass.
    const std::size_t loaded = shape.loads == objects ? i % objects : i;
    add(Kind::forward, window::compute, i, {slots.use(Access::read, to, loaded)});
    load(i + shape.window);
  }
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::schedule
