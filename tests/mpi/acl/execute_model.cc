// Loads an offline model, feeds it arrays and writes what it computes: only the vendor's headers.
//
//   execute_model MODEL.om INPUTS OUTPUTS [--batch N | --image H W | --dims N N ...] [--async]
//                 [--memory] [--times N]
//
// "@" in a path is the rank of a launched process. INPUTS has <i>.npy for each input, OUTPUTS gets
// <i>.bin and <i>.txt: "<dtype> <dim> <dim>".
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "acl/acl.h"

#define CHECK(call)                                                                     \
  do {                                                                                  \
    const aclError code = (call);                                                       \
    if (code != ACL_SUCCESS) {                                                          \
      const char* words = aclGetRecentErrMsg();                                         \
      std::fprintf(stderr, "%s: %d: %s\n", #call, code, words == nullptr ? "" : words); \
      std::exit(1);                                                                     \
    }                                                                                   \
  } while (false)

namespace {

struct Array {
  std::vector<int64_t> dims;
  std::string bytes;
};

std::string ReadAll(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    std::exit(1);
  }
  std::string bytes;
  char buffer[1 << 16];
  for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;)
    bytes.append(buffer, got);
  std::fclose(file);
  return bytes;
}

// Version 1 of the format, C order.
Array ReadNpy(const std::string& path) {
  const std::string bytes = ReadAll(path);
  const size_t header = 10 + static_cast<unsigned char>(bytes[8]) +
                        256 * static_cast<size_t>(static_cast<unsigned char>(bytes[9]));
  Array array;
  array.bytes = bytes.substr(header);
  const size_t shape = bytes.find("'shape': (");
  const char* at = bytes.c_str() + shape + 10;
  while (*at != ')') {
    char* end = nullptr;
    array.dims.push_back(std::strtoll(at, &end, 10));
    at = end;
    while (*at == ',' || *at == ' ') ++at;
  }
  return array;
}

void* DeviceCopy(const std::string& bytes, size_t size) {
  void* memory = nullptr;
  CHECK(aclrtMalloc(&memory, size == 0 ? 1 : size, ACL_MEM_MALLOC_HUGE_FIRST));
  if (!bytes.empty()) {
    CHECK(aclrtMemcpy(memory, size, bytes.data(), bytes.size(), ACL_MEMCPY_HOST_TO_DEVICE));
  }
  return memory;
}

struct Words {
  std::string model, inputs, outputs, gear;
  std::vector<int64_t> numbers;
  bool async = false, memory = false;
  int times = 1;
};

std::string WithRank(std::string path) {
  const char* rank = std::getenv("RANK");
  if (rank == nullptr) rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr) rank = std::getenv("PMI_RANK");
  const size_t at = path.find('@');
  if (rank != nullptr && at != std::string::npos) path.replace(at, 1, rank);
  return path;
}

Words Read(int argc, char** argv) {
  Words words;
  if (argc < 4) std::exit(2);
  words.model = WithRank(argv[1]);
  words.inputs = WithRank(argv[2]);
  words.outputs = WithRank(argv[3]);
  for (int i = 4; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--async")
      words.async = true;
    else if (word == "--memory")
      words.memory = true;
    else if (word == "--times")
      words.times = std::atoi(argv[++i]);
    else if (word.compare(0, 2, "--") == 0)
      words.gear = word;
    else
      words.numbers.push_back(std::atoll(word.c_str()));
  }
  return words;
}

void SetGear(const Words& words, uint32_t model, aclmdlDesc* desc, aclmdlDataset* inputs,
             const std::vector<int64_t>& all_dims) {
  if (words.gear.empty()) return;
  size_t index = 0;
  CHECK(aclmdlGetInputIndexByName(desc, ACL_DYNAMIC_TENSOR_NAME, &index));
  const size_t bytes = aclmdlGetInputSizeByIndex(desc, index);
  CHECK(aclmdlAddDatasetBuffer(inputs, aclCreateDataBuffer(DeviceCopy("", bytes), bytes)));
  if (words.gear == "--batch") {
    CHECK(aclmdlSetDynamicBatchSize(model, inputs, index, static_cast<uint64_t>(words.numbers[0])));
  } else if (words.gear == "--image") {
    CHECK(aclmdlSetDynamicHWSize(model, inputs, index, static_cast<uint64_t>(words.numbers[0]),
                                 static_cast<uint64_t>(words.numbers[1])));
  } else {
    aclmdlIODims dims;
    std::memset(&dims, 0, sizeof dims);
    dims.dimCount = all_dims.size();
    for (size_t i = 0; i < all_dims.size(); ++i) dims.dims[i] = all_dims[i];
    CHECK(aclmdlSetInputDynamicDims(model, inputs, index, &dims));
  }
}

void Write(const std::string& path, const void* bytes, size_t size) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || std::fwrite(bytes, 1, size, file) != size || std::fclose(file) != 0) {
    std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
    std::exit(1);
  }
}

void WriteOutput(const Words& words, aclmdlDesc* desc, aclmdlDataset* outputs, size_t index) {
  const std::string name = words.outputs + "/" + std::to_string(index);
  aclTensorDesc* tensor = aclmdlGetDatasetTensorDesc(outputs, index);
  size_t size = 0;
  std::string text;
  if (tensor != nullptr) {
    size = aclGetTensorDescSize(tensor);
    text = std::to_string(aclGetTensorDescType(tensor));
    for (size_t axis = 0; axis < aclGetTensorDescNumDims(tensor); ++axis) {
      int64_t dim = 0;
      CHECK(aclGetTensorDescDimV2(tensor, axis, &dim));
      text += " " + std::to_string(dim);
    }
  } else {
    aclmdlIODims dims;
    CHECK(aclmdlGetCurOutputDims(desc, index, &dims));
    const aclDataType dtype = aclmdlGetOutputDataType(desc, index);
    text = std::to_string(dtype);
    size = aclDataTypeSize(dtype);
    for (size_t axis = 0; axis < dims.dimCount; ++axis) {
      size *= static_cast<size_t>(dims.dims[axis]);
      text += " " + std::to_string(dims.dims[axis]);
    }
  }
  std::string bytes(size, '\0');
  const aclDataBuffer* buffer = aclmdlGetDatasetBuffer(outputs, index);
  if (size > 0) {
    CHECK(aclrtMemcpy(&bytes[0], size, aclGetDataBufferAddr(buffer), size,
                      ACL_MEMCPY_DEVICE_TO_HOST));
  }
  Write(name + ".bin", bytes.data(), bytes.size());
  Write(name + ".txt", text.data(), text.size());
}

}  // namespace

int main(int argc, char** argv) {
  const Words words = Read(argc, argv);
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  uint32_t model = 0;
  if (words.memory) {
    const std::string bytes = ReadAll(words.model);
    CHECK(aclmdlLoadFromMem(bytes.data(), bytes.size(), &model));
  } else {
    CHECK(aclmdlLoadFromFile(words.model.c_str(), &model));
  }
  aclmdlDesc* desc = aclmdlCreateDesc();
  CHECK(aclmdlGetDesc(desc, model));

  aclmdlDataset* inputs = aclmdlCreateDataset();
  const size_t gear_inputs = words.gear.empty() ? 0 : 1;
  std::vector<int64_t> all_dims;
  for (size_t i = 0; i + gear_inputs < aclmdlGetNumInputs(desc); ++i) {
    const Array array = ReadNpy(words.inputs + "/" + std::to_string(i) + ".npy");
    all_dims.insert(all_dims.end(), array.dims.begin(), array.dims.end());
    const size_t least = aclmdlGetInputSizeByIndex(desc, i);
    const size_t size = least > array.bytes.size() ? least : array.bytes.size();
    CHECK(aclmdlAddDatasetBuffer(inputs, aclCreateDataBuffer(DeviceCopy(array.bytes, size), size)));
    if (gear_inputs > 0) continue;
    aclTensorDesc* shape =
        aclCreateTensorDesc(aclmdlGetInputDataType(desc, i), static_cast<int>(array.dims.size()),
                            array.dims.data(), aclmdlGetInputFormat(desc, i));
    CHECK(aclmdlSetDatasetTensorDesc(inputs, shape, i));
    aclDestroyTensorDesc(shape);
  }
  SetGear(words, model, desc, inputs, all_dims);

  aclmdlDataset* outputs = aclmdlCreateDataset();
  for (size_t i = 0; i < aclmdlGetNumOutputs(desc); ++i) {
    const size_t size = aclmdlGetOutputSizeByIndex(desc, i);
    void* memory = size == 0 ? nullptr : DeviceCopy("", size);
    CHECK(aclmdlAddDatasetBuffer(outputs, aclCreateDataBuffer(memory, size)));
  }

  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));
  for (int i = 0; i < words.times; ++i) {
    if (words.async) {
      CHECK(aclmdlExecuteAsync(model, inputs, outputs, stream));
      CHECK(aclrtSynchronizeStream(stream));
    } else {
      CHECK(aclmdlExecute(model, inputs, outputs));
    }
  }
  for (size_t i = 0; i < aclmdlGetNumOutputs(desc); ++i) WriteOutput(words, desc, outputs, i);

  for (aclmdlDataset* dataset : {inputs, outputs}) {
    for (size_t i = 0; i < aclmdlGetDatasetNumBuffers(dataset); ++i) {
      aclDataBuffer* buffer = aclmdlGetDatasetBuffer(dataset, i);
      if (aclGetDataBufferAddr(buffer) != nullptr) CHECK(aclrtFree(aclGetDataBufferAddr(buffer)));
      CHECK(aclDestroyDataBuffer(buffer));
    }
    CHECK(aclmdlDestroyDataset(dataset));
  }
  CHECK(aclmdlDestroyDesc(desc));
  CHECK(aclmdlUnload(model));
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return 0;
}
