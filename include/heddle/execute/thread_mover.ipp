// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of thread_mover.hpp.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <sys/types.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/mover.hpp>
#include <heddle/execute/thread_mover.hpp>

namespace heddle::inline v0 {

namespace impl {

struct MoverFile {
  MoverFile(std::string name, bool writes) : path(std::move(name)), writable(writes) {
    do {
      number = ::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    } while (number < 0 && errno == EINTR);
    if (number < 0)
      throw format_error({"heddle::ThreadMover", "cannot open '" + path + "'",
                          std::generic_category().message(errno)});
  }
  MoverFile(const MoverFile&) = delete;
  MoverFile& operator=(const MoverFile&) = delete;
  ~MoverFile() { ::close(number); }

  std::string path;
  bool writable;
  int number = -1;
};

// How much a thread copies before it looks whether the move was cancelled.
inline constexpr Bytes moved_at_once = Bytes{1} << 20;

// Copies, reads or writes the first of `bytes` bytes at `done` of a move. Returns how many.
inline Bytes move_some(const ThreadMove& move, Bytes done, Bytes bytes) {
  if (move.file == nullptr) {
    std::memcpy(move.target + done, move.source + done, bytes);
    return bytes;
  }
  const auto at = static_cast<::off_t>(move.offset + done);
  for (;;) {
    const ::ssize_t moved = move.target != nullptr
                                ? ::pread(move.file->number, move.target + done, bytes, at)
                                : ::pwrite(move.file->number, move.source + done, bytes, at);
    if (moved > 0) return static_cast<Bytes>(moved);
    if (moved < 0 && errno == EINTR) continue;
    const std::string cause = moved == 0 ? text("the file ends there, after ", done, " of ",
                                                move.bytes, " bytes of the move")
                                         : std::generic_category().message(errno);
    throw format_error(
        {"heddle::ThreadMover",
         text(move.target != nullptr ? "cannot read '" : "cannot write '", move.file->path, "'"),
         text("offset ", at, ": ", cause)});
  }
}

inline void perform_move(ThreadMove& move) noexcept {
  try {
    if (move.reader != nullptr) return (*move.reader)(move.offset, {move.target, move.bytes});
    for (Bytes done = 0; done < move.bytes && !move.cancelled.load(std::memory_order_relaxed);)
      done += move_some(move, done, std::min(moved_at_once, move.bytes - done));
  } catch (...) {
    move.error = std::current_exception();
  }
}

}  // namespace impl

HEDDLE_INLINE ThreadMover::ThreadMover() : m_thread(1, [this](int) { work(); }) {
  m_thread.begin_all("heddle::ThreadMover");
}

HEDDLE_INLINE ThreadMover::~ThreadMover() {
  {
    const std::scoped_lock lock(m_mutex);
    m_ends = true;
    m_queue.clear();
    if (m_present != nullptr) m_present->cancelled = true;
  }
  m_changed.notify_all();
}

HEDDLE_INLINE void ThreadMover::attach(BufferId buffer, const ThreadMover::FileRange& range) {
  auto file = std::make_shared<const impl::MoverFile>(range.path, range.writable);
  struct ::stat found {};
  const bool known = ::fstat(file->number, &found) == 0;
  const Bytes size = known ? static_cast<Bytes>(found.st_size) : 0;
  if (range.bytes != 0 && (size < range.offset || size - range.offset < range.bytes))
    throw format_error({"heddle::ThreadMover", "'" + range.path + "' ends before the buffer",
                        text("buffer ", buffer, " is [", range.offset, ", ",
                             range.offset + range.bytes, "), the file has ", size, " bytes"),
                        "write the file again, or name the one that was written for this buffer"});
  m_files[buffer] = {std::move(file), range.offset, nullptr};
}

HEDDLE_INLINE void ThreadMover::attach_reader(BufferId buffer, impl::BytesReader read) {
  expects(read != nullptr, [&] {
    return ErrorInfo{"heddle::ThreadMover", "there is no function that reads the buffer",
                     text("buffer ", buffer), "give a function, or a ThreadMover::FileRange"};
  });
  m_files[buffer] = {nullptr, 0, std::make_shared<const impl::BytesReader>(std::move(read))};
}

HEDDLE_INLINE const ThreadMover::Place* ThreadMover::place_of(const MoveEnd& end) const {
  const auto found = m_files.find(end.buffer);
  if (found != m_files.end()) return &found->second;
  expects(end.data != nullptr, [&] {
    return ErrorInfo{"heddle::ThreadMover", "a buffer has neither memory nor a file",
                     text("buffer ", end.buffer, " in tier ", end.tier),
                     "call attach() for it, or bind memory"};
  });
  return nullptr;
}

HEDDLE_INLINE ThreadMover::Request ThreadMover::start(Lane /*lane*/, const MoveEnd& from,
                                                      const MoveEnd& to, Bytes bytes) {
  if (bytes == 0) return {};
  const Place* const source = place_of(from);
  const Place* const target = place_of(to);
  expects(source == nullptr || target == nullptr, [&] {
    return ErrorInfo{"heddle::ThreadMover", "a move from file to file passes no memory",
                     text("from buffer ", from.buffer, " to buffer ", to.buffer),
                     "move the parts to memory first"};
  });
  expects(target == nullptr || (target->file != nullptr && target->file->writable), [&] {
    return ErrorInfo{"heddle::ThreadMover", "a move would write to a file that is only read",
                     text("buffer ", to.buffer, ", ",
                          target->file != nullptr ? "'" + target->file->path + "'"
                                                  : std::string("read by a function")),
                     "attach it with ThreadMover::FileRange::writable"};
  });
  impl::ThreadMove& move = take();
  move.source = source != nullptr ? nullptr : from.data;
  move.target = target != nullptr ? nullptr : to.data;
  if (const Place* const place = source != nullptr ? source : target) {
    move.file = place->file;
    move.reader = place->reader;
    move.offset = place->offset + (source != nullptr ? from.offset : to.offset);
  }
  move.bytes = bytes;
  {
    const std::scoped_lock lock(m_mutex);
    m_queue.push_back(&move);
  }
  m_changed.notify_all();
  return Request(&move);
}

HEDDLE_INLINE bool ThreadMover::test(Request& request) {
  impl::ThreadMove* const move = request.m_move;
  if (move == nullptr) return true;
  if (!move->over.load(std::memory_order_acquire)) return false;
  request.m_move = nullptr;
  const std::exception_ptr error = std::exchange(move->error, nullptr);
  release(*move);
  if (error) std::rethrow_exception(error);
  return true;
}

HEDDLE_INLINE void ThreadMover::cancel(Request& request) {
  impl::ThreadMove* const move = std::exchange(request.m_move, nullptr);
  if (move == nullptr) return;
  move->cancelled = true;
  {
    std::unique_lock lock(m_mutex);
    std::erase(m_queue, move);
    m_changed.wait(lock, [&] { return m_present != move; });
  }
  release(*move);
}

HEDDLE_INLINE impl::ThreadMove& ThreadMover::take() {
  if (m_free.empty())
    m_free.push_back(m_moves.emplace_back(std::make_unique<impl::ThreadMove>()).get());
  impl::ThreadMove& move = *m_free.back();
  m_free.pop_back();
  move.cancelled = false;
  move.over = false;
  return move;
}

HEDDLE_INLINE void ThreadMover::release(impl::ThreadMove& move) {
  move.file.reset();
  move.reader.reset();
  move.error = nullptr;
  m_free.push_back(&move);
}

HEDDLE_INLINE void ThreadMover::work() {
  std::unique_lock lock(m_mutex);
  for (;;) {
    m_changed.wait(lock, [&] { return m_ends || !m_queue.empty(); });
    if (m_ends) return;
    m_present = m_queue.front();
    m_queue.pop_front();
    lock.unlock();
    impl::perform_move(*m_present);
    lock.lock();
    std::exchange(m_present, nullptr)->over.store(true, std::memory_order_release);
    m_changed.notify_all();  // for cancel()
  }
}

}  // namespace heddle::inline v0
