// How the tensors of N ranks make up the tensor of one rank that computes alone.
#ifndef NPUMESH_GRAPH_COMPARE_MEASURES_SHARDS_H_
#define NPUMESH_GRAPH_COMPARE_MEASURES_SHARDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/compare/measures/distance.h"
#include "graph/ir/tensor.h"

namespace npumesh {

struct Sharding {
  enum class Kind : uint8_t {
    kNone,    // the shapes have nothing to do with each other
    kEqual,   // every rank has the whole
    kPieces,  // along `axis`; with `blocks` > 1 the whole is made of that many blocks there, of
              // which each rank has its piece (gate and up side by side: 2)
    kSum,     // partial results
    kMax,
    kMin,
  };
  Kind kind = Kind::kNone;
  int axis = 0;
  int blocks = 1;
  bool operator==(const Sharding&) const = default;
};

// "equal", "pieces along axis 1 in 2 blocks", "partial sums", ...
std::string ToText(const Sharding& sharding);

// How far ranks are from the whole.
struct ShardFit {
  Sharding sharding;
  // By rank: elements outside the allowance. Partial results: all in the first.
  std::vector<int64_t> differing;
  // Of the lowest rank that differs from its part of the whole, else of rank 0.
  TensorDistance distance;
  // Of tensors that are no exact fit: all ranks hold the same, within the allowance.
  bool alike = false;

  bool same() const;
  // The ranks that differ, ascending, when these numbers tell ranks apart. Empty: no rank differs,
  // or all of several do, or they are partial results.
  std::vector<int> OddRanks() const;
  // The lowest of them, or -1.
  int RankToBlame() const;
};

// The sharding with the fewest elements outside the allowance, so that one wrong rank does not
// hide how the others fit. `reduced`: how a collective puts the tensors together according to the
// graph, kNone when it is not known; that is taken when nothing else fits. Without it, ranks that
// hold different values of the right shape, all wrong, are partial sums rather than wholes. kNone
// when no sharding has the right shapes. REQUIRES: at least one rank.
ShardFit FitShards(const std::vector<Tensor>& ranks, const Tensor& whole,
                   const Allowance& allowance, Sharding::Kind reduced = Sharding::Kind::kNone);

// What the distance of a fit is between: the part of the lowest rank that differs, else of rank 0,
// or partial results put together, and what the whole has there. Nullopt for kNone.
struct MeasuredPair {
  Tensor mine;
  Tensor expected;
};
std::optional<MeasuredPair> MeasuredBy(const ShardFit& fit, const std::vector<Tensor>& ranks,
                                       const Tensor& whole);

// Every form that the shapes allow, in the order in which they are tried. REQUIRES: as FitShards.
std::vector<ShardFit> AllFits(const std::vector<Tensor>& ranks, const Tensor& whole,
                              const Allowance& allowance);

// The axis along which `ranks` pieces of shape `piece` make `whole`; -1: none.
int PieceAxis(const Shape& piece, const Shape& whole, int64_t ranks);

// The part of `whole` that rank `rank` of `ranks` holds. REQUIRES: kEqual or kPieces, dimension
// `axis` divisible by blocks * ranks, and a dtype of whole bytes.
Tensor PartOf(const Tensor& whole, const Sharding& sharding, int rank, int ranks);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_MEASURES_SHARDS_H_
