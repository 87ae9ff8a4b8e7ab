// MlaProlog as it is read from a node, and its kernel. Ops reference 5.11.
#ifndef NPUMESH_GRAPH_OPS_MLA_PROLOG_H_
#define NPUMESH_GRAPH_OPS_MLA_PROLOG_H_

#include <memory>

#include "graph/ops/operator.h"

namespace npumesh {

struct MlaPlan {
  int64_t tokens = 0;
  int64_t model = 0;      // He
  int64_t latent_q = 0;   // Hcq
  int64_t heads = 0;      // N
  int64_t head = 0;       // D
  int64_t latent_kv = 0;  // Hckv
  int64_t rope = 0;       // Dr
  DataType dtype = DataType::kUndefined;
  int index = -1;  // slot; -1: row t of the caches is that of token t
  int64_t block_size = 0;
  int64_t slots = 0;
  bool tiled = false;
  double epsilon_q = 0;
  double epsilon_kv = 0;
  float scale_q = 1;
  float scale_kv = 1;
  bool gives_norm = false;

  int64_t head_both() const { return head + rope; }
};

// REQUIRES: `plan` was read from `op`, whose outputs are inferred.
std::unique_ptr<Kernel> MakeMlaKernel(const OpContext& op, const MlaPlan& plan);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_MLA_PROLOG_H_
