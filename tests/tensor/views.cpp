// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3
// space: its own

// The Views of tensors in host memory: what they hold at first, and for how long.

#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/tensor/sharded.hpp>

namespace test_views {

namespace hd = heddle;
using Exec = Kokkos::DefaultHostExecutionSpace;

TEMPLATE_TEST_CASE("a tensor's View holds zeros, has its label, and outlives the tensor", "",
                   (hd::Sharded<double**, Exec>), (hd::Sharded<float***, Exec, Kokkos::LayoutLeft>),
                   (hd::Sharded<std::int8_t*, Exec>), (hd::Sharded<std::complex<float>*, Exec>)) {
  using Tensor = TestType;
  using View = typename Tensor::View;
  using Element = typename Tensor::Element;
  const hd::Communicator world(MPI_COMM_WORLD);
  // The last rank of two or more has no elements of a dimension of one.
  for (const std::int64_t rows : {1, 13, 101}) {
    std::vector<std::int64_t> sizes(Tensor::dims, 5);
    sizes[0] = rows;
    const hd::Layout layout(hd::MeshShape{{"all", world.size()}}, sizes, {hd::Shard{}});
    const std::vector<std::int64_t> extents = layout.extents(world.rank());
    std::size_t size = 1;
    for (const std::int64_t extent : extents) size *= static_cast<std::size_t>(extent);
    const auto filled = [&] {  // with ones, so that memory which is used again is not zero
      const Tensor tensor(world, layout);
      View view = tensor.parts();
      CHECK(view.label() == "heddle::tensor::sharded");
      CHECK(view.size() == size);
      CHECK(view.span_is_contiguous());
      for (std::size_t dim = 0; dim < Tensor::dims; ++dim)
        CHECK(view.extent(dim) == static_cast<std::size_t>(extents[dim]));
      std::size_t others = 0;
      for (std::size_t i = 0; i < size; ++i) others += view.data()[i] == Element(0) ? 0 : 1;
      CHECK(others == 0);
      Kokkos::deep_copy(view, Element(1));
      const Tensor copy = tensor;
      CHECK(copy.parts().data() == view.data());
      CHECK(view.use_count() == 3);
      return view;
    };
    for (int time = 0; time < 3; ++time) {
      const View kept = filled();
      CHECK(kept.use_count() == 1);
      std::size_t ones = 0;
      for (std::size_t i = 0; i < size; ++i) ones += kept.data()[i] == Element(1) ? 1 : 0;
      CHECK(ones == size);
    }
  }
}

}  // namespace test_views
