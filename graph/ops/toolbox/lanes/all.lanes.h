// The functions of loop programs: one text. The library compiles it for each instruction set
// (lane_table.cc), and it is the beginning of every static kernel (lanes_text.h); so both give the
// same bits, those of NaNs aside.
//
// The text includes nothing, which is why it compiles in a tenth of a second. Every instruction set
// gives the same bits: no fused multiply-add, no approximate instruction, sums in sixteen lanes.
//
// REQUIRES: NM_WIDTH, and a namespace for each width. Each file needs those above it.
#include "graph/ops/toolbox/lanes/constants.lanes.h"
#include "graph/ops/toolbox/lanes/polynomials.lanes.h"
#include "graph/ops/toolbox/lanes/vectors.lanes.h"
#include "graph/ops/toolbox/lanes/memory.lanes.h"
#include "graph/ops/toolbox/lanes/arithmetic.lanes.h"
#include "graph/ops/toolbox/lanes/exponentials.lanes.h"
#include "graph/ops/toolbox/lanes/rows.lanes.h"
#include "graph/ops/toolbox/lanes/wide.lanes.h"
#include "graph/ops/toolbox/lanes/elements.lanes.h"
#include "graph/ops/toolbox/lanes/numbers.lanes.h"
#include "graph/ops/toolbox/lanes/calls.lanes.h"
