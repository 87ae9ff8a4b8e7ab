// NPUMESH_UNROLL in front of a loop with a constant number of turns, sixteen at most: the loop is
// gone, and arrays of vectors over which it runs stay in registers.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_UNROLL_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_UNROLL_H_

#define NPUMESH_UNROLL _Pragma("GCC unroll 16")

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_UNROLL_H_
