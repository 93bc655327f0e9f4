// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What all collective calls share: a call is checked, and then made by the MPI library or by a
/// Schedule; at once, as a Request, or again and again.

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/blocks.hpp>
#include <heddle/collective/impl/joiner.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/impl/shared_performer.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/gpu_aware.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>

namespace heddle::inline v0 {

/// A View whose elements can travel as bytes.
template <class V>
concept TravellingView =
    Kokkos::is_view_v<V> && std::is_trivially_copyable_v<typename V::non_const_value_type>;

namespace impl {

/// Refuses a View with gaps.
template <class View>
void expect_contiguous(const char* where, const View& view) {
  expects(view.span_is_contiguous(), [&] {
    return Complaint{where, "the view is not contiguous", view.label(),
                     "copy it into a contiguous one"};
  });
}

/// Refuses a View of another number of elements.
template <class View>
void expect_size(const char* where, const char* name, const View& view, std::size_t size) {
  expects(view.size() == size, [&] {
    return Complaint{where, text("the ", name, " has the wrong size"),
                     text(view.label(), " has ", view.size(), " elements, expected ", size)};
  });
}

/// Whether the two Views can be the two ends of a call.
template <class In, class Out>
inline constexpr bool match =
    std::is_same_v<typename In::non_const_value_type, typename Out::value_type>&&
        std::is_same_v<typename In::memory_space, typename Out::memory_space>;

template <class View>
[[nodiscard]] std::byte* begin_of(const View& view) {
  using Element = typename View::non_const_value_type;
  return reinterpret_cast<std::byte*>(const_cast<Element*>(view.data()));
}

/// A View as MPI can be given it: as it lies, or a copy on the host.
template <class View>
class LibraryView {
  static constexpr bool on_host =
      Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename View::memory_space>::accessible;
  using Mirror = decltype(Kokkos::create_mirror_view(std::declval<View>()));

 public:
  LibraryView(const View& view) : m_view(view) {}  // NOLINT(google-explicit-constructor)

  /// Before the call; `reads` what the View holds. MPIs that take a device's pointers do not all do
  /// so where they `compute`.
  template <class Exec>
  void fetch(const Exec& exec, bool reads, bool computes) {
    if constexpr (!on_host) {
      if (!computes && gpu_aware<typename View::memory_space>()) return;
      if (!m_copied) m_mirror = Kokkos::create_mirror_view(Kokkos::WithoutInitializing, m_view);
      m_copied = true;
      if (reads) Kokkos::deep_copy(exec, m_mirror, m_view);
    }
  }
  /// What MPI is given.
  [[nodiscard]] void* data() const {
    if constexpr (!on_host)
      if (m_copied) return begin_of(m_mirror);
    return begin_of(m_view);
  }
  /// After the call.
  template <class Exec>
  void give(const Exec& exec) const {
    if constexpr (!on_host) {
      if (!m_copied) return;
      Kokkos::deep_copy(exec, m_view, m_mirror);
      exec.fence("heddle::collective::staged");
    }
  }
  [[nodiscard]] const View& view() const noexcept { return m_view; }

 private:
  View m_view;
  std::conditional_t<on_host, char, Mirror> m_mirror{};
  bool m_copied = false;
};

/// What every call has. A call that derives from it says
/// - `check()`: what of it is refused;
/// - `key()`: its Schedule; `memory()`: what that is bound to; `before()` and `after()`: copies
///   around it on this rank;
/// - `knows()`: whether MPI can make it; `fetch()` and `give()`: copies around MPI's call; and
///   `library(request)`: that call, which blocks where `request` is null.
template <class Exec, class View, class R>
struct CallBase {
  using Element = typename View::non_const_value_type;
  using MemorySpace = typename View::memory_space;
  static_assert(Kokkos::is_execution_space_v<Exec>,
                "heddle: the first argument of a collective is an execution space instance");
  static_assert(Kokkos::SpaceAccessibility<Exec, MemorySpace>::accessible,
                "heddle: kernels of the execution space cannot reach the View's memory");

  Exec exec;
  R reduction;
  const Communicator* comm;
  CallOptions options;

  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(comm->size()); }
  [[nodiscard]] std::size_t rank() const { return +comm->rank(); }

  /// The key of a Schedule of these sizes.
  [[nodiscard]] PerformerKey key(schedule::Collective collective, Bytes bytes,
                                 Rank root = {}) const {
    constexpr Scalar type = scalar_of<Element>;
    return {.collective = collective,
            .bytes = bytes,
            .type = type,
            .element = type == Scalar::byte ? sizeof(Element) : 0,
            .root = root,
            .path = options.path,
            .idle = options.execute.idle,
            .watchdog = options.execute.watchdog,
            .space = typeid(MemorySpace)};
  }

  /// Of one with these blocks.
  [[nodiscard]] PerformerKey key(schedule::Collective collective, const Blocks& blocks,
                                 Rank root = {}) const {
    PerformerKey made = key(collective, blocks.total() * sizeof(Element), root);
    if (!blocks.even()) made.blocks = blocks.bytes(sizeof(Element));
    return made;
  }

  void before() const {}
  void after() const {}

  /// Copies `count` elements, and waits for it.
  void copy(const std::byte* from, std::byte* into, std::size_t count) const {
    copy_in<MemorySpace>(exec, from, into, count * sizeof(Element));
  }

  void expect_no_counts(const char* where) const {
    expects(options.counts.empty(), [&] {
      return Complaint{where, "it has no blocks to count", text(options.counts.size(), " counts")};
    });
  }
  void expect_root(const char* where, Rank root) const {
    expects(+root < ranks(), [&] {
      return Complaint{where, "no such root", text("rank ", root, " of ", ranks())};
    });
  }
};

/// Which of ours is taken where none is asked for: few rounds for few bytes.
[[nodiscard]] inline schedule::Algorithm usual(schedule::Collective collective, Bytes bytes,
                                               int ranks, Rank root) {
  using enum schedule::Algorithm;
  constexpr Bytes few_bytes = 16 << 10;
  // A chain down which the whole goes uncut is slower than any tree.
  const bool rooted =
      collective == schedule::Collective::broadcast || collective == schedule::Collective::reduce;
  const schedule::Algorithm much = rooted ? binomial_tree : ring;
  for (const schedule::Algorithm each :
       {bytes <= few_bytes ? recursive_doubling : much, binomial_tree, ring, bruck, direct})
    if (schedule::applicable(collective, each, {.ranks = ranks, .root = root})) return each;
  return direct;
}

/// Refuses a codec that keeps what the call does not have, or changes what it only reads.
inline void check_codec(const char* where, const std::optional<Codec>& codec, bool reads_only) {
  if (!codec) return;
  expects(!codec->feedback && !(codec->agree && reads_only), [&] {
    return Complaint{where,
                     codec->feedback ? "a call keeps nothing for error feedback"
                                     : "senders do not agree with receivers by their inputs",
                     text("codec ", *codec),
                     codec->feedback ? "give it to cast_at_cut() on a Schedule of your own"
                                     : "leave Codec::agree out"};
  });
}

/// Completes the key of a call: by whom it is made, and how.
template <class Call>
void decide(const Call& call, PerformerKey& key) {
  const CallOptions& options = call.options;
  key.codec = options.codec;
  if (options.algorithm) {
    key.choice.algorithm = *options.algorithm;
    key.chunks = options.chunks;
    key.levels = options.levels;
    return;
  }
  const bool library = !options.progress_thread && !options.codec && call.knows();
  if (options.costs != nullptr) {
    expects(options.costs->machine().ranks() == call.comm->size(), [&] {
      return Complaint{Call::where, "the cost table is not one of these ranks",
                       text("of ", options.costs->machine().ranks(),
                            " ranks, the communicator has ", call.comm->size())};
    });
    key.choice =
        call.comm->template attached<CallLines>().choose(*options.costs, key.collective, key.bytes);
    if (!key.choice.library) key.costs = options.costs;
    if (!key.choice.library || library) return;
  }
  key.usual = true;
  key.choice = {library, usual(key.collective, key.bytes, call.comm->size(), key.root)};
}

/// The key of a call that is checked: for what is wrong on this rank, and at the contract level
/// "communication" for what differs between ranks.
template <class Call>
[[nodiscard]] PerformerKey checked(Call& call) {
  call.check();
  PerformerKey key = call.key();
  using enum schedule::Collective;
  check_codec(
      Call::where, call.options.codec,
      key.collective == all_to_all || key.collective == gather || key.collective == scatter);
  decide(call, key);
  check_agreement(*call.comm, [&] {
    std::string blocks;
    for (const Bytes bytes : key.blocks) blocks += text(blocks.empty() ? "" : " ", bytes);
    return CollectiveCall{
        Call::where,
        {{"bytes", text(key.bytes)},
         {"bytes of blocks", blocks},
         {"type", key.element == 0 ? text(key.type) : text(key.element, " bytes")},
         {"reduction", typeid(call.reduction).name()},
         {"root", text(key.root)},
         {"algorithm", text(key.choice)},
         {"chunks", text(key.chunks)},
         {"codec", key.codec ? text(*key.codec) : std::string("none")}}};
  });
  return key;
}

/// Returns when all ranks have come to the same call. What must be done together follows, in which
/// no rank furthers the requests that another one waits for; so they are furthered here.
template <class Call>
void meet(const Call& call) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(call.comm->get(), &request), Call::where);
  const ExecuteOptions& options = call.options.execute;
  auto& others = call.comm->template attached<CallLines>();
  Waiting waiting(options.idle);
  const Seconds since = steady_seconds();
  for (int done = 0;;) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), Call::where);
    if (done != 0) return;
    others.further();
    waiting();
    if (options.watchdog > 0 && steady_seconds() - since > options.watchdog)
      throw communication_error({text(Call::where, ", rank ", call.comm->rank()),
                                 "stuck: another rank does not come to the call",
                                 text("watchdog after ", options.watchdog, " s")});
  }
}

/// Whether a call that blocks is made by ranks that read each other's memory. The same on all
/// ranks, which have the same key.
template <class Call>
[[nodiscard]] bool shares(const Call& call, const PerformerKey& key) {
  constexpr Bytes least = 32 << 10;  // below it messages are as fast
  if constexpr (!Kokkos::SpaceAccessibility<Kokkos::HostSpace,
                                            typename Call::MemorySpace>::accessible)
    return false;
  else
    return call.options.shared_memory && !call.options.progress_thread && key.costs == nullptr &&
           !key.codec && key.bytes >= least && call.comm->size() > 1 &&
           call.comm->template attached<SharedPlace>().line([&] { meet(call); }).shares();
}

/// A call by a Schedule, under way.
template <class Call>
class ScheduledWork final : public Work {
 public:
  /// Begins it; `blocks` where nothing else is begun before it is over.
  ScheduledWork(Call call, const PerformerKey& key, bool blocks = false)
      : m_call(std::move(call)),
        m_joiner(m_call.exec, m_call.reduction, m_call.options.progress_thread),
        m_line(&line()) {
    m_call.exec.fence(Call::where);
    m_call.before();
    const CallMemory memory = m_call.memory();
    const ExecuteOptions& execute = m_call.options.execute;
    if (blocks && shares(m_call, key)) {
      const auto together = [this] { meet(m_call); };
      SharedLine& shared = m_call.comm->template attached<SharedPlace>().line(together);
      m_performer = &shared.find(key, memory, execute, together);
      m_line->begin(*m_performer, memory, this);
    } else {
      m_performer = &m_line->template begin<typename Call::MemorySpace>(key, memory, execute, this);
    }
    if (m_call.options.progress_thread) m_thread.emplace([this] { run(); });
  }
  ~ScheduledWork() override {
    if (m_thread) m_thread->join();
    if (m_performer != nullptr) m_line->end(*m_performer);
  }

  bool test() override {
    if (m_performer == nullptr) return true;
    if (m_thread ? !m_over.load(std::memory_order_acquire) : !m_performer->advance(m_joiner))
      return false;
    end();
    return true;
  }
  void wait() override {
    if (m_performer == nullptr) return;
    if (!m_thread && !wait_with_others()) m_performer->finish(m_joiner);
    end();
  }
  void abandon() noexcept override {
    if (m_performer == nullptr || m_thread) return;  // a thread waits, or finds out
    m_performer->abort(Call::where, "an exception left the scope of its request");
    m_line->end(*std::exchange(m_performer, nullptr));
  }

 private:
  CallLine& line() const {
    const bool thread = m_call.options.progress_thread;
    int level = MPI_THREAD_SINGLE;
    if (thread) check(MPI_Query_thread(&level), Call::where);
    expects(!thread || level == MPI_THREAD_MULTIPLE, [&] {
      return Complaint{Call::where, "a progress thread needs MPI at MPI_THREAD_MULTIPLE",
                       "other threads call MPI at the same time",
                       "construct the Environment with ThreadLevel::multiple, or call test()"};
    });
    return m_call.comm->template attached<CallLines>().line(thread);
  }

  /// Waits while others are under way, which are furthered meanwhile. False where they are over
  /// before this one, or time is up: what is waited for then, finish() finds out and says.
  bool wait_with_others() {
    const ExecuteOptions& options = m_call.options.execute;
    Waiting waiting(options.idle);
    const Seconds since = steady_seconds();
    while (m_line->under_way() > 1) {
      if (m_performer->advance(m_joiner)) return true;
      m_line->further(this);
      waiting();
      if (options.watchdog > 0 && steady_seconds() - since > options.watchdog) return false;
    }
    return false;
  }

  void run() noexcept {
    try {
      m_performer->finish(m_joiner);
    } catch (...) {
      m_error = std::current_exception();
    }
    m_over.store(true, std::memory_order_release);
  }

  void end() {
    if (m_thread) m_thread->join();
    m_thread.reset();
    m_line->end(*std::exchange(m_performer, nullptr));
    if (m_error) std::rethrow_exception(m_error);
    m_call.after();
  }

  Call m_call;
  Joiner<decltype(Call::exec), typename Call::MemorySpace, typename Call::Element,
         decltype(Call::reduction)>
      m_joiner;
  CallLine* m_line;
  Performer* m_performer = nullptr;
  std::optional<std::thread> m_thread;
  std::atomic<bool> m_over{false};
  std::exception_ptr m_error;
};

/// A call of MPI's, under way.
template <class Call>
class LibraryWork final : public Work {
 public:
  explicit LibraryWork(Call call) : m_call(std::move(call)) {
    m_call.fetch();
    m_call.exec.fence(Call::where);
    heddle::check(m_call.library(&m_request), Call::where);
  }
  bool test() override {
    int done = 0;
    heddle::check(MPI_Test(&m_request, &done, MPI_STATUS_IGNORE), Call::where);
    if (done != 0) end();
    return done != 0;
  }
  void wait() override {
    const ExecuteOptions& options = m_call.options.execute;
    Waiting waiting(options.idle);
    auto& others = m_call.comm->template attached<CallLines>();
    const Seconds since = steady_seconds();
    while (!test()) {
      others.further();
      waiting();
      if (options.watchdog <= 0 || steady_seconds() - since <= options.watchdog) continue;
      // A collective cannot be cancelled: its memory stays MPI's.
      static_cast<void>(new Call(m_call));
      m_request = MPI_REQUEST_NULL;
      m_over = true;
      throw communication_error({text(Call::where, ", rank ", m_call.comm->rank()),
                                 "stuck: another rank does not come to the call",
                                 text("watchdog after ", options.watchdog, " s")});
    }
  }
  void abandon() noexcept override {}  // MPI has no way to

 private:
  void end() {
    if (!std::exchange(m_over, true)) m_call.give();
  }

  Call m_call;
  MPI_Request m_request = MPI_REQUEST_NULL;
  bool m_over = false;
};

/// Makes a call that was checked, and waits for it.
template <class Call>
void perform(Call call, const PerformerKey& key) {
  if (!key.choice.library) {
    ScheduledWork<Call>(std::move(call), key, true).wait();
  } else if (call.comm->template attached<CallLines>().requested()) {
    // Polled, so that requests are furthered meanwhile; on all ranks, for MPI does not match calls
    // that block with others.
    LibraryWork<Call>(std::move(call)).wait();
  } else {
    call.fetch();
    call.exec.fence(Call::where);
    check(call.library(nullptr), Call::where);
    call.give();
  }
}
/// Makes the call and waits for it.
template <class Call>
void perform(Call call) {
  const PerformerKey key = checked(call);
  perform(std::move(call), key);
}

/// Begins a call that was checked.
template <class Call>
[[nodiscard]] Request begin(Call call, const PerformerKey& key) {
  if (key.choice.library) return Request(std::make_unique<LibraryWork<Call>>(std::move(call)));
  call.comm->template attached<CallLines>().requested(true);
  return Request(std::make_unique<ScheduledWork<Call>>(std::move(call), key));
}

/// Begins the call.
template <class Call>
[[nodiscard]] Request start(Call call) {
  const PerformerKey key = checked(call);
  return begin(std::move(call), key);
}

}  // namespace impl

/// A collective bound to its Views, which it keeps alive: prepare_...() makes it, and it is
/// performed again and again. All ranks of the communicator, which outlives it, do so alike.
template <class Call>
class Prepared {
 public:
  /// Of the library's own making.
  explicit Prepared(Call call) : m_call(std::move(call)), m_key(impl::checked(m_call)) {}

  /// Performs it and waits for it.
  void operator()() { impl::perform(m_call, m_key); }
  /// Begins to perform it. One at a time.
  [[nodiscard]] Request start() { return impl::begin(m_call, m_key); }
  /// Whether the MPI library performs it, instead of schedule().
  [[nodiscard]] bool by_library() const { return m_key.choice.library; }
  /// What an algorithm of ours performs. @throws contract_error where the library does it.
  [[nodiscard]] Schedule schedule() const {
    expects(!by_library(), [] {
      return Complaint{"heddle::Prepared::schedule", "the MPI library's own call is no schedule"};
    });
    return impl::schedule_of(m_key, m_call.comm->size());
  }

 private:
  Call m_call;
  impl::PerformerKey m_key;
};

}  // namespace heddle::inline v0
