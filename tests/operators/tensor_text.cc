#include "tests/operators/tensor_text.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/op_gradient.h"
#include "tests/unit/ops/quant/quant_values.h"

namespace npumesh {
namespace {

template <typename... Args>
Status Wrong(fmt::format_string<Args...> format, Args&&... args) {
  return Error(Code::kInvalidArgument, format, std::forward<Args>(args)...);
}

// The whole word as a number.
template <typename T>
std::optional<T> NumberOf(std::string_view word, int base = 10) {
  T value{};
  std::from_chars_result end{};
  if constexpr (std::is_integral_v<T>) {
    end = std::from_chars(word.data(), word.data() + word.size(), value, base);
  } else {
    end = std::from_chars(word.data(), word.data() + word.size(), value);
  }
  if (end.ec != std::errc() || end.ptr != word.data() + word.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBetween = " ,";
  for (size_t at = text.find_first_not_of(kBetween); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBetween, end);
  }
  return words;
}

template <typename T>
Status Fill(const std::vector<std::string_view>& words, bool repeats, Tensor* tensor) {
  // 16-bit floats are read as float, which they round from.
  using Read = std::conditional_t<std::is_integral_v<T>, T, double>;
  const auto room = tensor->bytes() / sizeof(T);
  if (repeats ? words.empty() || words.size() > room : words.size() != room) {
    return Wrong("{} takes {} numbers, not {}", tensor->type().ToString(), room, words.size());
  }
  T* const to = reinterpret_cast<T*>(tensor->mutable_data());
  for (size_t i = 0; i < room; ++i) {
    const std::string_view word = words[std::min(i, words.size() - 1)];
    const std::optional<Read> value = NumberOf<Read>(word);
    if (!value) return Wrong("\"{}\" is no {}", word, Name(tensor->dtype()));
    to[i] = ElementOf<T>(static_cast<double>(*value));
    if constexpr (std::is_integral_v<T>) to[i] = *value;
  }
  return Status();
}

// Whether numbers in braces fill it.
bool HasNumbers(DataType dtype) {
  const std::vector<DataType>& all = AllDtypes();
  return dtype == DataType::kComplex64 || dtype == DataType::kComplex128 ||
         std::find(all.begin(), all.end(), dtype) != all.end();
}

Status FillNumbers(std::string_view text, Tensor* tensor) {
  if (!HasNumbers(tensor->dtype())) {
    return Wrong("{} is filled by bytes{{...}}", Name(tensor->dtype()));
  }
  std::vector<std::string_view> words = WordsOf(text);
  const bool repeats = !words.empty() && words.back() == "...";
  if (repeats) words.pop_back();
  switch (tensor->dtype()) {
    case DataType::kComplex64:
      return Fill<float>(words, repeats, tensor);
    case DataType::kComplex128:
      return Fill<double>(words, repeats, tensor);
    default:
      return WithStorage(tensor->dtype(), [&](auto storage) {
        return Fill<decltype(storage)>(words, repeats, tensor);
      });
  }
}

Status FillBytes(std::string_view text, Tensor* tensor) {
  const std::vector<std::string_view> words = WordsOf(text);
  if (words.size() != tensor->bytes()) {
    return Wrong("{} has {} bytes, not {}", tensor->type().ToString(), tensor->bytes(),
                 words.size());
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const std::optional<uint8_t> value = NumberOf<uint8_t>(words[i], 16);
    if (!value) return Wrong("\"{}\" is no byte", words[i]);
    tensor->mutable_data()[i] = static_cast<std::byte>(*value);
  }
  return Status();
}

// "text", in which \ stands before a quote or another one.
Status FillText(std::string_view quoted, Tensor* tensor) {
  std::string text;
  for (size_t i = 1; i + 1 < quoted.size(); ++i)
    text += quoted[i] == '\\' ? quoted[++i] : quoted[i];
  if (BitsOf(tensor->dtype()) != 8 || text.size() != tensor->bytes()) {
    return Wrong("{} takes no text of {} characters", tensor->type().ToString(), text.size());
  }
  std::memcpy(tensor->mutable_data(), text.data(), text.size());
  return Status();
}

// "*0.5-3": times and plus.
Result<std::pair<double, double>> ReadScale(std::string_view text) {
  double factor = 1, offset = 0;
  const char* const end = text.data() + text.size();
  const char* at = text.data();
  while (at != end) {
    const bool times = *at == '*';
    double value = 0;
    const auto [next, error] = std::from_chars(*at == '-' ? at : at + 1, end, value);
    if (error != std::errc() || (!times && *at != '+' && *at != '-')) {
      return Wrong("\"{}\" is no \"*number\", \"+number\" or \"-number\"", text);
    }
    (times ? factor : offset) = value;
    at = next;
  }
  return std::pair(factor, offset);
}

Result<Tensor> Draw(const TensorType& type, std::string_view text) {
  const size_t open = text.find('('), close = text.find(')');
  if (open == std::string_view::npos || close == std::string_view::npos) {
    return Wrong("\"{}\" fills no tensor; numbers stand in braces", text);
  }
  const std::string_view name = text.substr(0, open);
  std::vector<double> numbers;
  for (const std::string_view word : WordsOf(text.substr(open + 1, close - open - 1))) {
    const std::optional<double> number = NumberOf<double>(word);
    if (!number) return Wrong("\"{}\" is no number", word);
    numbers.push_back(*number);
  }
  numbers.resize(2, 1);
  NPUMESH_ASSIGN_OR_RETURN(const auto scale, ReadScale(text.substr(close + 1)));
  Tensor drawn;
  if (name == "pattern") {
    drawn = Pattern(type.dtype, type.shape, static_cast<int>(numbers[0]));
  } else if (name == "waves") {
    drawn = Waves(type.dtype, type.shape, numbers[0]);
  } else if (name == "noise") {
    drawn = Noise(type.dtype, type.shape, static_cast<int>(numbers[0]), numbers[1]);
  } else {
    return Wrong("\"{}\" is no way to draw numbers; there are pattern, waves and noise", name);
  }
  if (scale == std::pair(1.0, 0.0)) return drawn;
  return Scaled(drawn, scale.first, scale.second);
}

Result<TensorType> ReadType(std::string_view text, std::string_view* rest) {
  const size_t open = text.find('['), close = text.find(']');
  const std::optional<DataType> dtype = DataTypeFromName(text.substr(0, open));
  if (!dtype || open == std::string_view::npos || close == std::string_view::npos) {
    return Wrong("\"{}\" is no tensor, which begins like float32[2,3]", text);
  }
  std::vector<int64_t> dims;
  for (const std::string_view word : WordsOf(text.substr(open + 1, close - open - 1))) {
    const std::optional<int64_t> dim = NumberOf<int64_t>(word);
    if (!dim || *dim < 0) return Wrong("\"{}\" is no dimension", word);
    dims.push_back(*dim);
  }
  *rest = text.substr(close + 1);
  return TensorType{*dtype, Shape(std::move(dims))};
}

}  // namespace

bool IsTensorText(std::string_view text) {
  const size_t open = text.find('[');
  return open != std::string_view::npos && DataTypeFromName(text.substr(0, open)).has_value();
}

Result<Tensor> ReadTensor(std::string_view text) {
  std::string_view data;
  NPUMESH_ASSIGN_OR_RETURN(const TensorType type, ReadType(text, &data));
  Tensor tensor = Tensor::Allocate(type);
  constexpr std::string_view kBytes = "bytes";
  const bool bytes = data.starts_with(kBytes);
  if (bytes) data.remove_prefix(kBytes.size());
  if (data.starts_with('{') && data.ends_with('}')) {
    const std::string_view inside = data.substr(1, data.size() - 2);
    NPUMESH_RETURN_IF_ERROR(bytes ? FillBytes(inside, &tensor) : FillNumbers(inside, &tensor));
    return tensor;
  }
  if (data.starts_with('"') && data.ends_with('"')) {
    NPUMESH_RETURN_IF_ERROR(FillText(data, &tensor));
    return tensor;
  }
  const std::vector<DataType>& numbers = AllDtypes();
  if (std::find(numbers.begin(), numbers.end(), type.dtype) == numbers.end()) {
    return data.empty() ? Result<Tensor>(std::move(tensor))
                        : Wrong("{} is filled by bytes{{...}}", Name(type.dtype));
  }
  return Draw(type, data.empty() ? "pattern(1)" : data);
}

}  // namespace npumesh
