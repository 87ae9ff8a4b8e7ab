// Names of options of ge_ir_build.h.
#ifndef NPUMESH_GE_GE_API_TYPES_H_
#define NPUMESH_GE_GE_API_TYPES_H_

namespace ge {
namespace ir_option {

static const char* const INPUT_FORMAT = "input_format";
static const char* const INPUT_SHAPE = "input_shape";
static const char* const INPUT_SHAPE_RANGE = "input_shape_range";
static const char* const DYNAMIC_BATCH_SIZE = "ge.dynamicBatchSize";
static const char* const DYNAMIC_IMAGE_SIZE = "ge.dynamicImageSize";
static const char* const DYNAMIC_DIMS = "ge.dynamicDims";
static const char* const PRECISION_MODE = "ge.exec.precision_mode";
static const char* const PRECISION_MODE_V2 = "ge.exec.precision_mode_v2";
static const char* const SOC_VERSION = "ge.socVersion";
static const char* const OP_SELECT_IMPL_MODE = "ge.opSelectImplmode";
static const char* const OPTYPELIST_FOR_IMPLMODE = "ge.optypelistForImplmode";
static const char* const OUTPUT_TYPE = "ge.outputDatatype";
static const char* const OUT_NODES = "ge.outputNodeName";
static const char* const INPUT_FP16_NODES = "ge.INPUT_NODES_SET_FP16";
static const char* const MODIFY_MIXLIST = "ge.exec.modify_mixlist";
static const char* const LOG_LEVEL = "log";

}  // namespace ir_option
}  // namespace ge

#endif  // NPUMESH_GE_GE_API_TYPES_H_
