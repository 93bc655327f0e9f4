// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Exceptions of the explorer's module. Debian's C++ library for WebAssembly is built without them,
/// so this file has what the compiler calls for `throw` and `catch` (-fwasm-exceptions). It follows
/// the Itanium C++ ABI and the exception handling of WebAssembly in LLVM's tool conventions: a
/// `throw` unwinds to the next landing pad, which asks _Unwind_CallPersonality() for its handler.
/// The module has one thread, and nobody copies a std::exception_ptr.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <typeinfo>

namespace {

/// The header that lies before each thrown object in memory.
struct Thrown {
  const std::type_info* type;
  void* (*destroy)(void*);  ///< its destructor, which returns its argument in WebAssembly
  void* caught;             ///< the object, as the type that the handler names
  int handlers;             ///< handlers that run for it
  bool rethrown;            ///< its handler has thrown it again, and no handler has caught it since
  Thrown* outside;          ///< the exception whose handler is outside that of this one
};
constexpr std::size_t header = (sizeof(Thrown) + alignof(std::max_align_t) - 1) /
                               alignof(std::max_align_t) * alignof(std::max_align_t);

Thrown* innermost = nullptr;  // of the exceptions that are being handled

Thrown& header_of(void* object) {
  return *reinterpret_cast<Thrown*>(static_cast<char*>(object) - header);
}
void* object_of(Thrown& thrown) { return reinterpret_cast<char*>(&thrown) + header; }

/// The virtual functions of the run-time type information of libc++abi: a type says whether a
/// handler for it catches an object of another type, and where its part of the object is.
class Caught : public std::type_info {
 public:
  virtual void unused_1() const = 0;
  virtual void unused_2() const = 0;
  [[nodiscard]] virtual bool can_catch(const Caught* thrown, void*& object) const = 0;
};

/// Reads the numbers of a table of the compiler: seven bits a byte, the low ones first.
class Table {
 public:
  explicit Table(const std::uint8_t* at) : m_at(at) {}
  [[nodiscard]] const std::uint8_t* at() const { return m_at; }
  std::uint8_t byte() { return *m_at++; }
  std::uint32_t number() { return read().value; }
  std::int32_t signed_number() {
    const auto [value, bits, last] = read();
    const bool negative = (last & 0x40) != 0 && bits < 32;
    return static_cast<std::int32_t>(negative ? value | ~std::uint32_t{0} << bits : value);
  }

 private:
  struct Number {
    std::uint32_t value = 0;
    unsigned bits = 0;
    std::uint8_t last = 0;
  };
  Number read() {
    Number number;
    do {
      number.last = byte();
      number.value |= static_cast<std::uint32_t>(number.last & 0x7f) << number.bits;
      number.bits += 7;
    } while ((number.last & 0x80) != 0);
    return number;
  }

  const std::uint8_t* m_at;
};

}  // namespace

extern "C" {

/// A landing pad writes its number and its function's tables, and reads the number of a handler.
struct {
  std::uintptr_t pad;
  const std::uint8_t* tables;
  std::uintptr_t handler;
} __wasm_lpad_context;

/// Finds the handler of a landing pad for an exception: the number of its type, or 0 for none.
int _Unwind_CallPersonality(void* object) {
  constexpr std::uint8_t omitted = 0xff;
  Thrown& thrown = header_of(object);
  auto& context = __wasm_lpad_context;
  context.handler = 0;
  if (context.tables == nullptr) return 0;
  Table table(context.tables);
  if (table.byte() != omitted) std::abort();  // landing pads have no addresses here
  const std::uint8_t* types = nullptr;        // the table of types, which grows downwards
  if (table.byte() != omitted) {
    const std::uint32_t distance = table.number();
    types = table.at() + distance;
  }
  table.byte();  // the encoding of numbers
  const std::uint32_t size = table.number();
  const std::uint8_t* const actions = table.at() + size;
  std::uint32_t action = 0;
  for (std::uintptr_t pad = 0; pad <= context.pad; ++pad) {
    table.number();
    action = table.number();
  }
  if (action == 0) return 0;  // destructors only
  for (const std::uint8_t* at = actions + action - 1;;) {
    Table entry(at);
    const std::int32_t type = entry.signed_number();
    const std::uint8_t* const base = entry.at();
    const std::int32_t next = entry.signed_number();
    if (type > 0) {
      const auto* const wanted = reinterpret_cast<const Caught* const*>(types)[-type];
      void* found = object;
      if (wanted == nullptr || wanted->can_catch(static_cast<const Caught*>(thrown.type), found)) {
        thrown.caught = found;
        context.handler = static_cast<std::uintptr_t>(type);
        return 0;
      }
    }
    if (next == 0) return 0;
    at = base + next;
  }
}

void* __cxa_allocate_exception(std::size_t size) noexcept {
  auto* const room = static_cast<char*>(std::malloc(header + size));
  if (room == nullptr) std::abort();
  return room + header;
}
void __cxa_free_exception(void* object) noexcept { std::free(static_cast<char*>(object) - header); }

[[noreturn]] void __cxa_throw(void* object, std::type_info* type, void* (*destroy)(void*)) {
  new (static_cast<char*>(object) - header) Thrown{type, destroy, object, 0, false, nullptr};
  __builtin_wasm_throw(0, object);
}
void* __cxa_get_exception_ptr(void* object) noexcept { return header_of(object).caught; }
void* __cxa_begin_catch(void* object) noexcept {
  Thrown& thrown = header_of(object);
  thrown.rethrown = false;  // a handler inside its own handler may catch it again
  if (thrown.handlers++ == 0) {
    thrown.outside = innermost;
    innermost = &thrown;
  }
  return thrown.caught;
}
void __cxa_end_catch() {
  Thrown& thrown = *innermost;
  if (--thrown.handlers > 0) return;
  innermost = thrown.outside;
  if (thrown.rethrown) return;
  void* const object = object_of(thrown);
  if (thrown.destroy != nullptr) thrown.destroy(object);
  __cxa_free_exception(object);
}
[[noreturn]] void __cxa_rethrow() {
  innermost->rethrown = true;
  __builtin_wasm_throw(0, object_of(*innermost));
}

}  // extern "C"
