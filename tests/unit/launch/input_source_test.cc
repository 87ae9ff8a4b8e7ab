#include "launch/run/input_source.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "graph/io/npy.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FolderTest : public testing::Test {
 protected:
  FolderTest() { fs::remove_all(folder_); }
  ~FolderTest() override { fs::remove_all(folder_); }

  void Put(const std::string& file, float value) {
    fs::create_directories((folder_ / file).parent_path());
    const Tensor tensor = Tensor::FromVector<float>({DataType::kFloat, {1}}, {value});
    ASSERT_TRUE(WriteNpy((folder_ / file).string(), tensor).ok());
  }
  float Read(const TensorFolder& tensors, uint64_t step) {
    const Result<Tensor> tensor = tensors.Read(step, 0);
    return tensor.ok() ? tensor->as<float>()[0] : -1;
  }

  const fs::path folder_ =
      fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(FolderTest, TakesTheLayoutThatIsThere) {
  Put("plain/0.npy", 1);
  Put("ranks/rank_1/0.npy", 2);
  Put("steps/step_0/rank_1/0.npy", 3);
  Put("steps/step_1/rank_1/0.npy", 4);
  EXPECT_EQ(Read(*TensorFolder::ToRead((folder_ / "plain").string(), 0, 1), 5), 1);
  EXPECT_EQ(Read(*TensorFolder::ToRead((folder_ / "ranks").string(), 1, 2), 5), 2);
  EXPECT_EQ(Read(*TensorFolder::ToRead((folder_ / "steps").string(), 1, 2), 0), 3);
  EXPECT_EQ(Read(*TensorFolder::ToRead((folder_ / "steps").string(), 1, 2), 1), 4);
}

TEST_F(FolderTest, MissingFoldersAreNamed) {
  Put("plain/0.npy", 1);
  const auto absent = TensorFolder::ToRead((folder_ / "no").string(), 0, 1);
  EXPECT_THAT(std::string(absent.status().message()), HasSubstr("no: no such folder"));
  const auto flat = TensorFolder::ToRead((folder_ / "plain").string(), 1, 2);
  EXPECT_EQ(flat.status().code(), Code::kNotFound);
  EXPECT_THAT(std::string(flat.status().message()), HasSubstr("plain/rank_1"));
}

TEST_F(FolderTest, WhatIsWrittenCanBeRead) {
  const Tensor tensor = Tensor::FromVector<float>({DataType::kFloat, {1}}, {8});
  for (const uint64_t steps : {1, 3}) {
    const std::string folder = (folder_ / std::to_string(steps)).string();
    ASSERT_TRUE(TensorFolder::ToWrite(folder, 0, steps)->Write(0, 0, tensor).ok());
    EXPECT_EQ(Read(*TensorFolder::ToRead(folder, 0, 1), 0), 8);
  }
}

TEST_F(FolderTest, FilesThatNobodyReadsAreListed) {
  for (const char* name : {"0.npy", "1.npy", "7.npy", "07.npy", "x.npy"}) {
    Put(std::string("steps/step_0/rank_1/") + name, 1);
  }
  std::ofstream(folder_ / "steps/step_0/rank_1/readme.txt") << "text";
  const auto folder = TensorFolder::ToRead((folder_ / "steps").string(), 1, 2);
  const std::string set = (folder_ / "steps/step_0/rank_1/").string();
  EXPECT_THAT(folder->OtherFiles({0, 1, 2}),
              testing::ElementsAre(set + "07.npy", set + "7.npy", set + "x.npy"));
}

InputSpec Spec(int64_t index, TensorType declared, bool ref = false) {
  InputSpec spec;
  spec.name = fmt::format("in{}", index);
  spec.index = index;
  spec.declared = std::move(declared);
  spec.ref = ref;
  return spec;
}

TEST_F(FolderTest, InputsComeByDataIndexAndRefDataOnlyOnce) {
  Put("0.npy", 1);
  Put("3.npy", 2);
  const TensorType type{DataType::kFloat, {-1}};
  const auto source = InputsFromFolder({Spec(0, type), Spec(3, type, true)},
                                       *TensorFolder::ToRead(folder_.string(), 0, 1));
  const Result<std::vector<Tensor>> first = source->Step(0);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ((*first)[1].as<float>()[0], 2);
  EXPECT_EQ((*source->Step(1))[1].dtype(), DataType::kUndefined);
}

TEST_F(FolderTest, AnInputThatIsMissingIsNamed) {
  Put("0.npy", 1);
  const auto source = InputsFromFolder({Spec(4, {DataType::kFloat, {1}})},
                                       *TensorFolder::ToRead(folder_.string(), 0, 1));
  const Status status = source->Step(0).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("input 4 (in4)"));
}

TEST(FitInput, ChecksDtypeAndShape) {
  const Tensor given = Tensor::FromVector<float>({DataType::kFloat, {2}}, {1, 2});
  EXPECT_TRUE(FitInput(Spec(0, {DataType::kFloat, {2}}), given).ok());
  EXPECT_TRUE(FitInput(Spec(0, {DataType::kFloat, {-1}}), given).ok());
  EXPECT_TRUE(FitInput(Spec(0, {DataType::kFloat, Shape::UnknownRank()}), given).ok());
  for (const TensorType& wrong :
       {TensorType{DataType::kFloat, {3}}, {DataType::kFloat, {2, 1}}, {DataType::kInt32, {2}}}) {
    const Status status = FitInput(Spec(0, wrong), given).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("given is float32[2]"));
  }
}

TEST(RandomInputs, EachStepIsAnotherAndRefDataKeepsItsContent) {
  const TensorType type{DataType::kFloat, {8}};
  const auto source = RandomInputs({Spec(0, type), Spec(1, type, true)}, {type, type}, {}, 1, 0);
  const auto first = source->Step(0);
  const auto second = source->Step(1);
  EXPECT_FALSE(std::ranges::equal((*first)[0].as<float>(), (*second)[0].as<float>()));
  EXPECT_EQ((*first)[1].elements(), 8);
  EXPECT_EQ((*second)[1].dtype(), DataType::kUndefined);
}

}  // namespace
}  // namespace npumesh
