// How the functions of acl_op.h, acl_op_compiler.h and acl_cblas.h describe, find and run a single
// operator.
//
// Thread-safety: all functions may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_OPERATORS_OPERATOR_EXECUTION_H_
#define NPUMESH_RUNTIME_ACL_OPERATORS_OPERATOR_EXECUTION_H_

#include <memory>
#include <vector>

#include "acl/acl_op.h"
#include "runtime/acl/models/model_objects.h"

namespace npumesh {

// What a function was given.
struct OperatorArguments {
  const char* function;
  const char* type;
  int input_count;
  const aclTensorDesc* const* inputs;
  int output_count;
  const aclTensorDesc* const* outputs;
  const aclopAttr* attr;
};

// A call with the memory of its tensors, in the order of the call.
struct OperatorRun {
  OperatorCall call;
  std::vector<ModelBuffer> inputs;
  std::vector<ModelBuffer> outputs;
  std::vector<KnownBytes> copies;  // of inputs in host memory, which the run keeps
};

enum class OutputShapes : uint8_t {
  kGiven,     // the descriptions say them
  kInferred,  // the operator says them
};

// The call without memory: constants are known, host memory is not.
aclError DescribeCall(const OperatorArguments& given, OutputShapes shapes, OperatorCall* call);
// The same with the memory of the tensors; host memory is read.
aclError DescribeRun(const OperatorArguments& given, OutputShapes shapes,
                     const aclDataBuffer* const* inputs, aclDataBuffer* const* outputs,
                     OperatorRun* run);
// The memory for a call that was described before. ACL_ERROR_INVALID_PARAM for other numbers.
aclError TakeBuffers(const char* function, int input_count, const aclDataBuffer* const* inputs,
                     int output_count, aclDataBuffer* const* outputs, OperatorRun* run);

// The operator of the call on the current device; ACL_ERROR_OP_NOT_FOUND when it was not made.
aclError FindOperator(const char* function, const OperatorCall& call,
                      std::shared_ptr<MadeOperator>* made);
// Makes it findable, on the current device.
aclError CompileOperator(const char* function, const OperatorCall& call);

// Queues the run. Where the shapes of the outputs are not known before and `waits`, it waits for
// them and for the stream. `outputs` gets what is known then, by output of the call; may be null.
aclError RunOperator(const char* function, OperatorRun run, std::shared_ptr<MadeOperator> made,
                     aclrtStream stream, bool waits, std::vector<ModelPort>* outputs);

// Describes, finds and queues. With kInferred the descriptions of the outputs get what is known.
enum class Compiling : uint8_t {
  kBefore,  // the operator was made before
  kNow,     // unless it was
};
aclError ExecuteOperator(const OperatorArguments& given, OutputShapes shapes,
                         const aclDataBuffer* const* inputs, aclDataBuffer* const* outputs,
                         aclrtStream stream, Compiling compiling);
// A handle of a call that was described.
aclError MakeHandle(const char* function, OperatorCall call, aclopHandle** handle);

// The code of what the machine says about an operator; recorded.
aclError FailOperator(const char* function, const Status& status);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_OPERATORS_OPERATOR_EXECUTION_H_
