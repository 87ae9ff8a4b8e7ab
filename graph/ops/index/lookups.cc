#include "graph/ops/index/lookups.h"

#include <algorithm>
#include <array>

namespace npumesh {
namespace {

constexpr std::array kLookups = {
    Lookup{"Gather", "indices", "x"},
    Lookup{"GatherV2", "indices", "x"},
    Lookup{"GatherElements", "index", "x"},
    Lookup{"GatherNd", "indices", "x"},
    Lookup{"EmbeddingBag", "indices", "weight"},
    Lookup{"InplaceIndexAdd", "indices", "var"},
    Lookup{"Scatter", "indices", "var"},
    Lookup{"ScatterAdd", "indices", "var"},
    Lookup{"ScatterDiv", "indices", "var"},
    Lookup{"ScatterElements", "indices", "data"},
    Lookup{"ScatterMax", "indices", "var"},
    Lookup{"ScatterMin", "indices", "var"},
    Lookup{"ScatterMul", "indices", "var"},
    Lookup{"ScatterNdAdd", "indices", "var"},
    Lookup{"ScatterNdMax", "indices", "var"},
    Lookup{"ScatterNdSub", "indices", "var"},
    Lookup{"ScatterNdUpdate", "indices", "var"},
    Lookup{"ScatterPaKvCache", "slot_mapping", "key_cache"},
    Lookup{"ScatterSub", "indices", "var"},
    Lookup{"ScatterUpdate", "indices", "var"},
    Lookup{"SparseSoftmaxCrossEntropyWithLogits", "labels", "features"},
};

}  // namespace

std::span<const Lookup> Lookups() {
  return kLookups;
}

const Lookup* FindLookup(std::string_view type) {
  const auto* const found = std::find_if(kLookups.begin(), kLookups.end(),
                                         [type](const Lookup& each) { return each.type == type; });
  return found == kLookups.end() ? nullptr : found;
}

}  // namespace npumesh
