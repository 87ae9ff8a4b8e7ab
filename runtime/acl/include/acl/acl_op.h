/* Single operators: an operator runs by its type, the descriptions of its tensors, and attributes.
 *
 * Types, ports and attributes are those of docs/operators.md. An operator runs when it was made
 * before: by `npumesh atc --singleop` and aclopSetModelDir or aclopLoad, or by aclopCompile
 * (acl_op_compiler.h); aclopCompileAndExecute makes it with the first call. Work is queued on the
 * stream; what it computes is what the graph of this one operator computes.
 *
 * inputDesc and inputs, and outputDesc and outputs, have as many entries. An optional tensor that
 * is absent has type ACL_DT_UNDEFINED; trailing ones may be left out. Elements of a dynamic input
 * say so by aclSetTensorDynamicInput or by names ("x0", "x1"), unless it is the only one.
 * A constant (aclSetTensorConst), and host memory (aclSetTensorPlaceMent), is read by the call;
 * device memory when the stream comes to it.
 *
 * Codes: ACL_ERROR_INVALID_PARAM, also for tensors and attributes that do not fit the operator;
 * ACL_ERROR_OP_NOT_FOUND when it was not made; ACL_ERROR_FEATURE_UNSUPPORTED for an operator, type
 * or form that npumesh does not have. aclGetRecentErrMsg has the words.
 *
 * All functions may be called from any thread; an attribute or handle by one at a time. */
#ifndef NPUMESH_ACL_ACL_OP_H_
#define NPUMESH_ACL_ACL_OP_H_

#include "acl_base.h"
#include "acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct aclopHandle aclopHandle;
typedef struct aclopAttr aclopAttr;
typedef struct aclopKernelDesc aclopKernelDesc;

typedef void (*aclDataDeallocator)(void* data, size_t length);

static const int ACL_COMPILE_FLAG_BIN_SELECTOR = 1;

typedef enum aclEngineType {
  ACL_ENGINE_SYS = 0,
  ACL_ENGINE_AICORE = 1,
  ACL_ENGINE_VECTOR = 2
} aclopEngineType;

/* ---- Operators that were made before -------------------------------------------------------- */

/* Takes every offline model of a single operator in the folder and in folders up to two levels
 * below; other models are left out. Once between two aclFinalize: ACL_ERROR_REPEAT_INITIALIZE.
 * ACL_ERROR_READ_MODEL_FAILURE for what is no folder. */
ACL_FUNC_VISIBILITY aclError aclopSetModelDir(const char* modelDir);
/* The same for one, in host memory that may go afterwards. */
ACL_FUNC_VISIBILITY aclError aclopLoad(const void* model, size_t modelSize);
/* How many operators are kept ready to run; others begin anew with their next call. */
ACL_FUNC_VISIBILITY aclError aclopSetMaxOpQueueNum(uint64_t maxOpNum);

/* ---- Attributes ----------------------------------------------------------------------------- */

/* Values are copied. An attribute that was set is set anew. */
ACL_FUNC_VISIBILITY aclopAttr* aclopCreateAttr(void);
ACL_FUNC_VISIBILITY void aclopDestroyAttr(const aclopAttr* attr);
ACL_FUNC_VISIBILITY aclError aclopSetAttrBool(aclopAttr* attr, const char* attrName,
                                              uint8_t attrValue);
ACL_FUNC_VISIBILITY aclError aclopSetAttrInt(aclopAttr* attr, const char* attrName,
                                             int64_t attrValue);
ACL_FUNC_VISIBILITY aclError aclopSetAttrFloat(aclopAttr* attr, const char* attrName,
                                               float attrValue);
ACL_FUNC_VISIBILITY aclError aclopSetAttrString(aclopAttr* attr, const char* attrName,
                                                const char* attrValue);
ACL_FUNC_VISIBILITY aclError aclopSetAttrDataType(aclopAttr* attr, const char* attrName,
                                                  aclDataType attrValue);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListDataType(aclopAttr* attr, const char* attrName,
                                                      int numValues, const aclDataType values[]);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListBool(aclopAttr* attr, const char* attrName,
                                                  int numValues, const uint8_t* values);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListInt(aclopAttr* attr, const char* attrName,
                                                 int numValues, const int64_t* values);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListFloat(aclopAttr* attr, const char* attrName,
                                                   int numValues, const float* values);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListString(aclopAttr* attr, const char* attrName,
                                                    int numValues, const char** values);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListListInt(aclopAttr* attr, const char* attrName,
                                                     int numLists, const int* numValues,
                                                     const int64_t* const values[]);

/* ---- Execution ------------------------------------------------------------------------------ */

/* `attr` null: no attributes. outputDesc says the shapes of the outputs, which are compared with
 * those of the operator. */
ACL_FUNC_VISIBILITY aclError aclopExecute(const char* opType, int numInputs,
                                          const aclTensorDesc* const inputDesc[],
                                          const aclDataBuffer* const inputs[], int numOutputs,
                                          const aclTensorDesc* const outputDesc[],
                                          aclDataBuffer* const outputs[], const aclopAttr* attr,
                                          aclrtStream stream);
/* Shapes of outputDesc are not read: it gets those of the operator. Where only a run can tell them,
 * the call waits for the stream, and is refused in a capture. */
ACL_FUNC_VISIBILITY aclError aclopExecuteV2(const char* opType, int numInputs,
                                            aclTensorDesc* inputDesc[], aclDataBuffer* inputs[],
                                            int numOutputs, aclTensorDesc* outputDesc[],
                                            aclDataBuffer* outputs[], aclopAttr* attr,
                                            aclrtStream stream);
/* The operator for many calls with these descriptions, which are copied. */
ACL_FUNC_VISIBILITY aclError aclopCreateHandle(const char* opType, int numInputs,
                                               const aclTensorDesc* const inputDesc[],
                                               int numOutputs,
                                               const aclTensorDesc* const outputDesc[],
                                               const aclopAttr* opAttr, aclopHandle** handle);
ACL_FUNC_VISIBILITY void aclopDestroyHandle(aclopHandle* handle);
ACL_FUNC_VISIBILITY aclError aclopExecWithHandle(aclopHandle* handle, int numInputs,
                                                 const aclDataBuffer* const inputs[],
                                                 int numOutputs, aclDataBuffer* const outputs[],
                                                 aclrtStream stream);
/* Operator Cast with dst_type as dstDesc says. `truncate` is not read: Cast rounds floats to
 * integers toward zero. */
ACL_FUNC_VISIBILITY aclError aclopCast(const aclTensorDesc* srcDesc, const aclDataBuffer* srcBuffer,
                                       const aclTensorDesc* dstDesc, aclDataBuffer* dstBuffer,
                                       uint8_t truncate, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclopCreateHandleForCast(aclTensorDesc* srcDesc,
                                                      aclTensorDesc* dstDesc, uint8_t truncate,
                                                      aclopHandle** handle);
/* Gives outputDesc the shapes and types of the outputs, -1 for a dimension that only a run can
 * tell. Reads inputs of up to 64 KiB where their values decide shapes; a buffer of null is not
 * read. Without a device. */
ACL_FUNC_VISIBILITY aclError aclopInferShape(const char* opType, int numInputs,
                                             aclTensorDesc* inputDesc[], aclDataBuffer* inputs[],
                                             int numOutputs, aclTensorDesc* outputDesc[],
                                             aclopAttr* attr);

/* ---- Kernels of a program's own: refused, compiled device code does not run here --------------
 */

typedef aclError (*aclopCompileFunc)(int numInputs, const aclTensorDesc* const inputDesc[],
                                     int numOutputs, const aclTensorDesc* const outputDesc[],
                                     const aclopAttr* opAttr, aclopKernelDesc* aclopKernelDesc);

ACL_FUNC_VISIBILITY aclError aclopCreateKernel(const char* opType, const char* kernelId,
                                               const char* kernelName, void* binData, int binSize,
                                               aclopEngineType enginetype,
                                               aclDataDeallocator deallocator);
ACL_FUNC_VISIBILITY aclError aclopRegisterCompileFunc(const char* opType, aclopCompileFunc func);
ACL_FUNC_VISIBILITY aclError aclopUnregisterCompileFunc(const char* opType);
ACL_FUNC_VISIBILITY aclError aclopSetKernelArgs(aclopKernelDesc* kernelDesc, const char* kernelId,
                                                uint32_t blockDim, const void* args,
                                                uint32_t argSize);
ACL_FUNC_VISIBILITY aclError aclopSetKernelWorkspaceSizes(aclopKernelDesc* kernelDesc,
                                                          int numWorkspaces,
                                                          size_t* workspaceSizes);
ACL_FUNC_VISIBILITY aclError aclopUpdateParams(const char* opType, int numInputs,
                                               const aclTensorDesc* const inputDesc[],
                                               int numOutputs,
                                               const aclTensorDesc* const outputDesc[],
                                               const aclopAttr* attr);

#ifdef __cplusplus
}
#endif

#endif /* NPUMESH_ACL_ACL_OP_H_ */
