// Element types and reductions in MPI's terms.
#include "runtime/world/mpi_calls.h"

namespace npumesh {
namespace {

int CombineKey() {
  static const int key = [] {
    int fresh = MPI_KEYVAL_INVALID;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &fresh, nullptr);
    return fresh;
  }();
  return key;
}

void Combine(void* left, void* inout, int* count, MPI_Datatype* type) {
  void* value = nullptr;
  int found = 0;
  MPI_Type_get_attr(*type, CombineKey(), &value, &found);
  if (found) {
    reinterpret_cast<CombineFn>(value)(left, inout, static_cast<uint64_t>(*count));
  }
}

}  // namespace

MPI_Datatype NativeType(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat:
      return MPI_FLOAT;
    case DataType::kDouble:
      return MPI_DOUBLE;
    case DataType::kInt8:
      return MPI_INT8_T;
    case DataType::kInt16:
      return MPI_INT16_T;
    case DataType::kInt32:
      return MPI_INT32_T;
    case DataType::kInt64:
      return MPI_INT64_T;
    case DataType::kUint8:
      return MPI_UINT8_T;
    case DataType::kUint16:
      return MPI_UINT16_T;
    case DataType::kUint32:
      return MPI_UINT32_T;
    case DataType::kUint64:
      return MPI_UINT64_T;
    default:
      return MPI_DATATYPE_NULL;
  }
}

MPI_Op NativeOp(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return MPI_SUM;
    case ReduceOp::kProd:
      return MPI_PROD;
    case ReduceOp::kMax:
      return MPI_MAX;
    case ReduceOp::kMin:
      return MPI_MIN;
  }
  return MPI_OP_NULL;
}

bool NeedsCombine(DataType dtype, ReduceOp op) {
  if (NativeType(dtype) == MPI_DATATYPE_NULL) return true;
  return IsFloating(dtype) && (op == ReduceOp::kMax || op == ReduceOp::kMin);
}

CombineType::CombineType(CombineFn combine, int element_bytes) {
  MPI_Type_contiguous(element_bytes, MPI_BYTE, &type_);
  MPI_Type_commit(&type_);
  MPI_Type_set_attr(type_, CombineKey(), reinterpret_cast<void*>(combine));
  MPI_Op_create(&Combine, 0, &op_);  // not commutative: operands stay in rank order
}

CombineType::~CombineType() {
  MPI_Op_free(&op_);
  MPI_Type_free(&type_);
}

}  // namespace npumesh
