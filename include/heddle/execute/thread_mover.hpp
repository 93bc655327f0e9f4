// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ThreadMover: a mover with one thread, which copies between host memory and files.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/internal/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/mover.hpp>

namespace heddle::inline v0 {

namespace impl {

/// A function that copies the bytes of a buffer from `offset` on, counted from the begin of the
/// buffer, to `to`. The thread of a ThreadMover calls it.
using BytesReader = std::function<void(Bytes offset, std::span<std::byte> to)>;

/// An open file. It is closed when the last move that uses it is complete.
struct MoverFile;

/// One move, in a slot of its mover that is reused.
struct ThreadMove {
  const std::byte* source = nullptr;          ///< null if the move reads a file or calls a function
  std::byte* target = nullptr;                ///< null if the move writes the file
  std::shared_ptr<const MoverFile> file;      ///< null if no end is in a file
  std::shared_ptr<const BytesReader> reader;  ///< null unless a function reads the source
  Bytes offset = 0;                           ///< in the file
  Bytes bytes = 0;
  std::atomic<bool> cancelled{false};
  std::atomic<bool> over{false};
  std::exception_ptr error;
};

}  // namespace impl

/// A mover whose thread performs one move after another, in the order of their starts, whatever
/// their lanes. A move copies from memory to memory, reads from a file, writes to a file, or calls
/// a function that reads. It models Mover. One thread uses it, usually that of one rank:
///
///     ThreadMover mover;
///     mover.attach(weights, {.path = "weights.tier", .bytes = size});
///     Executor executor(std::move(program), transport, {.mover = mover});
///
/// A file is read with pread(), so the page cache of the system serves data that it holds. The
/// destructor cancels the moves in flight.
class ThreadMover {
 public:
  /// The bytes of a file that a buffer stands for.
  struct FileRange {
    std::string path;       ///< the file
    Bytes offset = 0;       ///< where the buffer begins in the file
    Bytes bytes = 0;        ///< the size of the buffer, which attach() checks; 0: not checked
    bool writable = false;  ///< true if moves may write to the buffer
  };

  /// Refers to a move until `test` has returned true or `cancel` was called. Move-only.
  class Request {
   public:
    /// Refers to no move, and is complete.
    Request() = default;
    /// Leaves `other` without a move.
    Request(Request&& other) noexcept : m_move(std::exchange(other.m_move, nullptr)) {}
    /// Leaves `other` without a move.
    Request& operator=(Request&& other) noexcept {
      m_move = std::exchange(other.m_move, nullptr);
      return *this;
    }

   private:
    friend class ThreadMover;
    explicit Request(impl::ThreadMove* move) : m_move(move) {}
    impl::ThreadMove* m_move = nullptr;
  };

  /// Starts the thread. @throws std::system_error if the system does not start it.
  ThreadMover();
  ThreadMover(const ThreadMover&) = delete;
  ThreadMover& operator=(const ThreadMover&) = delete;
  /// Cancels all moves and ends the thread.
  ~ThreadMover();

  /// Declares that `buffer` is in a file. It replaces an earlier file of the buffer.
  /// @throws format_error if the file cannot be opened, or if it ends before the buffer does.
  void attach(BufferId buffer, const FileRange& range);
  /// Declares that `read` reads `buffer`, for example from a tier::Store (see tier::reader_of()). A
  /// move from the buffer calls `read` once, so `cancel` waits for this call. The error that `read`
  /// throws is that of the move. It replaces an earlier file or function of the buffer.
  /// @throws contract_error if `read` is empty.
  void attach_reader(BufferId buffer, impl::BytesReader read);
  /// Returns true if the buffer is in a file or has a function.
  [[nodiscard]] bool holds(BufferId buffer) const { return m_files.contains(buffer); }

  /// Starts a move; see Mover.
  /// @throws contract_error if an end has neither memory nor a file nor a function, if both ends
  ///         are in files, or if the target is in a file that is not writable.
  [[nodiscard]] Request start(Lane lane, const MoveEnd& from, const MoveEnd& to, Bytes bytes);
  /// Returns true if the move is complete. @throws format_error if the file could not be read or
  /// written, or ended before the move did. The error names the file and the offset. Also throws
  /// the error of a function that reads.
  [[nodiscard]] bool test(Request& request);
  /// Cancels an unfinished move, whose memory is free afterwards. The call waits while the thread
  /// copies at most 1 MiB, or calls a function that reads.
  void cancel(Request& request);

 private:
  /// The file or the function of a buffer.
  struct Place {
    std::shared_ptr<const impl::MoverFile> file;
    Bytes offset = 0;
    std::shared_ptr<const impl::BytesReader> reader;
  };

  /// Returns the file or the function of an end, or null if it is in memory.
  [[nodiscard]] const Place* place_of(const MoveEnd& end) const;
  impl::ThreadMove& take();
  void release(impl::ThreadMove& move);
  void work();

  std::map<BufferId, Place> m_files;
  std::vector<std::unique_ptr<impl::ThreadMove>> m_moves;  ///< all slots
  std::vector<impl::ThreadMove*> m_free;                   ///< the slots that no move uses
  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::deque<impl::ThreadMove*> m_queue;  ///< moves that the thread has not begun
  impl::ThreadMove* m_present = nullptr;  ///< the move that the thread performs
  bool m_ends = false;
  impl::Threads m_thread;  ///< the last member: the thread ends before the others
};
static_assert(Mover<ThreadMover>);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/thread_mover.ipp>
#endif
