// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1

// strided_block_of() and pack() against MPI_Pack, for random nests of datatypes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/strided_datatype.hpp>
#include <heddle/layout/pack.hpp>

#include "support/cases.hpp"
#include "support/random_datatypes.hpp"

namespace test_strided_datatype {

using namespace heddle;
using test::Mapped;
using test::Nests;
using test::Owned;

TEST_CASE("what a datatype stands for is packed as MPI packs it, and comes back") {
  const auto trials = static_cast<int>(test::cases(1000, 10000));
  Nests nests(12);
  int with_bytes = 0, contiguous = 0, other_order = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const Mapped made = nests();
    const Owned type(made.type);
    MPI_Datatype commit = type.get();
    MPI_Type_commit(&commit);
    const int count = nests.draw(0, 3);
    const std::optional<StridedBlock> one = strided_block_of(type.get());
    REQUIRE(one.has_value());
    const std::int64_t extent = extent_of(type.get());
    const StridedBlock block = one->repeated(static_cast<std::uint64_t>(count), extent);
    INFO("trial " << trial << ": " << count << " items, " << block);
    const std::size_t size = made.bytes.size() * static_cast<std::size_t>(count);
    REQUIRE(block.bytes() == size);

    const StridedBlock::Bounds bounds = block.bounds();
    constexpr std::int64_t margin = 1024;  // on either side; see below
    std::vector<std::byte> memory(static_cast<std::size_t>(bounds.end - bounds.begin + 2 * margin));
    for (std::byte& byte : memory) byte = std::byte(nests.draw(0, 255));
    std::byte* const base = memory.data() + margin - bounds.begin;
    std::vector<std::byte> meant, ours(size + 1), theirs(size + 1);
    for (int item = 0; item < count; ++item)
      for (const std::int64_t byte : made.bytes) meant.push_back(base[item * extent + byte]);
    meant.emplace_back();
    pack(block, base, ours.data());
    REQUIRE(ours == meant);

    // Back into memory of another content: the block's bytes are as before, the others not touched.
    std::vector<std::byte> back(memory.size()), reference(memory.size());
    unpack(block, ours.data(), back.data() + margin - bounds.begin);
    std::size_t next = 0;
    for (int item = 0; item < count; ++item)
      for (const std::int64_t byte : made.bytes)
        reference[static_cast<std::size_t>(item * extent + byte + margin - bounds.begin)] =
            ours[next++];
    REQUIRE(back == reference);

    int position = 0;
    MPI_Pack(base, count, type.get(), theirs.data(), static_cast<int>(size), &position,
             MPI_COMM_SELF);
    REQUIRE(position == static_cast<int>(size));
    // Open MPI 4.1 takes some strides below 0 in another order than the standard's, and reads
    // outside of the type for it.
    if (theirs != ours) {
      REQUIRE(made.backwards);
      ++other_order;
    } else {
      position = 0;
      std::vector<std::byte> unpacked(memory.size());
      MPI_Unpack(theirs.data(), static_cast<int>(size), &position,
                 unpacked.data() + margin - bounds.begin, count, type.get(), MPI_COMM_SELF);
      REQUIRE((unpacked == back || made.backwards));
    }
    with_bytes += size != 0;
    contiguous += block.contiguous();
  }
  CHECK(with_bytes > trials / 3);
  CHECK(contiguous < trials * 3 / 4);
  CHECK(other_order <= trials / 500);
}

TEST_CASE("blocks that are no loops are not known, whatever they are made by") {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  const auto known = [&] { return strided_block_of(Owned(made).get()); };
  const std::array evenly{0, 5, 10}, unevenly{0, 5, 11}, alike{2, 2, 2}, unlike{2, 1, 2};
  const std::array<MPI_Aint, 3> bytes_evenly{0, 40, 80}, bytes_unevenly{0, 40, 88};
  const StridedBlock loops = StridedBlock(16).repeated(3, 40);
  MPI_Type_indexed(3, alike.data(), evenly.data(), MPI_DOUBLE, &made);
  CHECK(known() == loops);
  MPI_Type_indexed(3, alike.data(), unevenly.data(), MPI_DOUBLE, &made);
  CHECK(!known());
  MPI_Type_indexed(3, unlike.data(), evenly.data(), MPI_DOUBLE, &made);
  CHECK(!known());
  MPI_Type_create_hindexed(3, alike.data(), bytes_unevenly.data(), MPI_DOUBLE, &made);
  CHECK(!known());
  MPI_Type_create_indexed_block(3, 2, unevenly.data(), MPI_DOUBLE, &made);
  CHECK(!known());

  const std::array same{MPI_DOUBLE, MPI_DOUBLE, MPI_DOUBLE};
  const std::array mixed{MPI_DOUBLE, MPI_INT64_T, MPI_DOUBLE};
  MPI_Type_create_struct(3, alike.data(), bytes_evenly.data(), same.data(), &made);
  CHECK(known() == loops);
  MPI_Type_create_struct(3, unlike.data(), bytes_evenly.data(), same.data(), &made);
  CHECK(!known());
  MPI_Type_create_struct(3, alike.data(), bytes_evenly.data(), mixed.data(), &made);
  CHECK(!known());

  const std::array sizes{8, 8}, cyclic{MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC};
  const std::array arguments{1, 2}, processes{2, 2};
  MPI_Type_create_darray(4, 1, 2, sizes.data(), cyclic.data(), arguments.data(), processes.data(),
                         MPI_ORDER_C, MPI_DOUBLE, &made);
  CHECK(!known());
  CHECK(!strided_block_of(MPI_DOUBLE_INT));  // 12 of 16 bytes
  MPI_Type_vector(3, 1, 2, MPI_DOUBLE_INT, &made);
  CHECK(!known());
}

#if MPI_VERSION >= 4
TEST_CASE("what was made with large counts is not known") {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_vector_c(10, 1, 3, MPI_DOUBLE, &made);
  const Owned type(made);
  CHECK(!strided_block_of(type.get()).has_value());
  MPI_Type_contiguous(2, type.get(), &made);
  const Owned outer(made);
  CHECK(!strided_block_of(outer.get()).has_value());
}
#endif

}  // namespace test_strided_datatype
