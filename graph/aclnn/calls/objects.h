// What stands behind the handles of acl_meta.h. They belong to their creator; one thread at a time
// changes one.
#ifndef NPUMESH_GRAPH_ACLNN_CALLS_OBJECTS_H_
#define NPUMESH_GRAPH_ACLNN_CALLS_OBJECTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "aclnn/acl_meta.h"

// A view of device memory: element (i, j, ...) lies at data + (offset + i * strides[0] + ...).
struct aclTensor {
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;  // in elements
  int64_t offset = 0;            // the same
  std::vector<int64_t> storage_dims;
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_ND;
  void* data = nullptr;
};

// Eight bytes hold every type but complex ones, which take sixteen.
struct aclScalar {
  aclDataType dtype = ACL_DT_UNDEFINED;
  alignas(16) unsigned char bytes[16] = {};
};

struct aclIntArray {
  std::vector<int64_t> values;
};
struct aclFloatArray {
  std::vector<float> values;
};
struct aclBoolArray {
  std::vector<unsigned char> values;
};
// The elements belong to the list.
struct aclTensorList {
  std::vector<aclTensor*> tensors;
};
struct aclScalarList {
  std::vector<aclScalar*> scalars;
};

namespace npumesh {

// Whether a pointer is an object that was created and not destroyed, as are the elements of a list.
// Any thread.
bool IsLive(const aclTensor* tensor);
bool IsLive(const aclScalar* scalar);
// The tensor has other dimensions from now on, side by side; nothing for one that was destroyed.
void ReshapeLive(const aclTensor* tensor, const std::vector<int64_t>& dims);
bool IsLive(const aclIntArray* array);
bool IsLive(const aclFloatArray* array);
bool IsLive(const aclBoolArray* array);
bool IsLive(const aclTensorList* list);
bool IsLive(const aclScalarList* list);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ACLNN_CALLS_OBJECTS_H_
