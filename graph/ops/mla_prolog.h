// MlaProlog as it is read from a node, and what runs it.
#ifndef NPUMESH_GRAPH_OPS_MLA_PROLOG_H_
#define NPUMESH_GRAPH_OPS_MLA_PROLOG_H_

#include <string>

#include "graph/ops/define.h"
#include "graph/ops/rope.h"

namespace npumesh {

struct MlaPlan : Planned {
  std::string who;
  int threads = 1;
  int64_t tokens = 0;
  int64_t model = 0;      // He
  int64_t latent_q = 0;   // Hcq
  int64_t heads = 0;      // N
  int64_t head = 0;       // D
  int64_t latent_kv = 0;  // Hckv
  int64_t rope = 0;       // Dr
  DataType dtype = DataType::kUndefined;
  DataType gamma_q = DataType::kUndefined;
  DataType gamma_kv = DataType::kUndefined;
  RotaryTables tables;
  int index = -1;  // slot; -1: row t of the caches is that of token t
  int64_t block_size = 0;
  int64_t slots = 0;
  bool tiled = false;
  double epsilon_q = 0;
  double epsilon_kv = 0;
  float scale_q = 1;
  float scale_kv = 1;
  bool gives_norm = false;
  Slice<std::byte> product;  // begins the scratch, as BlockedProduct wants it
  Slice<float> queries, heads_of_queries, keys, gamma, rotated;

  int64_t head_both() const { return head + rope; }
};

// Slots of the inputs that begin all three interfaces.
enum MlaSlot { kX, kDq, kUq, kUk, kDkv, kGammaQ, kGammaKv, kSin, kCos };

// Lays out the scratch of a plan that is complete otherwise.
void PlanMlaScratch(MlaPlan& plan);
Status RunMla(const MlaPlan& plan, const KernelArgs& args);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_MLA_PROLOG_H_
