// ResizeNearestNeighborV2, its gradient, and ResizeBilinearV2.
//
// Both dimensions of the image are resized separately: a position of the output reads one or two
// positions of the input.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/image/resampling.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/rows/image_layout.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

struct CoordinateRule {
  bool align_corners = false, half_pixel_centers = false;
};

// The position of the input that output position `at` corresponds to: a quotient of whole numbers,
// rounded down or, between corners, to the nearest, without an error in between.
int64_t NearestSource(int64_t at, int64_t in, int64_t out, CoordinateRule rule) {
  if (rule.align_corners) return out > 1 ? (2 * at * (in - 1) + out - 1) / (2 * (out - 1)) : 0;
  return rule.half_pixel_centers ? (2 * at + 1) * in / (2 * out) : at * in / out;
}

double LinearSource(double at, double in, double out, CoordinateRule rule) {
  if (rule.align_corners) return out > 1 ? at * (in - 1) / (out - 1) : 0.0;
  return rule.half_pixel_centers ? std::max((at + 0.5) * (in / out) - 0.5, 0.0) : at * (in / out);
}

// What nearest pixels are copied, or, of gradients, added to.
struct NearestPlan : Planned {
  int64_t images = 1, inner = 1;       // [images, height, width, inner]
  int64_t height = 0, width = 0;       // of the smaller image
  std::vector<int64_t> rows, columns;  // of it, by position of the other
  DataType dtype = DataType::kFloat;
  int threads = 1;

  // Rows of the other image, in all images.
  int64_t lines() const { return images * static_cast<int64_t>(rows.size()); }
};

std::vector<int64_t> NearestAlong(int64_t in, int64_t out, CoordinateRule rule) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < out; ++i) {
    places.push_back(std::clamp<int64_t>(NearestSource(i, in, out, rule), 0, in - 1));
  }
  return places;
}

std::vector<PixelRun> LinearAlong(int64_t in, int64_t out, CoordinateRule rule) {
  std::vector<PixelRun> runs;
  for (int64_t i = 0; i < out; ++i) {
    const double source = LinearSource(static_cast<double>(i), static_cast<double>(in),
                                       static_cast<double>(out), rule);
    const int64_t low = std::min(static_cast<int64_t>(source), in - 1);
    const double weight = low == in - 1 ? 0 : source - static_cast<double>(low);
    runs.push_back({low, {1 - weight}});
    if (weight != 0) runs.back().weights.push_back(weight);
  }
  return runs;
}

// An image in slot 0, the size that port "size" gives, and how positions of one are found in the
// other.
struct Sizes {
  Shape from, to;     // both images
  int row = 2;        // the dimension of rows; columns follow
  int64_t inner = 1;  // elements of a pixel
  CoordinateRule rule;

  int64_t images() const { return ElementsBetween(from, 0, row); }
};

Sizes ReadSizes(const OpContext& op, Check& check) {
  Sizes sizes;
  const Shape& x = op.in(0).shape;
  const bool last = check.Take(ChannelsLast(op, 0, "NCHW"));
  const std::vector<int64_t> size = check.Take(op.Ints("size"));
  check.That(x.rank() == 4 && size.size() == 2 && size[0] >= 1 && size[1] >= 1,
             "x {} and size {}: expected four dimensions and two numbers above 0", x, Shape(size));
  if (!check.ok()) return sizes;
  sizes.row = last ? 1 : 2;
  sizes.inner = last ? x[3] : 1;
  sizes.from = sizes.to = x;
  sizes.to[sizes.row] = size[0];
  sizes.to[sizes.row + 1] = size[1];
  check.Keep(sizes.to.Check().WithContext(op.Who()));
  check.That(x[sizes.row] > 0 && x[sizes.row + 1] > 0, "x {} has no pixels", x);
  for (const Shape& image : {sizes.from, sizes.to}) {  // so that places are found without overflow
    const int64_t longer = std::max(image[sizes.row], image[sizes.row + 1]);
    check.That(longer <= INT32_MAX, "an image is {}, expected less than 2^31 rows and columns",
               image);
  }
  check.Supported(FindConvert(op.in(0).dtype, DataType::kDouble) != nullptr, "not defined for {}",
                  op.in(0));
  sizes.rule = {op.attr_bool("align_corners"), op.attr_bool("half_pixel_centers")};
  return sizes;
}

// ---- nearest ----

// kBackwards: the gradient, which goes from the image of the given size to x.
template <bool kBackwards>
NearestPlan PlanNearest(const OpContext& op, Check& check) {
  const Sizes sizes = ReadSizes(op, check);
  if (!check.ok()) return {};
  const int row = sizes.row;
  const Shape& from = kBackwards ? sizes.to : sizes.from;
  const Shape& to = kBackwards ? sizes.from : sizes.to;
  check.Keep(AskForLists(op, SumOfDims(Shape{to[row], to[row + 1]}), sizeof(int64_t)));
  if (!check.ok()) return {};
  NearestPlan plan;
  plan.images = sizes.images();
  plan.inner = sizes.inner;
  plan.height = from[row];
  plan.width = from[row + 1];
  plan.rows = NearestAlong(from[row], to[row], sizes.rule);
  plan.columns = NearestAlong(from[row + 1], to[row + 1], sizes.rule);
  plan.dtype = op.in(0).dtype;
  plan.outputs = {{plan.dtype, sizes.to}};
  plan.threads = WorthThreadsForRows(plan.lines(), sizes.to.elements(), op.threads());
  return plan;
}

// Copies the pixels of a row; `bytes` is what a pixel has.
void CopyPixels(const NearestPlan& plan, size_t bytes, const std::byte* from, std::byte* to) {
  if (plan.inner != 1) {
    for (const int64_t column : plan.columns) {
      std::memcpy(to, from + static_cast<size_t>(column) * bytes, bytes);
      to += bytes;
    }
    return;
  }
  ByWidth(bytes, [&](auto element) {
    using Element = decltype(element);
    const auto* const pixels = reinterpret_cast<const Element*>(from);
    auto* next = reinterpret_cast<Element*>(to);
    for (const int64_t column : plan.columns) *next++ = pixels[column];
  });
}

Status RunNearest(const NearestPlan& plan, const KernelArgs& args) {
  const size_t pixel = WidthOf(plan.dtype) * static_cast<size_t>(plan.inner);
  const size_t in_row = static_cast<size_t>(plan.width) * pixel;
  const size_t out_row = plan.columns.size() * pixel;
  const auto rows = static_cast<int64_t>(plan.rows.size());
  const auto* const in = static_cast<const std::byte*>(args.in[0]);
  auto* const out = static_cast<std::byte*>(args.out[0]);
  RunRanges(plan.threads, plan.lines(), 1, [&](int, int64_t first, int64_t end) {
    int64_t copied = -1;  // the row that the last one is made of
    for (int64_t line = first; line < end; ++line) {
      const int64_t row = line / rows * plan.height + plan.rows[static_cast<size_t>(line % rows)];
      std::byte* const to = out + static_cast<size_t>(line) * out_row;
      if (row == copied) {
        std::memcpy(to, to - out_row, out_row);
      } else {
        CopyPixels(plan, pixel, in + static_cast<size_t>(row) * in_row, to);
      }
      copied = row;
    }
  });
  return Status();
}

// Several elements may go into one.
Status RunNearestGrad(const NearestPlan& plan, RealTensors& t) {
  const auto rows = static_cast<int64_t>(plan.rows.size());
  const double* grad = t.in[0].data();
  for (int64_t line = 0; line < plan.lines(); ++line) {
    const int64_t row = line / rows * plan.height + plan.rows[static_cast<size_t>(line % rows)];
    for (const int64_t column : plan.columns) {
      double* const to = t.out[0].data() + (row * plan.width + column) * plan.inner;
      for (int64_t i = 0; i < plan.inner; ++i) to[i] += *grad++;
    }
  }
  return Status();
}

// ---- linear ----

ResamplingPlan PlanLinear(const OpContext& op, Check& check) {
  const Sizes sizes = ReadSizes(op, check);
  // The form of newer prototypes names its type.
  const bool named = op.node().FindAttr("dtype") != nullptr;
  const DataType dtype = named ? check.Take(op.attr_dtype("dtype")) : op.in(0).dtype;
  check.Supported(FindConvert(DataType::kDouble, dtype) != nullptr, "not defined for dtype {}",
                  Name(dtype));
  if (!check.ok()) return {};
  const int row = sizes.row;
  constexpr size_t kRun = sizeof(PixelRun) + 2 * sizeof(double);
  check.Keep(AskForLists(op, SumOfDims(Shape{sizes.to[row], sizes.to[row + 1]}), kRun));
  if (!check.ok()) return {};
  ResamplingPlan plan;
  plan.images = sizes.images();
  plan.inner = sizes.inner;
  plan.height = sizes.from[row];
  plan.width = sizes.from[row + 1];
  plan.rows = LinearAlong(plan.height, sizes.to[row], sizes.rule);
  plan.columns = LinearAlong(plan.width, sizes.to[row + 1], sizes.rule);
  plan.from = op.in(0).dtype;
  plan.to = dtype;
  plan.outputs = {{dtype, sizes.to}};
  Finish(plan, op.threads());
  return plan;
}

}  // namespace

void RegisterResizeOps(OpRegistry& registry) {
  for (Operator op : {
           Define<PlanNearest<false>, RunNearest>(
               "ResizeNearestNeighborV2(x, size; align_corners=false, half_pixel_centers=false, "
               "scales==[0.0,0.0]) -> y"),
           Define<PlanLinear, RunResampling>(
               "ResizeBilinearV2(x, size; align_corners=false, half_pixel_centers=false, "
               "scales==[0.0,0.0], dtype=0) -> y"),
           DefineReal<PlanNearest<true>, RunNearestGrad>(
               "ResizeNearestNeighborV2Grad(grads, size; align_corners=false, "
               "half_pixel_centers=false, scales==[0.0,0.0]) -> y"),
       }) {
    op.value_inputs = {"size"};
    registry.Add(std::move(op));
  }
}

}  // namespace npumesh
