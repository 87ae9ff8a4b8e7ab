#include "graph/ops/toolbox/product/thread_parts.h"

namespace npumesh {

void RunParts(int parts, void (*work)(const void* context, int part), const void* context) {
  if (parts == 1) return work(context, 0);
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part) work(context, part);
}

}  // namespace npumesh
