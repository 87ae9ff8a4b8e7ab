#include "graph/io/wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>

namespace npumesh {
namespace {

namespace pbio = google::protobuf::io;

Status CheckSize(size_t size) {
  if (size <= kMaxMessageBytes) return Status();
  return Error(Code::kCorrupt, "{} bytes; a message ends at {}", size, kMaxMessageBytes);
}

// Keeps the first error of a text, with the place a person looks for.
class FirstError final : public pbio::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = fmt::format("line {}:{}: {}", line + 1, column + 1, message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

Status ParseWire(std::string_view bytes, google::protobuf::Message* message) {
  NPUMESH_RETURN_IF_ERROR(CheckSize(bytes.size()));
  const google::protobuf::LogSilencer quiet;
  pbio::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                               static_cast<int>(bytes.size()));
  input.SetTotalBytesLimit(static_cast<int>(kMaxMessageBytes));
  input.SetRecursionLimit(kMaxDepth);
  if (message->ParseFromCodedStream(&input) && input.ConsumedEntireMessage()) return Status();
  return Error(Code::kCorrupt,
               "the {} bytes are not a binary {} (truncated, damaged, or nested deeper than {})",
               bytes.size(), message->GetTypeName(), kMaxDepth);
}

Status ParseText(std::string_view text, google::protobuf::Message* message) {
  NPUMESH_RETURN_IF_ERROR(CheckSize(text.size()));
  const google::protobuf::LogSilencer quiet;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxDepth);
  pbio::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  if (parser.Parse(&input, message)) return Status();
  return Error(Code::kCorrupt, "not the text of a {}: {}", message->GetTypeName(), error.text());
}

std::string SerializeWire(const google::protobuf::Message& message) {
  const google::protobuf::LogSilencer quiet;
  std::string bytes;
  bytes.reserve(message.ByteSizeLong());
  {
    pbio::StringOutputStream stream(&bytes);
    pbio::CodedOutputStream output(&stream);
    output.SetSerializationDeterministic(true);
    message.SerializeWithCachedSizes(&output);
  }
  return bytes;
}

std::string PrintText(const google::protobuf::Message& message) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetHideUnknownFields(true);
  std::string text;
  printer.PrintToString(message, &text);
  return text;
}

std::string Remainder(const google::protobuf::Message& message) {
  return message.ByteSizeLong() == 0 ? std::string() : SerializeWire(message);
}

void RestoreRemainder(const std::string& opaque, google::protobuf::Message* message) {
  const google::protobuf::LogSilencer quiet;
  if (!opaque.empty()) message->ParseFromString(opaque);
}

bool HasUnknownFields(const google::protobuf::Message& message) {
  return !message.GetReflection()->GetUnknownFields(message).empty();
}

}  // namespace npumesh
