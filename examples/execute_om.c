/* The smallest program over aclmdl: loads an offline model, feeds its first input with 0, 1, 2, ...
 * and prints what its first output begins with. How it is compiled and started: docs/atc.md. */
#include <acl/acl.h>
#include <stdio.h>
#include <stdlib.h>

static void Check(int code, const char* call) {
  if (code == 0) return;
  const char* why = aclGetRecentErrMsg();
  fprintf(stderr, "%s: error %d: %s\n", call, code, why == NULL ? "-" : why);
  exit(1);
}
#define CHECK(call) Check((int)(call), #call)

/* A buffer of device memory for each input, or for each output, of a model. */
static aclmdlDataset* Buffers(aclmdlDesc* desc, size_t count,
                              size_t (*size_of)(aclmdlDesc* desc, size_t index)) {
  aclmdlDataset* dataset = aclmdlCreateDataset();
  for (size_t i = 0; i < count; ++i) {
    void* memory = NULL;
    CHECK(aclrtMalloc(&memory, size_of(desc, i), ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemset(memory, size_of(desc, i), 0, size_of(desc, i)));
    CHECK(aclmdlAddDatasetBuffer(dataset, aclCreateDataBuffer(memory, size_of(desc, i))));
  }
  return dataset;
}

int main(int argc, char** argv) {
  uint32_t model = 0;
  if (argc != 2) return 2;
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  CHECK(aclmdlLoadFromFile(argv[1], &model));
  aclmdlDesc* desc = aclmdlCreateDesc();
  CHECK(aclmdlGetDesc(desc, model));
  aclmdlDataset* inputs = Buffers(desc, aclmdlGetNumInputs(desc), aclmdlGetInputSizeByIndex);
  aclmdlDataset* outputs = Buffers(desc, aclmdlGetNumOutputs(desc), aclmdlGetOutputSizeByIndex);

  const size_t bytes = aclmdlGetInputSizeByIndex(desc, 0);
  const size_t results = aclmdlGetOutputSizeByIndex(desc, 0);
  float* values = malloc(bytes > results ? bytes : results);
  for (size_t i = 0; i < bytes / sizeof(float); ++i) values[i] = (float)i;
  CHECK(aclrtMemcpy(aclGetDataBufferAddr(aclmdlGetDatasetBuffer(inputs, 0)), bytes, values, bytes,
                    ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK(aclmdlExecute(model, inputs, outputs));
  CHECK(aclrtMemcpy(values, results, aclGetDataBufferAddr(aclmdlGetDatasetBuffer(outputs, 0)),
                    results, ACL_MEMCPY_DEVICE_TO_HOST));
  printf("%s: %zu numbers, the first is %g\n", aclmdlGetOutputNameByIndex(desc, 0),
         results / sizeof(float), values[0]);

  free(values);
  CHECK(aclmdlUnload(model));
  CHECK(aclmdlDestroyDesc(desc));
  CHECK(aclrtResetDevice(0));
  return aclFinalize();
}
