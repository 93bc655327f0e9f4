// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// optional: graphblas GraphBLAS.h

#include "peers.hpp"

#ifdef HEDDLE_HAS_GRAPHBLAS

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

extern "C" {
#include <GraphBLAS.h>
}

namespace {

void must(GrB_Info info) {
  if (info != GrB_SUCCESS) throw std::runtime_error("GraphBLAS: error " + std::to_string(info));
}

/// The graph as a matrix, and the degrees.
struct Matrix {
  GrB_Matrix matrix = nullptr;
  GrB_Vector degrees = nullptr;
  GrB_Index nodes, edges;

  explicit Matrix(const heddle::systems::Graph& graph)
      : nodes(static_cast<GrB_Index>(graph.nodes())), edges(graph.ends.size()) {
    static const GrB_Info ready = GrB_init(GrB_NONBLOCKING);  // once in a process
    must(ready);
    must(GxB_Global_Option_set(GxB_GLOBAL_NTHREADS, 1));
    std::vector<GrB_Index> from, to;
    must(GrB_Vector_new(&degrees, GrB_INT64, nodes));
    for (std::int32_t v = 0; v < graph.nodes(); ++v) {
      from.insert(from.end(), static_cast<std::size_t>(graph.degree(v)), GrB_Index(v));
      if (graph.degree(v) > 0)
        must(GrB_Vector_setElement_INT64(degrees, graph.degree(v), GrB_Index(v)));
    }
    to.assign(graph.ends.begin(), graph.ends.end());
    must(GrB_Matrix_new(&matrix, GrB_BOOL, nodes, nodes));
    GrB_Scalar one = nullptr;
    must(GrB_Scalar_new(&one, GrB_BOOL));
    must(GrB_Scalar_setElement_BOOL(one, true));
    must(GxB_Matrix_build_Scalar(matrix, from.data(), to.data(), one, edges));
    must(GrB_Scalar_free(&one));
    must(GrB_Matrix_wait(matrix, GrB_MATERIALIZE));
    must(GrB_Vector_wait(degrees, GrB_MATERIALIZE));
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  ~Matrix() {
    GrB_Matrix_free(&matrix);
    GrB_Vector_free(&degrees);
  }

  /// The search of LAGraph 1.0 (LAGr_BreadthFirstSearch), with its constants: top-down only, or in
  /// the direction that costs less. Returns the vector of parents.
  [[nodiscard]] GrB_Vector search(GrB_Index root, bool chooses) const {
    GrB_Vector parents = nullptr, frontier = nullptr, work = nullptr;
    must(GrB_Vector_new(&parents, GrB_INT32, nodes));
    must(GxB_Vector_Option_set(parents, GxB_SPARSITY_CONTROL, GxB_BITMAP + GxB_FULL));
    must(GrB_Vector_setElement_INT32(parents, static_cast<std::int32_t>(root), root));
    must(GrB_Vector_new(&frontier, GrB_INT32, nodes));
    must(GrB_Vector_setElement_INT32(frontier, static_cast<std::int32_t>(root), root));
    must(GrB_Vector_new(&work, GrB_INT64, nodes));
    bool push = true;
    auto unexplored = static_cast<std::int64_t>(edges);
    GrB_Index count = 1, before = 0;
    while (count > 0) {
      if (chooses && push) {
        if (unexplored < static_cast<std::int64_t>(nodes)) {
          chooses = false;
        } else {
          std::int64_t explored = 0;
          must(GrB_Vector_assign(work, frontier, nullptr, degrees, GrB_ALL, nodes, GrB_DESC_RS));
          must(GrB_Vector_reduce_INT64(&explored, nullptr, GrB_PLUS_MONOID_INT64, work, nullptr));
          unexplored -= explored;
          push = count <= before || explored <= unexplored / 8;
        }
      } else if (chooses) {
        push = count < before && count <= nodes / 512;
      }
      must(GxB_Vector_Option_set(frontier, GxB_SPARSITY_CONTROL, push ? GxB_SPARSE : GxB_BITMAP));
      if (push)
        must(GrB_vxm(frontier, parents, nullptr, GxB_ANY_SECONDI_INT32, frontier, matrix,
                     GrB_DESC_RSC));
      else
        must(GrB_mxv(frontier, parents, nullptr, GxB_ANY_SECONDI_INT32, matrix, frontier,
                     GrB_DESC_RSC));
      before = count;
      must(GrB_Vector_nvals(&count, frontier));
      must(GrB_Vector_assign(parents, frontier, nullptr, frontier, GrB_ALL, nodes, GrB_DESC_S));
    }
    must(GrB_Vector_wait(parents, GrB_COMPLETE));
    GrB_Vector_free(&frontier);
    GrB_Vector_free(&work);
    return parents;
  }
};

}  // namespace

std::optional<searches::Peer> searches::graphblas(const heddle::systems::Graph& graph) {
  const auto matrix = std::make_shared<Matrix>(graph);
  const auto search = [matrix](bool chooses) {
    return [matrix, chooses](std::int32_t root, const auto& timed) {
      GrB_Vector found = nullptr;
      timed([&] { found = matrix->search(static_cast<GrB_Index>(root), chooses); });
      std::vector<std::int32_t> parents(matrix->nodes, -1);
      std::vector<GrB_Index> indices(matrix->nodes);
      std::vector<std::int32_t> values(matrix->nodes);
      GrB_Index count = matrix->nodes;
      must(GrB_Vector_extractTuples_INT32(indices.data(), values.data(), &count, found));
      for (GrB_Index i = 0; i < count; ++i) parents[indices[i]] = values[i];
      GrB_Vector_free(&found);
      return parents;
    };
  };
  return Peer{search(false), search(true)};
}

#else

std::optional<searches::Peer> searches::graphblas(const heddle::systems::Graph&) { return {}; }

#endif
