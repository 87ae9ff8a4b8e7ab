#include "graph/ops/scatter.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "graph/ops/infer_checks.h"
#include "graph/ops/row_kernel.h"

namespace npumesh {
namespace {

// Copies rows without looking at them.
class SetKernel final : public Kernel {
 public:
  SetKernel(const OpContext& op, ScatterPlan plan, size_t element)
      : plan_(std::move(plan)),
        row_(element * static_cast<size_t>(plan_.rows.inner)),
        bytes_(op.out(0).bytes()),
        found_(static_cast<size_t>(plan_.rows.count)) {}

  Status Run(const KernelArgs& args) override {
    NPUMESH_RETURN_IF_ERROR(plan_.rows.find(args, found_.data()));
    auto* y = static_cast<std::byte*>(args.out[0]);
    if (plan_.copied >= 0 && bytes_ > 0) std::memcpy(y, args.in[plan_.copied], bytes_);
    if (plan_.starts && bytes_ > 0) std::memset(y, 0, bytes_);
    const auto* updates = static_cast<const std::byte*>(args.in[plan_.updates]);
    for (size_t i = 0; i < found_.size() && row_ > 0; ++i) {
      if (found_[i] == kNoRow) continue;
      std::memcpy(y + static_cast<size_t>(found_[i]) * row_, updates + i * row_, row_);
    }
    return Status();
  }

 private:
  ScatterPlan plan_;
  size_t row_;  // bytes
  uint64_t bytes_;
  std::vector<int64_t> found_;
};

// Sums and products of integers wrap, which only unsigned ones may do.
template <typename Wide>
Wide Joined(Wide a, Wide b, Join join) {
  constexpr bool kReal = std::is_floating_point_v<Wide>;
  const auto wraps = [](auto f, Wide x, Wide y) {
    if constexpr (kReal) {
      return f(x, y);
    } else {
      return static_cast<Wide>(f(static_cast<uint64_t>(x), static_cast<uint64_t>(y)));
    }
  };
  switch (join) {
    case Join::kSet:
      return b;
    case Join::kAdd:
      return wraps([](auto x, auto y) { return x + y; }, a, b);
    case Join::kSub:
      return wraps([](auto x, auto y) { return x - y; }, a, b);
    case Join::kMul:
      return wraps([](auto x, auto y) { return x * y; }, a, b);
    case Join::kDiv:
      if constexpr (!kReal) {
        if (b == static_cast<Wide>(-1)) return wraps([](auto x, auto y) { return x * y; }, a, b);
      }
      return a / b;
    case Join::kMax:
      return a > b || a != a ? a : b;
    case Join::kMin:
      return a < b || a != a ? a : b;
  }
  return a;
}

double LargestOf(DataType dtype) {
  if (dtype == DataType::kFloat16) return 65504;
  if (dtype == DataType::kBfloat16) return 0x1.fep127;
  return dtype == DataType::kDouble ? std::numeric_limits<double>::max()
                                    : static_cast<double>(std::numeric_limits<float>::max());
}

// What changes nothing when it is joined: where an output starts that begins with nothing.
template <typename Wide>
Wide IdentityOf(DataType dtype, Join join) {
  if (join == Join::kMul || join == Join::kDiv) return 1;
  if (join != Join::kMax && join != Join::kMin) return 0;
  const bool least = join == Join::kMax;
  if constexpr (std::is_floating_point_v<Wide>) {
    const double most = LargestOf(dtype);
    return least ? -most : most;
  } else {
    if (!IsSignedInteger(dtype)) {
      return least ? 0 : static_cast<Wide>(UINT64_MAX >> (64 - BitsOf(dtype)));
    }
    const int64_t most = INT64_MAX >> (64 - BitsOf(dtype));
    return static_cast<Wide>(least ? -most - 1 : most);
  }
}

template <typename Wide>
class JoinKernel final : public Kernel {
 public:
  JoinKernel(const OpContext& op, ScatterPlan plan)
      : plan_(std::move(plan)),
        start_(IdentityOf<Wide>(op.out(0).dtype, plan_.join)),
        who_(op.Who()),
        found_(static_cast<size_t>(plan_.rows.count)),
        y_(static_cast<size_t>(op.out(0).shape.elements())),
        updates_(found_.size() * static_cast<size_t>(plan_.rows.inner)) {
    const DataType dtype = op.out(0).dtype;
    const DataType wide = WideTypeOf(dtype);
    load_ = FindConvert(dtype, wide);
    store_ = FindConvert(wide, dtype);
    load_updates_ = FindConvert(op.in(plan_.updates).dtype, wide);
    if (plan_.scale >= 0) load_scale_ = FindConvert(op.in(plan_.scale).dtype, wide);
  }

  Status Run(const KernelArgs& args) override {
    NPUMESH_RETURN_IF_ERROR(plan_.rows.find(args, found_.data()));
    if (plan_.starts) {
      std::fill(y_.begin(), y_.end(), start_);
    } else {
      load_(plan_.copied >= 0 ? args.in[plan_.copied] : args.out[0], y_.data(), y_.size());
    }
    load_updates_(args.in[plan_.updates], updates_.data(), updates_.size());
    Wide scale = 1;
    if (plan_.scale >= 0) load_scale_(args.in[plan_.scale], &scale, 1);
    const auto inner = static_cast<size_t>(plan_.rows.inner);
    for (size_t i = 0; i < found_.size(); ++i) {
      if (found_[i] == kNoRow) continue;
      Wide* to = y_.data() + static_cast<size_t>(found_[i]) * inner;
      const Wide* from = updates_.data() + i * inner;
      for (size_t e = 0; e < inner; ++e) {
        if (!std::is_floating_point_v<Wide> && plan_.join == Join::kDiv && from[e] == 0) {
          return Error(Code::kInvalidArgument,
                       "{}: update row {} holds a 0, which divides an integer", who_, i);
        }
        const Wide update = plan_.scale < 0 ? from[e] : Joined(from[e], scale, Join::kMul);
        to[e] = Joined(to[e], update, plan_.join);
      }
    }
    store_(y_.data(), args.out[0], y_.size());
    return Status();
  }

 private:
  ScatterPlan plan_;
  Wide start_;
  std::string who_;
  std::vector<int64_t> found_;
  std::vector<Wide> y_;
  std::vector<Wide> updates_;
  ConvertFn load_;
  ConvertFn store_;
  ConvertFn load_updates_;
  ConvertFn load_scale_ = nullptr;
};

}  // namespace

Status CheckJoin(const OpContext& op, DataType dtype, Join join) {
  if (join == Join::kSet) return ElementBytes(op, dtype).status();
  if (dtype != DataType::kBool && WideTypeOf(dtype) != DataType::kUndefined) return Status();
  return Error(Code::kUnsupported, "{}: elements of type {} cannot be joined", op.Who(),
               Name(dtype));
}

Result<std::unique_ptr<Kernel>> MakeScatter(const OpContext& op, ScatterPlan plan) {
  const DataType dtype = op.out(0).dtype;
  NPUMESH_RETURN_IF_ERROR(CheckJoin(op, dtype, plan.join));
  std::unique_ptr<Kernel> kernel;
  if (plan.join == Join::kSet) {
    NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, dtype));
    kernel = std::make_unique<SetKernel>(op, std::move(plan), element);
  } else if (WideTypeOf(dtype) == DataType::kDouble) {
    kernel = std::make_unique<JoinKernel<double>>(op, std::move(plan));
  } else if (dtype == DataType::kUint64) {
    kernel = std::make_unique<JoinKernel<uint64_t>>(op, std::move(plan));
  } else {
    kernel = std::make_unique<JoinKernel<int64_t>>(op, std::move(plan));
  }
  return kernel;
}

}  // namespace npumesh
