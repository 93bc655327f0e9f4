// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of checkpoint_saver.hpp.

#include <exception>
#include <future>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/pipeline/checkpoint.hpp>
#include <heddle/pipeline/checkpoint_saver.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE void CheckpointSaver::save_arrays(const std::string& path,
                                                     const std::vector<impl::HeldArray>& held,
                                                     Checkpoint own, const TransportRef& transport,
                                                     const ExecuteOptions& options) {
  (void)wait_together(transport, options);
  std::exception_ptr error;
  Checkpoint whole = impl::gather_arrays(held, std::move(own), transport, options, error);
  m_path = path;
  m_pending = true;
  if (transport.rank() != Rank{0}) return;
  try {
    if (error) std::rethrow_exception(error);
    m_writing =
        std::async(std::launch::async, [path, state = std::move(whole)] { state.save(path); });
  } catch (...) {  // no memory or no thread
    std::promise<void> failed;
    failed.set_exception(std::current_exception());
    m_writing = failed.get_future();
  }
}

HEDDLE_FULL_INLINE bool CheckpointSaver::wait_together(const TransportRef& transport,
                                                       const ExecuteOptions& options) {
  if (!m_pending) return m_failure.empty();
  m_pending = false;
  std::string newest = m_newest, failure;
  if (transport.rank() == Rank{0}) {
    const auto failed = [&](const char* why) {
      failure = text("heddle::CheckpointSaver: cannot save the checkpoint '", m_path, "': ", why,
                     newest.empty() ? std::string(". No checkpoint is kept")
                                    : text(". The checkpoint '", newest, "' is kept"));
    };
    try {
      m_writing.get();
      newest = m_path;
    } catch (const std::exception& error) {
      failed(error.what());
    } catch (...) {
      failed("unknown error");
    }
  }
  // Rank 0 decides for all.
  const auto of_first = [&](const std::string& mine) {
    const auto told = all_gather<char>(transport, std::span<const char>(mine), options)[0];
    return std::string(told.begin(), told.end());
  };
  m_newest = of_first(newest);
  m_failure = of_first(failure);
  return m_failure.empty();
}

}  // namespace heddle::inline v0
