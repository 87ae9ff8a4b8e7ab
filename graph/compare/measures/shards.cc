#include "graph/compare/measures/shards.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "graph/compare/measures/elements.h"

namespace npumesh {
namespace {

using Kind = Sharding::Kind;

// Blocks beside each other along one axis: query, key and value are three.
constexpr int kMostBlocks = 8;

std::vector<Sharding> Candidates(const std::vector<Tensor>& ranks, const Tensor& whole) {
  const Shape& shape = ranks.front().shape();
  const bool alike = std::all_of(ranks.begin(), ranks.end(), [&](const Tensor& tensor) {
    return tensor.type() == ranks.front().type();
  });
  if (!alike || BitsOf(whole.dtype()) % 8 != 0 || BitsOf(whole.dtype()) == 0) return {};
  if (shape == whole.shape()) {
    std::vector<Sharding> all = {{Kind::kEqual}};
    if (ranks.size() > 1 && IsFloating(whole.dtype())) {
      for (const Kind kind : {Kind::kSum, Kind::kMax, Kind::kMin}) all.push_back({kind});
    }
    return all;
  }
  const int axis = PieceAxis(shape, whole.shape(), static_cast<int64_t>(ranks.size()));
  std::vector<Sharding> all;
  for (int blocks = 1; axis >= 0 && blocks <= kMostBlocks; ++blocks) {
    if (shape[axis] % blocks == 0) all.push_back({Kind::kPieces, axis, blocks});
  }
  return all;
}

// The partial results put together, in float64.
Result<Tensor> Combine(const std::vector<Tensor>& ranks, Kind kind) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<double> total, ElementsOf(ranks.front()));
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<double> part, ElementsOf(ranks[rank]));
    for (size_t i = 0; i < total.size(); ++i) {
      if (kind == Kind::kSum) total[i] += part[i];
      if (kind == Kind::kMax) total[i] = std::max(total[i], part[i]);
      if (kind == Kind::kMin) total[i] = std::min(total[i], part[i]);
    }
  }
  return Tensor::FromVector(TensorType{DataType::kDouble, ranks.front().shape()}, total);
}

ShardFit Fit(const std::vector<Tensor>& ranks, const Tensor& whole, const Sharding& sharding,
             const Allowance& allowance) {
  ShardFit fit;
  fit.sharding = sharding;
  if (sharding.kind != Kind::kEqual && sharding.kind != Kind::kPieces) {
    const Result<Tensor> total = Combine(ranks, sharding.kind);
    if (!total.ok()) return {};
    fit.distance = DistanceOf(*total, whole, allowance);
    fit.differing.push_back(fit.distance.differing);
    return fit;
  }
  const auto count = static_cast<int>(ranks.size());
  for (int rank = 0; rank < count; ++rank) {
    const Tensor part = PartOf(whole, sharding, rank, count);
    const TensorDistance distance = DistanceOf(ranks[static_cast<size_t>(rank)], part, allowance);
    if (rank == 0 || (fit.same() && !distance.same())) fit.distance = distance;
    fit.differing.push_back(distance.reason.empty() ? distance.differing : part.elements());
  }
  return fit;
}

// Part of all elements that do not fit: what candidates are ordered by.
double Misfit(const ShardFit& fit, const Tensor& whole, size_t ranks) {
  const auto differing =
      static_cast<double>(std::accumulate(fit.differing.begin(), fit.differing.end(), int64_t{0}));
  const auto elements = static_cast<double>(whole.elements());
  return differing /
         (fit.sharding.kind == Kind::kEqual ? elements * static_cast<double>(ranks) : elements);
}

bool SomeRankFits(const ShardFit& fit) {
  return std::find(fit.differing.begin(), fit.differing.end(), 0) != fit.differing.end();
}

bool AreAlike(const std::vector<Tensor>& ranks, const Allowance& allowance) {
  return std::all_of(ranks.begin() + 1, ranks.end(), [&](const Tensor& tensor) {
    return DistanceOf(tensor, ranks.front(), allowance).same();
  });
}

// The fit of which the least is wrong, among those of `kinds`; all kinds when there are none.
const ShardFit& LeastMisfit(const std::vector<ShardFit>& fits, const std::vector<Kind>& kinds,
                            const Tensor& whole, size_t ranks) {
  const ShardFit* best = nullptr;
  for (const ShardFit& fit : fits) {
    const bool allowed =
        kinds.empty() || std::find(kinds.begin(), kinds.end(), fit.sharding.kind) != kinds.end();
    const bool better = best == nullptr || Misfit(fit, whole, ranks) < Misfit(*best, whole, ranks);
    if (allowed && better) best = &fit;
  }
  return *best;
}

// Among fits of which none is exact: pieces in several forms, or the whole (first) and partial
// results.
const ShardFit& BestOf(const std::vector<ShardFit>& fits, const Tensor& whole, size_t ranks,
                       Kind reduced, bool alike) {
  const ShardFit& first = fits.front();
  if (fits.size() == 1 || first.sharding.kind != Kind::kEqual) {
    return LeastMisfit(fits, {}, whole, ranks);
  }
  if (SomeRankFits(first)) return LeastMisfit(fits, {Kind::kEqual, Kind::kSum}, whole, ranks);
  if (reduced != Kind::kNone) return LeastMisfit(fits, {reduced}, whole, ranks);
  // By address: GCC 14 takes a reference for one to the empty list.
  const ShardFit* const least = &LeastMisfit(fits, {}, whole, ranks);
  const ShardFit& sum = fits[1];
  const bool tied = Misfit(sum, whole, ranks) == Misfit(*least, whole, ranks);
  return tied && !alike ? sum : *least;
}

}  // namespace

int PieceAxis(const Shape& piece, const Shape& whole, int64_t ranks) {
  if (piece.rank() != whole.rank()) return -1;
  int axis = -1;
  for (int i = 0; i < piece.rank(); ++i) {
    if (piece[i] == whole[i]) continue;
    if (axis >= 0 || piece[i] * ranks != whole[i]) return -1;
    axis = i;
  }
  return axis;
}

std::string ToText(const Sharding& sharding) {
  switch (sharding.kind) {
    case Kind::kEqual:
      return "equal";
    case Kind::kPieces:
      return sharding.blocks == 1
                 ? fmt::format("pieces along axis {}", sharding.axis)
                 : fmt::format("pieces along axis {} in {} blocks", sharding.axis, sharding.blocks);
    case Kind::kSum:
      return "partial sums";
    case Kind::kMax:
      return "partial maxima";
    case Kind::kMin:
      return "partial minima";
    default:
      return "not comparable";
  }
}

bool ShardFit::same() const {
  return std::all_of(differing.begin(), differing.end(), [](int64_t count) { return count == 0; });
}

std::vector<int> ShardFit::OddRanks() const {
  std::vector<int> odd;
  if (sharding.kind != Kind::kEqual && sharding.kind != Kind::kPieces) return odd;
  for (size_t rank = 0; rank < differing.size(); ++rank) {
    if (differing[rank] > 0) odd.push_back(static_cast<int>(rank));
  }
  const bool all = odd.size() == differing.size() && odd.size() > 1;
  return all ? std::vector<int>() : odd;
}

int ShardFit::RankToBlame() const {
  const std::vector<int> odd = OddRanks();
  return odd.empty() ? -1 : odd.front();
}

std::optional<MeasuredPair> MeasuredBy(const ShardFit& fit, const std::vector<Tensor>& ranks,
                                       const Tensor& whole) {
  const Sharding& sharding = fit.sharding;
  if (sharding.kind == Kind::kNone) return std::nullopt;
  if (sharding.kind != Kind::kEqual && sharding.kind != Kind::kPieces) {
    Result<Tensor> total = Combine(ranks, sharding.kind);
    if (!total.ok()) return std::nullopt;
    return MeasuredPair{*std::move(total), whole};
  }
  const auto odd = std::find_if(fit.differing.begin(), fit.differing.end(),
                                [](int64_t count) { return count > 0; });
  const auto rank = odd == fit.differing.end() ? 0 : odd - fit.differing.begin();
  return MeasuredPair{
      ranks[static_cast<size_t>(rank)],
      PartOf(whole, sharding, static_cast<int>(rank), static_cast<int>(ranks.size()))};
}

std::vector<ShardFit> AllFits(const std::vector<Tensor>& ranks, const Tensor& whole,
                              const Allowance& allowance) {
  std::vector<ShardFit> fits;
  for (const Sharding& sharding : Candidates(ranks, whole)) {
    ShardFit fit = Fit(ranks, whole, sharding, allowance);
    if (fit.sharding.kind != Kind::kNone) fits.push_back(std::move(fit));
  }
  return fits;
}

ShardFit FitShards(const std::vector<Tensor>& ranks, const Tensor& whole,
                   const Allowance& allowance, Kind reduced) {
  std::vector<ShardFit> fits;
  for (const Sharding& sharding : Candidates(ranks, whole)) {
    ShardFit fit = Fit(ranks, whole, sharding, allowance);
    if (fit.sharding.kind == Kind::kNone) continue;
    // A wrong element of one rank vanishes among the maxima of all.
    const bool extreme = fit.sharding.kind == Kind::kMax || fit.sharding.kind == Kind::kMin;
    if (extreme && SomeRankFits(fits.front())) continue;
    if (fit.same()) return fit;
    fits.push_back(std::move(fit));
  }
  if (fits.empty()) return {};
  const bool alike = AreAlike(ranks, allowance);
  ShardFit best = BestOf(fits, whole, ranks.size(), reduced, alike);
  best.alike = alike;
  return best;
}

Tensor PartOf(const Tensor& whole, const Sharding& sharding, int rank, int ranks) {
  if (sharding.kind == Kind::kEqual) return whole;
  Shape shape = whole.shape();
  shape[sharding.axis] /= ranks;
  Tensor part = Tensor::Allocate({whole.dtype(), shape});
  // The whole as [outer][blocks][ranks][piece bytes].
  size_t outer = static_cast<size_t>(sharding.blocks);
  for (int i = 0; i < sharding.axis; ++i) outer *= static_cast<size_t>(shape[i]);
  if (part.bytes() == 0) return part;
  const size_t piece = part.bytes() / outer;
  for (size_t i = 0; i < outer; ++i) {
    const size_t from = (i * static_cast<size_t>(ranks) + static_cast<size_t>(rank)) * piece;
    std::memcpy(part.mutable_data() + i * piece, whole.data() + from, piece);
  }
  return part;
}

}  // namespace npumesh
