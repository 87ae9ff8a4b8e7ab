// ResizeNearestNeighborV2, its gradient, and ResizeBilinearV2.
//
// Both dimensions of the image are resized separately: a position of the output reads one or two
// positions of the input with weights. Computed in double and rounded once.
#include <algorithm>
#include <array>
#include <cmath>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/image/family.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/rows/image_layout.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

// What a position of the output reads along one dimension: (1 - weight) of `low`, weight of `high`.
struct Tap {
  int64_t low = 0, high = 0;
  double weight = 0;
};

struct CoordinateRule {
  bool align_corners = false, half_pixel_centers = false;
};

// The position of the input that output position `at` corresponds to.
double NearestSource(double at, double in, double out, CoordinateRule rule) {
  if (rule.align_corners) return std::round(at * (out > 1 ? (in - 1) / (out - 1) : 0.0));
  return std::floor((rule.half_pixel_centers ? at + 0.5 : at) * (in / out));
}

double LinearSource(double at, double in, double out, CoordinateRule rule) {
  if (rule.align_corners) return out > 1 ? at * (in - 1) / (out - 1) : 0.0;
  return rule.half_pixel_centers ? std::max((at + 0.5) * (in / out) - 0.5, 0.0) : at * (in / out);
}

struct ResizePlan : Planned {
  int64_t outer = 1, inner = 1, height = 0, width = 0;
  std::vector<Tap> rows, columns;
  int threads = 1;
};

// Rows of the larger image in all channels or images.
int64_t LinesOf(const ResizePlan& plan) {
  return plan.outer * static_cast<int64_t>(plan.rows.size());
}

enum class ResizeKind : uint8_t { kNearest, kLinear, kNearestGrad };

std::vector<Tap> TapsAlong(ResizeKind kind, int64_t in, int64_t out, CoordinateRule rule) {
  const auto in_size = static_cast<double>(in), out_size = static_cast<double>(out);
  std::vector<Tap> taps;
  for (int64_t i = 0; i < out; ++i) {
    const auto at = static_cast<double>(i);
    if (kind != ResizeKind::kLinear) {
      const double source = NearestSource(at, in_size, out_size, rule);
      const int64_t taken = std::clamp<int64_t>(static_cast<int64_t>(source), 0, in - 1);
      taps.push_back({taken, taken, 0});
      continue;
    }
    const double source = LinearSource(at, in_size, out_size, rule);
    const int64_t low = std::min(static_cast<int64_t>(source), in - 1);
    taps.push_back({low, std::min(low + 1, in - 1), source - static_cast<double>(low)});
  }
  return taps;
}

// The bilinear form of newer prototypes names its type.
DataType OutputType(const OpContext& op, ResizeKind kind, Check& check) {
  if (kind != ResizeKind::kLinear || op.node().FindAttr("dtype") == nullptr) return op.in(0).dtype;
  return check.Take(op.attr_dtype("dtype"));
}

// Plans from an image in slot 0 to the size that port "size" gives. The gradient goes from the
// image of that size to x.
template <ResizeKind kKind>
ResizePlan PlanResize(const OpContext& op, Check& check) {
  const Shape& x = op.in(0).shape;
  const bool last = check.Take(ChannelsLast(op, 0, "NCHW"));
  const std::vector<int64_t> size = check.Take(op.Ints("size"));
  check.That(x.rank() == 4 && size.size() == 2 && size[0] >= 1 && size[1] >= 1,
             "x {} and size {}: expected four dimensions and two numbers above 0", x, Shape(size));
  if (!check.ok()) return {};
  const int row = last ? 1 : 2;
  Shape resized = x;
  resized[row] = size[0];
  resized[row + 1] = size[1];
  check.Keep(resized.Check().WithContext(op.Who()));
  constexpr bool kBackwards = kKind == ResizeKind::kNearestGrad;
  const Shape &from = kBackwards ? resized : x, &to = kBackwards ? x : resized;
  ResizePlan plan;
  plan.outer = ElementsBetween(x, 0, row);
  plan.inner = last ? x[3] : 1;
  plan.height = from[row];
  plan.width = from[row + 1];
  check.That(plan.height > 0 && plan.width > 0, "x {} has no pixels", x);
  if (check.ok()) {
    check.Keep(AskForLists(op, SumOfDims(Shape{to[row], to[row + 1]}), sizeof(Tap)));
  }
  const DataType dtype = OutputType(op, kKind, check);
  check.Supported(FindConvert(op.in(0).dtype, DataType::kDouble) != nullptr &&
                      FindConvert(DataType::kDouble, dtype) != nullptr,
                  "not defined for {}", op.in(0));
  if (!check.ok()) return {};
  const CoordinateRule rule = {op.attr_bool("align_corners"), op.attr_bool("half_pixel_centers")};
  plan.rows = TapsAlong(kKind, plan.height, to[row], rule);
  plan.columns = TapsAlong(kKind, plan.width, to[row + 1], rule);
  plan.outputs = {{dtype, resized}};
  plan.threads = WorthThreadsForRows(LinesOf(plan), resized.elements(), op.threads());
  return plan;
}

// Calls visit(large, {four elements of the small image}, {their weights}) for every element of
// lines [first, end) that the taps make, in C order; `large` counts the elements of all lines.
template <typename Visit>
void ForTaps(const ResizePlan& plan, int64_t first, int64_t end, Visit visit) {
  const auto rows = static_cast<int64_t>(plan.rows.size());
  int64_t next = first * static_cast<int64_t>(plan.columns.size()) * plan.inner;
  for (int64_t line = first; line < end; ++line) {
    const int64_t image = line / rows * plan.height * plan.width;
    const Tap& r = plan.rows[static_cast<size_t>(line % rows)];
    for (const Tap& c : plan.columns) {
      const std::array<double, 4> weights = {(1 - r.weight) * (1 - c.weight),
                                             (1 - r.weight) * c.weight, r.weight * (1 - c.weight),
                                             r.weight * c.weight};
      for (int64_t inner = 0; inner < plan.inner; ++inner) {
        const auto at = [&](int64_t row, int64_t column) {
          return static_cast<size_t>((image + row * plan.width + column) * plan.inner + inner);
        };
        const std::array<size_t, 4> sources = {at(r.low, c.low), at(r.low, c.high),
                                               at(r.high, c.low), at(r.high, c.high)};
        visit(static_cast<size_t>(next++), sources, weights);
      }
    }
  }
}

// The same for all lines, which threads share.
template <typename Visit>
void ForTapsOnThreads(const ResizePlan& plan, Visit visit) {
  RunRanges(plan.threads, LinesOf(plan), 1,
            [&](int, int64_t first, int64_t end) { ForTaps(plan, first, end, visit); });
}

Status RunNearest(const ResizePlan& plan, RealTensors& t) {
  ForTapsOnThreads(
      plan, [&](size_t next, const std::array<size_t, 4>& sources, const std::array<double, 4>&) {
        t.out[0][next] = t.in[0][sources[0]];
      });
  return Status();
}

// Several elements may go into one.
Status RunNearestGrad(const ResizePlan& plan, RealTensors& t) {
  ForTaps(plan, 0, LinesOf(plan),
          [&](size_t next, const std::array<size_t, 4>& sources, const std::array<double, 4>&) {
            t.out[0][sources[0]] += t.in[0][next];
          });
  return Status();
}

Status RunLinear(const ResizePlan& plan, RealTensors& t) {
  const std::vector<double>& x = t.in[0];
  ForTapsOnThreads(plan, [&](size_t next, const std::array<size_t, 4>& sources,
                             const std::array<double, 4>& weights) {
    double sum = 0;
    for (size_t i = 0; i < 4; ++i) sum += weights[i] == 0 ? 0 : weights[i] * x[sources[i]];
    t.out[0][next] = sum;
  });
  return Status();
}

}  // namespace

void RegisterResizeOps(OpRegistry& registry) {
  for (Operator op : {
           DefineReal<PlanResize<ResizeKind::kNearest>, RunNearest>(
               "ResizeNearestNeighborV2(x, size; align_corners=false, half_pixel_centers=false, "
               "scales==[0.0,0.0]) -> y"),
           DefineReal<PlanResize<ResizeKind::kLinear>, RunLinear>(
               "ResizeBilinearV2(x, size; align_corners=false, half_pixel_centers=false, "
               "scales==[0.0,0.0], dtype=0) -> y"),
           DefineReal<PlanResize<ResizeKind::kNearestGrad>, RunNearestGrad>(
               "ResizeNearestNeighborV2Grad(grads, size; align_corners=false, "
               "half_pixel_centers=false, scales==[0.0,0.0]) -> y"),
       }) {
    op.value_inputs = {"size"};
    registry.Add(std::move(op));
  }
}

}  // namespace npumesh
