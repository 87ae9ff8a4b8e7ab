#include "graph/compare/golden/reference_ops.h"

#include <cmath>
#include <cstring>

#include "graph/compare/measures/elements.h"
#include "graph/ops/builtin_ops.h"
#include "runtime/base/float16.h"

namespace npumesh {
namespace {

bool IsRounded(DataType dtype) {
  return dtype == DataType::kFloat || dtype == DataType::kFloat16 || dtype == DataType::kBfloat16;
}

template <typename T>
void StoreAs(const std::vector<double>& values, void* out) {
  auto* next = static_cast<T*>(out);
  for (const double value : values) {
    if constexpr (sizeof(T) == 2) {
      *next++ = T(static_cast<float>(value));
    } else {
      *next++ = static_cast<T>(value);
    }
  }
}

// Rounds to the type of an output and stores.
void Store(const std::vector<double>& values, DataType dtype, void* out) {
  if (dtype == DataType::kFloat) StoreAs<float>(values, out);
  if (dtype == DataType::kFloat16) StoreAs<Float16>(values, out);
  if (dtype == DataType::kBfloat16) StoreAs<Bfloat16>(values, out);
  if (dtype == DataType::kDouble) StoreAs<double>(values, out);
}

std::vector<double> Load(const TensorType& type, const void* data) {
  Tensor tensor = Tensor::Allocate(type);
  if (tensor.bytes() > 0) std::memcpy(tensor.mutable_data(), data, tensor.bytes());
  return ElementsOf(tensor).value();  // REQUIRES: a floating type, checked by the callers
}

// ---- products ----

// One operand as rows and columns, with the batch it belongs to.
struct Factor {
  TensorType type;
  bool transposed = false;

  int64_t rows() const { return Dim(transposed ? 1 : 2); }
  int64_t columns() const { return Dim(transposed ? 2 : 1); }
  int64_t Dim(int from_end) const { return type.shape[type.shape.rank() - from_end]; }

  // Offset of the matrix for batch number `index` of the output's batch dimensions.
  int64_t MatrixAt(int64_t index, const Shape& y) const {
    int64_t offset = 0;
    int64_t stride = rows() * columns();
    const int shift = y.rank() - type.shape.rank();
    for (int axis = y.rank() - 3; axis >= 0; --axis) {
      const int64_t place = index % y[axis];
      index /= y[axis];
      if (axis < shift) continue;
      const int64_t dim = type.shape[axis - shift];
      if (dim > 1) offset += place * stride;
      stride *= dim;
    }
    return offset;
  }
  int64_t ElementAt(int64_t row, int64_t column) const {
    return transposed ? column * rows() + row : row * columns() + column;
  }
};

struct Product {
  Factor x1, x2;
  TensorType y;
  TensorType bias;  // undefined dtype: none

  Status Run(const KernelArgs& args, int bias_slot) const {
    const std::vector<double> a = Load(x1.type, args.in[0]);
    const std::vector<double> b = Load(x2.type, args.in[1]);
    const bool biased = bias.dtype != DataType::kUndefined;
    const std::vector<double> c = biased ? Load(bias, args.in[bias_slot]) : std::vector<double>();
    std::vector<double> result;
    const int64_t m = x1.rows(), n = x2.columns(), k = x1.columns();
    const int64_t batches = m * n == 0 ? 0 : y.shape.elements() / (m * n);
    for (int64_t batch = 0; batch < batches; ++batch) {
      const double* const left = a.data() + x1.MatrixAt(batch, y.shape);
      const double* const right = b.data() + x2.MatrixAt(batch, y.shape);
      for (int64_t row = 0; row < m; ++row) {
        for (int64_t column = 0; column < n; ++column) {
          double sum = biased ? c[static_cast<size_t>(column)] : 0;
          for (int64_t i = 0; i < k; ++i) {
            sum += left[x1.ElementAt(row, i)] * right[x2.ElementAt(i, column)];
          }
          result.push_back(sum);
        }
      }
    }
    Store(result, y.dtype, args.out[0]);
    return Status();
  }
};

// Shapes with a matrix in front and a bias of one row; everything else keeps its built-in kernel.
Result<std::unique_ptr<Kernel>> MakeProduct(const OpContext& op, const ProductTrait& trait,
                                            const MakeKernelFn& builtin) {
  Product product;
  product.x1.type = op.in(trait.left);
  product.x2.type = op.in(trait.right);
  product.y = op.out(0);
  const bool matrices = product.x1.type.shape.rank() >= 2 && product.x2.type.shape.rank() >= 2;
  if (!matrices || !IsRounded(product.x1.type.dtype) || !IsRounded(product.y.dtype)) {
    return builtin(op);
  }
  product.x1.transposed = op.attr_bool(trait.left_transposed);
  product.x2.transposed = op.attr_bool(trait.right_transposed);
  int bias_slot = -1;
  if (!trait.bias.empty() && op.has(trait.bias)) {
    bias_slot = op.slot(trait.bias);
    product.bias = op.in(bias_slot);
    if (product.bias.shape.elements() != product.x2.columns()) return builtin(op);
  }
  return MakeKernel(
      [product, bias_slot](const KernelArgs& args) { return product.Run(args, bias_slot); });
}

// ---- operators whose built-in kernel also works in float64 ----

class WideKernel final : public Kernel {
 public:
  WideKernel(const OpContext& narrow, const OpContext& wide, std::unique_ptr<Kernel> kernel)
      : kernel_(std::move(kernel)) {
    for (int slot = 0; slot < narrow.slots(); ++slot) {
      narrow_in_.push_back(narrow.in(slot));
      wide_in_.push_back(wide.in(slot));
    }
    out_ = narrow.out(0);
    wide_out_ = wide.out(0);
  }

  uint64_t scratch_bytes() const override { return kernel_->scratch_bytes(); }

  Status Run(const KernelArgs& args) override {
    std::vector<std::vector<double>> widened(narrow_in_.size());
    std::vector<const void*> in(args.in, args.in + narrow_in_.size());
    for (size_t slot = 0; slot < narrow_in_.size(); ++slot) {
      if (in[slot] == nullptr || narrow_in_[slot] == wide_in_[slot]) continue;
      widened[slot] = Load(narrow_in_[slot], in[slot]);
      in[slot] = widened[slot].data();
    }
    std::vector<double> result(static_cast<size_t>(wide_out_.shape.elements()));
    void* out = result.data();
    NPUMESH_RETURN_IF_ERROR(kernel_->Run({in.data(), &out, args.scratch}));
    Store(result, out_.dtype, args.out[0]);
    return Status();
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::vector<TensorType> narrow_in_, wide_in_;
  TensorType out_, wide_out_;
};

Result<std::unique_ptr<Kernel>> MakeWide(const OpContext& op, const Operator& builtin) {
  OpContext wide = op;
  bool widened = false;
  for (int slot = 0; slot < op.slots(); ++slot) {
    if (!op.has(slot) || !IsRounded(op.in(slot).dtype)) continue;
    wide.set_in(slot, {DataType::kDouble, op.in(slot).shape});
    widened = true;
  }
  const bool fits = widened && builtin.infer(wide).ok() && wide.outputs() == 1 &&
                    wide.out(0).dtype == DataType::kDouble;
  if (!fits) return builtin.make_kernel(op);
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, builtin.make_kernel(wide));
  return std::unique_ptr<Kernel>(std::make_unique<WideKernel>(op, wide, std::move(kernel)));
}

// ---- RmsNorm ----

Result<std::unique_ptr<Kernel>> MakeRmsNorm(const OpContext& op, const MakeKernelFn& builtin) {
  const TensorType x = op.in("x"), gamma = op.in("gamma"), y = op.out(0), rstd = op.out(1);
  if (!IsRounded(x.dtype) || !IsRounded(gamma.dtype) || gamma.shape.elements() == 0) {
    return builtin(op);
  }
  const double epsilon = op.attr_float("epsilon");
  return MakeKernel([=](const KernelArgs& args) {
    const std::vector<double> values = Load(x, args.in[0]);
    const std::vector<double> scale = Load(gamma, args.in[1]);
    std::vector<double> result(values.size()), inverse;
    for (size_t row = 0; row < values.size(); row += scale.size()) {
      double squares = 0;
      for (size_t i = 0; i < scale.size(); ++i) squares += values[row + i] * values[row + i];
      const double mean = squares / static_cast<double>(scale.size());
      inverse.push_back(1 / std::sqrt(mean + epsilon));
      for (size_t i = 0; i < scale.size(); ++i) {
        result[row + i] = values[row + i] * inverse.back() * scale[i];
      }
    }
    Store(result, y.dtype, args.out[0]);
    Store(inverse, rstd.dtype, args.out[1]);
    return Status();
  });
}

bool IsOneOf(std::string_view type, std::initializer_list<std::string_view> types) {
  for (const std::string_view one : types) {
    if (type == one) return true;
  }
  return false;
}

OpRegistry MakeReferenceOps() {
  OpRegistry registry;
  for (const std::string_view type : BuiltinOps().Types()) {
    const Operator& builtin = *BuiltinOps().Find(type);
    Operator op = builtin;
    op.schema.type = type;
    if (builtin.product) {
      op.make_kernel = [&builtin](const OpContext& context) {
        return MakeProduct(context, *builtin.product, builtin.make_kernel);
      };
    } else if (IsOneOf(type, {"ReduceSum", "ReduceMean", "ReduceProd", "SoftmaxV2"})) {
      op.make_kernel = [&builtin](const OpContext& context) { return MakeWide(context, builtin); };
    } else if (type == "RmsNorm") {
      op.make_kernel = [&builtin](const OpContext& context) {
        return MakeRmsNorm(context, builtin.make_kernel);
      };
    }
    registry.Add(std::move(op));
  }
  return registry;
}

}  // namespace

const OpRegistry& ReferenceOps() {
  static const OpRegistry registry = MakeReferenceOps();
  return registry;
}

}  // namespace npumesh
