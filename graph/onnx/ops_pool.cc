// Pools. Averages and maxima of floats over images of one to three dimensions become our pools of
// two; everything else (dilated, of other types, with places) gathers its windows.
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/onnx/op_table.h"
#include "graph/onnx/rewrites.h"
#include "graph/onnx/window.h"

namespace npumesh {
namespace {

// How many windows there are along dimension d of an image; `ceil`: also one that reaches beyond
// the padding, unless it would begin in the padding after the image.
int64_t CountOf(const SlidingWindow& window, size_t d, int64_t image, bool ceil) {
  const int64_t stride = window.strides[d];
  const int64_t free = image + window.before[d] + window.behind[d] - window.extent(d);
  const int64_t steps = free / stride - (free % stride < 0 ? 1 : 0);  // rounded down
  const int64_t count = std::max<int64_t>(steps + 1, 0);
  const bool reaches_beyond = ceil && free % stride != 0;
  return reaches_beyond && count * stride < image + window.before[d] ? count + 1 : count;
}

// The windows of x [N, C, image...], whose pads hold `fill`: [N, C, count0, kernel0, count1, ...].
struct GatheredWindows {
  Value values;
  std::vector<int64_t> counts;
  std::vector<int64_t> kernel_axes;
};

GatheredWindows Gathered(Lowering& at, Value x, const SlidingWindow& window, bool ceil,
                         double fill) {
  GatheredWindows gathered;
  const int rank = at.Rank(x);
  if (!at.ok()) return gathered;
  std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0), image_shape;
  std::vector<std::vector<int64_t>> places(window.size());
  for (size_t d = 0; d < window.size(); ++d) {
    const int64_t image = at.Dim(x, static_cast<int>(d) + 2);
    const int64_t count = CountOf(window, d, image, ceil);
    if (!at.Affords(count, window.kernel[d])) return gathered;
    const int64_t reach = (count - 1) * window.strides[d] + window.extent(d);
    pads[d + 2] = window.before[d];
    pads[static_cast<size_t>(rank) + d + 2] =
        std::max<int64_t>(reach - image - window.before[d], 0);
    for (int64_t o = 0; o < count; ++o) {
      for (int64_t k = 0; k < window.kernel[d]; ++k) {
        places[d].push_back(o * window.strides[d] + k * window.dilations[d]);
      }
    }
    gathered.counts.push_back(count);
    gathered.kernel_axes.push_back(static_cast<int64_t>(2 * d) + 3);
    image_shape.insert(image_shape.end(), {count, window.kernel[d]});
  }
  if (!at.ok()) return gathered;
  Value y = at.PadWith(x, pads, fill);
  for (size_t d = 0; d < window.size(); ++d) {
    y = at.Gather(y, at.Ints(places[d]), static_cast<int64_t>(d) + 2);
  }
  gathered.values = at.ReshapeAfter(y, 2, image_shape);
  return gathered;
}

double LowestOf(DataType dtype) {
  if (IsFloating(dtype)) return -std::numeric_limits<double>::infinity();
  if (IsUnsignedInteger(dtype)) return 0;
  const int bits = BitsOf(dtype);
  return bits == 64 ? static_cast<double>(INT64_MIN) : -std::ldexp(1.0, bits - 1);
}

// [count, kernel...] of one dimension after the other: kernels last.
std::vector<int64_t> KernelsLast(size_t dims) {
  std::vector<int64_t> perm = {0, 1};
  for (size_t d = 0; d < dims; ++d) perm.push_back(static_cast<int64_t>(2 + 2 * d));
  for (size_t d = 0; d < dims; ++d) perm.push_back(static_cast<int64_t>(3 + 2 * d));
  return perm;
}

// For each window and each of its elements the place in the whole tensor [N, C, image...], in the
// order [1, 1, count..., kernel...] flattened; places in the padding are never asked for.
std::vector<int64_t> PlacesOf(const SlidingWindow& window, const std::vector<int64_t>& counts,
                              const std::vector<int64_t>& image, bool columns_first) {
  const size_t dims = window.size();
  std::vector<int64_t> steps(dims, 1);
  for (size_t d = 1; d < dims; ++d) {
    if (columns_first) {
      steps[d] = steps[d - 1] * image[d - 1];
    } else {
      steps[dims - 1 - d] = steps[dims - d] * image[dims - d];
    }
  }
  std::vector<int64_t> places = {0};
  for (const auto* extents : {&counts, &window.kernel}) {
    const bool of_kernel = extents == &window.kernel;
    for (size_t d = 0; d < dims; ++d) {
      std::vector<int64_t> next;
      for (const int64_t place : places) {
        for (int64_t i = 0; i < (*extents)[d]; ++i) {
          const int64_t along =
              of_kernel ? i * window.dilations[d] : i * window.strides[d] - window.before[d];
          next.push_back(place + along * steps[d]);
        }
      }
      places = std::move(next);
    }
  }
  return places;
}

// The place of the first largest element of each window, counted over the whole tensor.
Value Places(Lowering& at, Value x, const SlidingWindow& window, const GatheredWindows& gathered) {
  const size_t dims = window.size();
  std::vector<int64_t> image;
  for (size_t d = 0; d < dims; ++d) image.push_back(at.Dim(x, static_cast<int>(d) + 2));
  const auto product = [](const std::vector<int64_t>& list) {
    return std::accumulate(list.begin(), list.end(), int64_t{1}, std::multiplies<>());
  };
  const int64_t kernel = product(window.kernel), count = product(gathered.counts);
  const Value flat =
      at.ReshapeAfter(at.Transpose(gathered.values, KernelsLast(dims)), 2, {count, kernel});
  const Value best = at.Op("ArgMaxD", {flat}, {{"dimension", 3}, {"dtype", DataType::kInt64}});
  if (!at.Affords(count, kernel) || !at.Affords(at.Dim(x, 0), at.Dim(x, 1))) return best;
  const std::vector<int64_t> places =
      PlacesOf(window, gathered.counts, image, at.Int("storage_order", 0) != 0);
  // Window number * kernel + best names an entry of the list.
  std::vector<int64_t> first(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) first[static_cast<size_t>(i)] = i * kernel;
  const Value inside = at.Gather(at.Ints(places), at.Add(best, at.Ints(first)), 0);
  // Channels of all batches follow each other.
  const int64_t volumes = at.Dim(x, 0) * at.Dim(x, 1);
  std::vector<int64_t> bases(static_cast<size_t>(volumes));
  for (int64_t i = 0; i < volumes; ++i) bases[static_cast<size_t>(i)] = i * product(image);
  const Value base = at.Reshape(at.Ints(bases), {at.Dim(x, 0), at.Dim(x, 1), 1});
  return at.ReshapeAfter(at.Add(inside, base), 2, gathered.counts);
}

// `bytes`: whether int8 and uint8 are pooled as they are.
bool IsPlain(Lowering& at, Value x, const SlidingWindow& window, bool bytes = false) {
  const bool dilated = std::any_of(window.dilations.begin(), window.dilations.end(),
                                   [](int64_t step) { return step != 1; });
  const bool real = (IsFloating(at.dtype(x)) && at.dtype(x) != DataType::kDouble) ||
                    (bytes && IsByte(at.dtype(x)));
  // A window that lies in the padding alone is no window of ours.
  bool touches = true;
  for (size_t d = 0; d < window.size(); ++d) {
    touches &= window.before[d] < window.kernel[d] && window.behind[d] < window.kernel[d];
  }
  return window.dims() <= 3 && !dilated && real && touches;
}

using PlainPool = std::function<Value(Value x, const SlidingWindow& window)>;  // of two dimensions

// The window along some dimensions of the image; -1: one that it does not slide along.
SlidingWindow WindowAlong(const SlidingWindow& window, const std::vector<int>& dims) {
  SlidingWindow part;
  for (const int d : dims) {
    const auto at = static_cast<size_t>(std::max(d, 0));
    part.kernel.push_back(d < 0 ? 1 : window.kernel[at]);
    part.strides.push_back(d < 0 ? 1 : window.strides[at]);
    part.dilations.push_back(1);
    part.before.push_back(d < 0 ? 0 : window.before[at]);
    part.behind.push_back(d < 0 ? 0 : window.behind[at]);
  }
  return part;
}

bool Slides(const SlidingWindow& window, size_t d) {
  return window.kernel[d] != 1 || window.strides[d] != 1 || window.before[d] != 0 ||
         window.behind[d] != 0;
}

// x with these parts of a shape, one after the other.
Value WithSizes(Lowering& at, Value x, const std::vector<Value>& sizes, int rank) {
  return at.ReshapeTo(x, at.Concat(sizes, 0), rank);
}

// Largest elements and averages are those of the averages or largest elements along one dimension
// after the other: of volumes first those along height and width, with the depths as channels, and
// then those along the depth.
Value PoolPlain(Lowering& at, Value x, const SlidingWindow& window, const PlainPool& pool) {
  if (window.dims() == 2) return pool(x, window);
  if (window.dims() == 1) {
    return at.Squeeze(pool(at.Unsqueeze(x, {2}), WindowAlong(window, {-1, 0})), {2});
  }
  Value y = x;
  const Value rest = at.Ints({-1});
  if (Slides(window, 1) || Slides(window, 2)) {
    const Value shape = at.ShapeOf(x);
    const Value flat =
        WithSizes(at, x, {at.Slice(shape, 0, 0, 1), rest, at.Slice(shape, 0, 3, 5)}, 4);
    y = pool(flat, WindowAlong(window, {1, 2}));
    y = WithSizes(at, y, {at.Slice(shape, 0, 0, 3), at.Slice(at.ShapeOf(y), 0, 2, 4)}, 5);
  }
  if (!Slides(window, 0)) return y;
  const Value shape = at.ShapeOf(y);
  const Value flat = WithSizes(at, y, {at.Slice(shape, 0, 0, 3), rest}, 4);
  y = pool(flat, WindowAlong(window, {0, -1}));
  return WithSizes(
      at, y, {at.Slice(shape, 0, 0, 2), at.Slice(at.ShapeOf(y), 0, 2, 3), at.Slice(shape, 0, 3, 5)},
      5);
}

// `last`: of images with their channels last.
Lowering::Attrs PlainAttrs(Lowering& at, const SlidingWindow& window, bool last = false) {
  const auto along = [last](const std::vector<int64_t>& numbers) {
    std::vector<int64_t> all = WithOnes(numbers);
    if (last) std::rotate(all.begin() + 1, all.begin() + 2, all.end());
    return all;
  };
  return {{"ksize", along(window.kernel)},         {"strides", along(window.strides)},
          {"padding_mode", "CALCULATED"},          {"pads", PadPairs(window)},
          {"data_format", last ? "NHWC" : "NCHW"}, {"ceil_mode", at.Int("ceil_mode", 0) != 0}};
}

void LowerMaxPool(Lowering& at) {
  const Value x = at.in(0);
  SlidingWindow window = WindowFrom(at, x, {});
  PadForSame(at, x, window);
  if (!at.ok()) return;
  if (!at.wants(1) && IsPlain(at, x, window, true)) {
    return at.Out(0, PoolPlain(at, x, window, [&](Value image, const SlidingWindow& part) {
                    // What has been brought into another order is pooled as it was.
                    if (BitsOf(at.dtype(image)) == 8 && at.OrderOf(image)) {
                      const Value y = at.Node("MaxPoolV3", {ChannelsLast(at, image)},
                                              PlainAttrs(at, part, true));
                      return ChannelsSecond(at, y);
                    }
                    return at.Node("MaxPoolV3", {image}, PlainAttrs(at, part));
                  }));
  }
  const bool ceil = at.Int("ceil_mode", 0) != 0;
  const GatheredWindows gathered = Gathered(at, x, window, ceil, LowestOf(at.dtype(x)));
  at.Out(0, at.Reduce("ReduceMax", gathered.values, gathered.kernel_axes, false));
  if (at.wants(1) && at.ok()) at.Out(1, Places(at, x, window, gathered));
}

// How many elements of each window count, [1, 1, counts...]: those of the image, or of the image
// and its pads.
Value Counted(Lowering& at, Value x, const SlidingWindow& window,
              const std::vector<int64_t>& counts, bool counts_pads) {
  std::vector<float> numbers = {1};
  for (size_t d = 0; d < window.size(); ++d) {
    const int64_t image = at.Dim(x, static_cast<int>(d) + 2);
    const int64_t first = counts_pads ? -window.before[d] : 0;
    const int64_t end = image + (counts_pads ? window.behind[d] : 0);
    std::vector<float> next;
    for (const float outer : numbers) {
      for (int64_t o = 0; o < counts[d]; ++o) {
        int64_t inside = 0;
        for (int64_t k = 0; k < window.kernel[d]; ++k) {
          const int64_t place = o * window.strides[d] + k * window.dilations[d] - window.before[d];
          inside += place >= first && place < end ? 1 : 0;
        }
        next.push_back(outer * static_cast<float>(inside));
      }
    }
    if (!at.Affords(static_cast<int64_t>(next.size()))) return {};
    numbers = std::move(next);
  }
  return at.Floats(numbers, Shape(WithOnes(counts)));
}

void LowerAveragePool(Lowering& at) {
  const Value x = at.in(0);
  SlidingWindow window = WindowFrom(at, x, {});
  PadForSame(at, x, window);
  if (!at.ok()) return;
  const bool counts_pads = at.Int("count_include_pad", 0) != 0;
  if (IsPlain(at, x, window)) {
    return at.Out(0, PoolPlain(at, x, window, [&](Value image, const SlidingWindow& part) {
                    Lowering::Attrs attrs = PlainAttrs(at, part);
                    attrs.emplace_back("exclusive", !counts_pads);
                    return at.Node("AvgPoolV2", {image}, attrs);
                  }));
  }
  const bool ceil = at.Int("ceil_mode", 0) != 0;
  const GatheredWindows gathered = Gathered(at, at.Wide(x), window, ceil, 0);
  const Value sum = at.Reduce("ReduceSum", gathered.values, gathered.kernel_axes, false);
  if (!at.ok()) return;
  const Value numbers = Counted(at, x, window, gathered.counts, counts_pads);
  at.Out(0, at.Cast(at.Div(sum, at.Cast(numbers, at.dtype(sum))), at.dtype(x)));
}

// (sum |x|^p)^(1/p)
Value PNorm(Lowering& at, Value narrow, const std::function<Value(Value)>& sum) {
  const auto p = static_cast<double>(at.Int("p", 2));
  const Value x = at.Wide(narrow);
  const Value powers = at.Binary("Pow", at.Unary("Abs", x), at.Like(p, x));
  return at.Cast(at.Binary("Pow", sum(powers), at.Like(1 / p, x)), at.dtype(narrow));
}

void LowerLpPool(Lowering& at) {
  const Value x = at.in(0);
  SlidingWindow window = WindowFrom(at, x, {});
  PadForSame(at, x, window);
  if (!at.ok()) return;
  at.Out(0, PNorm(at, x, [&](Value powers) {
           const GatheredWindows gathered =
               Gathered(at, powers, window, at.Int("ceil_mode", 0) != 0, 0);
           return at.Reduce("ReduceSum", gathered.values, gathered.kernel_axes, false);
         }));
}

std::vector<int64_t> ImageAxes(Lowering& at, Value x) {
  std::vector<int64_t> axes;
  for (int axis = 2; axis < at.Rank(x); ++axis) axes.push_back(axis);
  return axes;
}

std::function<void(Lowering&)> Global(std::string type) {
  return [type = std::move(type)](Lowering& at) {
    const Value x = at.in(0);
    at.Out(0, at.Reduce(type, x, ImageAxes(at, x), true));
  };
}

void LowerGlobalLpPool(Lowering& at) {
  const Value x = at.in(0);
  at.Out(0, PNorm(at, x, [&](Value powers) {
           return at.Reduce("ReduceSum", powers, ImageAxes(at, x), true);
         }));
}

// Elements go back to the places that a MaxPool named, the rest is 0. Places count in the image
// that the pool would have had; an output_shape adds to its ends.
void LowerMaxUnpool(Lowering& at) {
  const Value x = at.in(0);
  const SlidingWindow window = WindowFrom(at, x, {});
  const std::optional<std::vector<int64_t>> asked =
      at.has(2) ? at.KnownInts(at.in(2)) : std::vector<int64_t>();
  std::vector<int64_t> shape = {at.Dim(x, 0), at.Dim(x, 1)};
  for (size_t d = 0; d < window.size(); ++d) {
    shape.push_back((at.Dim(x, static_cast<int>(d) + 2) - 1) * window.strides[d] +
                    window.extent(d) - window.before[d] - window.behind[d]);
  }
  if (!at.ok()) return;
  const int64_t all = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  const Value zeros = at.Filled(at.Ints({all}), at.Like(0, x));
  const Value places = at.Reshape(at.in(1), {-1, 1});
  const Value flat = at.Op("TensorScatterUpdate", {zeros, places, at.Reshape(x, {-1})});
  const Value y = at.Reshape(flat, shape);
  if (!at.has(2)) return at.Out(0, y);
  const auto rank = static_cast<int64_t>(shape.size());
  // asked - shape at the ends
  const Value behind =
      at.Sub(asked && !asked->empty() ? at.Ints(*asked) : at.in(2), at.Ints(shape));
  const Value before = at.Ints(std::vector<int64_t>(static_cast<size_t>(rank), 0));
  at.Out(0, at.Op("PadV3", {y, at.Concat({before, behind}, 0), at.Like(0, x)},
                  {{"mode", "constant"}, {"paddings_contiguous", false}}));
}

}  // namespace

void AddPoolRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"AveragePool", 1, LowerAveragePool, "AvgPoolV2; GatherV2, ReduceSumD",
       "R auto_pad:string ceil_mode:int@10 count_include_pad:int dilations:ints@19 "
       "kernel_shape:ints! pads:ints strides:ints"},
      {"GlobalAveragePool", 1, Global("ReduceMean"), "ReduceMeanD", "R"},
      {"GlobalLpPool", 2, LowerGlobalLpPool, "Pow, ReduceSumD", "R p:int"},
      {"GlobalMaxPool", 1, Global("ReduceMax"), "ReduceMaxD", "R"},
      {"LpPool", 2, LowerLpPool, "GatherV2, Pow, ReduceSumD",
       "R auto_pad:string ceil_mode:int@18 dilations:ints@18 kernel_shape:ints! p:int pads:ints "
       "strides:ints"},
      {"MaxPool", 1, LowerMaxPool, "MaxPoolV3; GatherV2, ReduceMaxD",
       "_=RY auto_pad:string ceil_mode:int@10 dilations:ints@10 kernel_shape:ints! pads:ints "
       "storage_order:int@8 strides:ints"},
      {"MaxUnpool", 9, LowerMaxUnpool, "TensorScatterUpdate",
       "R L L? kernel_shape:ints! pads:ints strides:ints"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
