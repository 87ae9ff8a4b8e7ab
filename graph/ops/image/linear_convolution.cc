// QLinearConv: convolution of bytes that stand for scale * (byte - zero), in exact int32 sums.
//
//   sum = the sum over the window of (x - x_zero) * (filter - filter_zero), plus bias
//   y = saturate(round(sum * scale) + y_zero), or the sum itself
//
// The padding holds x_zero. Zeros of x and of the filter are taken out of the sums afterwards:
//
//   sum (x - p) (w - q) = sum x w - q sum x - p sum (w - q)
//
// where the sum of x over the window is that of one more filter, which is all ones.
#include <cstring>
#include <numeric>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/image/byte_depthwise.h"
#include "graph/ops/image/convolution.h"
#include "graph/ops/toolbox/product/int8_product.h"
#include "graph/ops/toolbox/product/linear_bytes.h"
#include "graph/ops/toolbox/product/onednn_call.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

using dnnl::memory;

// Integers below are exact in float32.
constexpr int64_t kMostExact = int64_t{1} << 24;
constexpr std::string_view kLinearWhat = "the convolution of bytes";
// Windows that are multiplied at once.
constexpr int64_t kMostWindows = 256;

struct LinearConvPlan : Planned {
  Convolution shape;  // where x, the filter and y lie
  LinearEnd end;
  int x_zero = -1, filter_zero = -1;     // slots; -1: absent
  const Tensor* filter_zeros = nullptr;  // where they are constant

  int64_t groups() const { return shape.filter.dims[0]; }
  int64_t outputs_of_group() const { return shape.filter.dims[1]; }
  int64_t inputs_of_group() const { return shape.filter.dims[2]; }
  int64_t channels() const { return shape.filter.dims[0] * shape.filter.dims[1]; }  // of y
  int64_t taps() const { return shape.filter.dims[3] * shape.filter.dims[4]; }
  int64_t window() const { return inputs_of_group() * taps(); }
  int64_t pixels() const { return shape.y.dims[0] * shape.y.dims[2] * shape.y.dims[3]; }
  bool padded() const {
    const auto none = [](int64_t pad) { return pad == 0; };
    return !std::all_of(shape.before.begin(), shape.before.end(), none) ||
           !std::all_of(shape.behind.begin(), shape.behind.end(), none);
  }
};

LinearConvPlan PlanLinearConv(const OpContext& op, Check& check) {
  LinearConvPlan plan;
  plan.shape = check.Take(PlanLinearConvolution(op));
  if (!check.ok()) return plan;
  const int64_t channels = plan.channels();
  plan.x_zero = OptionalSlot(op, check, "x_zero", op.in("x").dtype, {1});
  plan.filter_zero = OptionalSlot(op, check, "filter_zero", op.in("filter").dtype, {1, channels});
  plan.end = LinearEnd::Of(op, check, channels);
  if (!check.ok()) return plan;
  if (plan.filter_zero >= 0) plan.filter_zeros = op.value(plan.filter_zero);
  plan.outputs = {{plan.end.y, plan.shape.outputs[0].shape}};
  return plan;
}

// The filter as int8, [outputs, inputs, image] in order; uint8 less 128. `zero` is by output.
struct SignedFilter {
  std::vector<int8_t> weights;
  std::vector<int32_t> zero;
  std::vector<int32_t> sum;  // of the weights less their zero, by output

  explicit SignedFilter(const LinearConvPlan& plan) {
    const Tensor& filter = *plan.shape.filter_value;
    const auto outputs = static_cast<size_t>(plan.channels());
    const int32_t moved = filter.dtype() == DataType::kUint8 ? 128 : 0;
    weights.resize(static_cast<size_t>(plan.shape.filter.elements));
    zero.resize(outputs);
    sum.resize(outputs);
    const std::vector<int64_t>&dims = plan.shape.filter.dims, &strides = plan.shape.filter.strides;
    std::vector<int64_t> at(dims.size(), 0);
    for (int8_t& weight : weights) {
      const int64_t place = std::inner_product(at.begin(), at.end(), strides.begin(), int64_t{0});
      weight = static_cast<int8_t>(ByteAt(filter.dtype(), filter.data(), place) - moved);
      for (size_t d = dims.size(); d-- > 0 && ++at[d] == dims[d];) at[d] = 0;
    }
    const Tensor* const zeros = plan.filter_zeros;
    const auto window = static_cast<size_t>(plan.window());
    for (size_t o = 0; o < outputs; ++o) {
      const int64_t place = zeros != nullptr && zeros->elements() > 1 ? static_cast<int64_t>(o) : 0;
      zero[o] = (zeros == nullptr ? 0 : ByteAt(zeros->dtype(), zeros->data(), place)) - moved;
      for (size_t i = 0; i < window; ++i) sum[o] += weights[o * window + i] - zero[o];
    }
  }

  // The largest sum, without its sign, of bytes and the weights of an output.
  int64_t most() const {
    const auto window = static_cast<int64_t>(weights.size() / std::max<size_t>(sum.size(), 1));
    int64_t most = centred() ? 0 : window;  // of the filter that is all ones
    for (size_t o = 0; o < sum.size(); ++o) {
      int64_t all = 0;
      for (int64_t i = 0; i < window; ++i) {
        all += std::abs(int32_t{weights[o * static_cast<size_t>(window) + static_cast<size_t>(i)]});
      }
      most = std::max(most, all);
    }
    return 255 * most;
  }

  bool centred() const {
    return std::all_of(zero.begin(), zero.end(), [](int32_t z) { return z == 0; });
  }
};

// One run: x, and what becomes of sums.
struct LinearRun {
  const KernelArgs& args;
  int32_t zero = 0;  // of x
  ByteRounding rounding;
  const std::byte* x = nullptr;

  // `columns` sums of each of `rows` pixels from `pixel` on become y.
  void Round(const LinearConvPlan& plan, const int32_t* sums, int64_t pixel, int64_t rows) const {
    auto* const y = static_cast<std::byte*>(args.out[0]);
    const int64_t bytes = BitsOf(plan.end.y) / 8 * plan.channels();
    RoundSums(rounding, sums, rows, plan.channels(), y + pixel * bytes);
  }
};

// A way to sum.
class LinearSums {
 public:
  virtual ~LinearSums() = default;
  // Sums and rounds. `run.rounding` adds the bias and what `corrected` says.
  virtual Status Run(const LinearConvPlan& plan, const LinearRun& run) = 0;
  // Whether p sum (w - q) is taken out of the sums by what is added to them.
  virtual bool corrected() const = 0;
};

// ---- a filter for each channel ----

class DepthwiseLinearSums final : public LinearSums {
 public:
  DepthwiseLinearSums(const LinearConvPlan& plan, const SignedFilter& filter, Scratch& scratch)
      : kernel_(ShapeOf(plan), TapsOf(plan, filter)) {
    const Convolution& shape = plan.shape;
    const double work = static_cast<double>(plan.pixels() * plan.channels() * plan.taps());
    parts_ = WorthThreads(work, shape.threads);
    const int64_t height = shape.filter.dims[3];
    ring_ = std::min((height - 1) * shape.dilations[0] + 1, std::max<int64_t>(shape.x.dims[2], 1));
    sums_ = scratch.Take<int32_t>(shape.y.dims[3] * plan.channels() * parts_);
    words_ = scratch.Take<int32_t>(ring_ * kernel_.row_words() * parts_);
    held_ = scratch.Take<int64_t>(ring_ * parts_);
    rows_ = scratch.Take<const int32_t*>(height * parts_);
  }

  bool corrected() const override { return false; }

  Status Run(const LinearConvPlan& plan, const LinearRun& run) override {
    const int64_t height = plan.shape.y.dims[2], width = plan.shape.y.dims[3];
    const int64_t count = plan.shape.y.dims[0] * height;
    RunRanges(parts_, count, 1, [&](int part, int64_t begin, int64_t end) {
      int32_t* const sums = sums_(run.args) + part * width * plan.channels();
      std::fill_n(held_(run.args) + part * ring_, ring_, -1);
      for (int64_t at = begin; at < end; ++at) {
        SumRow(plan, run, part, at / height, at % height, sums);
        run.Round(plan, sums, at * width, width);
      }
    });
    return Status();
  }

 private:
  static DepthwiseShape ShapeOf(const LinearConvPlan& plan) {
    const Convolution& shape = plan.shape;
    return {.dtype = shape.x.dtype,
            .channels = plan.channels(),
            .width = shape.x.dims[3],
            .columns = shape.y.dims[3],
            .kernel_height = shape.filter.dims[3],
            .kernel_width = shape.filter.dims[4],
            .left = -shape.before[1],
            .stride = shape.strides[1],
            .column_step = shape.dilations[1]};
  }

  // [taps, channels], less its zeros.
  static std::vector<int32_t> TapsOf(const LinearConvPlan& plan, const SignedFilter& filter) {
    const auto channels = static_cast<size_t>(plan.channels());
    const auto taps = static_cast<size_t>(plan.taps());
    std::vector<int32_t> of(channels * taps);
    for (size_t c = 0; c < channels; ++c) {
      for (size_t t = 0; t < taps; ++t) {
        of[t * channels + c] = filter.weights[c * taps + t] - filter.zero[c];
      }
    }
    return of;
  }

  // A row of y. Rows of the image stay in a ring, as long as a window is high.
  void SumRow(const LinearConvPlan& plan, const LinearRun& run, int part, int64_t image,
              int64_t row, int32_t* sums) const {
    const Convolution& shape = plan.shape;
    const int64_t height = shape.x.dims[2], step = shape.dilations[0];
    const int64_t top = row * shape.strides[0] - shape.before[0];
    const int64_t begin = std::min(top < 0 ? CeilDiv(-top, step) : 0, shape.filter.dims[3]);
    const int64_t end =
        std::min(top < height ? CeilDiv(height - top, step) : 0, shape.filter.dims[3]);
    int32_t* const words = words_(run.args) + part * ring_ * kernel_.row_words();
    int64_t* const held = held_(run.args) + part * ring_;
    const int32_t** const rows = rows_(run.args) + part * shape.filter.dims[3];
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = top + r * step, place = at % ring_, wanted = image * height + at;
      int32_t* const to = words + place * kernel_.row_words();
      if (held[place] != wanted) {
        const int64_t offset = image * shape.x.strides[0] + at * shape.x.dims[3] * plan.channels();
        kernel_.LoadRow(run.x + offset, run.zero, to);
        held[place] = wanted;
      }
      rows[r] = to;
    }
    kernel_.Sum({rows, begin, end}, sums);
  }

  const ByteDepthwise kernel_;
  int parts_ = 1;
  int64_t ring_ = 1;  // rows of the image that a part holds
  Workspace<int32_t> sums_, words_;
  Workspace<int64_t> held_;  // which row of which image is in a place of the ring
  Workspace<const int32_t*> rows_;
};

// ---- oneDNN ----

// Sums that wait in a cache until they are rounded.
constexpr int64_t kStripBytes = int64_t{1} << 18;

// What oneDNN sums up at once: some images, or some rows of one.
struct Strip {
  int64_t images = 0, rows = 0;  // of y
  dnnl::convolution_forward::primitive_desc chosen;
  dnnl::convolution_forward primitive;
  memory x, y, scratchpad;

  bool good() const { return chosen && !IsReference(chosen); }
  std::string_view name() const { return chosen.impl_info_str(); }

  void Prepare(const dnnl::engine& engine) {
    primitive = dnnl::convolution_forward(chosen);
    x = memory(chosen.src_desc(), engine, nullptr);
    y = memory(chosen.dst_desc(), engine, nullptr);
    scratchpad = memory(chosen.scratchpad_desc(), engine, nullptr);
  }
};

class OneDnnLinearSums final : public LinearSums {
 public:
  // Throws what oneDNN throws, as does Prepare.
  OneDnnLinearSums(const LinearConvPlan& plan, const SignedFilter& filter)
      : columns_(plan.channels() + (filter.centred() ? 0 : 1)) {
    const Convolution& shape = plan.shape;
    const ThreadCount threads(shape.threads);
    // Whatever the zero of x, what stands around the image is a part of it.
    copies_ = plan.padded();
    padded_ = shape.x.dims;
    for (size_t i = 0; copies_ && i < 2; ++i) padded_[i + 2] += shape.before[i] + shape.behind[i];
    weights_ = {columns_, plan.inputs_of_group(), shape.filter.dims[3], shape.filter.dims[4]};
    if (plan.groups() > 1) {
      weights_[0] = plan.outputs_of_group();
      weights_.insert(weights_.begin(), plan.groups());
    }
    ChooseStrips(plan);
  }

  bool good() const { return whole_.good(); }
  std::string name() const {
    const int64_t strips = images_ / whole_.images * (rows_ / whole_.rows);
    return fmt::format("oneDNN {}{}", whole_.name(),
                       strips > 1 ? fmt::format(" by {} rows", whole_.images * whole_.rows) : "");
  }

  // Whether sums never are float32 on their way: those of oneDNN's blocks of products, unless x is
  // moved to uint8 for instructions that multiply no other bytes, and back by what is added to
  // sums.
  bool KeepsIntegers(const LinearConvPlan& plan) const {
    const auto keeps = [&](const Strip& strip) {
      return strip.name().starts_with("brgconv") &&
             (plan.shape.x.dtype == DataType::kUint8 ||
              strip.name().find("amx") != std::string_view::npos);
    };
    return keeps(whole_) && (tail_.rows == 0 || keeps(tail_));
  }

  // Packs the filter. The number of threads is that of the description: oneDNN's cache of
  // primitives would give one that cuts its scratch memory for others.
  void Prepare(const LinearConvPlan& plan, const SignedFilter& filter, Scratch& scratch) {
    const ThreadCount threads(plan.shape.threads);
    zeros_ = filter.centred() ? std::vector<int32_t>() : filter.zero;
    std::vector<int8_t> weights = filter.weights;
    if (!zeros_.empty()) weights.insert(weights.end(), static_cast<size_t>(plan.window()), 1);
    const Tensor plain = Tensor::FromVector({DataType::kInt8, Shape(weights_)}, weights);
    const auto tag = weights_.size() == 5 ? memory::format_tag::goihw : memory::format_tag::oihw;
    packed_ = PackWeight(plain, {weights_, memory::data_type::s8, tag},
                         whole_.chosen.weights_desc(), engine_, stream_, nullptr);
    size_t room = 0;
    for (Strip* const strip : {&whole_, &tail_}) {
      if (strip->rows == 0) continue;
      strip->Prepare(engine_);
      room = std::max(room, strip->scratchpad.get_desc().get_size());
    }
    sums_ = scratch.Take<int32_t>(PixelsOf(plan, whole_) * columns_);
    room_ = scratch.Take<std::byte>(static_cast<int64_t>(room));
    if (copies_) image_ = scratch.Take<std::byte>(Product(padded_));
    parts_ = WorthThreadsForRows(plan.pixels(), plan.pixels() * columns_, plan.shape.threads);
  }

  bool corrected() const override { return true; }

  Status Run(const LinearConvPlan& plan, const LinearRun& run) override {
    const ThreadCount threads(plan.shape.threads);
    const std::byte* x = run.x;
    if (copies_) {
      Pad(plan, run, image_(run.args));
      x = image_(run.args);
    }
    return Guarded(plan.who, kLinearWhat, [&] {
      for (int64_t image = 0; image < images_; image += whole_.images) {
        for (int64_t row = 0; row < rows_; row += whole_.rows) {
          const bool whole = image + whole_.images <= images_ && row + whole_.rows <= rows_;
          RunStrip(plan, run, x, image, row, whole ? whole_ : tail_);
        }
      }
      return Status();
    });
  }

 private:
  static int64_t Product(const memory::dims& dims) {
    return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  }
  static int64_t PixelsOf(const LinearConvPlan& plan, const Strip& strip) {
    return strip.images * strip.rows * plan.shape.y.dims[3];
  }

  // As many rows as fit into the cache, or images where all of their rows do.
  void ChooseStrips(const LinearConvPlan& plan) {
    images_ = plan.shape.y.dims[0];
    rows_ = plan.shape.y.dims[2];
    const int64_t row_bytes = plan.shape.y.dims[3] * columns_ * 4;
    const int64_t fit = std::max<int64_t>(kStripBytes * plan.shape.threads / row_bytes, 1);
    const int64_t images = std::clamp<int64_t>(fit / rows_, 1, images_);
    const int64_t rows = CeilDiv(rows_, CeilDiv(rows_, fit));
    const memory::desc any(weights_, memory::data_type::s8, memory::format_tag::any);
    if (rows == rows_ && images == images_) return Describe(plan, images_, rows_, any, whole_);
    Describe(plan, images, rows, any, whole_);
    const int64_t more_images = rows == rows_ ? images_ % images : 0, more_rows = rows_ % rows;
    if (whole_.good() && more_images + more_rows > 0) {
      Describe(plan, more_rows > 0 ? 1 : more_images, more_rows > 0 ? more_rows : rows,
               whole_.chosen.weights_desc(), tail_);
    }
    if (whole_.good() && (tail_.rows == 0 || tail_.good())) return;
    tail_ = Strip();
    Describe(plan, images_, rows_, any, whole_);
  }

  void Describe(const LinearConvPlan& plan, int64_t images, int64_t rows,
                const memory::desc& weights, Strip& strip) const {
    const Convolution& shape = plan.shape;
    constexpr auto kLast = memory::format_tag::nhwc;
    const auto type =
        shape.x.dtype == DataType::kInt8 ? memory::data_type::s8 : memory::data_type::u8;
    const int64_t height =
        (rows - 1) * shape.strides[0] + (shape.filter.dims[3] - 1) * shape.dilations[0] + 1;
    const memory::dims x = {images, padded_[1], rows == rows_ ? padded_[2] : height, padded_[3]};
    const memory::dims y = {images, columns_, rows, shape.y.dims[3]};
    memory::dims gaps = shape.dilations;
    for (memory::dim& gap : gaps) --gap;
    strip.images = images;
    strip.rows = rows;
    strip.chosen = DescribePrimitive<dnnl::convolution_forward>(
        engine_, OurAttributes(), /*allow_empty=*/true, dnnl::prop_kind::forward_inference,
        dnnl::algorithm::convolution_direct, memory::desc(x, type, kLast), weights,
        memory::desc(y, memory::data_type::s32, kLast), shape.strides, gaps, memory::dims{0, 0},
        memory::dims{0, 0});
  }

  void RunStrip(const LinearConvPlan& plan, const LinearRun& run, const std::byte* x, int64_t image,
                int64_t row, Strip& strip) const {
    const int64_t line = padded_[3] * padded_[1];
    x += (image * padded_[2] + row * plan.shape.strides[0]) * line;
    strip.x.set_data_handle(const_cast<std::byte*>(x));  // NOLINT: oneDNN only reads it
    strip.y.set_data_handle(sums_(run.args));
    strip.scratchpad.set_data_handle(room_(run.args));
    const std::array<dnnl_exec_arg_t, 4> list = {{{DNNL_ARG_SRC, strip.x.get()},
                                                  {DNNL_ARG_WEIGHTS, packed_->get()},
                                                  {DNNL_ARG_DST, strip.y.get()},
                                                  {DNNL_ARG_SCRATCHPAD, strip.scratchpad.get()}}};
    ExecuteAndWait(strip.primitive, stream_, list);
    const int64_t first = (image * rows_ + row) * plan.shape.y.dims[3];
    RunRanges(parts_, PixelsOf(plan, strip), 1, [&](int, int64_t begin, int64_t end) {
      int32_t* const sums = sums_(run.args) + begin * columns_;
      if (!zeros_.empty()) TakeOut(sums, end - begin);
      run.Round(plan, sums, first + begin, end - begin);
    });
  }

  // x between what stands around it.
  void Pad(const LinearConvPlan& plan, const LinearRun& run, std::byte* to) const {
    const std::vector<int64_t>& x = plan.shape.x.dims;
    const int64_t line = padded_[3] * padded_[1], within = x[3] * x[1];
    const int64_t left = plan.shape.before[1] * x[1], above = plan.shape.before[0];
    RunRanges(parts_, x[0] * padded_[2], 1, [&](int, int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t row = at % padded_[2] - above;
        std::byte* const place = to + at * line;
        if (row < 0 || row >= x[2]) {
          std::memset(place, run.zero, static_cast<size_t>(line));
          continue;
        }
        const std::byte* from = run.x + (at / padded_[2] * x[2] + row) * within;
        std::memset(place, run.zero, static_cast<size_t>(left));
        std::memcpy(place + left, from, static_cast<size_t>(within));
        std::memset(place + left + within, run.zero, static_cast<size_t>(line - left - within));
      }
    });
  }

  // Sums without the last one, which is that of x, and without what the zeros of the filter add.
  void TakeOut(int32_t* sums, int64_t rows) const {
    const auto columns = static_cast<int64_t>(zeros_.size());
    int32_t* to = sums;
    for (int64_t row = 0; row < rows; ++row, sums += columns_, to += columns) {
      const int32_t of_x = sums[columns];
      for (int64_t c = 0; c < columns; ++c) {
        to[c] = LessTimes(sums[c], zeros_[static_cast<size_t>(c)], of_x);
      }
    }
  }

  const int64_t columns_;  // channels of y, and one more where the filter has zeros
  bool copies_ = false;
  memory::dims padded_, weights_;
  std::vector<int32_t> zeros_;  // of the filter, where they are not all 0
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  int64_t images_ = 0, rows_ = 0;  // of y
  Strip whole_, tail_;             // tail_: what is left over; of no rows: there is nothing
  std::shared_ptr<const memory> packed_;
  Workspace<int32_t> sums_;
  Workspace<std::byte> room_, image_;
  int parts_ = 1;
};

// ---- windows as rows of a matrix ----

// Those of a group are multiplied by its filters, a block of positions at a time.
class WindowLinearSums final : public LinearSums {
 public:
  static Result<std::unique_ptr<WindowLinearSums>> Make(const LinearConvPlan& plan,
                                                        const SignedFilter& filter,
                                                        Scratch& scratch, KernelChoice& choice) {
    auto made = std::make_unique<WindowLinearSums>();
    const int64_t inputs = plan.inputs_of_group(), outputs = plan.outputs_of_group();
    made->zeros_ = filter.zero;
    made->rows_ = std::min(kMostWindows, plan.pixels());
    uint64_t product_bytes = 0;
    for (int64_t g = 0; g < plan.groups(); ++g) {
      // The taps of a window lie one after the other, each with its channels.
      std::vector<int8_t> weights;
      for (int64_t o = g * outputs; o < (g + 1) * outputs; ++o) {
        for (int64_t t = 0; t < plan.taps(); ++t) {
          for (int64_t i = 0; i < inputs; ++i) {
            weights.push_back(
                filter.weights[static_cast<size_t>((o * inputs + i) * plan.taps() + t)]);
          }
        }
      }
      const Tensor weight =
          Tensor::FromVector({DataType::kInt8, {outputs, plan.window()}}, weights);
      const Int8Form form = {.who = plan.who,
                             .m = made->rows_,
                             .n = outputs,
                             .k = plan.window(),
                             .weight = &weight,
                             .transposed = true,
                             .x_unsigned = plan.shape.x.dtype == DataType::kUint8,
                             .threads = plan.shape.threads};
      NPUMESH_ASSIGN_OR_RETURN(Int8Product::Made product, Int8Product::Make(form));
      product_bytes = std::max(product_bytes, product.product->scratch_bytes());
      if (g == 0) choice.Join(product.choice);
      made->products_.push_back(std::move(product.product));
    }
    made->room_ = scratch.Take<std::byte>(static_cast<int64_t>(product_bytes));
    made->windows_ = scratch.Take<int8_t>(made->rows_ * plan.window());
    made->sums_of_x_ = scratch.Take<int32_t>(made->rows_);
    made->row_ = scratch.Take<int32_t>(outputs);
    return made;
  }

  bool corrected() const override { return true; }

  Status Run(const LinearConvPlan& plan, const LinearRun& run) override {
    for (int64_t first = 0; first < plan.pixels(); first += rows_) {
      const int64_t count = std::min(rows_, plan.pixels() - first);
      for (int64_t g = 0; g < plan.groups(); ++g) {
        NPUMESH_RETURN_IF_ERROR(RunBlock(plan, run, g, first, count));
      }
    }
    return Status();
  }

 private:
  Status RunBlock(const LinearConvPlan& plan, const LinearRun& run, int64_t g, int64_t first,
                  int64_t count) {
    int8_t* const windows = windows_(run.args);
    int32_t* const sums_of_x = sums_of_x_(run.args);
    const int64_t window = plan.window(), outputs = plan.outputs_of_group();
    for (int64_t i = 0; i < count; ++i) {
      int8_t* const to = windows + i * window;
      LoadWindow(plan, run, g, first + i, to);
      const auto* const bytes = reinterpret_cast<const uint8_t*>(to);
      sums_of_x[i] = plan.shape.x.dtype == DataType::kUint8
                         ? std::accumulate(bytes, bytes + window, int32_t{0})
                         : std::accumulate(to, to + window, int32_t{0});
    }
    std::memset(windows + count * window, 0, static_cast<size_t>((rows_ - count) * window));
    ByteRounding rounding = run.rounding;
    rounding.added += g * outputs;
    rounding.scale += g * outputs;
    const int64_t bytes = BitsOf(plan.end.y) / 8;
    auto* const y = static_cast<std::byte*>(run.args.out[0]);
    int32_t* const row = row_(run.args);
    return products_[static_cast<size_t>(g)]->Run(
        windows, room_(run.args), [&](int64_t r, const int32_t* sums) {
          if (r >= count) return;
          for (int64_t c = 0; c < outputs; ++c) {
            const int32_t zero = zeros_[static_cast<size_t>(g * outputs + c)];
            row[c] = LessTimes(sums[c], zero, sums_of_x[r]);
          }
          const int64_t place = (first + r) * plan.channels() + g * outputs;
          RoundSums(rounding, row, 1, outputs, y + place * bytes);
        });
  }

  // The window of group `g` at a position of y.
  static void LoadWindow(const LinearConvPlan& plan, const LinearRun& run, int64_t g,
                         int64_t position, int8_t* to) {
    const Convolution& shape = plan.shape;
    const std::vector<int64_t>&x = shape.x.dims, &y = shape.y.dims;
    const int64_t inputs = plan.inputs_of_group();
    const int64_t image = position / (y[2] * y[3]);
    const int64_t top = position / y[3] % y[2] * shape.strides[0] - shape.before[0];
    const int64_t left = position % y[3] * shape.strides[1] - shape.before[1];
    for (int64_t h = 0; h < shape.filter.dims[3]; ++h) {
      const int64_t row = top + h * shape.dilations[0];
      for (int64_t w = 0; w < shape.filter.dims[4]; ++w, to += inputs) {
        const int64_t column = left + w * shape.dilations[1];
        if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) {
          std::memset(to, run.zero, static_cast<size_t>(inputs));
          continue;
        }
        const std::byte* const from =
            run.x + ((image * x[2] + row) * x[3] + column) * x[1] + g * inputs;
        std::memcpy(to, from, static_cast<size_t>(inputs));
      }
    }
  }

  std::vector<int32_t> zeros_;  // of the filter
  int64_t rows_ = 1;
  std::vector<std::unique_ptr<Int8Product>> products_;  // by group
  Workspace<std::byte> room_;
  Workspace<int8_t> windows_;
  Workspace<int32_t> sums_of_x_, row_;
};

// ---- which one ----

struct LinearFacts {
  const LinearConvPlan& plan;
  const SignedFilter& filter;
  std::unique_ptr<OneDnnLinearSums> one_dnn;
};

std::string WhyNotDepthwise(LinearFacts& facts) {
  const bool one = facts.plan.inputs_of_group() == 1 && facts.plan.outputs_of_group() == 1;
  return one ? "" : "a filter takes several channels";
}

std::string WhyNotOneDnn(LinearFacts& facts) {
  if (!HasExactByteProducts()) return "this processor has no exact 8-bit products";
  if (facts.plan.groups() > 1 && !facts.filter.centred()) return "groups have zeros of filters";
  facts.one_dnn = std::make_unique<OneDnnLinearSums>(facts.plan, facts.filter);
  if (!facts.one_dnn->good()) return "oneDNN has at most its reference";
  const bool exact = facts.filter.most() < kMostExact || facts.one_dnn->KeepsIntegers(facts.plan);
  return exact ? "" : "it takes sums through float32, and they may need more than 24 bits";
}

constexpr std::string_view kDepthwiseSums = "depthwise", kOneDnnSums = "oneDNN";
constexpr Candidate<LinearFacts> kLinearSums[] = {
    {kDepthwiseSums, WhyNotDepthwise}, {kOneDnnSums, WhyNotOneDnn}, {"windows"}};

class LinearConvKernel final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> Make(LinearConvPlan plan) {
    auto kernel = std::make_unique<LinearConvKernel>(std::move(plan));
    NPUMESH_RETURN_IF_ERROR(
        Guarded(kernel->plan_.who, kLinearWhat, [&] { return kernel->Prepare(); }));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  explicit LinearConvKernel(LinearConvPlan plan) : plan_(std::move(plan)) {}

  uint64_t scratch_bytes() const override { return scratch_.bytes(); }

  bool reads(int slot) const override {
    return slot != *plan_.shape.filter.slot && slot != plan_.filter_zero;
  }

  Status Run(const KernelArgs& args) override {
    LinearRun run = {.args = args,
                     .x = static_cast<const std::byte*>(args.in[*plan_.shape.x.slot])};
    if (plan_.x_zero >= 0) run.zero = ByteAt(plan_.shape.x.dtype, args.in[plan_.x_zero], 0);
    int32_t* const added = added_(args);
    run.rounding = plan_.end.Load(args, added, scale_(args));
    if (sums_->corrected()) {
      for (size_t c = 0; c < filter_sums_.size(); ++c) {
        added[c] = LessTimes(added[c], run.zero, filter_sums_[c]);
      }
    }
    return sums_->Run(plan_, run);
  }

 private:
  Status Prepare() {
    SignedFilter filter(plan_);
    LinearFacts facts{plan_, filter, nullptr};
    KernelChoice choice = Choose(kLinearSums, facts);
    added_ = scratch_.Take<int32_t>(plan_.channels());
    scale_ = scratch_.Floats(plan_.channels());
    if (choice.name == kDepthwiseSums) {
      sums_ = std::make_unique<DepthwiseLinearSums>(plan_, filter, scratch_);
    } else if (choice.name == kOneDnnSums) {
      facts.one_dnn->Prepare(plan_, filter, scratch_);
      choice.Decide(facts.one_dnn->name(), "");
      sums_ = std::move(facts.one_dnn);
    } else {
      NPUMESH_ASSIGN_OR_RETURN(sums_, WindowLinearSums::Make(plan_, filter, scratch_, choice));
    }
    filter_sums_ = std::move(filter.sum);
    set_choice(std::move(choice));
    return Status();
  }

  const LinearConvPlan plan_;
  std::vector<int32_t> filter_sums_;  // sum (w - q), by channel of y
  std::unique_ptr<LinearSums> sums_;
  Scratch scratch_;
  Workspace<int32_t> added_;
  Workspace<float> scale_;
};

Result<std::unique_ptr<Kernel>> MakeLinearConv(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(LinearConvPlan plan, define::PlanCall<PlanLinearConv>(op));
  plan.who = op.Who();
  if (plan.pixels() * plan.channels() == 0) {
    return MakeKernel([](const KernelArgs&) { return Status(); });
  }
  Check check(op);
  check.Supported(plan.shape.filter_value != nullptr, "the filter is no constant");
  check.Supported(plan.filter_zero < 0 || plan.filter_zeros != nullptr,
                  "the zero of the filter is no constant");
  check.Supported(plan.window() > 0, "the filter {} has no elements", op.in("filter"));
  if (!check.ok()) return check.status();
  return LinearConvKernel::Make(std::move(plan));
}

}  // namespace

void RegisterLinearConvolutionOps(OpRegistry& registry) {
  Operator op;
  op.schema = Signature(
      "QLinearConv(x, filter, x_zero?, filter_zero?, bias?, scale?, y_zero?; dtype:int, "
      "strides:ints, pads:ints, dilations=[1,1,1,1], groups=1, data_format==\"NHWC\") "
      "-> y");
  op.infer = define::Infer<PlanLinearConv>;
  op.make_kernel = MakeLinearConv;
  op.precision = PrecisionClass::kKept;
  registry.Add(std::move(op));
}

}  // namespace npumesh
