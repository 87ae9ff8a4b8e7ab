// The reductions of ops reference 5.5: schema, inference and the walk over the axes.
//
// Neighbouring axes that are all reduced or all kept are merged, so that a tensor becomes
// alternating groups; each reduced group then takes one pass over [outer, size, inner], the last
// group first. Between passes the values stay in the type the fold accumulates in and lie in
// scratch memory; they are rounded to the output's type once, at the end. The order of folding
// depends on the shape alone.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "graph/ops/cast.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/reduce_ops_fold.h"

namespace npumesh {
namespace {

// One pass over [outer, size, inner]: folds the middle.
struct Pass {
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;
};

struct Group {
  int64_t size;
  bool reduced;
};

std::vector<Group> MergeAxes(const Shape& shape, const std::vector<bool>& reduced) {
  std::vector<Group> groups;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    const bool fold = reduced[static_cast<size_t>(i)];
    if (!groups.empty() && groups.back().reduced == fold) {
      groups.back().size *= shape[i];
    } else {
      groups.push_back({shape[i], fold});
    }
  }
  return groups;
}

int64_t Product(const std::vector<Group>& groups, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t i = begin; i < end; ++i) product *= groups[i].size;
  return product;
}

std::vector<Pass> PassesOf(const Shape& shape, const std::vector<bool>& reduced) {
  std::vector<Group> groups = MergeAxes(shape, reduced);
  std::vector<Pass> passes;
  for (size_t i = groups.size(); i-- > 0;) {
    if (!groups[i].reduced) continue;
    passes.push_back(
        {Product(groups, 0, i), groups[i].size, Product(groups, i + 1, groups.size())});
    groups[i].size = 1;
  }
  if (passes.empty()) passes.push_back({1, 1, shape.elements()});
  return passes;
}

class ReduceKernel final : public Kernel {
 public:
  // `count`: elements folded into one, for the mean.
  ReduceKernel(const Fold& fold, std::vector<Pass> passes, DataType in, DataType out, int64_t count)
      : fold_(fold),
        passes_(std::move(passes)),
        count_(count),
        in_width_(static_cast<size_t>(BitsOf(in)) / 8),
        out_width_(static_cast<size_t>(BitsOf(out)) / 8),
        width_(static_cast<size_t>(BitsOf(fold.compute)) / 8),
        load_(FindConvert(in, fold.compute)),
        store_(FindConvert(fold.compute, out)) {}

  uint64_t scratch_bytes() const override {
    if (passes_.size() == 1) return 0;
    return static_cast<uint64_t>(passes_[0].outer * passes_[0].inner) * width_;
  }

  Status Run(const KernelArgs& args) override {
    for (size_t i = 0; i < passes_.size(); ++i) {
      const bool first = i == 0;
      const bool last = i + 1 == passes_.size();
      const Source source{static_cast<const std::byte*>(first ? args.in[0] : args.scratch),
                          first ? in_width_ : width_, first ? load_ : nullptr};
      RunPass(passes_[i], source, static_cast<std::byte*>(last ? args.out[0] : args.scratch), last);
    }
    return Status();
  }

 private:
  struct alignas(64) Block {
    std::byte bytes[kBlockElements * 8];
  };
  struct Source {
    const std::byte* data;
    size_t width;
    ConvertFn load;  // null: already in the fold's type

    const void* Read(int64_t begin, size_t count, Block& block) const {
      const std::byte* from = data + static_cast<size_t>(begin) * width;
      if (load == nullptr) return from;
      load(from, block.bytes, count);
      return block.bytes;
    }
  };

  // A pass may write over its own source: what it writes lies before what it has yet to read.
  void RunPass(const Pass& pass, const Source& source, std::byte* to, bool last) const {
    const size_t step = last ? out_width_ : width_;
    for (int64_t outer = 0; outer < pass.outer; ++outer) {
      for (int64_t begin = 0; begin < pass.inner; begin += kStep) {
        const auto columns = static_cast<size_t>(std::min(kStep, pass.inner - begin));
        Block total;
        fold_.fill(fold_.identity, total.bytes, columns);
        const int64_t start = outer * pass.size * pass.inner + begin;
        if (pass.inner == 1) {
          FoldRow(source, start, pass.size, total);
        } else {
          FoldColumns(source, start, pass, columns, total);
        }
        std::byte* place = to + static_cast<size_t>(outer * pass.inner + begin) * step;
        Finish(total, columns, place, last);
      }
    }
  }

  void FoldRow(const Source& source, int64_t start, int64_t size, Block& total) const {
    Block block;
    for (int64_t begin = 0; begin < size; begin += kStep) {
      const auto count = static_cast<size_t>(std::min(kStep, size - begin));
      fold_.row(source.Read(start + begin, count, block), count, total.bytes);
    }
  }

  void FoldColumns(const Source& source, int64_t start, const Pass& pass, size_t columns,
                   Block& total) const {
    Block block;
    for (int64_t row = 0; row < pass.size; ++row) {
      fold_.columns(source.Read(start + row * pass.inner, columns, block), columns, total.bytes);
    }
  }

  void Finish(Block& total, size_t columns, std::byte* to, bool last) const {
    if (!last) {
      std::memcpy(to, total.bytes, columns * width_);
      return;
    }
    if (fold_.divide != nullptr) fold_.divide(total.bytes, columns, count_);
    store_(total.bytes, to, columns);
  }

  static constexpr int64_t kStep = kBlockElements;

  Fold fold_;
  std::vector<Pass> passes_;
  int64_t count_;
  size_t in_width_;
  size_t out_width_;
  size_t width_;  // of the fold's type
  ConvertFn load_;
  ConvertFn store_;
};

struct ReduceSpec {
  std::string_view type;
  FoldKind kind;
  bool by_attr = false;  // the axes are an attribute
  bool casts = false;    // attribute "dtype" names the type of the result; 28: that of x
};

constexpr int64_t kSameType = 28;

bool GivesBool(FoldKind kind) {
  return kind == FoldKind::kAny || kind == FoldKind::kAll;
}

// Which axes of x are folded, and whether the operator does nothing at all (no axes are given).
struct Axes {
  std::vector<bool> reduced;
  bool noop = false;
};

Result<Axes> AxesOf(const OpContext& context) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, context.Ints("axes"));
  const TensorType& x = context.in("x");
  const int rank = x.shape.rank();
  Axes result;
  result.noop = axes.empty() && context.attr_bool("noop_with_empty_axes");
  result.reduced.assign(static_cast<size_t>(rank), axes.empty() && !result.noop);
  for (const int64_t axis : axes) {
    // A scalar lets itself be reduced over its only element.
    const Result<int> normal = NormalizeAxis(axis, std::max(rank, 1));
    if (!normal.ok()) {
      return normal.status().WithContext(
          fmt::format("{}: \"axes\" for x {}", context.Who(), x.ToString()));
    }
    if (rank > 0) result.reduced[static_cast<size_t>(*normal)] = true;
  }
  return result;
}

// Type that is folded, which the elements of x are converted to.
Result<DataType> FoldedType(const OpContext& context, const ReduceSpec& spec) {
  const DataType x = context.in("x").dtype;
  if (!spec.casts || context.attr_int("dtype") == kSameType) return x;
  return context.attr_dtype("dtype");
}

Status InferReduce(OpContext& context, const ReduceSpec& spec) {
  const TensorType& x = context.in("x");
  NPUMESH_ASSIGN_OR_RETURN(const DataType folded, FoldedType(context, spec));
  if (!FindFold(spec.kind, folded) || FindConvert(x.dtype, folded) == nullptr) {
    return Error(Code::kUnsupported, "{}: not defined for x {}", context.Who(), x.ToString());
  }
  NPUMESH_ASSIGN_OR_RETURN(const Axes axes, AxesOf(context));
  const bool keep_dims = context.attr_bool("keep_dims");
  std::vector<int64_t> dims;
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (!axes.reduced[static_cast<size_t>(i)]) {
      dims.push_back(x.shape[i]);
    } else if (keep_dims) {
      dims.push_back(1);
    }
  }
  context.set_out(0, {GivesBool(spec.kind) ? DataType::kBool : folded, Shape(std::move(dims))});
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeReduce(const OpContext& context, const ReduceSpec& spec) {
  NPUMESH_ASSIGN_OR_RETURN(const Axes axes, AxesOf(context));
  NPUMESH_ASSIGN_OR_RETURN(const DataType folded_type, FoldedType(context, spec));
  const TensorType& x = context.in("x");
  const DataType out = context.out(0).dtype;
  if (axes.noop) {
    const ConvertFn convert = FindConvert(x.dtype, out);
    const auto count = static_cast<size_t>(x.shape.elements());
    return MakeKernel([convert, count](const KernelArgs& args) {
      convert(args.in[0], args.out[0], count);
      return Status();
    });
  }
  int64_t folded = 1;
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (axes.reduced[static_cast<size_t>(i)]) folded *= x.shape[i];
  }
  return std::unique_ptr<Kernel>(std::make_unique<ReduceKernel>(
      *FindFold(spec.kind, folded_type), PassesOf(x.shape, axes.reduced), x.dtype, out, folded));
}

constexpr ReduceSpec kSpecs[] = {
    {"ReduceSum", FoldKind::kSum},
    {"ReduceMean", FoldKind::kMean},
    {"ReduceMax", FoldKind::kMax},
    {"ReduceMin", FoldKind::kMin},
    {"ReduceProd", FoldKind::kProd},
    {"ReduceAny", FoldKind::kAny},
    {"ReduceAll", FoldKind::kAll},
    {"ReduceSumD", FoldKind::kSum, true},
    {"ReduceMeanD", FoldKind::kMean, true},
    {"ReduceMaxD", FoldKind::kMax, true},
    {"ReduceMinD", FoldKind::kMin, true},
    {"ReduceProdD", FoldKind::kProd, true},
    {"ReduceAnyD", FoldKind::kAny, true},
    {"ReduceAllD", FoldKind::kAll, true},
    {"ReduceMeanWithCast", FoldKind::kMean, false, true},
};

}  // namespace

void RegisterReduceOps(OpRegistry& registry) {
  for (const ReduceSpec& spec : kSpecs) {
    Operator op;
    op.schema = {spec.type,
                 {{"x"}},
                 {{"y"}},
                 {{"keep_dims", AttrValue::Bool(false)},
                  {"noop_with_empty_axes", AttrValue::Bool(!spec.by_attr)}}};
    if (spec.by_attr) {
      op.schema.attrs.push_back({"axes", Required::kInts});
    } else {
      op.schema.inputs.push_back({"axes"});
      op.value_inputs = {"axes"};
    }
    if (spec.casts) op.schema.attrs.push_back({"dtype", AttrValue::Int(kSameType)});
    op.infer = [&spec](OpContext& context) { return InferReduce(context, spec); };
    op.make_kernel = [&spec](const OpContext& context) { return MakeReduce(context, spec); };
    registry.Add(std::move(op));
  }
}

}  // namespace npumesh
