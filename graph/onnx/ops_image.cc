// Resizing and sampling of images.
#include <cmath>
#include <limits>

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
  bool antialias = false;
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
  rule.antialias = at.Int("antialias", 0) != 0;
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

// The kernel of linear or cubic interpolation at a distance (not negative).
Value KernelAt(Lowering& at, const ResizeRule& rule, Value distance) {
  const Value zero = Real(at, 0);
  if (rule.mode != "cubic") return at.Max(at.Sub(Real(at, 1), distance), zero);
  const Value near = CubicKernel(at, rule.cubic, distance);
  return at.Select(at.Binary("Less", distance, Real(at, 2)), near, zero);
}

// Weights of a kernel that is stretched where y is smaller than x, so that each element of x
// counts; places outside count for the edge, or not at all.
Value AntialiasWeights(Lowering& at, const ResizeRule& rule, const ResizedAxis& axis, Value x) {
  const Value one = Real(at, 1), zero = Real(at, 0);
  const Value squeeze = at.Min(axis.scale, one), column = at.Unsqueeze(x, {1});
  const auto weights_of = [&](Value places) {
    return KernelAt(at, rule, at.Mul(at.Unary("Abs", at.Sub(column, places)), squeeze));
  };
  const Value places = CountTo(at, at.Cast(axis.in, DataType::kInt64), kReal);
  Value weights = weights_of(places);
  if (!rule.exclude_outside) {
    // So many places beyond each edge may be reached.
    const Value reach = at.Add(at.Unary("Ceil", at.Div(Real(at, 2), squeeze)), Real(at, 2));
    const Value beyond = CountTo(at, at.Cast(reach, DataType::kInt64), kReal);
    const auto add = [&](Value outside, Value edge) {
      const Value sum = at.Reduce("ReduceSum", weights_of(outside), {1}, true);
      weights = at.Add(weights, at.Select(at.Binary("Equal", places, edge), sum, zero));
    };
    add(at.Sub(Real(at, -1), beyond), zero);
    add(at.Add(axis.in, beyond), at.Sub(axis.in, one));
  }
  return at.Div(weights, at.Reduce("ReduceSum", weights, {1}, true));
}

Value WeightsOf(Lowering& at, const ResizeRule& rule, const ResizedAxis& axis, Value x) {
  if (rule.antialias) return AntialiasWeights(at, rule, axis, x);
  if (rule.mode == "cubic") return CubicWeights(at, rule, axis, x);
  return LinearWeights(at, axis, x);
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
    y = Weighted(at, x, axis.axis, WeightsOf(at, rule, axis, places));
  }
  if (rule.coordinates != "tf_crop_and_resize") return y;
  const Value outside = at.Binary("LogicalOr", at.Binary("Less", places, Real(at, 0)),
                                  at.Binary("Greater", places, last));
  return at.Select(at.Along(outside, axis.axis, at.Rank(x)), at.Like(rule.outside, y), y);
}

// The one scale with which no axis becomes larger, or none smaller, than its entry of `sizes`; null
// where each axis has a scale for itself.
std::optional<Value> CommonScale(Lowering& at, Value x, std::optional<Value> sizes,
                                 const std::vector<int64_t>& axes) {
  const std::string policy = at.Text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return std::nullopt;
  if (policy != "not_larger" && policy != "not_smaller") {
    at.Refuse("has no keep_aspect_ratio_policy \"{}\"", policy);
  }
  if (!sizes || axes.empty() || !at.ok()) return std::nullopt;  // scales say it all
  const Value lengths = at.Gather(at.ShapeOf(x), at.Ints(axes), 0);
  const Value scales = at.Div(at.Cast(*sizes, kReal), at.Cast(lengths, kReal));
  return at.Reduce(policy == "not_larger" ? "ReduceMin" : "ReduceMax", scales, {0}, false);
}

// ---- Resize of images by an operator that computes both axes at once ----

// The image that is asked for, where that is known: rows and columns of x and y.
struct ResizedImage {
  int64_t height = 0, width = 0;
  int64_t new_height = 0, new_width = 0;
};

// The new length of an axis; -1: the scale leaves a fraction over, which shifts places.
int64_t ScaledLength(int64_t length, double scale) {
  const double exact = static_cast<double>(length) * scale;
  return exact == std::floor(exact) && exact < 1e9 ? static_cast<int64_t>(exact) : -1;
}

// Nullopt: x is no batch of images, other axes are resized, or a length is not known.
std::optional<ResizedImage> ImageResized(Lowering& at, std::optional<Value> scales,
                                         std::optional<Value> sizes,
                                         const std::vector<int64_t>& axes) {
  const Shape& x = at.shape(at.in(0));
  const auto by = scales ? at.KnownNumbers(*scales) : std::nullopt;
  const auto to = sizes ? at.KnownInts(*sizes) : std::nullopt;
  const size_t known = by ? by->size() : to ? to->size() : 0;
  if (!x.has_rank() || x.rank() != 4 || known != axes.size() || known == 0) return std::nullopt;
  int64_t lengths[] = {x[0], x[1], x[2], x[3]};
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& length = lengths[axes[i]];
    const bool same = by ? (*by)[i] == 1 : (*to)[i] == length;
    if (axes[i] < 2 && !same) return std::nullopt;
    if (axes[i] < 2) continue;
    if (length <= 0) return std::nullopt;
    length = by ? ScaledLength(length, (*by)[i]) : (*to)[i];
  }
  const ResizedImage image = {x[2], x[3], lengths[2], lengths[3]};
  if (image.height <= 0 || image.width <= 0) return std::nullopt;
  return image.new_height > 0 && image.new_width > 0 ? std::optional(image) : std::nullopt;
}

// Whether no place of y lies halfway between two of x, and places are told apart without rounding:
// the lengths are multiples, of x where `only_larger`.
bool IsWhole(int64_t from, int64_t to, bool only_larger) {
  return to % from == 0 || (!only_larger && from % to == 0);
}
bool IsWhole(const ResizedImage& image, bool only_larger) {
  return IsWhole(image.height, image.new_height, only_larger) &&
         IsWhole(image.width, image.new_width, only_larger);
}

// The operator that gives y, or an empty name.
std::string ImageOperator(const ResizeRule& rule, const ResizedImage& image, DataType dtype) {
  const std::string& places = rule.coordinates;
  const bool halves = places == "half_pixel" || places == "pytorch_half_pixel";
  // A length of 1 has its place elsewhere.
  const bool alone =
      places == "pytorch_half_pixel" && (image.new_height == 1 || image.new_width == 1);
  if (rule.antialias || alone) return {};
  if (rule.mode == "nearest") {
    const bool rounds = rule.nearest.starts_with("round");
    const bool fits =
        (places == "asymmetric" && rule.nearest == "floor" && IsWhole(image, false)) ||
        (halves && rounds && IsWhole(image, true));
    return fits && (IsFloating(dtype) || IsInteger(dtype)) ? "ResizeNearestNeighborV2" : "";
  }
  if (!IsFloating(dtype)) return {};
  if (rule.mode == "linear") {
    const bool fits = halves || places == "asymmetric" || places == "align_corners";
    return fits ? "ResizeBilinearV2" : "";
  }
  const bool fits = (halves || places == "align_corners") && rule.cubic == -0.75;
  return fits && !rule.exclude_outside ? "UpsampleBicubic2d" : "";
}

// Whether y was given so.
bool ResizeImage(Lowering& at, const ResizeRule& rule, std::optional<Value> scales,
                 std::optional<Value> sizes, const std::vector<int64_t>& axes) {
  if (at.Text("keep_aspect_ratio_policy", "stretch") != "stretch") return false;
  const std::optional<ResizedImage> image = ImageResized(at, scales, sizes, axes);
  if (!image) return false;
  const std::string type = ImageOperator(rule, *image, at.dtype(at.in(0)));
  if (type.empty()) return false;
  const bool corners = rule.coordinates == "align_corners";
  const bool halves = !corners && rule.coordinates != "asymmetric";
  const std::vector<int64_t> size = {image->new_height, image->new_width};
  if (rule.mode == "cubic") {
    at.Out(0, at.Node(type, {at.in(0)}, {{"output_size", size}, {"align_corners", corners}}));
  } else {
    at.Out(0, at.Node(type, {at.in(0), at.Ints(size)},
                      {{"align_corners", corners}, {"half_pixel_centers", halves}}));
  }
  return true;
}

// `scales` or `sizes` (one of them), a region or none; entry i of each is for axis axes[i].
void ResizeBy(Lowering& at, const ResizeRule& rule, std::optional<Value> scales,
              std::optional<Value> sizes, std::optional<Value> region,
              const std::vector<int64_t>& axes) {
  if (ResizeImage(at, rule, scales, sizes, axes)) return;
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
  const std::optional<Value> common = CommonScale(at, x, sizes, axes);
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
    } else if (common) {
      axis.scale = *common;
      axis.exact = at.Mul(axis.in, axis.scale);
      axis.out = at.Unary("Floor", at.Add(axis.exact, Real(at, 0.5)));
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
  if (at.Int("antialias", 0) != 0 && at.Text("mode", "nearest") == "nearest") {
    return at.Fail(Code::kCorrupt, "antialias beside mode nearest; expected linear or cubic");
  }
  std::vector<int64_t> axes = at.IntList("axes");
  for (int d = 0; !at.has_attr("axes") && d < at.Rank(x); ++d) axes.push_back(d);
  for (int64_t& axis : axes) axis = at.Axis(axis, at.Rank(x));
  std::optional<Value> scales = filled(first ? 1 : 2), sizes = first ? std::nullopt : filled(3);
  if (sizes && scales && !at.shape(*scales).is_static()) scales.reset();  // one of them is empty
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
  at.Out(0, at.Node(volume ? "GridSampler3D" : "GridSampler2D", {at.in(0), at.in(1)},
                    {{"interpolation_mode", mode},
                     {"padding_mode", at.Text("padding_mode", "zeros")},
                     {"align_corners", at.Int("align_corners", 0) != 0}}));
}

// Along one axis of an image: where regions begin, how far they reach, in places.
struct RegionSpans {
  Value begin, span;  // kReal, [regions]
};

// Along one axis of an image, the samples of each box of each region.
struct RegionSamples {
  Value places;   // kReal, [regions, boxes, samples]
  Value outside;  // bool, [regions, boxes, samples]: beyond the image by more than a place
  Value missing;  // bool, broadcasts: a region with fewer samples has none here
  Value count;    // kReal, [regions] or a scalar: samples of a box, 1 or more
};

// What a box of RoiAlign is made of.
struct RegionRule {
  int64_t height = 1, width = 1;  // boxes
  int64_t ratio = 0;  // samples of a box along an axis; 0: one for each place it reaches
  Value scale;        // kReal: from regions to places
  bool half = false;  // places are the middles of pixels
};

Value OfRegion(Lowering& at, Value x) {
  return at.Rank(x) == 0 ? x : at.Unsqueeze(x, {1, 2});
}

// `size` (kReal): places of the axis.
RegionSamples SamplesOf(Lowering& at, const RegionSpans& regions, int64_t boxes, int64_t ratio,
                        Value size) {
  const Value step = at.Div(regions.span, Real(at, static_cast<double>(boxes)));
  const Value one = Real(at, 1);
  const Value wanted = ratio > 0 ? Real(at, static_cast<double>(ratio)) : at.Unary("Ceil", step);
  RegionSamples samples;
  samples.count = at.Max(wanted, one);
  const Value most = ratio > 0
                         ? at.IntScalar(ratio)
                         : at.Cast(at.Max(at.Reduce("ReduceMax", samples.count, {}, false), one),
                                   DataType::kInt64);
  // Place of sample s of box b: begin + (b + (s + 0.5) / samples) * step.
  const Value box = at.Unsqueeze(CountTo(at, at.IntScalar(boxes), kReal), {1});
  const Value sample = CountTo(at, most, kReal);
  const Value inside = at.Div(at.Add(sample, Real(at, 0.5)), OfRegion(at, samples.count));
  samples.places =
      at.Add(OfRegion(at, regions.begin), at.Mul(at.Add(box, inside), OfRegion(at, step)));
  samples.outside = at.Binary("LogicalOr", at.Binary("Less", samples.places, Real(at, -1)),
                              at.Binary("Greater", samples.places, size));
  samples.missing = at.Binary("GreaterEqual", sample, OfRegion(at, wanted));
  return samples;
}

// How much each place counts for the mean of each box: [regions, boxes, size].
Value RegionWeights(Lowering& at, const RegionSamples& samples, Value size) {
  const Value zero = Real(at, 0), last = at.Sub(size, Real(at, 1));
  const Value unread = at.Unsqueeze(at.Binary("LogicalOr", samples.outside, samples.missing), {3});
  const Value columns = CountTo(at, at.Cast(size, DataType::kInt64), kReal);
  const Value distance = at.Sub(at.Unsqueeze(Within(at, samples.places, last), {3}), columns);
  const Value hat = at.Max(at.Sub(Real(at, 1), at.Unary("Abs", distance)), zero);
  const Value sum = at.Reduce("ReduceSum", at.Select(unread, zero, hat), {2}, false);
  return at.Div(sum, OfRegion(at, samples.count));
}

// The two neighbours of each sample, [regions, boxes * samples * 2], as places and their weights.
struct RegionNeighbours {
  Value places, weights;  // int64, kReal
  Value missing;          // bool
};

RegionNeighbours NeighboursOf(Lowering& at, const RegionSamples& samples, Value regions,
                              Value size) {
  const Value zero = Real(at, 0), last = at.Sub(size, Real(at, 1));
  const Value place = Within(at, samples.places, last), low = at.Unary("Floor", place);
  const Value high = at.Min(at.Add(low, Real(at, 1)), last), share = at.Sub(place, low);
  const Value boxes = at.DimOf(place, 1), samples_each = at.DimOf(place, 2);
  const Value count = at.Mul(at.Mul(boxes, samples_each), at.Ints({2}));
  const auto both = [&](Value a, Value b) {
    const Value pair = at.Concat({at.Unsqueeze(a, {3}), at.Unsqueeze(b, {3})}, 3);
    return at.ReshapeTo(pair, at.Concat({regions, count}, 0), 2);
  };
  const auto read = [&](Value weight) { return at.Select(samples.outside, zero, weight); };
  const Value missing = at.Cast(at.Broadcast(samples.missing, at.ShapeOf(place)), kReal);
  return {at.Cast(both(low, high), DataType::kInt64),
          both(read(at.Sub(Real(at, 1), share)), read(share)),
          at.Binary("Greater", both(missing, missing), zero)};
}

// x[region, channel, .., place, ..] at the places of each region, along `axis` (2 or 3).
Value TakenAlong(Lowering& at, Value x, Value places, int64_t axis) {
  const Value here =
      at.Unsqueeze(places, axis == 2 ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{1, 2});
  const int other = axis == 2 ? 3 : 2;
  const Value count = at.DimOf(places, 1);
  std::vector<Value> dims = {at.DimOf(x, 0), at.DimOf(x, 1), at.DimOf(x, other)};
  dims.insert(dims.begin() + axis, count);
  return at.Op("GatherElements", {x, at.Broadcast(here, at.Concat(dims, 0))}, {{"dim", axis}});
}

// The largest product of a neighbour and its weight among the samples of each box, as ONNX Runtime
// and the reference of ONNX have it; 0 for a box without samples.
Value RegionMaxima(Lowering& at, const RegionRule& rule, Value images, const RegionSamples& rows,
                   const RegionSamples& columns) {
  const Value regions = at.DimOf(images, 0);
  const auto size = [&](int axis) {
    return at.Cast(at.Reshape(at.DimOf(images, axis), {}), kReal);
  };
  const RegionNeighbours down = NeighboursOf(at, rows, regions, size(2));
  const RegionNeighbours along = NeighboursOf(at, columns, regions, size(3));
  const DataType dtype = at.dtype(images);
  const Value read = TakenAlong(at, TakenAlong(at, images, down.places, 2), along.places, 3);
  const Value weight = at.Mul(at.Unsqueeze(at.Cast(down.weights, dtype), {1, 3}),
                              at.Unsqueeze(at.Cast(along.weights, dtype), {1, 2}));
  const Value missing = at.Binary("LogicalOr", at.Unsqueeze(down.missing, {1, 3}),
                                  at.Unsqueeze(along.missing, {1, 2}));
  const Value least = at.Scalar(-std::numeric_limits<double>::infinity(), dtype);
  const Value products = at.Select(missing, least, at.Mul(read, weight));
  const auto samples = [&](const RegionNeighbours& neighbours, int64_t boxes) {
    return at.Div(at.DimOf(neighbours.places, 1), at.Ints({boxes}));
  };
  const Value split =
      at.Concat({regions, at.DimOf(images, 1), at.Ints({rule.height}), samples(down, rule.height),
                 at.Ints({rule.width}), samples(along, rule.width)},
                0);
  const Value most = at.Reduce("ReduceMax", at.ReshapeTo(products, split, 6), {3, 5}, false);
  return at.Select(at.Binary("Equal", most, least), at.Scalar(0, dtype), most);
}

// Each region [x1, y1, x2, y2] of image batch[i] becomes height x width boxes, of whose samples the
// mean or the largest counts.
void LowerRoiAlign(Lowering& at) {
  const Value x = at.in(0), regions = at.in(1);
  RegionRule rule{at.Int("output_height", 1),
                  at.Int("output_width", 1),
                  at.Int("sampling_ratio", 0),
                  {},
                  false};
  rule.half =
      at.version() >= 16 && at.Text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const std::string mode = at.Text("mode", "avg");
  if (mode != "avg" && mode != "max") return at.Refuse("has no mode \"{}\"", mode);
  if (rule.ratio < 0 || rule.height < 1 || rule.width < 1) {
    return at.Fail(Code::kCorrupt,
                   "{} x {} boxes, sampling_ratio {}; expected 1 or more boxes, "
                   "0 or more samples",
                   rule.height, rule.width, rule.ratio);
  }
  rule.scale = Real(at, at.Float("spatial_scale", 1));
  const auto border = [&](int64_t i) {
    const Value column = at.Reshape(at.Slice(regions, 1, i, i + 1), {-1});
    const Value scaled = at.Mul(at.Cast(column, kReal), rule.scale);
    return rule.half ? at.Sub(scaled, Real(at, 0.5)) : scaled;
  };
  const auto size = [&](int axis) { return at.Cast(at.Reshape(at.DimOf(x, axis), {}), kReal); };
  const auto samples = [&](int64_t low, int64_t boxes, int axis) {
    RegionSpans spans{border(low), at.Sub(border(low + 2), border(low))};
    if (!rule.half) spans.span = at.Max(spans.span, Real(at, 1));
    return SamplesOf(at, spans, boxes, rule.ratio, size(axis));
  };
  const RegionSamples rows = samples(1, rule.height, 2), columns = samples(0, rule.width, 3);
  const Value images = at.Wide(at.Gather(x, at.in(2), 0));
  if (mode == "max") {
    return at.Out(0, at.Cast(RegionMaxima(at, rule, images, rows, columns), at.dtype(x)));
  }
  const auto weights = [&](const RegionSamples& of, int axis) {
    return at.Unsqueeze(at.Cast(RegionWeights(at, of, size(axis)), at.dtype(images)), {1});
  };
  const Value boxes = GeneralProduct(at, GeneralProduct(at, weights(rows, 2), images),
                                     at.Transpose(weights(columns, 3), {0, 1, 3, 2}));
  at.Out(0, at.Cast(boxes, at.dtype(x)));
}

}  // namespace

void AddImageRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"GridSample", 16, LowerGridSample, "GridSampler2D, GridSampler3D",
       "_ R align_corners:int mode:string padding_mode:string"},
      {"Resize", 10, LowerResize,
       "ResizeNearestNeighborV2, ResizeBilinearV2, UpsampleBicubic2d; Range, GatherV2, "
       "BatchMatMulV2",
       "_ R? F? L? antialias:int@18 axes:ints@18 coordinate_transformation_mode:string@11 "
       "cubic_coeff_a:float@11 exclude_outside:int@11 extrapolation_value:float@11 "
       "keep_aspect_ratio_policy:string@18 mode:string nearest_mode:string@11"},
      {"RoiAlign", 10, LowerRoiAlign, "GatherV2, BatchMatMulV2, ReduceMeanD",
       "T=R T L coordinate_transformation_mode:string@16 mode:string output_height:int "
       "output_width:int sampling_ratio:int spatial_scale:float"},
      {"Upsample", 7, LowerUpsample,
       "ResizeNearestNeighborV2, ResizeBilinearV2; Range, GatherV2, BatchMatMulV2",
       "_ F? mode:string scales:floats!<9"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
