#include "graph/compare/golden/reference_ops.h"

#include <cstring>
#include <optional>

#include "graph/compare/measures/elements.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/toolbox/machine/wide_machine.h"
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

// Of shapes with a matrix in front and a bias of one row, else null.
std::unique_ptr<Kernel> MakeProduct(const OpContext& op, const ProductTrait& trait) {
  Product product;
  product.x1.type = op.in(trait.left);
  product.x2.type = op.in(trait.right);
  product.y = op.out(0);
  const bool matrices = product.x1.type.shape.rank() >= 2 && product.x2.type.shape.rank() >= 2;
  if (!matrices || !IsRounded(product.x1.type.dtype) || !IsRounded(product.y.dtype)) {
    return nullptr;
  }
  product.x1.transposed = op.attr_bool(trait.left_transposed);
  product.x2.transposed = op.attr_bool(trait.right_transposed);
  int bias_slot = -1;
  if (!trait.bias.empty() && op.has(trait.bias)) {
    bias_slot = op.slot(trait.bias);
    product.bias = op.in(bias_slot);
    if (product.bias.shape.elements() != product.x2.columns()) return nullptr;
  }
  return MakeKernel(
      [product, bias_slot](const KernelArgs& args) { return product.Run(args, bias_slot); });
}

// ---- operators whose built-in kernel also works in float64 ----

class WideKernel final : public Kernel {
 public:
  WideKernel(const OpContext& narrow, const OpContext& wide, std::vector<InPlace> in_place,
             std::unique_ptr<Kernel> kernel)
      : kernel_(std::move(kernel)), in_place_(std::move(in_place)) {
    for (int slot = 0; slot < narrow.slots(); ++slot) {
      narrow_in_.push_back(narrow.in(slot));
      wide_in_.push_back(wide.in(slot));
    }
    for (int port = 0; port < narrow.outputs(); ++port) out_.push_back(narrow.out(port));
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
    std::vector<std::vector<double>> results;
    for (const TensorType& type : out_) {
      results.emplace_back(static_cast<size_t>(type.shape.elements()));
    }
    std::vector<void*> out;
    for (std::vector<double>& result : results) out.push_back(result.data());
    for (const InPlace& pair : in_place_) {
      if (IsPort(pair)) out[At(pair.output)] = widened[At(pair.slot)].data();
    }
    NPUMESH_RETURN_IF_ERROR(kernel_->Run({in.data(), out.data(), args.scratch}));
    for (const InPlace& pair : in_place_) {
      std::vector<double>& updated = widened[At(pair.slot)];
      if (IsPort(pair)) {
        results[At(pair.output)] = std::move(updated);
      } else if (args.in[pair.slot] != nullptr) {
        Store(updated, narrow_in_[At(pair.slot)].dtype, const_cast<void*>(args.in[pair.slot]));
      }
    }
    for (size_t port = 0; port < out_.size(); ++port) {
      Store(results[port], out_[port].dtype, args.out[port]);
    }
    return Status();
  }

 private:
  static size_t At(int index) { return static_cast<size_t>(index); }
  bool IsPort(const InPlace& pair) const { return At(pair.output) < out_.size(); }

  std::unique_ptr<Kernel> kernel_;
  std::vector<InPlace> in_place_;
  std::vector<TensorType> narrow_in_, wide_in_, out_;
};

// The same call with doubles for all floats; nullopt: the operator does not know it, or gives
// something else than doubles.
std::optional<OpContext> Widened(const OpContext& op, const Operator& builtin) {
  OpContext wide = op;
  bool widened = false;
  for (int slot = 0; slot < op.slots(); ++slot) {
    if (!op.has(slot) || !IsRounded(op.in(slot).dtype)) continue;
    wide.set_in(slot, {DataType::kDouble, op.in(slot).shape});
    widened = true;
  }
  if (!widened || !builtin.infer(wide).ok() || wide.outputs() != op.outputs()) return std::nullopt;
  for (int port = 0; port < op.outputs(); ++port) {
    const bool doubles = IsRounded(op.out(port).dtype) &&
                         wide.out(port) == TensorType{DataType::kDouble, op.out(port).shape};
    if (!doubles) return std::nullopt;
  }
  // What is updated must be there as doubles.
  for (const InPlace& pair : InPlacesOf(builtin, op)) {
    if (op.has(pair.slot) && !IsRounded(op.in(pair.slot).dtype)) return std::nullopt;
  }
  return wide;
}

std::unique_ptr<Kernel> MakeWide(const OpContext& op, const Operator& builtin) {
  const std::optional<OpContext> wide = Widened(op, builtin);
  if (!wide) return nullptr;
  Result<std::unique_ptr<Kernel>> kernel = builtin.make_kernel(*wide);
  if (!kernel.ok()) return nullptr;
  return std::make_unique<WideKernel>(op, *wide, InPlacesOf(builtin, op), std::move(*kernel));
}

// ---- all of them ----

bool IsComputed(const Operator& op) {
  return op.make_kernel != nullptr && !op.view && !op.collective && op.pure;
}

Result<std::unique_ptr<Kernel>> MakeReference(const OpContext& op, const Operator& builtin) {
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> own, builtin.make_kernel(op));
  std::unique_ptr<Kernel> wide = MakeFloat64Kernel(op, builtin);
  return wide ? std::move(wide) : std::move(own);
}

OpRegistry MakeReferenceOps() {
  OpRegistry registry;
  for (const std::string_view type : BuiltinOps().Types()) {
    const Operator& builtin = *BuiltinOps().Find(type);
    Operator op = builtin;
    op.schema.type = type;
    if (IsComputed(builtin)) {
      op.make_kernel = [&builtin](const OpContext& context) {
        return MakeReference(context, builtin);
      };
    }
    registry.Add(std::move(op));
  }
  return registry;
}

}  // namespace

std::unique_ptr<Kernel> MakeFloat64Kernel(const OpContext& op, const Operator& builtin) {
  if (!IsComputed(builtin)) return nullptr;
  if (builtin.axes.product()) return MakeProduct(op, *builtin.axes.product());
  std::unique_ptr<Kernel> wide;
  if (builtin.in_place.empty()) wide = MakeWideMachine(op, builtin.loop);
  return wide ? std::move(wide) : MakeWide(op, builtin);
}

const OpRegistry& ReferenceOps() {
  static const auto* const registry = new OpRegistry(MakeReferenceOps());
  return *registry;
}

}  // namespace npumesh
