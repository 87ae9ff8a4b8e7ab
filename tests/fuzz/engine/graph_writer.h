// Grows a graph one operator at a time and knows the numbers of every value while it does.
//
// Dimensions that stay open are multiples of kOpenExtent, which no other dimension is; so what is
// legal for it is legal for nearly all other sizes, and `IsOpen` tells the two apart.
//
// Thread-safety: none.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_GRAPH_WRITER_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_GRAPH_WRITER_H_

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/graph_builder.h"
#include "tests/fuzz/engine/dice.h"
#include "tests/fuzz/engine/plain_tensor.h"

namespace npumesh::fuzz {

inline constexpr int64_t kOpenExtent = 7;

inline bool IsOpen(int64_t extent) {
  return extent > 0 && extent % kOpenExtent == 0;
}
bool HasOpen(const Extents& dims);

// A value of the graph so far, and what it holds in the first step if nothing is overwritten.
struct KnownValue {
  Value value;
  PlainTensor now;
  int rough_depth = 0;  // operators since it was last exact
  bool ref = false;     // a RefData
};

// An input of the graph.
struct FedInput {
  PlainTensor first;   // what it is fed in the first step
  bool ref = false;    // RefData
  bool sizes = false;  // integers that decide shapes
};

using Fits = std::function<bool(const PlainTensor& x)>;

class GraphWriter {
 public:
  GraphWriter(Dice& dice, bool open);

  Dice& dice() { return dice_; }
  bool open() const { return open_; }
  bool bfloat() { return dice_.Chance(50); }

  // A value that fits, late ones preferred; null: none fits. Numbers too large to stay exact
  // are never chosen. Valid as long as the writer.
  const KnownValue* Pick(const Fits& fits);
  const KnownValue& last() const { return known_.back(); }
  const std::deque<KnownValue>& known() const { return known_; }

  // A random small tensor of this type.
  PlainTensor Random(DataType dtype, const Extents& dims);
  DataType RandomType();
  Extents RandomDims(int least_rank);

  const KnownValue& AddInput(PlainTensor first, bool ref, bool sizes = false);
  const KnownValue& AddConst(const PlainTensor& value);
  Value Ints(const std::vector<int64_t>& values);
  Value Int(int64_t value);
  // The same as a graph input where dice say so: sizes that are known when the graph runs.
  Value Sizes(const std::vector<int64_t>& values, bool fed);

  // Adds an operator unless it is not legal, or would make something unsure. Output 0 is last()
  // then, behind the others.
  bool Emit(const std::string& type, std::vector<GraphBuilder::Input> inputs,
            std::vector<GraphBuilder::Attr> attrs = {}, int outputs = 1,
            std::vector<Graph> subgraphs = {});
  int emitted() const { return emitted_; }
  // "body_3": a name that no subgraph has yet.
  std::string SubgraphName();

  const std::vector<FedInput>& inputs() const { return inputs_; }
  // The graph, with these outputs. REQUIRES: nothing is added afterwards.
  Result<Model> Finish(const std::vector<Value>& outputs);

 private:
  const PlainTensor& Now(Value value) const;
  int RoughDepth(Value value) const;

  Dice& dice_;
  bool open_;
  GraphBuilder builder_;
  std::deque<KnownValue> known_;
  std::map<Value, size_t> index_;
  std::vector<FedInput> inputs_;
  Model scratch_;                                          // holds the subgraphs
  std::map<std::string, std::vector<std::string>> calls_;  // node -> subgraphs
  int emitted_ = 0;
};

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_GRAPH_WRITER_H_
