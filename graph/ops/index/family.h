// The index family: which elements, in which order.
#ifndef NPUMESH_GRAPH_OPS_INDEX_FAMILY_H_
#define NPUMESH_GRAPH_OPS_INDEX_FAMILY_H_

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// All of them.
void RegisterIndexFamily(OpRegistry& registry);

void RegisterGatherOps(OpRegistry& registry);       // Gather, GatherV2
void RegisterScatterOps(OpRegistry& registry);      // ScatterElements, ScatterNdUpdate ...
void RegisterScatterListOps(OpRegistry& registry);  // ScatterList, QuantUpdateScatter, Cmo
void RegisterIndexOps(OpRegistry& registry);        // GatherNd, IndexByTensor, IndexPutV2
void RegisterEmbeddingOps(OpRegistry& registry);    // EmbeddingBag, EmbeddingDenseGrad
void RegisterSelectionOps(OpRegistry& registry);    // NonZero, Where, MaskedSelect, Unique ...
void RegisterOrderOps(OpRegistry& registry);        // Sort, TopKV2, ArgMaxV2, Cumsum, Cummax ...
void RegisterTopKTopPOps(OpRegistry& registry);     // ApplyTopKTopPWithSorted
void RegisterSearchOps(OpRegistry& registry);       // SearchSorted, Bucketize
void RegisterHistogramOps(OpRegistry& registry);    // HistogramV2
void RegisterRandomOps(OpRegistry& registry);       // StatelessRandomUniformV2, DropOutDoMask ...
void RegisterSequenceOps(OpRegistry& registry);     // ClippedSwiglu, MoeUpdateExpert ...

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_INDEX_FAMILY_H_
