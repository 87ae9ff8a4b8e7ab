#include "graph/ops/core/partial_inference.h"

#include <algorithm>
#include <map>
#include <utility>

namespace npumesh {
namespace {

constexpr size_t kMostUnknown = 8;
constexpr int kMostRank = 6;
// Inputs of which unknown sizes make more elements are not tried: operators with indices count
// them one by one.
constexpr double kMostElements = 1 << 22;

// Trial sizes. 60, 120 and 240 divide by most numbers of heads, groups and parts; the powers of two
// are sizes of heads and blocks; the small ones fit broadcasts and what the node fixes.
//
// A dimension is claimed when it is the same in all trials that the operator accepts: one size for
// all unknown dimensions, each of these and 0, and then 1, 2, 3, 60 and 0 for every choice of some
// of them (Prober::Vary). What depends on an unknown dimension as a sum, a product or a quotient
// differs between two of these trials. So a claim is false only where an unknown size begins to
// matter beyond 240: a number of blocks of 240 elements and more, of an operator that refuses empty
// inputs. Nothing is left to chance: SearchMixed mixes sizes in a fixed order, and only to find a
// first way that is accepted.
constexpr int64_t kSizes[] = {60, 2, 1, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 120, 128, 240};

// A dimension of an input that is unknown.
struct Unknown {
  int slot = -1, dim = 0;
};

// The dimensions in which two shapes agree.
Shape Agreed(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return Shape::UnknownRank();
  Shape agreed = a;
  for (int d = 0; d < a.rank(); ++d) {
    if (a[d] != b[d]) agreed[d] = kUnknownDim;
  }
  return agreed;
}

// Error: the elements of an output are more than can be counted.
Status CheckOutputs(const OpContext& context) {
  for (int port = 0; port < context.outputs(); ++port) {
    NPUMESH_RETURN_IF_ERROR(context.out(port).shape.Check().WithContext(
        fmt::format("{}: output {}", context.Who(), port)));
  }
  return Status();
}

// What was inferred so far.
class Merged {
 public:
  explicit Merged(int outputs) : types_(static_cast<size_t>(outputs)) {
    for (TensorType& type : types_) type.shape = Shape::UnknownRank();
  }

  std::vector<TensorType> types() && { return std::move(types_); }

  void Add(const OpContext& context) {
    for (int port = 0; port < context.outputs(); ++port) {
      const TensorType& found = context.out(port);
      TensorType& type = types_[static_cast<size_t>(port)];
      if (!any_) type = found;
      if (type.dtype != found.dtype) type.dtype = DataType::kUndefined;
      type.shape = Agreed(type.shape, found.shape);
    }
    any_ = true;
  }

  void ForgetDimensions() {
    for (TensorType& type : types_) {
      if (!type.shape.has_rank()) continue;
      for (int64_t& dim : type.shape.mutable_dims()) dim = kUnknownDim;
    }
  }

 private:
  std::vector<TensorType> types_;
  bool any_ = false;
};

// Asks an operator with numbers in place of unknown dimensions.
class Prober {
 public:
  // REQUIRES: every input has a rank.
  Prober(const Operator& op, const OpContext& context) : op_(op), context_(context) {
    for (int slot = 0; slot < context.slots(); ++slot) {
      if (!context.has(slot)) continue;
      const Shape& shape = context.in(slot).shape;
      for (int d = 0; d < shape.rank(); ++d) {
        if (shape[d] == kUnknownDim) {
          unknown_.push_back({slot, d});
        } else if (shape[d] > 0 && !Listed(shape[d])) {
          known_.push_back(shape[d]);
        }
      }
      AddNumbersOf(slot);
    }
    for (const AttrSpec& attr : context.schema().attrs) {
      if (attr.pattern.get<int64_t>() != nullptr) AddLikely(context.attr_int(attr.name));
    }
  }

  // Gives the unknown dimensions one size, this and that one, or where none is accepted sizes of
  // their own. Keeps two of the ways that are accepted.
  void Start(Merged& merged) {
    for (const int64_t size : Sizes()) {
      std::vector<int64_t> all(unknown_.size(), size);
      if (Ask(all, merged) && accepted_.size() < 2) accepted_.push_back(std::move(all));
    }
    if (accepted_.empty()) SearchNear(merged);
    if (accepted_.empty()) SearchMixed(merged);
    // No elements at all may have a special meaning (Reshape), and shows little of the rest.
    const bool empty = Ask(std::vector<int64_t>(unknown_.size(), 0), merged);
    if (empty && accepted_.empty()) merged.ForgetDimensions();
  }

  // From these on, every way to give some of the dimensions another size, because those that have
  // to be equal change together; and every trade of a factor between two, because their product may
  // have to stay.
  void Vary(Merged& merged) const {
    if (unknown_.size() > kMostUnknown) {
      merged.ForgetDimensions();
      return;
    }
    for (const std::vector<int64_t>& base : accepted_) {
      VarySome(base, merged);
      Trade(base, merged);
    }
  }

 private:
  bool Listed(int64_t size) const {
    return std::find(known_.begin(), known_.end(), size) != known_.end();
  }

  // A size that the node is told of, as an attribute (groups of channels) or as a constant.
  void AddLikely(int64_t size) {
    if (size > 0 && size < (1 << 20) && !Listed(size)) known_.push_back(size);
  }
  // Integers that the node is told as constants, shapes for instance, are likely sizes.
  void AddNumbersOf(int slot) {
    const Tensor* value = context_.value(slot);
    const DataType dtype = context_.in(slot).dtype;
    if (value == nullptr || (dtype != DataType::kInt64 && dtype != DataType::kInt32)) return;
    for (int64_t i = 0; i < std::min<int64_t>(value->elements(), 16); ++i) {
      const auto at = static_cast<size_t>(i);
      AddLikely(dtype == DataType::kInt64 ? value->as<int64_t>()[at] : value->as<int32_t>()[at]);
    }
  }

  std::vector<int64_t> Sizes() const {
    std::vector<int64_t> sizes(std::begin(kSizes), std::end(kSizes));
    sizes.insert(sizes.end(), known_.begin(), known_.end());
    return sizes;
  }

  // Sizes of many elements are not tried. Small ones always are, because then the known ones
  // decide.
  bool Ask(const std::vector<int64_t>& sizes, Merged& merged) const {
    OpContext probe = context_;
    std::map<int, double> elements;  // by input
    for (size_t i = 0; i < unknown_.size(); ++i) {
      const auto [slot, dim] = unknown_[i];
      double& count = elements.emplace(slot, 1.0).first->second;
      if (sizes[i] > 3) count *= static_cast<double>(sizes[i]);
      if (count > kMostElements) return false;
      TensorType type = probe.in(slot);
      type.shape[dim] = sizes[i];
      // Beside known ones that are large, a number may be too many elements to count.
      if (!type.shape.Check().ok()) return false;
      probe.set_in(slot, std::move(type));
    }
    if (!op_.infer(probe).ok() || !CheckOutputs(probe).ok()) return false;
    merged.Add(probe);
    return true;
  }

  // Every way to give the dimensions 1 and sizes that the node knows, when there are not many.
  void SearchNear(Merged& merged) {
    constexpr size_t kMostWays = 4096;
    std::vector<int64_t> near = known_;
    if (!Listed(1)) near.push_back(1);
    size_t ways = 1;
    for (size_t i = 0; i < unknown_.size(); ++i) {
      ways *= near.size();
      if (ways > kMostWays) return;
    }
    for (size_t way = 0; way < ways; ++way) {
      std::vector<int64_t> sizes;
      for (size_t i = 0, rest = way; i < unknown_.size(); ++i, rest /= near.size()) {
        sizes.push_back(near[rest % near.size()]);
      }
      if (Ask(sizes, merged) && accepted_.size() < 4) accepted_.push_back(std::move(sizes));
    }
  }

  // A different size for each dimension, chosen deterministically.
  void SearchMixed(Merged& merged) {
    const std::vector<int64_t> sizes = Sizes();
    uint64_t state = 1;
    for (int attempt = 0; attempt < 400 && accepted_.size() < 4; ++attempt) {
      std::vector<int64_t> drawn;
      for (size_t i = 0; i < unknown_.size(); ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        // The sizes that the node knows are the likelier ones.
        const bool near = !known_.empty() && (state >> 40 & 3) != 0;
        const std::vector<int64_t>& from = near ? known_ : sizes;
        drawn.push_back(from[(state >> 33) % from.size()]);
      }
      if (Ask(drawn, merged)) accepted_.push_back(std::move(drawn));
    }
  }

  void VarySome(const std::vector<int64_t>& base, Merged& merged) const {
    std::vector<int64_t> sizes = {1, 2, 3, 60, 0};
    for (size_t i = 0; i < std::min<size_t>(known_.size(), 4); ++i) sizes.push_back(known_[i]);
    for (size_t some = 1; some < size_t{1} << unknown_.size(); ++some) {
      for (const int64_t size : sizes) {
        std::vector<int64_t> varied = base;
        for (size_t i = 0; i < varied.size(); ++i) {
          if ((some >> i & 1) != 0) varied[i] = size;
        }
        if (varied != base) Ask(varied, merged);
      }
    }
  }

  void Trade(const std::vector<int64_t>& base, Merged& merged) const {
    for (size_t to = 0; to < base.size(); ++to) {
      for (size_t from = 0; from < base.size(); ++from) {
        std::vector<int64_t> swapped = base;
        std::swap(swapped[from], swapped[to]);
        if (from < to && swapped != base) Ask(swapped, merged);
        for (const int64_t factor : {int64_t{2}, int64_t{3}, base[from]}) {
          if (from == to || factor < 2 || base[from] % factor != 0) continue;
          std::vector<int64_t> traded = base;
          traded[from] /= factor;
          traded[to] *= factor;
          Ask(traded, merged);
        }
      }
    }
  }

  const Operator& op_;
  const OpContext& context_;
  std::vector<Unknown> unknown_;
  std::vector<int64_t> known_;  // sizes that occur in the node
  std::vector<std::vector<int64_t>> accepted_;
};

// Every rank for the inputs that have none. More than two such inputs: nothing is found.
void ProbeRanks(const Operator& op, const OpContext& context, const std::vector<int>& slots,
                Merged& merged) {
  if (slots.size() > 2) return;
  const int second = slots.size() == 2 ? kMostRank : 0;
  for (int a = 0; a <= kMostRank; ++a) {
    for (int b = 0; b <= second; ++b) {
      OpContext ranked = context;
      for (size_t i = 0; i < slots.size(); ++i) {
        const auto rank = static_cast<size_t>(i == 0 ? a : b);
        const Shape shape(std::vector<int64_t>(rank, kUnknownDim));
        ranked.set_in(slots[i], {context.in(slots[i]).dtype, shape});
      }
      Prober(op, ranked).Start(merged);
    }
  }
  merged.ForgetDimensions();
}

}  // namespace

Result<std::vector<TensorType>> InferPartly(const Operator& op, const OpContext& context) {
  std::vector<int> without_rank;
  bool known = true;
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (!context.has(slot)) continue;
    const Shape& shape = context.in(slot).shape;
    known = known && shape.is_static();
    if (!shape.has_rank()) without_rank.push_back(slot);
  }
  Merged merged(context.outputs());
  if (known) {
    OpContext inferred = context;
    NPUMESH_RETURN_IF_ERROR(op.infer(inferred));
    NPUMESH_RETURN_IF_ERROR(CheckOutputs(inferred));
    merged.Add(inferred);
  } else if (without_rank.empty()) {
    Prober prober(op, context);
    prober.Start(merged);
    prober.Vary(merged);
  } else {
    ProbeRanks(op, context, without_rank, merged);
  }
  return std::move(merged).types();
}

}  // namespace npumesh
