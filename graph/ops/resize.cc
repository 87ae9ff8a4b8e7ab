// ResizeNearestNeighborV2, its gradient, and ResizeBilinearV2. Ops reference 5.8.
//
// Both dimensions of the image are resized on their own: a position of the output reads one or two
// positions of the input with weights. Computed in double and rounded once.
#include <algorithm>
#include <array>
#include <cmath>

#include "graph/ops/cast.h"
#include "graph/ops/image_layout.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/layer_families.h"

namespace npumesh {
namespace {

// What a position of the output reads along one dimension: (1 - weight) of `low`, weight of `high`.
struct Tap {
  int64_t low = 0;
  int64_t high = 0;
  double weight = 0;
};

struct CoordinateRule {
  bool align_corners = false;
  bool half_pixel_centers = false;
};

Tap NearestTap(int64_t at, int64_t in, int64_t out, CoordinateRule rule) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const auto place = static_cast<double>(at);
  double source = std::floor(place * scale);
  if (rule.align_corners) {
    const double corners =
        out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
    source = std::round(place * corners);
  } else if (rule.half_pixel_centers) {
    source = std::floor((place + 0.5) * scale);
  }
  const int64_t taken = std::clamp<int64_t>(static_cast<int64_t>(source), 0, in - 1);
  return {taken, taken, 0};
}

Tap LinearTap(int64_t at, int64_t in, int64_t out, CoordinateRule rule) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const auto place = static_cast<double>(at);
  double source = place * scale;
  if (rule.align_corners) {
    source = out > 1 ? place * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
  } else if (rule.half_pixel_centers) {
    source = std::max((place + 0.5) * scale - 0.5, 0.0);
  }
  const int64_t low = std::min(static_cast<int64_t>(source), in - 1);
  return {low, std::min(low + 1, in - 1), source - static_cast<double>(low)};
}

struct ResizePlan {
  int64_t outer = 1;
  int64_t inner = 1;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<Tap> rows;
  std::vector<Tap> columns;
  Shape resized;
};

// Plans from an image of shape `x` in slot 0 to the size that port "size" gives; `backwards`: from
// that size to x, which is how the gradient sees it.
Result<ResizePlan> PlanResize(const OpContext& op, bool linear, bool backwards) {
  const Shape& x = op.in(0).shape;
  NPUMESH_ASSIGN_OR_RETURN(const bool last, ChannelsLast(op, 0, "NCHW"));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> size, op.Ints("size"));
  if (x.rank() != 4 || size.size() != 2 || size[0] < 1 || size[1] < 1) {
    return Error(Code::kInvalidArgument,
                 "{}: x {} and size {}: expected four dimensions and two numbers above 0", op.Who(),
                 x.ToString(), Shape(size).ToString());
  }
  const int row = last ? 1 : 2;
  ResizePlan plan;
  plan.outer = ElementsBetween(x, 0, row);
  plan.inner = last ? x[3] : 1;
  plan.resized = x;
  plan.resized[row] = size[0];
  plan.resized[row + 1] = size[1];
  NPUMESH_RETURN_IF_ERROR(plan.resized.Check().WithContext(op.Who()));
  const Shape& from = backwards ? plan.resized : x;
  const Shape& to = backwards ? x : plan.resized;
  plan.height = from[row];
  plan.width = from[row + 1];
  if (plan.height == 0 || plan.width == 0) {
    return Error(Code::kInvalidArgument, "{}: x {} has no pixels", op.Who(), x.ToString());
  }
  const int64_t taps = SumOfDims(Shape{to[row], to[row + 1]});
  NPUMESH_RETURN_IF_ERROR(AskForLists(op, taps, sizeof(Tap)));
  const CoordinateRule rule = {op.attr_bool("align_corners"), op.attr_bool("half_pixel_centers")};
  const auto tap = linear ? LinearTap : NearestTap;
  for (int64_t r = 0; r < to[row]; ++r) plan.rows.push_back(tap(r, plan.height, to[row], rule));
  for (int64_t c = 0; c < to[row + 1]; ++c) {
    plan.columns.push_back(tap(c, plan.width, to[row + 1], rule));
  }
  return plan;
}

// Calls visit(large, {four elements of the small image}, {their weights}) for every element that
// the taps make, in C order; `large` counts them.
template <typename Visit>
void ForTaps(const ResizePlan& plan, Visit visit) {
  int64_t next = 0;
  for (int64_t outer = 0; outer < plan.outer; ++outer) {
    const int64_t image = outer * plan.height * plan.width;
    for (const Tap& r : plan.rows) {
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
}

struct ResizeRow {
  std::string_view type;
  std::string_view input;
  bool linear;
  bool backwards;
};

constexpr ResizeRow kRows[] = {
    {"ResizeNearestNeighborV2", "x", false, false},
    {"ResizeBilinearV2", "x", true, false},
    {"ResizeNearestNeighborV2Grad", "grads", false, true},
};

// The bilinear form of newer prototypes names its type.
Result<DataType> OutputType(const OpContext& op, const ResizeRow& row) {
  if (!row.linear || op.node().FindAttr("dtype") == nullptr) return op.in(0).dtype;
  return op.attr_dtype("dtype");
}

Status InferResize(OpContext& op, const ResizeRow& row) {
  NPUMESH_ASSIGN_OR_RETURN(const ResizePlan plan, PlanResize(op, row.linear, row.backwards));
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, OutputType(op, row));
  if (FindConvert(op.in(0).dtype, DataType::kDouble) == nullptr ||
      FindConvert(DataType::kDouble, dtype) == nullptr) {
    return Error(Code::kUnsupported, "{}: not defined for {}", op.Who(), op.in(0).ToString());
  }
  return SetOutput(op, 0, dtype, plan.resized);
}

Result<std::unique_ptr<Kernel>> MakeResize(const OpContext& op, const ResizeRow& row) {
  NPUMESH_ASSIGN_OR_RETURN(ResizePlan plan, PlanResize(op, row.linear, row.backwards));
  NPUMESH_RETURN_IF_ERROR(
      AskForLists(op, SumOfDims(Shape{op.in(0).shape.elements(), op.out(0).shape.elements()})));
  return MakeKernel([plan = std::move(plan), backwards = row.backwards, linear = row.linear,
                     load = FindConvert(op.in(0).dtype, DataType::kDouble),
                     store = FindConvert(DataType::kDouble, op.out(0).dtype),
                     x = std::vector<double>(static_cast<size_t>(op.in(0).shape.elements())),
                     y = std::vector<double>(static_cast<size_t>(op.out(0).shape.elements()))](
                        const KernelArgs& args) mutable {
    load(args.in[0], x.data(), x.size());
    if (backwards) std::fill(y.begin(), y.end(), 0.0);
    ForTaps(plan, [&](size_t next, const std::array<size_t, 4>& sources,
                      const std::array<double, 4>& weights) {
      if (backwards) {
        y[sources[0]] += x[next];
      } else if (!linear) {
        y[next] = x[sources[0]];
      } else {
        double sum = 0;
        for (size_t i = 0; i < 4; ++i) sum += weights[i] == 0 ? 0 : weights[i] * x[sources[i]];
        y[next] = sum;
      }
    });
    store(y.data(), args.out[0], y.size());
    return Status();
  });
}

}  // namespace

void RegisterResizeOps(OpRegistry& registry) {
  for (const ResizeRow& row : kRows) {
    OpSchema schema = {row.type,
                       {{row.input}, {"size"}},
                       {{"y"}},
                       {{"align_corners", AttrValue::Bool(false)},
                        {"half_pixel_centers", AttrValue::Bool(false)},
                        AttrSpec::Only("scales", AttrValue::Floats({0, 0}))}};
    if (row.linear) schema.attrs.push_back({"dtype", AttrValue::Int(0)});
    registry.Add({.schema = std::move(schema),
                  .infer = [&row](OpContext& op) { return InferResize(op, row); },
                  .make_kernel = [&row](const OpContext& op) { return MakeResize(op, row); },
                  .value_inputs = {"size"}});
  }
}

}  // namespace npumesh
