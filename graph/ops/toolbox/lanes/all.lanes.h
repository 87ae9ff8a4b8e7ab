// The functions of loop programs: the beginning of every static kernel (lanes_text.h). They do the
// operations of the operators' own kernels in their order, so that results have the same bits.
//
// The text includes nothing, which is why it compiles in a tenth of a second. Every instruction set
// gives the same bits: no fused multiply-add, no approximate instruction, sums in sixteen lanes.
//
// REQUIRES: NM_WIDTH, and a namespace for each width. Each file needs those above it.
#include "graph/ops/toolbox/lanes/constants.lanes.h"
#include "graph/ops/toolbox/lanes/vectors.lanes.h"
#include "graph/ops/toolbox/lanes/memory.lanes.h"
#include "graph/ops/toolbox/lanes/arithmetic.lanes.h"
#include "graph/ops/toolbox/lanes/rows.lanes.h"
#include "graph/ops/toolbox/lanes/wide.lanes.h"
#include "graph/ops/toolbox/lanes/elements.lanes.h"
#include "graph/ops/toolbox/lanes/numbers.lanes.h"
