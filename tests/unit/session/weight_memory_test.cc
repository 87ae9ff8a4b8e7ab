// How much memory the weights of a model take while they are loaded. A separate program, because
// the peak is one of the whole process.
//
// The weights are diagonal matrices, so that the files are sparse and the result is exact.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include "graph/ir/graph_builder.h"
#include "graph/onnx/onnx_file.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/session.h"
#include "runtime/base/text/parse.h"
#include "tests/onnx/model_builder.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;  // NOLINT: for strings with zeros

constexpr uint64_t kMiB = uint64_t{1} << 20;

// A field of /proc/self/status in bytes; 0 when the system does not tell.
uint64_t StatusBytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(field + ":")) continue;
    const size_t first = line.find_first_of("0123456789");
    const size_t last = line.find(' ', first);
    const Result<int64_t> kilobytes =
        ParseInt(line.substr(first, last - first), 0, int64_t{1} << 40, field);
    return kilobytes.ok() ? static_cast<uint64_t>(*kilobytes) << 10 : 0;
  }
  return 0;
}

// Lets VmHWM start again from what is resident now.
bool ResetPeak() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;
  return clear.good();
}

class WeightMemory : public ::testing::Test {
 protected:
  WeightMemory() { fs::create_directories(folder_); }
  ~WeightMemory() override { fs::remove_all(folder_); }

  // `factor` on the first part of the diagonal of [size, size], given by its bits. (Every element
  // of it is a page for the disk to write.)
  std::string PutWeight(int index, int64_t size, const std::string& factor) const {
    const std::string path = (folder_ / ("w" + std::to_string(index))).string();
    const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    EXPECT_GE(fd, 0);
    const auto bytes = static_cast<int64_t>(factor.size());
    EXPECT_EQ(ftruncate(fd, size * size * bytes), 0);
    for (int64_t i = 0; i < std::min<int64_t>(size, 1024); ++i) {
      EXPECT_EQ(pwrite(fd, factor.data(), factor.size(), (i * size + i) * bytes), bytes);
    }
    close(fd);
    return path;
  }
  // Factor 2 in float32.
  std::string PutWeight(int index, int64_t size) const {
    return PutWeight(index, size, {"\0\0\0\x40", 4});
  }

  // y = x w0 w1 ... for x float32[batch, size] of any batch.
  Model Chain(int count, int64_t size) const {
    GraphBuilder g("chain");
    Value x = g.Data("x", {DataType::kFloat, {-1, size}});
    for (int i = 0; i < count; ++i) {
      const Value w = g.FileConstant("w" + std::to_string(i), {DataType::kFloat, {size, size}},
                                     PutWeight(i, size));
      x = g.Op("MatMulV2", {{"x1", x}, {"x2", w}});
    }
    g.Output({x});
    return g.Build().value();
  }

  // The same for factors 1 of 16 bits, with x cast to them and y back; every second weight is
  // stored transposed.
  Model ChainOfHalves(int count, int64_t size, DataType dtype) const {
    const std::string one = dtype == DataType::kFloat16 ? "\x00\x3c"s : "\x80\x3f"s;
    const auto cast = [](GraphBuilder& g, Value x, DataType to) {
      return g.Op("Cast", {{"x", x}}, {{"dst_type", AttrValue::Type(to)}});
    };
    GraphBuilder g("chain");
    Value x = cast(g, g.Data("x", {DataType::kFloat, {-1, size}}), dtype);
    for (int i = 0; i < count; ++i) {
      const Value w =
          g.FileConstant("w" + std::to_string(i), {dtype, {size, size}}, PutWeight(i, size, one));
      x = g.Op("MatMulV2", {{"x1", x}, {"x2", w}}, {{"transpose_x2", AttrValue::Bool(i % 2 == 1)}});
    }
    g.Output({cast(g, x, DataType::kFloat)});
    return g.Build().value();
  }

  // y = relu(.. + 1) behind each product, which fuse, with weights that are transposed in front.
  Model ChainOfLayers(int count, int64_t size) const {
    GraphBuilder g("layers");
    Value x = g.Data("x", {DataType::kFloat, {-1, size}});
    const Value bias = g.Const(
        "bias", Tensor::FromVector<float>({DataType::kFloat, {size}},
                                          std::vector<float>(static_cast<size_t>(size), 1)));
    for (int i = 0; i < count; ++i) {
      const Value w = g.FileConstant("w" + std::to_string(i), {DataType::kFloat, {size, size}},
                                     PutWeight(i, size));
      const Value turned = g.Op("Transpose", {{"x", w}, {"perm", g.Ints({1, 0})}});
      x = g.Op("MatMulV2", {{"x1", x}, {"x2", turned}});
      x = g.Op("Relu", {{"x", g.Op("Add", {{"x1", x}, {"x2", bias}})}});
    }
    g.Output({x});
    return g.Build().value();
  }

  // The first row of each table, looked up at run time.
  Model Lookups(int count, int64_t size) const {
    GraphBuilder g("lookups");
    const Value x = g.Data("x", {DataType::kFloat, {-1, size}});
    const Value one =
        g.Op("Slice", {{"x", x}, {"offsets", g.Ints({0, 0})}, {"size", g.Ints({1, 1})}});
    const Value zero = g.Op("Cast", {{"x", g.Op("Sub", {{"x1", one}, {"x2", one}})}},
                            {{"dst_type", AttrValue::Type(DataType::kInt64)}});
    std::vector<Value> rows;
    for (int i = 0; i < count; ++i) {
      const Value w = g.FileConstant("w" + std::to_string(i), {DataType::kFloat, {size, size}},
                                     PutWeight(i, size));
      rows.push_back(g.Op("GatherV2", {{"x", w}, {"indices", zero}, {"axis", g.Int(0)}}));
    }
    g.Output(rows);
    return g.Build().value();
  }

  // The peak above what was there before, while `work` runs. 0: the system does not tell.
  static uint64_t PeakOf(const std::function<void()>& work) {
    malloc_trim(0);  // what was freed before must not hide what is allocated now
    const uint64_t before = StatusBytes("VmRSS");
    if (before == 0 || !ResetPeak()) return 0;
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const uint64_t peak = StatusBytes("VmHWM") - before;
    RecordProperty("peak_mib", static_cast<int>(peak / kMiB));
    RecordProperty("milliseconds", static_cast<int>(seconds.count() * 1000));
    return peak;
  }

  // While a session runs the model for each batch.
  uint64_t PeakOfRuns(Model model, int64_t size, const std::vector<int64_t>& batches,
                      float expected) {
    Env env;
    env.hbm_bytes = uint64_t{2} << 30;
    SessionOptions options;
    options.compile.fuses = [](std::string_view) { return true; };
    options.compile.weight_progress = [this](const WeightProgress& p) { progress_.push_back(p); };
    const auto run = [&](World& world) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
      NPUMESH_ASSIGN_OR_RETURN(const auto session,
                               Session::Create(world, *memory, std::move(model), options));
      for (const int64_t batch : batches) {
        const Tensor x =
            Tensor::FromVector<float>({DataType::kFloat, {batch, size}},
                                      std::vector<float>(static_cast<size_t>(batch * size), 3));
        for (StepObserver* const observer : observers_) {
          NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> y, session->Run({x}, observer));
          EXPECT_EQ(y[0].as<float>()[0], expected);
        }
      }
      return Status();
    };
    return PeakOf([&] {
      for (const Status& status : RunRanks(1, env, run))
        EXPECT_TRUE(status.ok()) << status.ToString();
    });
  }

  // Loading takes less than 1.3 times the bytes of the weights, each of `width` bytes an element.
  void ExpectLittleMoreThanTheWeights(Model model, int count, int64_t size,
                                      const std::vector<int64_t>& batches, float expected,
                                      int width = 4) {
#if defined(NPUMESH_SANITIZED)
    GTEST_SKIP() << "a sanitizer has memory of its own";
#endif
    const uint64_t peak = PeakOfRuns(std::move(model), size, batches, expected);
    if (peak == 0) GTEST_SKIP() << "the system does not tell what is resident";
    const auto weights = static_cast<uint64_t>(count * size * size * width);
    EXPECT_LT(peak, weights + weights * 3 / 10);
    ASSERT_EQ(progress_.size(), static_cast<size_t>(count));
    EXPECT_EQ(progress_.back().done, weights);
    for (const WeightProgress& progress : progress_) EXPECT_EQ(progress.total, weights);
  }

  // `count` tables of zeros, added to x, in one file.
  std::string PutOnnx(int count, int64_t size) const {
    testing::OnnxModelBuilder model;
    const TensorType type{DataType::kFloat, {size, size}};
    std::string last = "x";
    model.Input(last, type);
    for (int i = 0; i < count; ++i) {
      const std::string name = std::to_string(i), sum = "sum" + name;
      model.Initialiser(name, Tensor::Allocate(type));
      model.Node("Add", {last, name}, {sum});
      last = sum;
    }
    model.Output(last, type);
    const std::string path = (folder_ / "m.onnx").string();
    std::ofstream(path, std::ios::binary) << model.Bytes();
    return path;
  }

  std::vector<WeightProgress> progress_;
  std::vector<StepObserver*> observers_ = {nullptr};  // of the runs of each batch
  const fs::path folder_ =
      fs::path(::testing::TempDir()) / ("weight_memory_" + std::to_string(getpid()));
};

TEST_F(WeightMemory, OfPackedWeights) {
  ExpectLittleMoreThanTheWeights(Chain(24, 1024), 24, 1024, {1}, 3.0f * (1 << 24));
}

TEST_F(WeightMemory, OfPackedWeightsThatPlansShare) {
  ExpectLittleMoreThanTheWeights(Chain(24, 1024), 24, 1024, {4, 5, 7}, 3.0f * (1 << 24));
}

// A run that is observed has a separate plan, in which nothing is fused.
TEST_F(WeightMemory, OfPlansWithAndWithoutAnObserver) {
  StepObserver nobody;
  observers_ = {nullptr, &nobody};
  ExpectLittleMoreThanTheWeights(ChainOfLayers(24, 1024), 24, 1024, {4, 5}, 4.0f * (1 << 24) - 1);
}

TEST_F(WeightMemory, OfHalvesThatPlansShare) {
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    SCOPED_TRACE(std::string(Name(dtype)));
    progress_.clear();
    ExpectLittleMoreThanTheWeights(ChainOfHalves(24, 1536, dtype), 24, 1536, {1, 20}, 3, 2);
  }
}

TEST_F(WeightMemory, OfWeightsInDeviceMemory) {
  ExpectLittleMoreThanTheWeights(Lookups(24, 1024), 24, 1024, {1}, 2);
}

// As they are parsed, the pages of the file are given back; the graph takes the bytes over.
TEST_F(WeightMemory, OfAnOnnxFileThatIsImported) {
#if defined(NPUMESH_SANITIZED)
  GTEST_SKIP() << "a sanitizer has memory of its own";
#endif
  constexpr int kCount = 24;
  constexpr int64_t kSize = 1024;
  const std::string path = PutOnnx(kCount, kSize);
  const uint64_t peak = PeakOf([&] {
    const Result<Model> model = LoadOnnx(path, BuiltinOps());
    EXPECT_TRUE(model.ok()) << model.status().ToString();
  });
  if (peak == 0) GTEST_SKIP() << "the system does not tell what is resident";
  const uint64_t weights = uint64_t{kCount} * kSize * kSize * 4;
  EXPECT_LT(peak, weights + weights * 3 / 10);
}

TEST_F(WeightMemory, OneGibibyteInFourMatrices) {
  ExpectLittleMoreThanTheWeights(Chain(4, 8192), 4, 8192, {1}, 3.0f * (1 << 4));
}

TEST_F(WeightMemory, OneGibibyteInEightMatricesOfHalves) {
  ExpectLittleMoreThanTheWeights(ChainOfHalves(8, 8192, DataType::kFloat16), 8, 8192, {1}, 3, 2);
}

}  // namespace
}  // namespace npumesh
