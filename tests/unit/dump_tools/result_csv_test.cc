#include "launch/dump/result_csv.h"

#include "graph/compare/sources/dump_folder.h"
#include "graph/io/npy.h"
#include "launch/dump/verdict.h"
#include "tests/unit/dump_tools/dump_fixture.h"

namespace npumesh {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ResultFiles : public DumpFixture {
 protected:
  Comparison Compare(const std::string& mine, const std::string& golden) {
    const auto x = OpenTensorFolder(Path(mine));
    const auto y = OpenTensorFolder(Path(golden));
    EXPECT_TRUE(x.ok() && y.ok());
    CompareOptions options;
    options.algorithms.assign(kAlgorithms.begin(), kAlgorithms.end());
    return *CompareSources(**x, **y, nullptr, options);
  }
};

TEST_F(ResultFiles, ColumnsOfTwoDumps) {
  WriteOperator("a", "Add", "x", 1, {}, {Floats({3, 4})});
  WriteOperator("b", "Add", "x", 1, {}, {Floats({4, 3})});
  EXPECT_EQ(ResultCsv(Compare("a", "b"), false),
            "Index,OpType,NPUDump,DataType,Address,GroundTruth,DataType,Address,TensorIndex,Shape,"
            "CosineSimilarity,MaxAbsoluteError,AccumulatedRelativeError,RelativeEuclideanDistance,"
            "KullbackLeiblerDivergence,StandardDeviation,MeanAbsoluteError,RootMeanSquareError,"
            "MaxRelativeError,MeanRelativeError,CompareFailReason\n"
            "0,Add,x,float32,4096,x,float32,4096,x:output:0,\"[2]\",0.960000,1.000000,0.583333,"
            "0.282843,15.942381,\"(3.500;0.500),(3.500;0.500)\",1.000000,1.000000,0.333333,"
            "0.291667,\n");
}

TEST_F(ResultFiles, AddressesAndOverflowColumns) {
  WriteOperator("a", "Add", "x", 1, {}, {Floats({3})});
  std::filesystem::create_directories(Path("npy"));
  ASSERT_TRUE(WriteNpy(Path("npy/x.0.npy"), Floats({3})).ok());
  const std::string csv = ResultCsv(Compare("a", "npy"), true);
  EXPECT_THAT(csv, StartsWith("Index,OpType,NPUDump,DataType,Address,GroundTruth,DataType,"
                              "TensorIndex,Shape,OverFlow,CosineSimilarity"));
  EXPECT_THAT(csv, HasSubstr("0,Add,x,float32,4096,x,float32,x:output:0,\"[1]\",NO,1.000000"));
  EXPECT_THAT(csv, HasSubstr("This tensor is scalar."));
}

TEST_F(ResultFiles, MappingAndDivergence) {
  const std::string mine = WriteOperator("a", "Add", "x", 1, {}, {Floats({3, NAN})});
  const std::string golden = WriteOperator("b", "Add", "x", 1, {}, {Floats({4, 3})});
  const Comparison comparison = Compare("a", "b");
  EXPECT_EQ(MappingCsv(comparison),
            "Index,OpType,NPUDump,GroundTruth,TensorIndex,NPUDumpPath,GroundTruthPath\n"
            "0,Add,Add.x.1.7.1700000000000001,Add.x.1.7.1700000000000001,x:output:0," +
                mine + "," + golden + "\n");
  EXPECT_THAT(DivergenceCsv(comparison), HasSubstr("0,Add,x:output:0,origin,2,0,1,0,"));
  EXPECT_THAT(VerdictText({{0, "", comparison}}, 0),
              HasSubstr("verdict: rank 0: x (Add) output 0 float32[2]: 2 of 2 elements differ, "
                        "first at [0], max abs 1 at [0]"));
}

TEST(CsvCell, QuotesWhatNeedsIt) {
  EXPECT_EQ(CsvCell("plain"), "plain");
  EXPECT_EQ(CsvCell("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvCell("a\"b"), "\"a\"\"b\"");
}

}  // namespace
}  // namespace npumesh
