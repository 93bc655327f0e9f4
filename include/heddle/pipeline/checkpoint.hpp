// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// save() and restore(): checkpoints of every model with named state (see HasState). What one
/// division of the ranks has saved loads on any other.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/checksum.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/small_float.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/pipeline/impl/held_state.hpp>
#include <heddle/pipeline/impl/move_state.hpp>
#include <heddle/pipeline/state.hpp>
#include <heddle/plan/migration.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Calls `visit` with a null pointer to the type of elements.
template <class Visit>
void with_type(Scalar type, Visit&& visit) {
  switch (type) {
    case Scalar::f32: return visit(static_cast<float*>(nullptr));
    case Scalar::f64: return visit(static_cast<double*>(nullptr));
    case Scalar::f16: return visit(static_cast<f16*>(nullptr));
    case Scalar::bf16: return visit(static_cast<bf16*>(nullptr));
    case Scalar::f8e4m3: return visit(static_cast<f8e4m3*>(nullptr));
    case Scalar::f8e5m2: return visit(static_cast<f8e5m2*>(nullptr));
    case Scalar::i8: return visit(static_cast<std::int8_t*>(nullptr));
    case Scalar::i32: return visit(static_cast<std::int32_t*>(nullptr));
    case Scalar::i64: return visit(static_cast<std::int64_t*>(nullptr));
    default: break;
  }
}

/// The field of the number of arrays.
inline constexpr const char* state_field = "state";

/// Returns the field of an array.
[[nodiscard]] inline std::string field_of(const ArrayInfo& info) {
  return text(state_field, "/", info.layer, "/", info.name);
}

/// Throws the error of this rank, or one that names the first rank with an error. `failed` is the
/// place for which other ranks wait. All ranks must call it.
template <Transport T>
void throw_together(T& transport, const ExecuteOptions& options, const std::exception_ptr& error,
                    const char* where, const char* what, const std::string& path) {
  const std::uint8_t mine = error != nullptr ? 1 : 0;
  const auto all = all_gather_values<std::uint8_t>(transport, std::span(&mine, 1), options);
  if (error) std::rethrow_exception(error);
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r][0] != 0)
      throw format_error({where, text("rank ", r, " cannot ", what), path,
                          "see the error of this rank; all ranks use the same file"});
}

/// Accepts any checkpoint.
struct AnyCheckpoint {
  void operator()(const Checkpoint&) const {}
};

}  // namespace impl

/// Saves the state of `model`, whole and in one file, with the fields of `own` beside it, such as
/// the step and what must be the same where training continues. Rank 0 gathers the state and writes
/// the file in one step (see write_file()): if the program is killed meanwhile, the old file stays.
/// Each element is sent once, by one of the ranks that hold it.
///
/// All ranks of `place` must call it, between two steps. Names of fields of `own` do not begin with
/// "state".
/// @throws contract_error on every rank if nobody holds an element of an array, or if a rank has
///         two arrays of one name in a layer.
/// @throws format_error on every rank if the file cannot be written.
template <HasState M, Place P>
void save(const std::string& path, M& model, P& place, Checkpoint own = {},
          const ExecuteOptions& options = {}) {
  constexpr const char* where = "heddle::save";
  auto& transport = transport_of(place);
  const std::vector<impl::HeldArray> held = impl::held_arrays(model, where);
  impl::ArrayNumbers numbers(where);
  const auto had = numbers.add(all_gather(transport, impl::packed(held), options));
  const std::vector<Bytes> bytes = numbers.element_bytes();
  std::vector<std::vector<plan::HeldElements>> needed(had.size());
  for (std::size_t a = 0; a < bytes.size(); ++a)
    needed[0].push_back({a, IndexSet(numbers.arrays()[a].whole)});
  const auto pieces = plan::migration_pieces(had, needed, bytes);
  std::vector<impl::HostElements> whole;
  impl::HostCopies copies(held, numbers);
  const bool writes = transport.rank() == Rank{0};
  for (std::size_t a = 0; writes && a < bytes.size(); ++a) {
    const IndexSet all(numbers.arrays()[a].whole);
    whole.emplace_back(static_cast<Bytes>(all.size()) * bytes[a]);
    if (const impl::HeldArray* const here = copies.find(a))
      impl::copy_elements(here->info.elements, here->info.elements, copies.data(a), all,
                          whole.back().data(), bytes[a]);
  }
  impl::move_state(transport, options, pieces, bytes, copies,
                   [&](const plan::StatePiece& piece, const std::byte* data) {
                     impl::copy_elements(piece.elements, piece.elements, data,
                                         IndexSet(numbers.arrays()[piece.array].whole),
                                         whole[piece.array].data(), bytes[piece.array]);
                   });
  std::exception_ptr error;
  if (writes) {
    try {
      own.set(impl::state_field,
              std::vector<std::int64_t>{static_cast<std::int64_t>(bytes.size())});
      for (std::size_t a = 0; a < bytes.size(); ++a) {
        const impl::ArrayInfo& info = numbers.arrays()[a];
        impl::with_type(info.type, [&]<class T>(T*) {
          own.set(impl::field_of(info),
                  std::span<const T>(reinterpret_cast<const T*>(whole[a].data()),
                                     static_cast<std::size_t>(info.whole)));
        });
      }
      own.save(path);
    } catch (...) {
      error = std::current_exception();
    }
  }
  impl::throw_together(transport, options, error, where, "save the checkpoint", path);
}

/// Gives `model` the state that save() has written to `path`, and returns the whole checkpoint with
/// the other fields. All ranks of `place` must call it between two steps, and each reads the file.
/// The model may be divided in another way than the one that was saved.
///
/// `check(checkpoint)` may throw format_error to refuse a checkpoint, for example of another model.
/// @throws format_error on every rank if one of them cannot read the file (see Checkpoint::load()),
///         refuses it, if a field of the state is missing or has another type or size, or if ranks
///         have read different files. contract_error on every rank if a rank has two arrays of one
///         name in a layer. The model is then as it was.
template <HasState M, Place P, std::invocable<const Checkpoint&> Check = impl::AnyCheckpoint>
Checkpoint restore(const std::string& path, M& model, P& place, Check&& check = {},
                   const ExecuteOptions& options = {}) {
  constexpr const char* where = "heddle::restore";
  auto& transport = transport_of(place);
  const std::vector<impl::HeldArray> held = impl::held_arrays(model, where);
  impl::ArrayNumbers numbers(where);
  (void)numbers.add(all_gather(transport, impl::packed(held), options));
  Checkpoint checkpoint;
  std::vector<impl::HostElements> values;
  std::exception_ptr error;
  try {
    checkpoint = Checkpoint::load(path);
    check(std::as_const(checkpoint));
    const std::int64_t arrays = checkpoint.get<std::int64_t>(impl::state_field, 1)[0];
    if (arrays != static_cast<std::int64_t>(numbers.arrays().size()))
      throw format_error({where, "the checkpoint is of a model with other arrays",
                          text("it has ", arrays, ", the model has ", numbers.arrays().size())});
    for (const impl::HeldArray& each : held) {
      const impl::ArrayInfo& info = each.info;
      values.emplace_back(info.bytes());
      impl::with_type(info.type, [&]<class T>(T*) {
        const std::vector<T> whole =
            checkpoint.get<T>(impl::field_of(info), static_cast<std::size_t>(info.whole));
        impl::copy_elements(info.elements, IndexSet(info.whole),
                            reinterpret_cast<const std::byte*>(whole.data()), info.elements,
                            values.back().data(), sizeof(T));
      });
    }
  } catch (...) {
    error = std::current_exception();
  }
  impl::throw_together(transport, options, error, where, "load the checkpoint", path);
  const std::string content = checkpoint.content();
  const std::uint32_t sum = crc32c(std::as_bytes(std::span(content)));
  const auto sums = all_gather_values<std::uint32_t>(transport, std::span(&sum, 1), options);
  for (std::size_t r = 0; r < sums.size(); ++r)
    if (sums[r][0] != sums[0][0])
      throw format_error({where, "ranks have read different checkpoints",
                          text("rank ", r, " has read another one than rank 0 from ", path),
                          "put the same file where every rank can read it"});
  for (std::size_t i = 0; i < held.size(); ++i) held[i].write(values[i].data());
  if constexpr (requires { model.state_written(); }) model.state_written();
  return checkpoint;
}

}  // namespace heddle::inline v0
