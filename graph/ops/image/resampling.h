// Images of other sizes, along both dimensions separately: a pixel of the output is a weighted sum
// over a run of rows of sums over a run of columns. Computed in double and rounded once.
//
// Thread-safety: pure functions of immutable plans.
#ifndef NPUMESH_GRAPH_OPS_IMAGE_RESAMPLING_H_
#define NPUMESH_GRAPH_OPS_IMAGE_RESAMPLING_H_

#include <cstdint>
#include <vector>

#include "graph/ops/core/define.h"

namespace npumesh {

// What a position of the output reads along one dimension: pixels from `first` on, one at least,
// within the image. What has no weight may be NaN.
struct PixelRun {
  int64_t first = 0;
  std::vector<double> weights;
};

// Input 0 and output 0 are [images, height, width, inner].
struct ResamplingPlan : Planned {
  int64_t images = 1, inner = 1;
  int64_t height = 0, width = 0;        // of the input
  std::vector<PixelRun> rows, columns;  // by position of the output
  DataType from = DataType::kFloat, to = DataType::kFloat;
  int threads = 1;
  // `columns` as lists, one after the other: of first weights and pixels, of second ones, ...
  std::vector<double> weights;
  std::vector<int64_t> pixels;
  // Of each thread. Rows of the input, as they are and with their columns resampled, are kept while
  // rows of the output read them.
  int64_t kept_rows = 1;
  Workspace<double> source, kept, sum;
  Workspace<int64_t> held;  // which row of all images is in each of `kept`, or -1

  // Rows of the output in all images, which threads share.
  int64_t lines() const { return images * static_cast<int64_t>(rows.size()); }
};

// Takes the plan's memory and threads, once all else is set. `threads`: as many as there are.
void Finish(ResamplingPlan& plan, int threads);

Status RunResampling(const ResamplingPlan& plan, const KernelArgs& args);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_IMAGE_RESAMPLING_H_
