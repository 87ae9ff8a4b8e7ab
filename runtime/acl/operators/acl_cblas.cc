// Products of matrices: acl_cblas.h.
#include "acl/ops/acl_cblas.h"

#include <string>

#include "runtime/acl/operators/operator_execution.h"
#include "runtime/acl/process/api_span.h"
#include "runtime/acl/process/process.h"

using npumesh::AclProcess;
using npumesh::ApiSpan;
using npumesh::CallTensor;
using npumesh::Fail;
using npumesh::KnownBytes;
using npumesh::MadeOperator;
using npumesh::ModelBuffer;
using npumesh::OperatorCall;
using npumesh::OperatorRun;

namespace {

struct Product {
  const char* function;
  aclTransType trans_a, trans_b, trans_c;
  int m, n, k;
  aclDataType type_a, type_b, type_c;
  aclComputeType compute;
};

aclError CheckProduct(const Product& product) {
  const char* const function = product.function;
  if (product.m <= 0 || product.n <= 0 || product.k <= 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "m, n and k are {}, {} and {}, expected above 0",
                product.m, product.n, product.k);
  }
  for (const aclTransType trans : {product.trans_a, product.trans_b}) {
    if (trans >= ACL_TRANS_N && trans <= ACL_TRANS_NZ) continue;
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "transA and transB are {} and {}, expected 0, 1 or 2",
                static_cast<int>(product.trans_a), static_cast<int>(product.trans_b));
  }
  if (product.trans_c != ACL_TRANS_N && product.trans_c != ACL_TRANS_NZ) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "transC is {}, expected 0 or 2",
                static_cast<int>(product.trans_c));
  }
  if (product.compute == ACL_COMPUTE_HIGH_PRECISION) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "type is {}, expected 0",
              static_cast<int>(product.compute));
}

aclError CheckStrides(const char* function, int a, int b, int c) {
  if (a == -1 && b == -1 && c == -1) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "distances of rows are {}, {} and {}, expected -1: matrices lie without gaps", a, b,
              c);
}

CallTensor Matrix(aclDataType dtype, aclTransType trans, int64_t rows, int64_t columns) {
  constexpr int64_t kBlock = 16;
  CallTensor tensor;
  tensor.dtype = dtype;
  tensor.dims = {rows, columns};
  if (trans == ACL_TRANS_T) tensor.dims = {columns, rows};
  if (trans != ACL_TRANS_NZ) return tensor;
  const int64_t width = dtype == ACL_INT8 ? 2 * kBlock : kBlock;  // 32 bytes
  tensor.origin_dims = {rows, columns};
  tensor.format = ACL_FORMAT_FRACTAL_NZ;
  tensor.dims = {(columns + width - 1) / width, (rows + kBlock - 1) / kBlock, kBlock, width};
  return tensor;
}

OperatorCall CallOf(const Product& product) {
  const auto [function, trans_a, trans_b, trans_c, m, n, k, type_a, type_b, type_c, compute] =
      product;
  OperatorCall call;
  call.type = "GEMM";
  CallTensor scalar;
  scalar.dtype = type_c;
  const CallTensor c = Matrix(type_c, trans_c, m, n);
  call.inputs = {Matrix(type_a, trans_a, m, k), Matrix(type_b, trans_b, k, n), c, scalar, scalar};
  call.outputs = {c};
  call.attrs = {{"transpose_a", trans_a == ACL_TRANS_T}, {"transpose_b", trans_b == ACL_TRANS_T}};
  return call;
}

// A factor in host memory may go when the call returns.
void KeepFactor(ModelBuffer* factor, std::vector<KnownBytes>* copies) {
  if (AclProcess::Get().memory.OnDevice(factor->data, factor->bytes)) return;
  const auto* first = static_cast<const std::byte*>(factor->data);
  copies->push_back(std::make_shared<const std::vector<std::byte>>(first, first + factor->bytes));
  factor->data = const_cast<std::byte*>(copies->back()->data());
}

aclError Multiply(const Product& product, const void* alpha, const void* a, const void* b,
                  const void* beta, void* c, aclrtStream stream) {
  NPUMESH_ACL_TRY(CheckProduct(product));
  OperatorRun run;
  run.call = CallOf(product);
  const void* const places[] = {a, b, c, alpha, beta};
  for (size_t i = 0; i < run.call.inputs.size(); ++i) {
    if (places[i] == nullptr) {
      return Fail(ACL_ERROR_INVALID_PARAM, product.function, "a matrix, alpha or beta is null");
    }
    const CallTensor& tensor = run.call.inputs[i];
    run.inputs.push_back({const_cast<void*>(places[i]),
                          npumesh::BytesOfTensor(tensor.dtype, tensor.dims), tensor.dims,
                          ACL_DT_UNDEFINED});
  }
  run.outputs = {run.inputs[2]};
  std::shared_ptr<MadeOperator> made;
  NPUMESH_ACL_TRY(FindOperator(product.function, run.call, &made));
  KeepFactor(&run.inputs[3], &run.copies);
  KeepFactor(&run.inputs[4], &run.copies);
  return RunOperator(product.function, std::move(run), std::move(made), stream, /*waits=*/false,
                     nullptr);
}

aclError HandleOf(const Product& product, aclopHandle** handle) {
  NPUMESH_ACL_TRY(CheckProduct(product));
  return MakeHandle(product.function, CallOf(product), handle);
}

}  // namespace

aclError aclblasGemmEx(aclTransType transA, aclTransType transB, aclTransType transC, int m, int n,
                       int k, const void* alpha, const void* matrixA, int lda,
                       aclDataType dataTypeA, const void* matrixB, int ldb, aclDataType dataTypeB,
                       const void* beta, void* matrixC, int ldc, aclDataType dataTypeC,
                       aclComputeType type, aclrtStream stream) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_TRY(CheckStrides(__func__, lda, ldb, ldc));
  return Multiply(
      {__func__, transA, transB, transC, m, n, k, dataTypeA, dataTypeB, dataTypeC, type}, alpha,
      matrixA, matrixB, beta, matrixC, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclblasHgemm(aclTransType transA, aclTransType transB, aclTransType transC, int m, int n,
                      int k, const aclFloat16* alpha, const aclFloat16* matrixA, int lda,
                      const aclFloat16* matrixB, int ldb, const aclFloat16* beta,
                      aclFloat16* matrixC, int ldc, aclComputeType type, aclrtStream stream) try {
  return aclblasGemmEx(transA, transB, transC, m, n, k, alpha, matrixA, lda, ACL_FLOAT16, matrixB,
                       ldb, ACL_FLOAT16, beta, matrixC, ldc, ACL_FLOAT16, type, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclblasS8gemm(aclTransType transA, aclTransType transB, aclTransType transC, int m, int n,
                       int k, const int32_t* alpha, const int8_t* matrixA, int lda,
                       const int8_t* matrixB, int ldb, const int32_t* beta, int32_t* matrixC,
                       int ldc, aclComputeType type, aclrtStream stream) try {
  return aclblasGemmEx(transA, transB, transC, m, n, k, alpha, matrixA, lda, ACL_INT8, matrixB, ldb,
                       ACL_INT8, beta, matrixC, ldc, ACL_INT32, type, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclblasGemvEx(aclTransType transA, int m, int n, const void* alpha, const void* a, int lda,
                       aclDataType dataTypeA, const void* x, int incx, aclDataType dataTypeX,
                       const void* beta, void* y, int incy, aclDataType dataTypeY,
                       aclComputeType type, aclrtStream stream) try {
  return aclblasGemmEx(transA, ACL_TRANS_N, ACL_TRANS_N, m, 1, n, alpha, a, lda, dataTypeA, x, incx,
                       dataTypeX, beta, y, incy, dataTypeY, type, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclblasHgemv(aclTransType transA, int m, int n, const aclFloat16* alpha,
                      const aclFloat16* a, int lda, const aclFloat16* x, int incx,
                      const aclFloat16* beta, aclFloat16* y, int incy, aclComputeType type,
                      aclrtStream stream) try {
  return aclblasGemvEx(transA, m, n, alpha, a, lda, ACL_FLOAT16, x, incx, ACL_FLOAT16, beta, y,
                       incy, ACL_FLOAT16, type, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclblasS8gemv(aclTransType transA, int m, int n, const int32_t* alpha, const int8_t* a,
                       int lda, const int8_t* x, int incx, const int32_t* beta, int32_t* y,
                       int incy, aclComputeType type, aclrtStream stream) try {
  return aclblasGemvEx(transA, m, n, alpha, a, lda, ACL_INT8, x, incx, ACL_INT8, beta, y, incy,
                       ACL_INT32, type, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclblasCreateHandleForGemmEx(aclTransType transA, aclTransType transB, aclTransType transC,
                                      int m, int n, int k, aclDataType dataTypeA,
                                      aclDataType dataTypeB, aclDataType dataTypeC,
                                      aclComputeType type, aclopHandle** handle) try {
  const ApiSpan span(__func__);
  return HandleOf(
      {__func__, transA, transB, transC, m, n, k, dataTypeA, dataTypeB, dataTypeC, type}, handle);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclblasCreateHandleForHgemm(aclTransType transA, aclTransType transB, aclTransType transC,
                                     int m, int n, int k, aclComputeType type,
                                     aclopHandle** handle) try {
  return aclblasCreateHandleForGemmEx(transA, transB, transC, m, n, k, ACL_FLOAT16, ACL_FLOAT16,
                                      ACL_FLOAT16, type, handle);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclblasCreateHandleForS8gemm(aclTransType transA, aclTransType transB, aclTransType transC,
                                      int m, int n, int k, aclComputeType type,
                                      aclopHandle** handle) try {
  return aclblasCreateHandleForGemmEx(transA, transB, transC, m, n, k, ACL_INT8, ACL_INT8,
                                      ACL_INT32, type, handle);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclblasCreateHandleForGemvEx(aclTransType transA, int m, int n, aclDataType dataTypeA,
                                      aclDataType dataTypeX, aclDataType dataTypeY,
                                      aclComputeType type, aclopHandle** handle) try {
  return aclblasCreateHandleForGemmEx(transA, ACL_TRANS_N, ACL_TRANS_N, m, 1, n, dataTypeA,
                                      dataTypeX, dataTypeY, type, handle);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclblasCreateHandleForHgemv(aclTransType transA, int m, int n, aclComputeType type,
                                     aclopHandle** handle) try {
  return aclblasCreateHandleForGemvEx(transA, m, n, ACL_FLOAT16, ACL_FLOAT16, ACL_FLOAT16, type,
                                      handle);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclblasCreateHandleForS8gemv(aclTransType transA, int m, int n, aclComputeType type,
                                      aclopHandle** handle) try {
  return aclblasCreateHandleForGemvEx(transA, m, n, ACL_INT8, ACL_INT8, ACL_INT32, type, handle);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
