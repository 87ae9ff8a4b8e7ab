// TorchNpuGraphBase, the class of Python over Graph.
#ifndef NPUMESH_PYTHON_TORCHAIR_NATIVE_GRAPH_TYPE_H_
#define NPUMESH_PYTHON_TORCHAIR_NATIVE_GRAPH_TYPE_H_

#include "python/torchair_native/object.h"

namespace npumesh::torchair {

// The class. Error set.
Ref MakeGraphType();

}  // namespace npumesh::torchair

#endif  // NPUMESH_PYTHON_TORCHAIR_NATIVE_GRAPH_TYPE_H_
