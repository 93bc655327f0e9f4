// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of stream_crew.hpp.

#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/execute/impl/stream_crew.hpp>

namespace heddle::inline v0::impl {

struct CrewThreads::Threads {
  std::vector<std::thread> all;
};

HEDDLE_INLINE CrewThreads::CrewThreads() : m_threads(std::make_unique<Threads>()) {}

HEDDLE_INLINE CrewThreads::~CrewThreads() = default;

HEDDLE_INLINE void CrewThreads::start(std::function<void()> work) {
  m_threads->all.emplace_back(std::move(work));
}

HEDDLE_INLINE void CrewThreads::join() {
  for (std::thread& thread : m_threads->all) thread.join();
}

}  // namespace heddle::inline v0::impl
