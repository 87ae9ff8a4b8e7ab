// What functions of GE return.
#ifndef NPUMESH_GRAPH_ERROR_CODES_H_
#define NPUMESH_GRAPH_ERROR_CODES_H_

#include <cstdint>

namespace ge {

using graphStatus = uint32_t;
constexpr graphStatus GRAPH_SUCCESS = 0;
constexpr graphStatus GRAPH_FAILED = 0xffffffff;
constexpr graphStatus GRAPH_PARAM_INVALID = 50331649;

}  // namespace ge

#endif  // NPUMESH_GRAPH_ERROR_CODES_H_
