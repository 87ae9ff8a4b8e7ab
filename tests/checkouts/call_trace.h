// Preloaded into a program over aclnn, writes each call into the file that ACLNN_TRACE names: a
// line of JSON with the function, the parameters by name, and of tensors the bytes of their views
// before and after, in hexadecimal digits. Objects are known by the calls that make them. The
// functions themselves are written by call_trace.py from the headers. One thread at a time calls.
#include <dlfcn.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

namespace trace {

constexpr uint64_t kMost = 1 << 22;  // bytes of a tensor that are written

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Infinities and NaN as Python's reader of JSON takes them.
inline std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char digits[64];
  std::snprintf(digits, sizeof digits, "%.17g", value);
  return digits;
}

template <typename T>
std::string List(const T* values, uint64_t count) {
  std::string text = "[";
  for (uint64_t i = 0; i < count; ++i)
    text += (i > 0 ? "," : "") + Number(static_cast<double>(values[i]));
  return text + "]";
}

struct Tensor {
  std::string words;  // shape, strides, type, format, as members of JSON
  const std::byte* begin = nullptr;
  uint64_t bytes = 0;
};

struct Known {
  std::map<const void*, Tensor> tensors;
  std::map<const void*, std::string> plain;  // scalars and arrays, as JSON
  std::map<const void*, std::vector<const void*>> lists;
};
inline Known& known() {
  static Known objects;
  return objects;
}

struct Call {
  std::string function;
  struct Parameter {
    std::string name;
    std::string words;                 // JSON, where it is no tensor
    std::vector<const void*> tensors;  // null: none
    bool list = false, written = false;
    std::string before;
  };
  std::vector<Parameter> parameters;

  void Take(const char* name, const aclTensor* x, bool written) {
    parameters.push_back({.name = name,
                          .words = "",
                          .tensors = {x},
                          .list = false,
                          .written = written,
                          .before = ""});
  }
  // Which lists are written their types do not say.
  void Take(const char* name, const aclTensorList* x, bool) {
    parameters.push_back({name, x == nullptr ? "null" : "",
                          x == nullptr ? std::vector<const void*>() : known().lists[x], true, true,
                          ""});
  }
  void Word(const char* name, std::string words) {
    parameters.push_back({name, std::move(words), {}, false, false, ""});
  }
  template <typename Object>
  void Made(const char* name, const Object* x) {
    Word(name, x == nullptr ? "null" : known().plain[x]);
  }
  void Take(const char* name, const aclScalar* x, bool) { Made(name, x); }
  void Take(const char* name, const aclIntArray* x, bool) { Made(name, x); }
  void Take(const char* name, const aclFloatArray* x, bool) { Made(name, x); }
  void Take(const char* name, const aclBoolArray* x, bool) { Made(name, x); }
  void Take(const char* name, const aclScalarList* x, bool) {
    std::string words = "[";
    for (const void* scalar : known().lists[x])
      words += (words.size() > 1 ? "," : "") + known().plain[scalar];
    Word(name, words + "]");
  }
  void Take(const char* name, const char* x, bool) {
    Word(name, x == nullptr ? "null" : "\"" + std::string(x) + "\"");
  }
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void Take(const char* name, T x, bool) {
    if constexpr (std::is_same_v<T, bool>) {
      Word(name, x ? "true" : "false");
    } else {
      Word(name, Number(static_cast<double>(x)));
    }
  }
};

inline std::map<const void*, Call>& waiting() {  // by executor
  static std::map<const void*, Call> calls;
  return calls;
}

inline std::string Bytes(const Tensor& tensor) {
  if (tensor.bytes == 0 || tensor.bytes > kMost || tensor.begin == nullptr) return "";
  std::vector<unsigned char> host(tensor.bytes);
  if (aclrtMemcpy(host.data(), host.size(), tensor.begin, tensor.bytes,
                  ACL_MEMCPY_DEVICE_TO_HOST) != 0)
    return "";
  static const char* digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * host.size());
  for (const unsigned char byte : host) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

inline std::string Values(const Call::Parameter& parameter, const char* when) {
  std::string text;
  for (const void* tensor : parameter.tensors) {
    if (!text.empty()) text += ",";
    if (tensor == nullptr) {
      text += "null";
      continue;
    }
    const Tensor& seen = known().tensors[tensor];
    text += "{" + seen.words + ",\"" + when + "\":\"" + Bytes(seen) + "\"}";
  }
  return parameter.list ? "[" + text + "]" : text;
}

// The first phase has succeeded.
inline void Keep(const void* executor, Call call) {
  waiting()[executor] = std::move(call);
}

inline Call Begin(const void* executor, aclrtStream stream) {
  aclrtSynchronizeStream(stream);
  Call call = waiting()[executor];
  for (Call::Parameter& parameter : call.parameters) {
    if (parameter.words.empty()) parameter.before = Values(parameter, "bytes");
  }
  return call;
}

inline void End(const Call& call, aclrtStream stream) {
  static std::FILE* const file =
      std::getenv("ACLNN_TRACE") == nullptr ? nullptr : std::fopen(std::getenv("ACLNN_TRACE"), "a");
  if (file == nullptr || call.function.empty()) return;
  aclrtSynchronizeStream(stream);
  std::string line = "{\"function\":\"" + call.function + "\",\"parameters\":[";
  for (size_t i = 0; i < call.parameters.size(); ++i) {
    const Call::Parameter& p = call.parameters[i];
    line += std::string(i > 0 ? "," : "") + "{\"name\":\"" + p.name +
            "\",\"value\":" + (p.words.empty() ? p.before : p.words);
    if (p.written && p.words.empty()) line += ",\"after\":" + Values(p, "bytes");
    line += "}";
  }
  std::fprintf(file, "%s]}\n", line.c_str());
  std::fflush(file);
}

}  // namespace trace

extern "C" {

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t* stride, int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) {
  aclTensor* made = trace::Next<decltype(aclCreateTensor)>("aclCreateTensor")(
      viewDims, viewDimsNum, dataType, stride, offset, format, storageDims, storageDimsNum,
      tensorData);
  std::vector<int64_t> strides(viewDimsNum, 1);
  uint64_t span = 1, stored = 1;
  bool empty = false;
  for (uint64_t i = viewDimsNum; i-- > 0;) {
    strides[i] = stride != nullptr      ? stride[i]
                 : i + 1 == viewDimsNum ? 1
                                        : strides[i + 1] * viewDims[i + 1];
    span += static_cast<uint64_t>(strides[i] * (viewDims[i] - 1));
    empty = empty || viewDims[i] == 0;
  }
  for (uint64_t i = 0; i < storageDimsNum; ++i) stored *= static_cast<uint64_t>(storageDims[i]);
  const bool plain = format == ACL_FORMAT_ND || format == ACL_FORMAT_NCHW ||
                     format == ACL_FORMAT_NHWC || format == ACL_FORMAT_NCDHW ||
                     format == ACL_FORMAT_NCL || format == ACL_FORMAT_NDHWC;
  const uint64_t size = aclDataTypeSize(dataType);
  trace::Tensor& seen = trace::known().tensors[made];
  seen.words = "\"shape\":" + trace::List(viewDims, viewDimsNum) +
               ",\"strides\":" + trace::List(strides.data(), strides.size()) +
               ",\"type\":" + std::to_string(dataType) + ",\"plain\":" + (plain ? "true" : "false");
  seen.begin = static_cast<const std::byte*>(tensorData) +
               (tensorData == nullptr ? 0 : offset * static_cast<int64_t>(size));
  seen.bytes = empty ? 0 : (plain ? span : stored) * size;
  return made;
}

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  aclScalar* made = trace::Next<decltype(aclCreateScalar)>("aclCreateScalar")(value, dataType);
  std::string digits;
  for (uint64_t i = 0; i < aclDataTypeSize(dataType); ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char*>(value)[i]);
    digits += two;
  }
  trace::known().plain[made] =
      "{\"type\":" + std::to_string(dataType) + ",\"scalar\":\"" + digits + "\"}";
  return made;
}

#define NPUMESH_TRACE_ARRAY(Object, function, T)                            \
  Object* function(const T* value, uint64_t size) {                         \
    Object* made = trace::Next<decltype(function)>(#function)(value, size); \
    trace::known().plain[made] = trace::List(value, size);                  \
    return made;                                                            \
  }
NPUMESH_TRACE_ARRAY(aclIntArray, aclCreateIntArray, int64_t)
NPUMESH_TRACE_ARRAY(aclFloatArray, aclCreateFloatArray, float)
NPUMESH_TRACE_ARRAY(aclBoolArray, aclCreateBoolArray, bool)

#define NPUMESH_TRACE_LIST(List, function, Object)                              \
  List* function(const Object* const* value, uint64_t size) {                   \
    List* made = trace::Next<decltype(function)>(#function)(value, size);       \
    trace::known().lists[made] = std::vector<const void*>(value, value + size); \
    return made;                                                                \
  }
NPUMESH_TRACE_LIST(aclTensorList, aclCreateTensorList, aclTensor)
NPUMESH_TRACE_LIST(aclScalarList, aclCreateScalarList, aclScalar)

}  // extern "C"
