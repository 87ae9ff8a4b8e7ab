#include "graph/passes/layout/image_layouts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "graph/ops/elementwise/batch_norm.h"
#include "graph/ops/image/blocked_image.h"
#include "graph/ops/image/convolution.h"
#include "graph/ops/image/pool.h"

namespace npumesh {
namespace {

// What a type computes of images in blocks, where it is not element-wise.
enum class BlockedKind : uint8_t { kNone, kConvolution, kPool, kBatchNorm, kConcat, kMean };

struct BlockedRow {
  std::string_view type;
  BlockedKind kind;
};
constexpr BlockedRow kRows[] = {
    {"Conv2D", BlockedKind::kConvolution}, {"DepthwiseConv2D", BlockedKind::kConvolution},
    {"MaxPool", BlockedKind::kPool},       {"MaxPoolV3", BlockedKind::kPool},
    {"AvgPool", BlockedKind::kPool},       {"AvgPoolV2", BlockedKind::kPool},
    {"BNInfer", BlockedKind::kBatchNorm},  {"ConcatD", BlockedKind::kConcat},
    {"ConcatV2", BlockedKind::kConcat},    {"ReduceMean", BlockedKind::kMean},
    {"ReduceMeanD", BlockedKind::kMean}};

BlockedKind KindOf(std::string_view type) {
  const auto* const row = std::find_if(std::begin(kRows), std::end(kRows),
                                       [type](const BlockedRow& r) { return r.type == type; });
  return row == std::end(kRows) ? BlockedKind::kNone : row->kind;
}

// Element-wise operators that make finite numbers of zeros and of each other: what fills up the
// last block must not become infinite or NaN, because a convolution multiplies it by zero.
constexpr auto kFiniteOfZeros = std::to_array<std::string_view>(
    {"Abs",      "Add",     "AddV2", "Adds",   "Ceil",        "ClipByValue", "Elu",
     "FastGelu", "Floor",   "Gelu",  "GeluV2", "HardSigmoid", "HardSwish",   "LeakyRelu",
     "Maximum",  "Minimum", "Mish",  "Mul",    "Muls",        "Relu",        "Relu6",
     "Rint",     "Sigmoid", "Sub",   "Swish",  "Tanh"});

bool FillsUp(std::string_view type) {
  return std::find(kFiniteOfZeros.begin(), kFiniteOfZeros.end(), type) != kFiniteOfZeros.end();
}

bool IsImage(const TensorType& type) {
  return type.dtype == DataType::kFloat && type.shape.rank() == 4 && type.shape.elements() > 0;
}

// One number for each channel: [C, 1, 1], or with a batch.
bool IsOfChannels(const Shape& shape, const Shape& image) {
  const int rank = shape.rank();
  if (rank != 3 && rank != 4) return false;
  return shape[rank - 1] == 1 && shape[rank - 2] == 1 && shape[rank - 3] == image[1] &&
         (rank == 3 || shape[0] == 1 || shape[0] == image[0]);
}

TensorType Blocked(const TensorType& image) {
  return {image.dtype, InBlocks(image.shape)};
}

}  // namespace

class LayoutChooser {
 public:
  explicit LayoutChooser(const LayoutInput& input) : input_(input), block_(ImageBlock()) {}

  ImageLayouts Run() {
    for (const NodeId id : input_.order) {
      if (block_ == 0) break;
      const Operator* op = input_.graph.op(id);
      if (op == nullptr || op->view || op->late() || !op->in_place.empty() || op->collective)
        continue;
      if (!input_.stays(id)) Visit(id, *op);
    }
    return std::move(chosen_);
  }

 private:
  using MakeKernel = std::function<Result<std::unique_ptr<Kernel>>()>;

  void Visit(NodeId id, const Operator& op) {
    const OpContext& context = input_.context(id);
    if (context.outputs() == 0 || !IsImage(context.out(0))) return;
    const BlockedKind kind = KindOf(input_.graph.node(id).type);
    if (kind == BlockedKind::kConvolution) return VisitConvolution(id, context);
    if (!ReadsRegion(id, context)) return;
    if (kind == BlockedKind::kPool) return VisitPool(id, context);
    if (kind == BlockedKind::kBatchNorm) return VisitBatchNorm(id, context);
    if (kind == BlockedKind::kConcat) return VisitConcat(id, context);
    if (kind == BlockedKind::kMean) return VisitMean(id, context);
    if (op.axes.elementwise() && context.outputs() == 1) VisitElements(id, context);
  }

  std::optional<Value> Fed(NodeId id, int slot) const { return input_.graph.SlotValue(id, slot); }

  bool InRegion(NodeId id, int slot) const {
    const std::optional<Value> value = Fed(id, slot);
    return value && chosen_.InBlocks(*value);
  }

  bool ReadsRegion(NodeId id, const OpContext& context) const {
    for (int slot = 0; slot < context.slots(); ++slot) {
      if (InRegion(id, slot)) return true;
    }
    return false;
  }

  // Takes the node into the region; the slots of `images` read blocks.
  void Take(NodeId id, const OpContext& context, const std::vector<int>& images,
            MakeKernel make = nullptr, std::shared_ptr<const Convolution> convolution = nullptr) {
    BlockedNode node{context, std::vector<bool>(static_cast<size_t>(context.slots()), false),
                     std::move(make), std::move(convolution)};
    for (const int slot : images) {
      TensorType type = context.in(slot);
      if (type.shape.rank() == 3)
        type.shape.mutable_dims().insert(type.shape.mutable_dims().begin(), 1);
      TakeConstant(*Fed(id, slot), type);
      node.in_blocks[static_cast<size_t>(slot)] = true;
      node.context.set_in(slot, Blocked(type));
      node.context.set_value(slot, nullptr);
    }
    node.context.set_out(0, Blocked(context.out(0)));
    chosen_.images_.insert({id, 0});
    chosen_.nodes_.emplace(id, std::move(node));
  }

  void TakeConstant(Value value, const TensorType& image) {
    const Tensor* const constant = input_.constant(value);
    if (constant == nullptr || chosen_.constants_.contains(value)) return;
    chosen_.constants_.emplace(value, ReorderedImage(constant->WithType(image)));
  }

  void VisitConvolution(NodeId id, const OpContext& context) {
    Result<Convolution> planned = PlanImageConvolution(context);
    if (!planned.ok() || !IsImage(context.in(*planned->x.slot))) return;
    planned->x.in_blocks = InRegion(id, *planned->x.slot);
    planned->y.in_blocks = true;
    if (!ChooseBlocks(*planned)) return;
    std::vector<int> images;
    if (planned->x.in_blocks) images.push_back(*planned->x.slot);
    const auto plan = std::make_shared<const Convolution>(std::move(*planned));
    Take(
        id, context, images, [plan] { return MakeConvolution(*plan); }, plan);
  }

  void VisitPool(NodeId id, const OpContext& context) {
    if (!PoolsInBlocks(context)) return;
    return Take(id, context, {0}, [&context] { return MakeBlockedPool(context); });
  }

  void VisitBatchNorm(NodeId id, const OpContext& context) {
    std::optional<ChannelFactors> factors = BatchNormFactors(context);
    if (!factors) return;
    const Shape& x = context.in(0).shape;
    Take(id, context, {0},
         [factors = std::move(*factors), batch = x[0], pixels = x[2] * x[3], block = block_,
          threads = context.threads()] {
           return Result<std::unique_ptr<Kernel>>(
               MakeChannelScale(factors, batch, pixels, block, threads));
         });
  }

  // Whole blocks of channels, one after the other; the last may be filled up.
  void VisitConcat(NodeId id, const OpContext& context) {
    const Result<int64_t> axis = context.Int("concat_dim");
    if (!axis.ok() || *axis != 1) return;
    const int first = context.slot("x"), count = context.count("x");
    std::vector<int> images;
    for (int slot = first; slot < first + count; ++slot) {
      const bool last = slot + 1 == first + count;
      if (!IsImage(context.in(slot))) return;
      if (context.in(slot).shape[1] % block_ != 0 && !last) return;
      images.push_back(slot);
    }
    return Take(id, context, images);
  }

  // Over height and width, which stay as 1.
  void VisitMean(NodeId id, const OpContext& context) {
    const Result<std::vector<int64_t>> axes = context.Ints("axes");
    const bool fits = axes.ok() && (*axes == std::vector<int64_t>{2, 3}) &&
                      context.attr_bool("keep_dims") && IsImage(context.in(0));
    if (fits) Take(id, context, {0});
  }

  void VisitElements(NodeId id, const OpContext& context) {
    const Shape& image = context.out(0).shape;
    if (image[1] % block_ != 0 && !FillsUp(context.node().type)) return;
    std::vector<int> images;
    for (int slot = 0; slot < context.slots(); ++slot) {
      const std::optional<Value> value = Fed(id, slot);
      if (!value) continue;
      const TensorType& type = context.in(slot);
      if (type.shape.elements() == 1 && !InRegion(id, slot)) continue;
      const bool known = input_.constant(*value) != nullptr;
      const bool fits = type.dtype == DataType::kFloat &&
                        (type.shape == image || IsOfChannels(type.shape, image));
      if (!fits || (type.shape.rank() == 3 && !known)) return;
      images.push_back(slot);
    }
    return Take(id, context, images);
  }

  const LayoutInput& input_;
  const int64_t block_;
  ImageLayouts chosen_;
};

ImageLayouts ImageLayouts::Choose(const LayoutInput& input) {
  return LayoutChooser(input).Run();
}

const BlockedNode* ImageLayouts::Find(NodeId id) const {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : &found->second;
}

bool ImageLayouts::ReadsBlocks(NodeId id, int slot) const {
  const BlockedNode* const node = Find(id);
  return node != nullptr && node->in_blocks[static_cast<size_t>(slot)];
}

}  // namespace npumesh
