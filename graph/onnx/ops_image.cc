// Resizing and sampling of images.
#include <cmath>

#include "graph/onnx/op_table.h"
#include "graph/onnx/rewrites.h"

namespace npumesh {
namespace {

constexpr DataType kReal = DataType::kDouble;  // coordinates

// ---- Resize: one axis after the other ----

// One axis of a Resize, as scalars of the graph: sizes of x and y, and what is asked for.
struct ResizedAxis {
  int axis = 0;
  Value in, out;     // kReal, whole numbers
  Value exact;       // kReal: the size of y with the fraction that a scale gives it
  Value count;       // int64: places of y
  Value scale;       // kReal
  Value begin, end;  // kReal: of the region, for tf_crop_and_resize
};

struct ResizeRule {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  bool exclude_outside = false;
  double outside = 0;  // extrapolation_value
};

ResizeRule RuleOf(Lowering& at) {
  ResizeRule rule;
  rule.mode = at.Text("mode", "nearest");
  rule.coordinates =
      at.Text("coordinate_transformation_mode", at.version() < 11 ? "asymmetric" : "half_pixel");
  rule.nearest = at.Text("nearest_mode", at.version() < 11 ? "floor" : "round_prefer_floor");
  rule.cubic = at.Float("cubic_coeff_a", -0.75F);
  rule.exclude_outside = at.Int("exclude_outside", 0) != 0;
  rule.outside = at.Float("extrapolation_value", 0);
  return rule;
}

Value Real(Lowering& at, double value) {
  return at.Scalar(value, kReal);
}

// Where in x the elements of y lie, [out].
Value Coordinates(Lowering& at, const ResizeRule& rule, const ResizedAxis& axis) {
  const Value i = CountTo(at, axis.count, kReal);
  const Value one = Real(at, 1), half = Real(at, 0.5), zero = Real(at, 0);
  const Value last_in = at.Sub(axis.in, one), last_out = at.Sub(axis.out, one);
  const Value many = at.Binary("NotEqual", axis.out, one);
  const auto half_pixel = [&] { return at.Sub(at.Div(at.Add(i, half), axis.scale), half); };
  if (rule.coordinates == "asymmetric") return at.Div(i, axis.scale);
  if (rule.coordinates == "half_pixel") return half_pixel();
  if (rule.coordinates == "half_pixel_symmetric") {
    // What rounding cut off the length of y is left over at both ends of x.
    const Value left = at.Sub(one, at.Div(axis.out, axis.exact));
    return at.Add(at.Mul(at.Mul(axis.in, half), left), half_pixel());
  }
  if (rule.coordinates == "pytorch_half_pixel") return at.Select(many, half_pixel(), zero);
  if (rule.coordinates == "tf_half_pixel_for_nn") return at.Div(at.Add(i, half), axis.scale);
  const Value steps = at.Select(many, last_out, one);  // nothing is divided by 0
  if (rule.coordinates == "align_corners") {
    return at.Select(many, at.Div(at.Mul(i, last_in), steps), zero);
  }
  if (rule.coordinates == "tf_crop_and_resize") {
    const Value first = at.Mul(axis.begin, last_in);
    const Value span = at.Mul(at.Sub(axis.end, axis.begin), last_in);
    const Value middle = at.Mul(at.Mul(half, at.Add(axis.begin, axis.end)), last_in);
    return at.Select(many, at.Add(first, at.Div(at.Mul(i, span), steps)), middle);
  }
  at.Refuse("has no coordinate_transformation_mode \"{}\"", rule.coordinates);
  return i;
}

Value Within(Lowering& at, Value x, Value last) {
  return at.Min(at.Max(x, Real(at, 0)), last);
}

// The nearest place of x for each coordinate.
Value NearestPlaces(Lowering& at, const ResizeRule& rule, Value x) {
  const Value half = Real(at, 0.5);
  if (rule.nearest == "floor") return at.Unary("Floor", x);
  if (rule.nearest == "ceil") return at.Unary("Ceil", x);
  if (rule.nearest == "round_prefer_ceil") return at.Unary("Floor", at.Add(x, half));
  return at.Unary("Ceil", at.Sub(x, half));
}

// Weights of the neighbours of x, [out, in]: a hat over two places.
Value LinearWeights(Lowering& at, const ResizedAxis& axis, Value x) {
  const Value last = at.Sub(axis.in, Real(at, 1));
  const Value places = CountTo(at, at.Cast(axis.in, DataType::kInt64), kReal);
  const Value distance = at.Unary("Abs", at.Sub(at.Unsqueeze(Within(at, x, last), {1}), places));
  return at.Max(at.Sub(Real(at, 1), distance), Real(at, 0));
}

// The cubic kernel at a distance of at most 2.
Value CubicKernel(Lowering& at, double a, Value distance) {
  const auto number = [&](double value) { return Real(at, value); };
  const Value d2 = at.Mul(distance, distance), d3 = at.Mul(d2, distance);
  const Value near =
      at.Add(at.Sub(at.Mul(number(a + 2), d3), at.Mul(number(a + 3), d2)), number(1));
  const Value far = at.Sub(at.Add(at.Sub(at.Mul(number(a), d3), at.Mul(number(5 * a), d2)),
                                  at.Mul(number(8 * a), distance)),
                           number(4 * a));
  return at.Select(at.Binary("LessEqual", distance, number(1)), near, far);
}

// Weights of the four neighbours; those outside count for the edge, or not at all.
Value CubicWeights(Lowering& at, const ResizeRule& rule, const ResizedAxis& axis, Value x) {
  const Value last = at.Sub(axis.in, Real(at, 1));
  const Value places = CountTo(at, at.Cast(axis.in, DataType::kInt64), kReal);
  const Value column = at.Unsqueeze(x, {1}), first = at.Unary("Floor", column);
  Value weights;
  for (int tap = -1; tap <= 2; ++tap) {
    const Value place = at.Add(first, Real(at, tap));
    const Value weight = CubicKernel(at, rule.cubic, at.Unary("Abs", at.Sub(column, place)));
    const Value meant = rule.exclude_outside ? place : Within(at, place, last);
    const Value here = at.Cast(at.Binary("Equal", meant, places), kReal);
    const Value part = at.Mul(weight, here);
    weights = tap == -1 ? part : at.Add(weights, part);
  }
  if (!rule.exclude_outside) return weights;
  return at.Div(weights, at.Reduce("ReduceSum", weights, {1}, true));
}

// y[.., o, ..] = sum over i of weights[o, i] * x[.., i, ..]. REQUIRES: x is float32 or double.
Value Weighted(Lowering& at, Value x, int axis, Value weights) {
  const int last = at.Rank(x) - 1;
  const Value y = GeneralProduct(at, at.SwapAxes(x, axis, last),
                                 at.Transpose(at.Cast(weights, at.dtype(x)), {1, 0}));
  return at.SwapAxes(y, axis, last);
}

Value ResizedAlong(Lowering& at, const ResizeRule& rule, const ResizedAxis& axis, Value x) {
  const Value places = Coordinates(at, rule, axis);
  const Value last = at.Sub(axis.in, Real(at, 1));
  Value y;
  if (rule.mode == "nearest") {
    const Value nearest = Within(at, NearestPlaces(at, rule, places), last);
    y = at.Gather(x, at.Cast(nearest, DataType::kInt64), axis.axis);
  } else {
    const Value weights = rule.mode == "cubic" ? CubicWeights(at, rule, axis, places)
                                               : LinearWeights(at, axis, places);
    y = Weighted(at, x, axis.axis, weights);
  }
  if (rule.coordinates != "tf_crop_and_resize") return y;
  const Value outside = at.Binary("LogicalOr", at.Binary("Less", places, Real(at, 0)),
                                  at.Binary("Greater", places, last));
  return at.Select(at.Along(outside, axis.axis, at.Rank(x)), at.Like(rule.outside, y), y);
}

// `scales` or `sizes` (one of them), a region or none; entry i of each is for axis axes[i].
void ResizeBy(Lowering& at, const ResizeRule& rule, std::optional<Value> scales,
              std::optional<Value> sizes, std::optional<Value> region,
              const std::vector<int64_t>& axes) {
  Value y = at.in(0);
  const Value x = y;
  if (rule.mode != "nearest") {  // weights have fractions
    y = IsFloating(at.dtype(x)) ? at.Wide(x) : at.Cast(x, DataType::kFloat);
  }
  if (rule.mode != "nearest" && rule.mode != "linear" && rule.mode != "cubic") {
    return at.Refuse("has no mode \"{}\"", rule.mode);
  }
  const std::optional<std::vector<double>> known = scales ? at.KnownNumbers(*scales) : std::nullopt;
  const auto count = static_cast<int64_t>(axes.size());
  if (known && known->size() != axes.size()) {
    return at.Fail(Code::kCorrupt, "has {} scales, expected {}", known->size(), count);
  }
  for (size_t i = 0; known && i < axes.size(); ++i) {
    if ((*known)[i] > 0 && std::isfinite((*known)[i])) continue;
    return at.Fail(Code::kCorrupt, "scale {} of axis {}; expected more than 0", (*known)[i],
                   axes[i]);
  }
  const std::optional<std::vector<int64_t>> lengths = sizes ? at.KnownInts(*sizes) : std::nullopt;
  for (size_t i = 0; lengths && i < lengths->size(); ++i) {
    if ((*lengths)[i] >= 0) continue;
    return at.Fail(Code::kCorrupt, "size {} of dimension {}; expected 0 or more", (*lengths)[i], i);
  }
  const auto entry = [&](Value list, int64_t i) {
    return at.Cast(at.Reshape(at.Slice(list, 0, i, i + 1), {}), kReal);
  };
  for (int64_t i = 0; i < count && at.ok(); ++i) {
    const bool region_here = rule.coordinates == "tf_crop_and_resize";
    if (known && (*known)[static_cast<size_t>(i)] == 1 && !region_here) continue;
    ResizedAxis axis;
    axis.axis = static_cast<int>(axes[static_cast<size_t>(i)]);
    axis.in = at.Cast(at.Reshape(at.DimOf(x, axis.axis), {}), kReal);
    if (scales) {
      axis.scale = entry(*scales, i);
      // The product is rounded to float32, as shape inference of ONNX does: 10 * 0.7 is 7.
      axis.exact = at.Cast(at.Cast(at.Mul(axis.in, axis.scale), DataType::kFloat), kReal);
      axis.out = at.Unary("Floor", axis.exact);
    } else {
      axis.out = axis.exact = entry(*sizes, i);
      axis.scale = at.Div(axis.out, axis.in);
    }
    axis.count = at.Cast(axis.out, DataType::kInt64);
    if (region_here) {
      if (!region) return at.Fail(Code::kCorrupt, "tf_crop_and_resize needs the operand roi");
      axis.begin = entry(*region, i);
      axis.end = entry(*region, i + count);
    }
    y = ResizedAlong(at, rule, axis, y);
  }
  at.Out(0, at.Cast(y, at.dtype(x)));
}

// Operands of version 10 are x and scales, later x, roi, scales and sizes.
void LowerResize(Lowering& at) {
  const Value x = at.in(0);
  const bool first = at.version() < 11;
  const auto filled = [&](int i) -> std::optional<Value> {
    if (!at.has(i)) return std::nullopt;
    const Value value = at.in(i);
    const bool empty = at.shape(value).is_static() && at.shape(value).elements() == 0;
    return empty ? std::nullopt : std::optional(value);
  };
  if (first && at.dtype(at.in(1)) != DataType::kFloat) {
    return at.Fail(Code::kCorrupt, "scales of {}; expected float32", Name(at.dtype(at.in(1))));
  }
  if (at.Int("antialias", 0) != 0) return at.Refuse("antialias is not translated");
  if (at.Text("keep_aspect_ratio_policy", "stretch") != "stretch") {
    return at.Refuse("keep_aspect_ratio_policy other than stretch is not translated");
  }
  std::vector<int64_t> axes = at.IntList("axes");
  for (int d = 0; !at.has_attr("axes") && d < at.Rank(x); ++d) axes.push_back(d);
  for (int64_t& axis : axes) axis = at.Axis(axis, at.Rank(x));
  const std::optional<Value> scales = filled(first ? 1 : 2),
                             sizes = first ? std::nullopt : filled(3);
  if (!scales && !sizes) return at.Fail(Code::kCorrupt, "has neither scales nor sizes");
  if (at.ok()) ResizeBy(at, RuleOf(at), scales, sizes, first ? std::nullopt : filled(1), axes);
}

void LowerUpsample(Lowering& at) {
  const Value x = at.in(0);
  ResizeRule rule = RuleOf(at);
  rule.coordinates = "asymmetric";
  rule.nearest = "floor";
  std::vector<int64_t> axes;
  for (int d = 0; d < at.Rank(x); ++d) axes.push_back(d);
  if (at.has(1)) return ResizeBy(at, rule, at.in(1), std::nullopt, std::nullopt, axes);
  const std::vector<float> scales = at.FloatList("scales");
  ResizeBy(at, rule, at.Floats(scales, Shape({static_cast<int64_t>(scales.size())})), std::nullopt,
           std::nullopt, axes);
}

// ---- sampling ----

void LowerGridSample(Lowering& at) {
  // Version 20 calls the modes otherwise.
  std::string mode = at.Text("mode", "bilinear");
  if (mode == "linear") mode = "bilinear";
  if (mode == "cubic") mode = "bicubic";
  const bool volume = at.shape(at.in(0)).rank() == 5 || at.shape(at.in(1)).rank() == 5;
  at.Out(0,
         at.Node(volume ? "GridSampler3D" : "GridSampler2D", {{"x", at.in(0)}, {"grid", at.in(1)}},
                 {{"interpolation_mode", AttrValue::String(mode)},
                  {"padding_mode", AttrValue::String(at.Text("padding_mode", "zeros"))},
                  {"align_corners", AttrValue::Bool(at.Int("align_corners", 0) != 0)}}));
}

// Along one axis of an image: where regions begin, how far they reach, in places.
struct RegionSpans {
  Value begin, span;  // kReal, [regions]
};

// How much each place of an axis with `size` (kReal) places counts for each box of each region:
// [regions, boxes, size]. A box has `ratio` samples, evenly spaced, or (ratio 0) one for each place
// that it reaches over.
Value RegionWeights(Lowering& at, const RegionSpans& regions, int64_t boxes, int64_t ratio,
                    Value size) {
  const Value step = at.Div(regions.span, Real(at, static_cast<double>(boxes)));
  const Value one = Real(at, 1), zero = Real(at, 0);
  const Value wanted = ratio > 0 ? Real(at, static_cast<double>(ratio)) : at.Unary("Ceil", step);
  const Value samples = at.Max(wanted, one);  // [regions], or a scalar
  const Value most = ratio > 0 ? at.IntScalar(ratio)
                               : at.Cast(at.Max(at.Reduce("ReduceMax", samples, {}, false), one),
                                         DataType::kInt64);
  // Place of sample s of box b: begin + (b + (s + 0.5) / samples) * step.
  const auto of_region = [&](Value x) { return at.Rank(x) == 0 ? x : at.Unsqueeze(x, {1, 2}); };
  const Value box = at.Unsqueeze(CountTo(at, at.IntScalar(boxes), kReal), {1});
  const Value sample = CountTo(at, most, kReal);
  const Value inside = at.Div(at.Add(sample, Real(at, 0.5)), of_region(samples));
  const Value places =
      at.Add(of_region(regions.begin), at.Mul(at.Add(box, inside), of_region(step)));
  const Value last = at.Sub(size, one);
  const Value outside = at.Binary("LogicalOr", at.Binary("Less", places, Real(at, -1)),
                                  at.Binary("Greater", places, size));
  const Value missing = at.Binary("GreaterEqual", sample, of_region(wanted));
  const Value unread = at.Unsqueeze(at.Binary("LogicalOr", outside, missing), {3});
  const Value columns = CountTo(at, at.Cast(size, DataType::kInt64), kReal);
  const Value distance = at.Sub(at.Unsqueeze(Within(at, places, last), {3}), columns);
  const Value hat = at.Max(at.Sub(one, at.Unary("Abs", distance)), zero);
  const Value sum = at.Reduce("ReduceSum", at.Select(unread, zero, hat), {2}, false);
  return at.Div(sum, of_region(samples));
}

// Each region [x1, y1, x2, y2] of image batch[i] becomes height x width boxes, whose samples are
// averaged.
void LowerRoiAlign(Lowering& at) {
  const Value x = at.in(0), regions = at.in(1);
  const int64_t height = at.Int("output_height", 1), width = at.Int("output_width", 1);
  const int64_t ratio = at.Int("sampling_ratio", 0);
  const bool half =
      at.version() >= 16 && at.Text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  if (at.Text("mode", "avg") != "avg") return at.Refuse("mode max is not translated");
  if (ratio < 0 || height < 1 || width < 1) {
    return at.Fail(Code::kCorrupt,
                   "{} x {} boxes, sampling_ratio {}; expected 1 or more boxes, "
                   "0 or more samples",
                   height, width, ratio);
  }
  const Value scale = Real(at, at.Float("spatial_scale", 1));
  const auto border = [&](int64_t i) {
    const Value column = at.Reshape(at.Slice(regions, 1, i, i + 1), {-1});
    const Value scaled = at.Mul(at.Cast(column, kReal), scale);
    return half ? at.Sub(scaled, Real(at, 0.5)) : scaled;
  };
  const auto weights = [&](int64_t low, int64_t boxes, int axis) {
    RegionSpans spans{border(low), at.Sub(border(low + 2), border(low))};
    if (!half) spans.span = at.Max(spans.span, Real(at, 1));
    const Value size = at.Cast(at.Reshape(at.DimOf(x, axis), {}), kReal);
    const Value w = RegionWeights(at, spans, boxes, ratio, size);
    return at.Unsqueeze(at.Cast(w, at.dtype(at.Wide(x))), {1});  // for the channels
  };
  const Value rows = weights(1, height, 2), columns = weights(0, width, 3);
  const Value images = at.Wide(at.Gather(x, at.in(2), 0));
  const Value boxes =
      GeneralProduct(at, GeneralProduct(at, rows, images), at.Transpose(columns, {0, 1, 3, 2}));
  at.Out(0, at.Cast(boxes, at.dtype(x)));
}

}  // namespace

void AddImageRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"GridSample", 16, LowerGridSample, "GridSampler2D, GridSampler3D",
       "_ R align_corners:int mode:string padding_mode:string"},
      {"Resize", 10, LowerResize, "Range, GatherV2, BatchMatMulV2",
       "_ _? F? L? antialias:int@18 axes:ints@18 coordinate_transformation_mode:string@11 "
       "cubic_coeff_a:float@11 exclude_outside:int@11 extrapolation_value:float@11 "
       "keep_aspect_ratio_policy:string@18 mode:string nearest_mode:string@11"},
      {"RoiAlign", 10, LowerRoiAlign, "GatherV2, BatchMatMulV2, ReduceMeanD",
       "T T L coordinate_transformation_mode:string@16 mode:string output_height:int "
       "output_width:int sampling_ratio:int spatial_scale:float"},
      {"Upsample", 7, LowerUpsample, "Range, GatherV2, BatchMatMulV2",
       "_ F? mode:string scales:floats!<9"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
