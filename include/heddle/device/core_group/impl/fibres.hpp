// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Contexts with stacks of their own that take turns in one host thread: how cores that wait for
/// each other are emulated. Sanitizers are told of every switch.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace heddle::inline v0::emulated::impl {

/// Tells the sanitizers about a stack; empty without sanitizers.
class StackAnnotation {
 public:
#if defined(__SANITIZE_THREAD__)
  ~StackAnnotation() {
    if (m_made) __tsan_destroy_fiber(m_fibre);
  }
#endif

  /// Tells the sanitizer that the running context is about to switch to `to`. `last` is true if it
  /// will never be resumed.
  void leave(StackAnnotation& to, bool last = false) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(last ? nullptr : &m_fake, to.m_bottom, to.m_size);
#endif
#if defined(__SANITIZE_THREAD__)
    if (m_fibre == nullptr) m_fibre = __tsan_get_current_fiber();
    if (to.m_fibre == nullptr) to.m_fibre = __tsan_create_fiber(0), to.m_made = true;
    __tsan_switch_to_fiber(to.m_fibre, 0);
#endif
    (void)to, (void)last;
  }

  /// In the context that has been entered, which came from `from`.
  void enter(StackAnnotation& from) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(m_fake, &from.m_bottom, &from.m_size);
    m_fake = nullptr;
#endif
    (void)from;
  }

  void set_stack([[maybe_unused]] void* bottom, [[maybe_unused]] std::size_t size) {
#if defined(__SANITIZE_ADDRESS__)
    m_bottom = bottom;
    m_size = size;
#endif
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  void* m_fake = nullptr;
  const void* m_bottom = nullptr;
  std::size_t m_size = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void* m_fibre = nullptr;
  bool m_made = false;
#endif
};

/// A fixed number of fibres. Used by one thread at a time.
class Fibres {
 public:
  using Entry = void (*)(void* context, int fibre) noexcept;

  explicit Fibres(int count) : m_fibres(static_cast<std::size_t>(count)) {
    const auto guard = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    m_bytes = (stack + guard) * m_fibres.size();
    m_stacks = mmap(nullptr, m_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m_stacks == MAP_FAILED)
      throw out_of_memory({"heddle::CoreGroup",
                           "the host cannot allocate stacks for a cooperative launch",
                           text(m_bytes, " bytes of address space")});
    for (std::size_t i = 0; i < m_fibres.size(); ++i) {
      std::byte* const low = static_cast<std::byte*>(m_stacks) + i * (stack + guard);
      mprotect(low, guard, PROT_NONE);  // stacks grow down
      m_fibres[i].stack = low + guard;
    }
  }
  Fibres(const Fibres&) = delete;
  Fibres& operator=(const Fibres&) = delete;
  ~Fibres() { munmap(m_stacks, m_bytes); }

  /// Makes every fibre ready to call entry(context, fibre) when it is first resumed.
  void start(Entry entry, void* context) {
    m_entry = entry;
    m_entry_context = context;
    m_caller = {};
    for (Fibre& fibre : m_fibres) prepare(fibre);
  }

  /// Runs a fibre until it suspends or its entry returns.
  void resume(int fibre) {
    m_running = fibre;
    Fibre& to = m_fibres[static_cast<std::size_t>(fibre)];
    m_caller.annotation.leave(to.annotation);
    swapcontext(&m_caller.context, &to.context);
    m_caller.annotation.enter(to.annotation);
  }

  /// In a fibre: gives control back to the caller of resume().
  void suspend() {
    Fibre& self = running();
    self.annotation.leave(m_caller.annotation);
    swapcontext(&self.context, &m_caller.context);
    self.annotation.enter(m_caller.annotation);
  }

 private:
  /// Error messages are built on it; a kernel's own frames are small.
  static constexpr std::size_t stack = 256 * 1024;

  struct Fibre {
    ucontext_t context{};
    std::byte* stack = nullptr;
    StackAnnotation annotation;
  };

  [[nodiscard]] Fibre& running() { return m_fibres[static_cast<std::size_t>(m_running)]; }

  void prepare(Fibre& fibre) {
    fibre.annotation.set_stack(fibre.stack, stack);
    getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = fibre.stack;
    fibre.context.uc_stack.ss_size = stack;
    fibre.context.uc_link = nullptr;
    // makecontext hands on ints only.
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&fibre.context, reinterpret_cast<void (*)()>(&Fibres::begin), 2,
                static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  }

  static void begin(unsigned high, unsigned low) {
    const std::uintptr_t self = static_cast<std::uintptr_t>(high) << 32 | low;
    reinterpret_cast<Fibres*>(self)->body();
  }
  void body() {
    running().annotation.enter(m_caller.annotation);
    m_entry(m_entry_context, m_running);
    running().annotation.leave(m_caller.annotation, true);
    setcontext(&m_caller.context);
  }

  std::vector<Fibre> m_fibres;
  Fibre m_caller;
  void* m_stacks = nullptr;
  std::size_t m_bytes = 0;
  Entry m_entry = nullptr;
  void* m_entry_context = nullptr;
  int m_running = 0;
};

}  // namespace heddle::inline v0::emulated::impl
