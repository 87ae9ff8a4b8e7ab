#include "tests/unit/op_unknown.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/ops/core/partial_inference.h"

namespace npumesh::op_test {
namespace {

// Some inputs of a call with another shape.
using Masks = std::vector<std::pair<int, Shape>>;

// Every dimension alone, every input whole, every rank, and all inputs at once. Inputs whose values
// inference sees are left alone.
std::vector<Masks> MasksOf(const OpContext& types) {
  std::vector<Masks> all;
  Masks together;
  for (int slot = 0; slot < types.slots(); ++slot) {
    if (!types.has(slot) || types.value(slot) != nullptr) continue;
    const Shape& shape = types.in(slot).shape;
    Shape none = shape;
    for (int d = 0; d < shape.rank(); ++d) {
      Shape one = shape;
      one[d] = none[d] = kUnknownDim;
      all.push_back({{slot, std::move(one)}});
    }
    all.push_back({{slot, none}});
    all.push_back({{slot, Shape::UnknownRank()}});
    together.emplace_back(slot, std::move(none));
  }
  all.push_back(std::move(together));
  return all;
}

// `partly` claims nothing that is not so.
void ExpectNoContradiction(const TensorType& partly, const TensorType& known,
                           const std::string& what) {
  EXPECT_TRUE(partly.dtype == DataType::kUndefined || partly.dtype == known.dtype)
      << what << ": " << partly.ToString() << " for " << known.ToString();
  if (!partly.shape.has_rank()) return;
  ASSERT_EQ(partly.shape.rank(), known.shape.rank())
      << what << ": " << partly.ToString() << " for " << known.ToString();
  for (int d = 0; d < known.shape.rank(); ++d) {
    EXPECT_TRUE(partly.shape[d] == kUnknownDim || partly.shape[d] == known.shape[d])
        << what << ": " << partly.ToString() << " for " << known.ToString();
  }
}

// True for the first call of an operator with inputs of these types. Of each operator the first
// calls count: a test with hundreds of shapes would only ask the same again. Any thread: ranks are
// threads.
bool IsNew(const OpContext& types) {
  constexpr int kCallsOfAnOperator = 16;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static std::set<std::string> seen;
  static std::map<std::string, int> calls;
  if (calls[std::string(types.schema().type)] >= kCallsOfAnOperator) return false;
  std::string key(types.schema().type);
  for (int slot = 0; slot < types.slots(); ++slot) {
    key += types.has(slot) ? types.in(slot).ToString() : "-";
  }
  const bool added = seen.insert(std::move(key)).second;
  calls[std::string(types.schema().type)] += added ? 1 : 0;
  return added;
}

}  // namespace

void ExpectSoundWithUnknowns(const Operator& op, const OpContext& types, const OpContext& known) {
  if (!IsNew(types)) return;
  for (const Masks& masks : MasksOf(types)) {
    OpContext masked = types;
    std::string what(op.schema.type);
    for (const auto& [slot, shape] : masks) {
      what += " slot " + std::to_string(slot) + " " + shape.ToString();
      masked.set_in(slot, {types.in(slot).dtype, shape});
    }
    const Result<std::vector<TensorType>> partly = InferPartly(op, masked);
    ASSERT_TRUE(partly.ok()) << what << ": " << partly.status().ToString();
    for (int port = 0; port < known.outputs(); ++port) {
      ExpectNoContradiction((*partly)[static_cast<size_t>(port)], known.out(port),
                            what + " output " + std::to_string(port));
    }
  }
}

}  // namespace npumesh::op_test
